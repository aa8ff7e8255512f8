"""The deletion of files that no XCom refers to any more."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.scheduler.bench import Bench, task
from tests.unit.store.suite.build import xcom
from tradewind.scheduler.duties.spills import AT_A_TIME, Spills
from tradewind.storage.local_spills import LocalSpills

OLD = 2 * 3600


def spilled(bench: Bench, folder: Path, name: str, age: float) -> Path:
    path = folder / name
    path.write_bytes(b"x")
    then = bench.clock.wall() / 1e6 - age
    os.utime(path, (then, then))
    return path


def test_spill_files_without_an_xcom_are_deleted(bench: Bench, tmp_path: Path) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r1")
    bench.store.push_xcoms(bench.run("r1").id, [xcom("a", None, spill="first")])
    used, young, left = (
        spilled(bench, tmp_path, name, age) for name, age in (("first", OLD), ("new", 60), ("dead.7.part", OLD))
    )
    duty = Spills(bench.scheduler, 1, LocalSpills(str(tmp_path)))
    assert duty.run_once() is False
    assert (used.exists(), young.exists(), left.exists()) == (True, True, False)
    bench.store.push_xcoms(bench.run("r1").id, [xcom("a", None, spill="second")])  # a later try's value
    duty.run_once()
    assert not used.exists()


def test_no_spill_is_deleted_while_a_report_may_wait_at_a_host(bench: Bench, tmp_path: Path) -> None:
    path = spilled(bench, tmp_path, "a", OLD)
    bench.executor.ready = False
    Spills(bench.scheduler, 1, LocalSpills(str(tmp_path))).run_once()
    assert path.exists()


def test_a_large_spill_folder_is_read_in_steps(bench: Bench, tmp_path: Path) -> None:
    for number in range(AT_A_TIME + 10):
        spilled(bench, tmp_path, str(number), OLD)
    duty = Spills(bench.scheduler, 1, LocalSpills(str(tmp_path)))
    assert duty.run_once() is True
    assert duty.run_once() is False
    assert list(tmp_path.iterdir()) == []


def test_a_missing_spill_folder_is_ignored(bench: Bench, tmp_path: Path) -> None:
    assert Spills(bench.scheduler, 1, LocalSpills(str(tmp_path / "xcom"))).run_once() is False
