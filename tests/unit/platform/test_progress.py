"""Progress files: written by the loop of a process, read by others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tradewind.model.moments import HOUR, SECOND
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.platform.progress import Stamp, read_progress, stamp_interval, unhealthy_after


def test_the_age_is_the_time_since_the_last_stamp(tmp_path: Path) -> None:
    path, clock, received = str(tmp_path / "p"), ManualClock(), []
    loop = Loop(clock)
    Stamp(path, clock, lambda: received.append(clock.monotonic())).keep(loop, SECOND)
    assert read_progress(path, clock) is None, "it has not turned yet"
    loop.turn(0)
    first = read_progress(path, clock)
    assert first is not None
    assert (first.pid, first.started, first.age, first.alive) == (os.getpid(), clock.wall(), 0, True)
    clock.advance(3 * SECOND)
    assert read_progress(path, clock) == first._replace(age=3 * SECOND)
    loop.turn(0)
    assert read_progress(path, clock) == first
    assert len(received) == 2


def test_a_sleeping_machine_does_not_age_the_stamp(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "p"), ManualClock()
    Stamp(path, clock).stamp()
    clock.suspend(8 * HOUR)
    found = read_progress(path, clock)
    assert found is not None
    assert found.age == 0


def test_a_process_that_died_or_ended_normally(tmp_path: Path) -> None:
    path, clock = str(tmp_path / "p"), ManualClock()
    stamp = Stamp(path, clock)
    stamp.stamp()
    gone = subprocess.Popen(["true"])
    gone.wait()
    data = bytearray((tmp_path / "p").read_bytes())
    data[8:16] = gone.pid.to_bytes(8, "little")
    (tmp_path / "p").write_bytes(data)
    found = read_progress(path, clock)
    assert found is not None
    assert not found.alive
    stamp.end()
    assert read_progress(path, clock) is None


def test_a_disk_error_is_ignored(tmp_path: Path) -> None:
    received: list[int] = []
    Stamp(str(tmp_path / "no folder" / "p"), ManualClock(), lambda: received.append(1)).stamp()
    assert received == [1]


def test_a_file_with_other_content_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"something else that is quite a bit longer than a stamp")
    assert read_progress(str(tmp_path / "p"), ManualClock()) is None


def test_several_stamps_fit_into_the_time_after_which_it_is_unhealthy() -> None:
    for limit in (SECOND, 60 * SECOND, 0):
        assert 5 * stamp_interval(limit) < unhealthy_after(limit)
