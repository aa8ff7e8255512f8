"""Files of large XComs: shared by content, and deleted only when nobody has counted on them for a while."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from tradewind.storage.local_spills import SPILL_GRACE_SECONDS, LocalSpills

LONG_AGO = SPILL_GRACE_SECONDS * 2


def grow_old(path: Path) -> None:
    then = time.time() - LONG_AGO
    os.utime(path, (then, then))


def test_the_same_bytes_are_one_file(tmp_path: Path) -> None:
    name = LocalSpills(str(tmp_path)).write(b"value")
    assert LocalSpills(str(tmp_path)).write(b"value") == name
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"value"


def test_a_file_that_somebody_counts_on_again_stays(tmp_path: Path) -> None:
    """The database said that nothing refers to it; then another attempt spilled the same bytes."""
    name = LocalSpills(str(tmp_path)).write(b"value")
    grow_old(tmp_path / name)
    LocalSpills(str(tmp_path)).write(b"value")
    LocalSpills(str(tmp_path)).remove_unused([name])
    assert (tmp_path / name).exists()
    grow_old(tmp_path / name)
    LocalSpills(str(tmp_path)).remove_unused([name, "another"])
    assert not (tmp_path / name).exists()


def test_a_file_that_is_being_counted_on_this_moment_stays(tmp_path: Path) -> None:
    path = tmp_path / LocalSpills(str(tmp_path)).write(b"value")
    grow_old(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not LocalSpills(str(tmp_path)).remove(path.name, time.time())
    assert LocalSpills(str(tmp_path)).remove(path.name, time.time())


def test_a_file_that_goes_while_it_is_counted_on_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / LocalSpills(str(tmp_path)).write(b"value")
    real = os.utime

    def and_gone(file: int) -> None:
        real(file)
        path.unlink()

    monkeypatch.setattr(os, "utime", and_gone)
    LocalSpills(str(tmp_path)).write(b"value")
    assert path.read_bytes() == b"value"


def test_a_value_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        LocalSpills(str(tmp_path / "missing")).write(b"value")
    assert list(tmp_path.iterdir()) == []
