"""A database that cannot be written: the scheduler pauses, reports it, and continues by itself. No task is lost or runs twice."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.world import until
from tests.integration.hostile.conftest import Hostile, launch, up
from tradewind.model.errors import StoreBusy, StoreError, StoreFull


def begun(hostile: Hostile) -> list[str]:
    """The runs with a started task, once for each attempt."""
    path = hostile.notes / "began"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def trouble(hostile: Hostile) -> str:
    return str((hostile.world.ping() or {}).get("trouble") or "")


def scheduler_health(hostile: Hostile) -> str:
    return str(hostile.world.get("/api/v2/monitor/health")["scheduler"]["status"])


def finish(hostile: Hostile, runs: list[str]) -> None:
    """All runs succeed after one attempt each, and new work is accepted."""
    (hostile.notes / "go").touch()
    for run in runs:
        until(f"{run} has succeeded", 30, partial(hostile.world.has_succeeded, "waits", run))
    assert sorted(begun(hostile)) == sorted(runs)
    hostile.still_works()
    assert trouble(hostile) == ""
    until("the scheduler is healthy", 10, lambda: scheduler_health(hostile) == "healthy")


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Hostile]:
    found = launch(tmp_path, {"TRADEWIND__DATABASE__BUSY_TIMEOUT": "0.2"})
    try:
        yield found
        found.world.stop()
        assert found.world.census() == []
    finally:
        found.world.kill_everything()


def test_database_that_another_process_holds(hostile: Hostile) -> None:
    up(hostile)
    runs = [hostile.begin("waits") for _ in range(3)]
    until("the tasks run", 10, lambda: len(begun(hostile)) == 3)
    other = sqlite3.connect(hostile.world.home / "tradewind.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (hostile.notes / "go").touch()  # the ends of the tasks cannot be written now
    until("the scheduler says so", 20, lambda: "is locked by another process" in trouble(hostile))
    until("health says so", 10, lambda: scheduler_health(hostile) == "unhealthy")
    assert any("Nothing can be written now" in sentence for sentence in hostile.why("waits", runs[0]))
    with pytest.raises(StoreBusy, match="find the process with: fuser -v"):
        hostile.world.control.call("trigger", dag_id="fine", run_id="refused")
    assert trouble(hostile) != ""
    assert {hostile.world.run_state("waits", run) for run in runs} == {"running"}
    other.execute("ROLLBACK")
    finish(hostile, runs)


def test_start_while_another_process_holds_the_database(hostile: Hostile) -> None:
    up(hostile)
    run = hostile.begin("waits")
    until("the task runs", 10, lambda: begun(hostile) == [run])
    other = sqlite3.connect(hostile.world.home / "tradewind.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    first = hostile.world.find("scheduler")[0]
    first.kill()
    log = hostile.world.home / "logs" / "processes" / "scheduler.log"
    until(
        "the new one says why it cannot start", 20, lambda: "the process cannot continue now" in log.read_text(encoding="utf-8")
    )
    other.execute("ROLLBACK")
    until("there is a scheduler", 20, lambda: (hostile.world.ping() or {}).get("workers"))
    finish(hostile, [run])


def test_disk_that_is_full(hostile: Hostile) -> None:
    up(hostile)
    runs = [hostile.begin("waits") for _ in range(3)]
    until("the tasks run", 10, lambda: len(begun(hostile)) == 3)
    scheduler = hostile.world.find("scheduler")[0]
    wal = hostile.world.home / "tradewind.db-wal"
    resource.prlimit(scheduler.pid, resource.RLIMIT_FSIZE, (wal.stat().st_size, resource.RLIM_INFINITY))
    (hostile.notes / "go").touch()
    until(
        "the scheduler says so",
        20,
        lambda: any(said in trouble(hostile) for said in ("is full or has an error", "cannot grow")),
    )
    with pytest.raises(StoreFull, match="Free disk space"):
        hostile.world.control.call("trigger", dag_id="fine", run_id="refused")
    resource.prlimit(scheduler.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    finish(hostile, runs)
    assert hostile.world.find("scheduler")[0].pid == scheduler.pid


def test_database_at_its_size_limit(hostile: Hostile) -> None:
    up(hostile)
    hostile.world.stop()
    with sqlite3.connect(hostile.world.home / "tradewind.db") as database:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
    hostile.world.start({"TRADEWIND__DATABASE__MAX_PAGE_COUNT": str(pages + 8)})
    hostile.world.await_ready()
    runs: list[str] = []

    def full() -> bool:
        try:
            hostile.world.control.call("trigger", dag_id="waits", run_id=f"w{len(runs)}")
            runs.append(f"w{len(runs)}")
        except StoreError as error:
            return "raise database.max_page_count" in str(error)
        return len(runs) > 500

    until("the database is full", 30, full)
    assert len(runs) < 500
    assert "cannot grow" in trouble(hostile)
    hostile.world.stop()
    hostile.world.start()
    hostile.world.await_ready()
    until("a task runs", 20, lambda: begun(hostile))
    (hostile.notes / "go").touch()
    for run in runs:
        until(f"{run} has succeeded", 30, partial(hostile.world.has_succeeded, "waits", run))
    hostile.still_works()


def test_spool_on_a_full_disk(hostile: Hostile) -> None:
    """Without a scheduler and without disk space, a report is kept in memory."""
    up(hostile)
    run = hostile.begin("waits")
    until("the task runs", 10, lambda: begun(hostile) == [run])
    host = hostile.world.find("host")[0]
    os.kill(hostile.world.find("scheduler")[0].pid, 9)
    resource.prlimit(host.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    (hostile.notes / "go").touch()
    until("it succeeded", 30, lambda: hostile.world.run_state("waits", run) == "success")
    resource.prlimit(host.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    finish(hostile, [run])
