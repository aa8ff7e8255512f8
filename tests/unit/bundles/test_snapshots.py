"""Snapshots of a DAG folder, and their copies on a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tradewind.bundles.snapshots import Snapshot, SnapshotRefused, Snapshots
from tradewind.bundles.unpacked import VERSIONS_KEPT, UnpackedBundles
from tradewind.wire.bundle_manifest import BYTES_MAX, BundleFile, manifest_problem, version_of

HASH = "0" * 64


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    folder = tmp_path / "dags"
    (folder / "helpers").mkdir(parents=True)
    (folder / "one.py").write_text("import helpers.words\n")
    (folder / "helpers" / "words.py").write_text("WORD = 1\n")
    return folder


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(str(tmp_path / "store"))


def paths(snapshot: Snapshot) -> list[str]:
    return [one.path for one in snapshot.files]


def copy(snapshot: Snapshot, snapshots: Snapshots, store: UnpackedBundles) -> Path:
    """Do what gateway and worker do together."""
    for name in store.missing(snapshot.files):
        assert store.add(name, snapshots.content(name))
    return Path(store.unpack(snapshot.version, snapshot.files))


def test_a_copy_has_the_same_files(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    (dags / "run.sh").write_text("#!/bin/sh\n")
    (dags / "run.sh").chmod(0o755)
    (dags / "empty.txt").touch()
    folder = copy(snapshots.take(str(dags)), snapshots, UnpackedBundles(str(tmp_path / "worker")))
    found = {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()}
    assert found == {
        "one.py": "import helpers.words\n",
        "helpers/words.py": "WORD = 1\n",
        "run.sh": "#!/bin/sh\n",
        "empty.txt": "",
    }
    assert [os.access(folder / name, os.X_OK) for name in ("run.sh", "one.py")] == [True, False]


def test_the_content_of_a_snapshot_survives_a_change_of_the_folder(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    before = snapshots.take(str(dags))
    (dags / "one.py").write_text("other\n")
    after = snapshots.take(str(dags))
    assert after.version != before.version
    store = UnpackedBundles(str(tmp_path / "worker"))
    assert (copy(before, snapshots, store) / "one.py").read_text() == "import helpers.words\n"
    assert store.missing(after.files) == [one.sha256 for one in after.files if one.path == "one.py"]
    assert (copy(after, snapshots, store) / "one.py").read_text() == "other\n"


def test_an_equal_folder_has_the_same_version(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    first = snapshots.take(str(dags))
    assert snapshots.take(str(dags)) is first
    (dags / "one.py").write_text("import helpers.words\n")  # another time of change, the same content
    assert snapshots.take(str(dags)).version == first.version
    assert Snapshots(str(tmp_path / "other")).take(str(dags)).version == first.version


def test_what_is_left_out(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    """Hidden and compiled files, and links out of the folder; a link inside is followed, once."""
    (tmp_path / "secret.py").write_text("never\n")
    (dags / ".env").write_text("never\n")
    (dags / ".git").mkdir()
    (dags / ".git" / "config").write_text("never\n")
    (dags / "helpers" / "__pycache__").mkdir()
    (dags / "helpers" / "__pycache__" / "words.pyc").write_text("never\n")
    (dags / "outside.py").symlink_to(tmp_path / "secret.py")
    (dags / "inside.py").symlink_to(dags / "one.py")
    (dags / "helpers" / "up").symlink_to(dags)
    (dags / "broken").symlink_to(dags / "nothing")
    assert paths(snapshots.take(str(dags))) == ["helpers/words.py", "inside.py", "one.py"]


def test_a_missing_and_a_large_folder_are_refused(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    with pytest.raises(SnapshotRefused, match="has no folder"):
        snapshots.take(str(tmp_path / "nothing"))
    with (dags / "data.bin").open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    with pytest.raises(SnapshotRefused, match="bytes; at most"):
        snapshots.take(str(dags))


def test_content_is_found_by_its_hash_only(snapshots: Snapshots, dags: Path) -> None:
    snapshots.take(str(dags))
    with pytest.raises(OSError, match="is no SHA-256"):
        snapshots.content("../../etc/passwd")


@pytest.mark.parametrize("path", ["../up.py", "/etc/passwd", "a//b.py", "./a.py", "", "a\0b"])
def test_a_path_out_of_the_bundle_is_refused(path: str) -> None:
    assert "is no path of a file" in manifest_problem((BundleFile(path, HASH, 1),))


def test_a_manifest_is_checked() -> None:
    good = BundleFile("a.py", HASH, 1)
    assert manifest_problem((good,)) == ""
    assert "no path" in manifest_problem((good, good))
    assert "is no SHA-256" in manifest_problem((BundleFile("a.py", "../x", 1),))
    assert version_of((good, BundleFile("b.py", HASH, 1))) == version_of((BundleFile("b.py", HASH, 1), good))


def test_damaged_content_is_not_stored(tmp_path: Path) -> None:
    store = UnpackedBundles(str(tmp_path))
    assert not store.add(HASH, b"something else")
    assert store.missing([BundleFile("a.py", HASH, 14)]) == [HASH]


def test_old_versions_are_deleted_and_those_in_use_stay(dags: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    store, made = UnpackedBundles(str(tmp_path / "worker")), []
    for number in range(VERSIONS_KEPT + 3):
        (dags / "one.py").write_text(f"n = {number}\n")
        folder = copy(snapshots.take(str(dags)), snapshots, store)
        os.utime(folder, (number, number))
        made.append(folder.name)
    store.clean({made[0]})
    assert [store.find(one) is not None for one in made] == [True, False, False, *VERSIONS_KEPT * [True]]
