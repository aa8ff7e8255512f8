"""The state of a bundle in words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, state_of, write_state
from tradewind.bundles.file_of_version import read_file_of_version
from tradewind.bundles.report import advice, failing_since, sentence_of
from tradewind.bundles.version_folders import FetchFailed
from tradewind.model.moments import iso

ABSENT = "0" * 40


def test_the_first_failure_in_a_row_is_told(tmp_path: Path) -> None:
    server = GitServer(tmp_path / "server")
    bundle = server.bundle(tmp_path / "bundle")
    assert sentence_of(bundle) == "was not fetched yet"
    write_state(bundle.folder, FetchAnswer(problem="no network"))
    first = state_of(bundle.folder)
    write_state(bundle.folder, FetchAnswer(problem="Authentication failed"))
    second = state_of(bundle.folder)
    assert (second.problem, second.failing_since) == ("Authentication failed", first.failing_since)
    assert failing_since(bundle) == iso(first.failed_at)
    assert sentence_of(bundle) == (
        f"cannot be fetched since {iso(first.failed_at)}: Authentication failed; it has no DAGs yet. "
        "To do: check the credentials in the environment, or name a connection (#conn=ID)"
    )
    commit = server.commit({"dags/a.py": "1"})
    fetch(FetchRequest(bundle.folder, bundle.spec))
    assert failing_since(bundle) is None
    assert sentence_of(bundle) == f"version {commit[:12]}, fetched at {iso(state_of(bundle.folder).refreshed_at)}"
    write_state(bundle.folder, FetchAnswer(problem="it took longer than 300 s"))
    assert f"the version {commit[:12]} stays in use" in sentence_of(bundle)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("it took longer than 300 s", "raise bundles.fetch_timeout"),
        ("git fetch failed: fatal: Could not resolve host: x", "the address and the network"),
        ("s3://b cannot be read: PermissionError: Forbidden", "in the connection 'aws'"),
        ("object stores need the package fsspec. Install it: pip install fsspec", "restart the parser"),
        ("there is no connection 'x'; add it: tradewind connections add", ""),
        ("something else", ""),
    ],
)
def test_what_helps(problem: str, words: str) -> None:
    found = advice(problem, "aws")
    assert words in found if words else found == ""


def test_a_file_is_read_from_the_folder_of_a_version_or_from_the_repository(tmp_path: Path) -> None:
    server = GitServer(tmp_path / "server")
    bundle = server.bundle(tmp_path / "bundle")
    first = server.commit({"dags/a.py": "one"})
    fetch(FetchRequest(bundle.folder, bundle.spec))
    second = server.commit({"dags/a.py": "two"})
    fetch(FetchRequest(bundle.folder, bundle.spec))
    Path(bundle.files(first), "a.py").unlink()
    assert [read_file_of_version(bundle, commit, "a.py", 100) for commit in (first, second)] == [b"one", b"two"]
    for version, name, words in (
        (first, "b.py", "is not in the copy of the repository"),
        (ABSENT, "a.py", "is not in the copy of the repository"),
        ("../x", "a.py", "is no version"),
        (first, "../../state.json", "no path of a file"),
    ):
        with pytest.raises(FetchFailed, match=words):
            read_file_of_version(bundle, version, name, 100)
    for version in (first, second):
        with pytest.raises(FetchFailed, match="larger than 2 bytes"):
            read_file_of_version(bundle, version, "a.py", 2)
    stored = msgspec.structs.replace(bundle, spec=msgspec.structs.replace(bundle.spec, kind="object-store"))
    with pytest.raises(FetchFailed, match="is not kept"):
        read_file_of_version(stored, first, "a.py", 100)
