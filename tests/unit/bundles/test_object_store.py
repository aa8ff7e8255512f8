"""Folders in object stores: versions, changes during a fetch, limits, credentials, and what is copied again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec", reason="tests of object stores need fsspec: pip install 'tradewind[object-store]'")

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from tradewind.bundles import object_store
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, state_of
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.bundles.version_folders import VERSIONS_KEPT

PREFIX = "/bucket/dags"


class Bucket:
    """A folder in fsspec's file system in memory, and its bundle."""

    def __init__(self, folder: Path) -> None:
        self.files = fsspec.filesystem("memory")
        self.bundle = VersionedBundle(BundleSpec("dags", "object-store", "memory://bucket/dags", ""), str(folder))

    def put(self, **files: str) -> None:
        """Write files. The name `a__b` stands for `a/b.py`."""
        for name, content in files.items():
            self.files.pipe_file(f"{PREFIX}/{name.replace('__', '/')}.py", content.encode())

    def fetch(self, **facts: Any) -> FetchAnswer:
        return fetch(FetchRequest(self.bundle.folder, self.bundle.spec, **facts))

    def version(self, **facts: Any) -> str:
        answer = self.fetch(**facts)
        assert answer.problem == ""
        return answer.version

    def held(self, version: str) -> dict[str, str]:
        root = Path(self.bundle.files(version))
        return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    fsspec.filesystem("memory").store.clear()
    yield Bucket(tmp_path / "bundles" / "dags")
    fsspec.filesystem("memory").store.clear()


def test_each_listing_is_a_version_whose_folder_stays(bucket: Bucket) -> None:
    bucket.put(a="1", inner__b="b")
    first = bucket.version()
    assert bucket.version() == first, "nothing has changed"
    bucket.put(a="2")
    second = bucket.version()
    assert second != first
    assert bucket.held(first) == {"a.py": "1", "inner/b.py": "b"}
    assert bucket.held(second) == {"a.py": "2", "inner/b.py": "b"}
    assert bucket.bundle.newest_version() == second
    assert state_of(bucket.bundle.folder).version == second


def test_a_deleted_file_is_a_new_version(bucket: Bucket) -> None:
    bucket.put(a="1", b="2")
    bucket.version()
    bucket.files.rm(f"{PREFIX}/b.py")
    assert bucket.held(bucket.version()) == {"a.py": "1"}


def test_only_changed_files_are_requested(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    get = MemoryFileSystem.get

    def noting(files: Any, sources: list[str], targets: list[str]) -> None:
        requested.extend(sources)
        get(files, sources, targets)

    monkeypatch.setattr(MemoryFileSystem, "get", noting)
    bucket.put(a="1", b="2", c="3")
    first = bucket.version()
    assert len(requested) == 3
    Path(bucket.bundle.files(first), "c.py").write_text("a task wrote here")
    bucket.put(a="4")
    requested.clear()
    assert bucket.held(bucket.version()) == {"a.py": "4", "b.py": "2", "c.py": "3"}
    assert requested == [f"{PREFIX}/a.py", f"{PREFIX}/c.py"], "the damaged copy is not used"


def test_a_change_during_the_fetch_is_never_a_mixture(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put(a="old", b="old")
    change_while_reading(bucket, monkeypatch, times=1)
    assert bucket.held(bucket.version()) == {"a.py": "new 1", "b.py": "new 1"}
    assert len(os.listdir(Path(bucket.bundle.folder, "versions"))) == 1, "no folder of the half-copied listing"


def test_files_that_never_stop_changing_keep_the_last_version(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put(a="old", b="old")
    first = bucket.version()
    bucket.put(a="begin")
    change_while_reading(bucket, monkeypatch, times=100)
    assert "again and again" in bucket.fetch().problem
    assert bucket.bundle.newest_version() == first
    assert os.listdir(Path(bucket.bundle.folder, "versions")) == [first]


def test_a_file_that_disappears_during_the_fetch(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put(a="1", b="2")
    get = MemoryFileSystem.get

    def deleting(files: Any, sources: list[str], targets: list[str]) -> None:
        if files.exists(f"{PREFIX}/b.py"):
            files.rm(f"{PREFIX}/b.py")
        get(files, sources, targets)

    monkeypatch.setattr(MemoryFileSystem, "get", deleting)
    assert bucket.held(bucket.version()) == {"a.py": "1"}


def change_while_reading(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Overwrite both files after each reading of them, so many times."""
    get = MemoryFileSystem.get
    done: list[int] = []

    def changing(files: Any, sources: list[str], targets: list[str]) -> None:
        get(files, sources, targets)
        if len(done) < times:
            done.append(1)
            bucket.put(a=f"new {len(done)}", b=f"new {len(done)}")

    monkeypatch.setattr(MemoryFileSystem, "get", changing)


def test_an_empty_or_missing_folder_keeps_the_last_version(bucket: Bucket) -> None:
    assert "memory://bucket/dags cannot be read: FileNotFoundError" in bucket.fetch().problem
    bucket.put(a="1")
    first = bucket.version()
    bucket.files.rm(f"{PREFIX}/a.py")
    bucket.files.mkdirs(PREFIX, exist_ok=True)
    assert "there are no files below memory://bucket/dags" in bucket.fetch().problem
    assert bucket.bundle.newest_version() == first
    state = state_of(bucket.bundle.folder)
    assert state.version == first


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("FILES_MAX", 2, "more than 2 files"), ("BYTES_MAX", 4, "5 bytes; at most 4")],
)
def test_limits(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, words: str) -> None:
    monkeypatch.setattr(object_store, limit, value)
    bucket.put(a="12", b="34", c="5")
    assert words in bucket.fetch().problem


def test_compiled_files_and_repositories_are_left_out(bucket: Bucket) -> None:
    for name in ("a.py", "a.pyc", "__pycache__/a.py", ".git/config", ".airflowignore"):
        bucket.files.pipe_file(f"{PREFIX}/{name}", b"x")
    assert set(bucket.held(bucket.version())) == {"a.py", ".airflowignore"}


Ls = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"name": f"{PREFIX}/../x", "type": "file", "size": 1, "ETag": "1"}], "no path of a file"),
        ([{"name": f"{PREFIX}/x", "type": "file", "size": 1}], "does not say when a file changes"),
        (
            [
                {"name": f"{PREFIX}/x", "type": "file", "size": 1, "ETag": "1"},
                {"name": f"{PREFIX}/x/y", "type": "file", "size": 1, "ETag": "1"},
            ],
            "both a file and a folder",
        ),
    ],
)
def test_listings_that_are_no_folder(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, entries: list[dict[str, Any]], words: str
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "ls", lambda *_, **__: entries)
    assert words in bucket.fetch().problem


def test_markers_of_folders_are_no_files(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools create empty objects whose names end with a slash."""
    bucket.put(a="1")
    ls = MemoryFileSystem.ls

    def with_markers(files: Any, path: str, detail: bool = True) -> list[dict[str, Any]]:
        markers = [
            {"name": f"{PREFIX}/", "type": "directory"},
            {"name": f"{PREFIX}/sub/", "type": "file", "size": 0, "ETag": "0"},
        ]
        return [*markers, *ls(files, path, detail=detail)]

    monkeypatch.setattr(MemoryFileSystem, "ls", with_markers)
    assert bucket.held(bucket.version()) == {"a.py": "1"}


def test_any_error_of_the_file_system_is_a_problem_without_secrets(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("the key hunter2 is wrong")

    monkeypatch.setattr(MemoryFileSystem, "ls", failing)
    extra = '{"storage_options": {"secret": "hunter2"}}'
    problem = bucket.fetch(connection={"extra": extra}).problem
    assert problem == "memory://bucket/dags cannot be read: RuntimeError: the key *** is wrong"


def test_an_unknown_scheme_and_a_wrong_connection_are_problems(bucket: Bucket) -> None:
    def problem(place: str, **facts: Any) -> str:
        return fetch(FetchRequest(bucket.bundle.folder, BundleSpec("x", "object-store", place, "", "", "c"), **facts)).problem

    assert "no-such-store://x cannot be opened" in problem("no-such-store://x")
    assert "role_arn" in problem("s3://x", connection={"extra": '{"role_arn": "arn:x"}'})
    assert "the connection 'c'" in problem("s3://x", connection={"extra": '{"role_arn": "arn:x"}'})


def test_old_versions_are_deleted_but_not_those_in_use(bucket: Bucket) -> None:
    versions = []
    for number in range(VERSIONS_KEPT + 3):
        bucket.put(a=str(number))
        versions.append(bucket.version())
        os.utime(Path(bucket.bundle.folder, "versions", versions[-1]), (number, number))
        bucket.version(version=versions[-1], used=versions[:1])
    there = [version for version in versions if os.path.isdir(bucket.bundle.files(version))]
    assert there == [versions[0], *versions[-VERSIONS_KEPT:]]
    assert "were deleted from this machine" in bucket.fetch(version=versions[1]).problem
    assert "no version" in bucket.fetch(version="../x").problem
    listings = {name.removesuffix(".json") for name in os.listdir(Path(bucket.bundle.folder, "listings"))}
    assert set(there) <= listings
    assert len(listings) <= len(there) + 1


def test_a_folder_of_this_machine_has_versions_too(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "inner").mkdir(parents=True)
    (shared / "a.py").write_text("1")
    (shared / "inner" / "b.py").write_text("b")
    bundle = VersionedBundle(BundleSpec("x", "object-store", f"file://{shared}", ""), str(tmp_path / "bundle"))
    first = fetch(FetchRequest(bundle.folder, bundle.spec)).version
    (shared / "a.py").write_text("22")
    second = fetch(FetchRequest(bundle.folder, bundle.spec)).version
    assert [Path(bundle.files(version), "a.py").read_text() for version in (first, second)] == ["1", "22"]
    assert Path(bundle.newest, "inner", "b.py").read_text() == "b"
