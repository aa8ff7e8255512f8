"""A bundle in a bucket, with the package s3fs against a server that speaks S3."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("s3fs", reason="tests of buckets need the packages s3fs and moto")
pytest.importorskip("moto", reason="tests of buckets need the packages s3fs and moto")

from moto.server import ThreadedMotoServer

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server without buckets."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        moto.stop()


def put(server: str, path: str, content: str = "") -> None:
    """Make a bucket or an object. The server looks for a signature, and does not check it."""
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
        "Content-Type": "text/plain",
    }
    request = urllib.request.Request(f"{server}/{path}", content.encode(), headers, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def fetched(bundle: VersionedBundle, server: str) -> FetchAnswer:
    """Fetch in a process of its own, as the parser does."""
    loop, answers = Loop(SystemClock()), list[FetchAnswer]()

    def done(answer: FetchAnswer) -> None:
        answers.append(answer)
        loop.stop()

    extra = json.dumps({"endpoint_url": server, "region_name": "us-east-1"})
    connection = {"login": "key", "password": "secret", "extra": extra}
    try:
        Fetch(loop, FetchRequest(bundle.folder, bundle.spec, connection=connection), 100 * SECOND, done)
        loop.run()
    finally:
        loop.close()
    return answers[0]


@pytest.mark.timeout(400)  # five processes that import the packages of AWS
def test_a_folder_of_a_bucket(server: str, tmp_path: Path) -> None:
    bundle = VersionedBundle(BundleSpec("dags", "object-store", "s3://bucket/team/dags", "", "", "c"), str(tmp_path / "dags"))
    assert "cannot be read: FileNotFoundError" in fetched(bundle, server).problem
    put(server, "bucket")
    put(server, "bucket/team/dags/")  # a marker, as the console of AWS makes it
    put(server, "bucket/team/dags/a.py", "1")
    put(server, "bucket/team/dags/inner/b.py", "b")
    put(server, "bucket/team/dags-of-others/c.py", "c")
    first = fetched(bundle, server)
    assert first.problem == ""
    assert fetched(bundle, server) == first
    put(server, "bucket/team/dags/a.py", "2")
    second = fetched(bundle, server)
    put(server, "bucket/team/dags/a.py", "1")
    assert fetched(bundle, server) == first, "the same content has the same version"

    def held(answer: FetchAnswer) -> dict[str, str]:
        root = Path(bundle.files(answer.version))
        return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}

    assert held(first) == {"a.py": "1", "inner/b.py": "b"}
    assert held(second) == {"a.py": "2", "inner/b.py": "b"}
    assert bundle.newest_version() == first.version
