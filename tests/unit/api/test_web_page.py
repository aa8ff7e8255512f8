"""The static files of the web page: addresses, headers, compression, and an installation without the page."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tradewind.api.middleware import HeadersAndBodyLimit
from tradewind.api.web_page import ADDRESSES, add_page, policy_of

ROUTER = Path(__file__).parents[3] / "ui" / "src" / "router.tsx"
INDEX = '<!doctype html><style>a{}</style><script>boot</script><script src="/static/index-abc.js"></script><div id=root></div>'
CODE = b"console.log(1);" * 100


def client(folder: Path) -> TestClient:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    add_page(app, not_built="<p>make ui</p>", folder=folder)
    app.add_middleware(HeadersAndBodyLimit, body_max_bytes=1000)
    return TestClient(app)


@pytest.fixture
def built(tmp_path: Path) -> TestClient:
    (tmp_path / "static").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "static" / "index-abc.js").write_bytes(CODE)
    (tmp_path / "static" / "index-abc.js.gz").write_bytes(gzip.compress(CODE))
    (tmp_path / "secret.txt").write_text("secret")
    return client(tmp_path)


@pytest.mark.spec("S453")
def test_each_address_of_the_router_is_served(built: TestClient) -> None:
    paths = [path for path in re.findall(r'path: "(/[^"]*)"', ROUTER.read_text()) if path not in ("/", "/$")]  # /$: no other
    tops = {"/" + path.split("/")[1] for path in paths if not re.search(r"\bgetParentRoute: \(\) => (dag|run),", path)}
    under_a_dag = {"/grid", "/graph", "/calendar", "/code", "/details", "/gantt", "/events"}
    for path in tops - under_a_dag:
        assert built.get(path).text.startswith("<!doctype html>"), path
    for path in ("/", "/dags/a%2Fb/runs/x/tasks/y", "/admin/variables", "/pools/p"):
        assert built.get(path).text.startswith("<!doctype html>"), path
    assert built.get("/nothing").status_code == 404


def test_a_page_brings_its_own_policy_and_no_other(built: TestClient) -> None:
    answer = built.get("/dags")
    assert answer.headers.get_list("content-security-policy") == [policy_of(INDEX)]
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    allowed = {part.split()[0]: part.split()[1:] for part in policy_of(INDEX).split(";")}
    assert allowed["script-src"] == ["'self'", "'sha256-RQm+sKtAHXH6SlzZSlXJp08TMyd2rkAZxb/EwgBRV/8='"], (
        "this script, and no other"
    )
    assert "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='" in allowed["style-src"]


def test_the_policy_follows_a_page_that_is_built_again(built: TestClient, tmp_path: Path) -> None:
    before = built.get("/").headers["content-security-policy"]
    (tmp_path / "index.html").write_text(INDEX.replace("boot", "another"))
    os.utime(tmp_path / "index.html", ns=(1, 1))
    assert built.get("/").headers["content-security-policy"] == policy_of(INDEX.replace("boot", "another")) != before


def test_files_with_a_hash_are_kept_for_ever_and_sent_compressed(built: TestClient) -> None:
    packed = built.get("/static/index-abc.js", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == CODE  # the client unpacks
    assert packed.headers["content-type"].startswith("text/javascript")
    assert "immutable" in packed.headers["cache-control"]
    plain = built.get("/static/index-abc.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == CODE


@pytest.mark.parametrize(
    "path", ["/static/..%2Fsecret.txt", "/static/../secret.txt", "/static/nothing.js", "/static/%2e%2e/index.html"]
)
def test_only_files_of_the_page_are_served(built: TestClient, path: str) -> None:
    answer = built.get(path)
    assert answer.status_code == 404
    assert b"secret" not in answer.content


def test_without_the_page_the_front_says_how_to_build_it(tmp_path: Path) -> None:
    bare = client(tmp_path)
    assert bare.get("/").text == "<p>make ui</p>"
    assert bare.get("/dags").status_code == 404


def test_every_address_is_listed_once() -> None:
    assert len(set(ADDRESSES)) == len(ADDRESSES)


def test_an_unknown_address_gives_people_the_page_and_programs_json(built: TestClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml"}
    page = built.get("/nothing/here", headers=browser)
    assert (page.status_code, page.text[:15]) == (404, "<!doctype html>")
    assert page.headers["content-security-policy"] == policy_of(INDEX)
    assert built.get("/nothing/here").json() == {"detail": "Not Found"}
    assert built.get("/api/v2/nothing", headers=browser).json() == {"detail": "Not Found"}
