"""`tradewind doctor` says of each bundle in the settings whether it can be read, and which version it has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.git_server import GitServer
from tradewind.bundles import fetch_child
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.specs import BundleSpec
from tradewind.cli.main import cli
from tradewind.doctor.bundle_report import look
from tradewind.model.errors import NotFound

DAG = 'from tradewind import DAG\n\nwith DAG("etl"):\n    pass\n'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitServer:
    """A git server. The settings have it as the bundle `repo`."""
    made = GitServer(tmp_path)
    made.commit({"dags/etl.py": DAG})
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRADEWIND__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    monkeypatch.setenv("TRADEWIND__BUNDLES__STORAGE_FOLDER", str(tmp_path / "versions"))
    (tmp_path / "dags").mkdir()
    use(monkeypatch, f"repo=git+{made.bare}@main#subdir=dags")
    return made


def use(monkeypatch: pytest.MonkeyPatch, bundles: str) -> None:
    monkeypatch.setenv("TRADEWIND__BUNDLES__LIST", bundles)


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *arguments], standalone_mode=False)


def rows(result: Result) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_the_version_in_the_repository_and_on_this_machine(server: GitServer, tmp_path: Path) -> None:
    done = doctor("-o", "json")
    assert done.return_value == 0, done.output
    commit, found = server.git("rev-parse", "HEAD"), rows(done)
    assert found["repo"]["version"] == commit
    assert found["repo"]["text"] == "it is fetched when Tradewind starts; each run keeps its version"
    assert found["dags-folder"]["verdict"] == "readable"
    assert not (tmp_path / "versions").exists(), "it only looks"
    server.git("tag", "-a", "-m", "release", "v1")
    server.git("push", "--quiet", "origin", "v1")
    server.commit({"dags/other.py": DAG})
    spec = BundleSpec("repo", "git", str(server.bare), ref="v1")
    assert fetch(FetchRequest(str(tmp_path / "x"), spec, looks_only=True)).version == commit


def test_what_is_on_this_machine_is_said(server: GitServer, tmp_path: Path) -> None:
    folder = tmp_path / "versions" / "repo"
    answer = fetch(FetchRequest(str(folder), BundleSpec("repo", "git", str(server.bare), subdir="dags")))
    assert not answer.problem
    shown = doctor().stdout
    assert f"readable at {answer.version[:12]}; this machine has this version" in shown
    new = server.commit({"dags/other.py": DAG})
    shown = doctor().stdout
    assert f"readable at {new[:12]}; this machine has the version {answer.version[:12]}, and fetches the new one" in shown


def test_a_repository_that_cannot_be_read(server: GitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    use(
        monkeypatch, f"repo=git+{server.bare}@release gone=git+{server.bare}.gone@main secret=git+{server.bare}@main#conn=token"
    )
    done = doctor("-o", "json")
    assert done.return_value == 1
    found = rows(done)
    assert found["repo"]["text"] == (
        "the repository has no branch, tag or commit 'release'; its branches: main. Name a branch, tag or commit that exists"
    )
    assert "does not appear to be a git repository" in found["gone"]["text"]
    assert "there is no connection 'token'; add it" in found["secret"]["text"]
    assert "3 bundles in bundles.list" not in doctor().stdout
    assert doctor().stdout.startswith("4 bundles in bundles.list, 3 cannot be read\n")


def test_a_missing_package_is_named(server: GitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "far=nosuch://bucket/dags")
    assert "nosuch" in rows(doctor("-o", "json"))["far"]["text"]
    monkeypatch.setattr("builtins.__import__", _without("tradewind.bundles.object_store"))
    request = FetchRequest("/nowhere", BundleSpec("far", "object-store", "s3://bucket/dags"), looks_only=True)
    assert fetch(request) == FetchAnswer(problem=fetch_child.NO_FSSPEC)


def _without(module: str) -> object:
    plain = __import__

    def find(name: str, *rest: object) -> object:
        if name == module:
            raise ImportError(name)
        return plain(name, *rest)  # type: ignore[arg-type]

    return find


def test_an_object_store(server: GitServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="object stores need fsspec: pip install 'tradewind[object-store]'")
    (tmp_path / "store").mkdir()
    use(monkeypatch, f"far=file://{tmp_path}/store")
    assert "there are no files below" in rows(doctor("-o", "json"))["far"]["text"]
    (tmp_path / "store" / "etl.py").write_text(DAG)
    found = rows(doctor("-o", "json"))["far"]
    assert (found["verdict"], len(found["version"])) == ("readable", 64)


def test_what_happens_to_the_examined_folder(server: GitServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dags" / "etl.py").write_text(DAG)
    shown = doctor(str(tmp_path / "dags")).stdout
    assert f"{tmp_path}/dags is read as the bundle dags-folder." in shown
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "etl.py").write_text(DAG)
    assert "is in none of the bundles of the settings (dags-folder, repo)" in doctor(str(tmp_path / "other")).stdout
    entry = {
        "name": "repo",
        "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
        "kwargs": {"repo_url": str(server.bare), "tracking_ref": "main"},
    }
    use(monkeypatch, json.dumps([entry]))
    assert "is in the DAG folder, which bundles.list does not name: it is not read" in doctor(str(tmp_path / "dags")).stdout


def test_a_store_that_does_not_answer_is_given_up(server: GitServer, tmp_path: Path) -> None:
    answer = look(FetchRequest(str(tmp_path / "x"), BundleSpec("repo", "git", str(server.bare)), looks_only=True), 0.0)
    assert answer.problem == "it took longer than 0 s"


def test_without_bundles_and_without_a_path_the_dag_folder_is_examined(
    server: GitServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, "")
    folder = tmp_path / "own"
    monkeypatch.setenv("TRADEWIND__CORE__DAGS_FOLDER", str(folder))
    refused = doctor().exception
    assert isinstance(refused, NotFound)
    assert f"the DAG folder {folder} does not exist" in str(refused)
    folder.mkdir()
    (folder / "etl.py").write_text(DAG)
    assert "1 DAG file: 1 load" in doctor().stdout
