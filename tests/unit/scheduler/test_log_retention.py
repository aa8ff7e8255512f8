"""Logs are deleted with their runs, by age, and beyond a total size; in bounded steps, and nothing else is deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.scheduler.bench import Bench, task
from tradewind.model.moments import DAY
from tradewind.scheduler.duties import log_retention, run_logs
from tradewind.scheduler.duties.log_retention import LogSweep
from tradewind.scheduler.duties.run_logs import RunLogs
from tradewind.storage.local_logs import LocalLogs
from tradewind.wire.log_paths import callbacks_log_path, earlier_log_path, log_path


def write(root: Path, path: str, bench: Bench, age: int = 0, size: int = 10) -> Path:
    """Write a log that is `age` microseconds old."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    then = (bench.clock.wall() - age) / 1e6
    os.utime(file, (then, then))
    return file


def logs_of_run(root: Path, bench: Bench, run_id: str, age: int = 0, size: int = 10) -> list[Path]:
    return [
        write(root, path, bench, age, size)
        for path in (
            log_path("d", run_id, "a", -1, 1, 1),
            log_path("d", run_id, "m", 3, 1, 2),
            earlier_log_path("d", run_id, "m", 3, 1, 1),
            callbacks_log_path("d", run_id),
        )
    ]


def finished(bench: Bench, *runs: str) -> None:
    bench.dag("d", task("a"))
    for run in runs:
        bench.trigger("d", run)
        bench.finish(f"{run}.a")


def delete_runs(bench: Bench) -> None:
    bench.clock.advance(DAY)
    bench.command("retire", before=bench.clock.wall(), dag_id="d", keep=0)


def test_only_the_logs_of_a_deleted_run_are_deleted(bench: Bench, tmp_path: Path) -> None:
    finished(bench, "gone:1", "kept")
    gone, kept = logs_of_run(tmp_path, bench, "gone:1"), logs_of_run(tmp_path, bench, "kept")
    foreign = write(tmp_path, "d/gone%3A1/attempt=1.log", bench)  # Airflow's, say
    link = tmp_path / "d" / "gone%3A1" / "a~attempt=9.9.log"
    link.symlink_to(kept[0])
    delete_runs(bench)
    RunLogs(bench.scheduler, 1, LocalLogs(str(tmp_path))).run_once()
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (*kept, foreign, link))
    assert bench.store.logs_to_delete(10) == []
    assert not (tmp_path / "d" / "gone%3A1" / "m").exists(), "folders go when they are empty"


def test_folders_of_a_deleted_run_are_not_left_behind(bench: Bench, tmp_path: Path) -> None:
    finished(bench, "r1", "r2")
    logs_of_run(tmp_path, bench, "r1")
    delete_runs(bench)
    RunLogs(bench.scheduler, 1, LocalLogs(str(tmp_path))).run_once()
    assert list(tmp_path.iterdir()) == []


def test_logs_are_deleted_after_a_crash_between_run_and_logs(bench: Bench, tmp_path: Path) -> None:
    finished(bench, "r1", "r2")
    (log, *_) = logs_of_run(tmp_path, bench, "r1")
    delete_runs(bench)
    bench.restart()
    assert log.exists()
    RunLogs(bench.scheduler, 1, LocalLogs(str(tmp_path))).run_once()
    assert not log.exists()


def test_a_run_of_the_same_name_keeps_its_logs(bench: Bench, tmp_path: Path) -> None:
    finished(bench, "r1", "r2")
    old = write(tmp_path, log_path("d", "r1", "a", -1, 1, 1), bench)
    delete_runs(bench)
    bench.clock.advance(1_000_000)
    bench.trigger("d", "r1")
    new = write(tmp_path, log_path("d", "r1", "a", -1, 1, 2), bench)
    RunLogs(bench.scheduler, 1, LocalLogs(str(tmp_path))).run_once()
    assert (old.exists(), new.exists()) == (False, True)


def test_many_logs_are_deleted_in_steps(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_logs, "FILES_AT_A_TIME", 3)
    finished(bench, "r1", "r2")
    files = [write(tmp_path, log_path("d", "r1", "m", n, 1, 1), bench) for n in range(7)]
    delete_runs(bench)
    duty = RunLogs(bench.scheduler, 1, LocalLogs(str(tmp_path)))
    left = []
    while duty.run_once():
        left.append(sum(path.exists() for path in files))
    assert left == [4, 1]
    assert not any(path.exists() for path in files)
    assert bench.store.logs_to_delete(1) == []


def test_old_logs_are_deleted_while_their_run_stays(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_retention, "FILES_AT_A_TIME", 3)
    old, young = logs_of_run(tmp_path, bench, "old", 8 * DAY), logs_of_run(tmp_path, bench, "young", 6 * DAY)
    service = write(tmp_path, "processes/scheduler.log", bench, 30 * DAY)
    duty = LogSweep(bench.scheduler, 1, LocalLogs(str(tmp_path)), 7 * DAY, 0)
    while duty.run_once():
        pass
    assert not any(path.exists() for path in old)
    assert not (tmp_path / "d" / "old").exists()
    assert all(path.exists() for path in (*young, service))


def test_max_total_mb_deletes_the_oldest_logs_except_of_active_runs(bench: Bench, tmp_path: Path) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "live")
    live = logs_of_run(tmp_path, bench, "live", 9 * DAY, size=1000)
    runs = {age: logs_of_run(tmp_path, bench, f"ended{age}", age * DAY, size=1000) for age in (3, 2, 1)}
    duty = LogSweep(bench.scheduler, 1, LocalLogs(str(tmp_path)), 0, 9_000)
    while duty.run_once():
        pass
    assert all(path.exists() for path in (*live, *runs[1]))
    assert not any(path.exists() for path in (*runs[3], *runs[2]))


def test_without_limits_the_log_folder_is_not_read(bench: Bench, tmp_path: Path) -> None:
    files = logs_of_run(tmp_path, bench, "r", 900 * DAY)
    assert LogSweep(bench.scheduler, 1, LocalLogs(str(tmp_path)), 0, 0).run_once() is False
    assert all(path.exists() for path in files)
