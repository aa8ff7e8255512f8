"""Bugs that the simulation has found in production code, with one small simulation each."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from tradewind.client.channel import START_OP
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.errors import StoreBusy
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.inbox import FromWorker
from tradewind.simulation.checks import NAMES
from tradewind.simulation.faults import CALM
from tradewind.simulation.host import VirtualAttempt
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World
from tradewind.store.sql.dags import COMPRESS_ABOVE
from tradewind.wire.messages import Accepted, HostHello, Report

pytestmark = pytest.mark.timeout(600)  # much computing, which other tests slow down


def world(*tasks: TaskDefinition, duration: int = SECOND, **more: object) -> World:
    """A simulation of one DAG that is triggered from time to time, without faults except those of the test."""
    habit = Habit("plain", duration, 0, 0, 0)
    definition = DagDefinition("d", tasks=tasks, is_paused_upon_creation=False, fileloc="d.py")
    plan = Plan(definition, {task.task_id: habit for task in tasks}, 4)
    return World(1, plans=[plan], profile=CALM, hours=1, trace=True, **more)


def sent(history: World, shape: type[msgspec.Struct]) -> int:
    """The number of messages of a type that a scheduler received."""
    tag = b"\xa4type" + bytes([0xA0 + len(str(shape.__struct_config__.tag))]) + str(shape.__struct_config__.tag).encode()
    return sum(repr(tag)[2:-1] in line for line in history.timeline.trace or () if " scheduler" in line)


def test_a_host_connects_again_once_while_the_database_is_not_writable() -> None:
    history = world(TaskDefinition("t"))

    def disk_full() -> None:
        history.store_faults.failure, history.store_faults.broken_until = "full", history.timeline.now + 10 * MINUTE
        for process in history.hosts.values():
            assert process.host.scheduler is not None
            process.host.scheduler.close()

    history.timeline.at(20 * MINUTE, None, disk_full)
    assert history.run().violations == []
    assert sent(history, HostHello) == 2 * len(history.workers)


def test_repeated_reports_are_kept_once_while_the_database_is_not_writable() -> None:
    history = world(TaskDefinition("t"), duration=30 * MINUTE)
    kept: list[int] = []

    def disk_full() -> None:
        history.store_faults.failure, history.store_faults.broken_until = "full", history.timeline.now + HOUR

    def look() -> None:
        life = history.scheduler
        assert life is not None
        assert life.server is not None
        inbox = life.server.scheduler.inbox
        kept.append(sum(isinstance(item, FromWorker) and isinstance(item.body, Report) for item in inbox))

    history.timeline.at(50 * MINUTE, None, disk_full)
    history.timeline.at(50 * MINUTE + HOUR - SECOND, None, look)
    history.horizon = 2 * HOUR
    assert history.run().violations == []
    assert sent(history, Report) > 100
    assert 0 < kept[0] <= 2 * len(history.checks.shadow.runs)


def test_a_run_continues_when_its_previous_run_is_deleted() -> None:
    definition = DagDefinition(
        "d", tasks=(TaskDefinition("t", depends_on_past=True),), is_paused_upon_creation=False, fileloc="d.py"
    )
    plan = Plan(definition, {"t": Habit("plain", SECOND, 1, 0, 0)}, 0)
    history = World(1, plans=[plan], profile=CALM, hours=3)
    for minutes in (5, 10):
        date = history.clock.wall() + minutes * MINUTE
        args: dict[str, Any] = {"dag_id": "d", "run_id": f"r{minutes}", "logical_date": date}
        history.timeline.at(minutes * MINUTE, None, partial(history.operator.send, "trigger", **args))
    history.timeline.at(HOUR, None, lambda: history.operator.send("retire", before=history.clock.wall(), dag_id="d"))
    history.run()
    assert history.violations == []
    [row] = history.checks.shadow.runs.values()
    assert (row.run_id, row.state) == ("r10", 3)


def test_planned_waits_of_a_given_dag() -> None:
    """One task waits for a moment by its definition, another one for a run of a DAG that does not exist, until its timeout."""
    history = world(
        TaskDefinition("moment", wait=WaitPlan(MomentPlan("start", MINUTE), HOUR)),
        TaskDefinition("nothing", wait=WaitPlan(TasksPlan("missing"), 2 * MINUTE, soft_fail=True)),
        TaskDefinition("after", upstream=("moment",)),
    ).run()
    assert history.violations == []
    assert history.timeline.sometimes["a wait ended by its moment"]
    for run, row in history.checks.shadow.runs.items():
        states = {task.task_id: NAMES[task.state] for task in history.checks.shadow.tasks[run].values()}
        assert (states["moment"], states["after"]) == ("success", "success")
        assert states["nothing"] == (
            "skipped" if row.logical_date is not None else "success"
        )  # without a logical date, the task has an attempt


@pytest.mark.parametrize("late", [Accepted(START_OP, "another process"), Accepted(START_OP + 1)])
def test_an_answer_to_another_process_starts_no_attempt(late: Accepted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated late answer may reach another process of the same attempt, or may be the answer to a report."""
    began: list[bool] = []
    real = VirtualAttempt.forked

    def forked(attempt: VirtualAttempt, pid: int) -> None:
        real(attempt, pid)
        attempt.answer(late)
        began.append(attempt.started)

    monkeypatch.setattr(VirtualAttempt, "forked", forked)
    history = world(TaskDefinition("t")).run()
    assert history.violations == []
    assert began
    assert not any(began)


def test_no_run_is_lost_when_a_duty_fails_in_the_middle() -> None:
    """The memory of the scheduler was incomplete after it, so a used slot was given twice."""
    history = world(TaskDefinition("t"), duration=50 * MINUTE)
    forgotten: list[int] = []
    remembered: list[bool] = []

    def scheduler() -> Scheduler:
        assert history.scheduler is not None
        assert history.scheduler.server is not None
        return history.scheduler.server.scheduler

    def look() -> None:
        remembered.extend(run in scheduler().active_runs_by_id for run in forgotten)

    def fail() -> None:
        memory = scheduler()
        compare_with_store = memory.compare_with_store

        def midway() -> int:
            memory.compare_with_store = compare_with_store  # type: ignore[method-assign]
            forgotten.extend(memory.active_runs_by_id)
            for run in forgotten:
                memory.runs.forget(run)
            history.timeline.at(history.timeline.now + 10 * SECOND, None, look)
            raise StoreBusy("held by somebody else")

        memory.compare_with_store = midway  # type: ignore[method-assign]

    history.timeline.at(20 * MINUTE, None, fail)
    history.run()
    assert remembered
    assert all(remembered)


def test_no_run_is_lost_when_a_duty_has_a_bug() -> None:
    """The bug is logged, which the simulation counts as a violation. The memory is rebuilt anyway."""
    history = world(TaskDefinition("t"), duration=50 * MINUTE)

    def scheduler() -> Scheduler:
        assert history.scheduler is not None
        assert history.scheduler.server is not None
        return history.scheduler.server.scheduler

    def bug() -> int:
        raise RuntimeError("a bug")

    history.timeline.at(20 * MINUTE, None, lambda: setattr(scheduler(), "compare_with_store", bug))
    history.run()
    assert "a duty failed" in history.violations[0].text
    assert scheduler().paused
    assert scheduler().trouble == "the duty compare_with_store failed: a bug"


def test_a_definition_that_the_store_compresses_is_read() -> None:
    history = world(TaskDefinition("t", doc="x" * 2 * COMPRESS_ABOVE)).run()
    assert history.violations == []
    assert len(history.checks.shadow.runs) > 1
