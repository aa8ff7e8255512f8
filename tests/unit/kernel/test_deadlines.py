"""By when a run should have succeeded, and who did not."""

from __future__ import annotations

import pytest

from tradewind.kernel import deadlines
from tradewind.kernel.deadlines import InstanceState
from tradewind.model.definition import DagDefinition, DeadlineDefinition, TaskDefinition
from tradewind.model.states import RunState, RunType, TaskState

HOUR = 3_600_000_000
DATES = deadlines.RunDates(RunType.SCHEDULED, 10 * HOUR, 20 * HOUR, 21 * HOUR)


def of(definition: DagDefinition, dates: deadlines.RunDates = DATES, took: tuple[int, ...] = ()) -> list[tuple[str, int]]:
    return [(one.name, one.due) for one in deadlines.of_run(definition, dates, lambda most: took[:most])]


@pytest.mark.spec("S260")
def test_an_sla_counts_from_the_moment_a_scheduled_run_became_due() -> None:
    definition = DagDefinition("d", slas=(1, HOUR))
    assert of(definition) == [("sla/1", 20 * HOUR + 1), (f"sla/{HOUR}", 21 * HOUR)]
    assert of(definition, DATES._replace(run_type=RunType.MANUAL)) == []


def test_a_clear_creates_no_sla_that_has_passed() -> None:
    definition = DagDefinition("d", slas=(1, HOUR, HOUR + 1), deadlines=(DeadlineDefinition("logical_date", 1),))
    assert of(definition, DATES._replace(cleared=True)) == [(f"sla/{HOUR + 1}", 21 * HOUR + 1), ("alert/0", 10 * HOUR + 1)]


@pytest.mark.parametrize(
    ("alert", "due"),
    [
        (DeadlineDefinition("logical_date", 1), 10 * HOUR + 1),
        (DeadlineDefinition("queued_at", 1), 21 * HOUR + 1),
        (DeadlineDefinition("fixed", 1, at=5), 6),
        (DeadlineDefinition("average", 1, max_runs=2, min_runs=2), 21 * HOUR + 15 + 1),
        (DeadlineDefinition("average", 1, max_runs=9, min_runs=3), 21 * HOUR + 20 + 1),
        (DeadlineDefinition("average", 1, max_runs=9, min_runs=4), None),
        (DeadlineDefinition("something new", 1), None),
    ],
)
def test_an_alert_counts_from_its_reference(alert: DeadlineDefinition, due: int | None) -> None:
    assert of(DagDefinition("d", deadlines=(alert,)), took=(10, 20, 30)) == ([] if due is None else [("alert/0", due)])


def test_a_run_without_a_date_has_no_deadline_that_counts_from_it() -> None:
    definition = DagDefinition("d", deadlines=(DeadlineDefinition("logical_date", 1), DeadlineDefinition("queued_at", 1)))
    assert of(definition, DATES._replace(logical_date=None)) == [("alert/1", 21 * HOUR + 1)]


def test_run_missed() -> None:
    assert not deadlines.run_missed(RunState.SUCCESS, 5, 5)
    assert deadlines.run_missed(RunState.SUCCESS, 6, 5)
    assert deadlines.run_missed(RunState.FAILED, 1, 5)
    assert deadlines.run_missed(RunState.RUNNING, None, 5)


def test_tasks_that_had_not_succeeded_at_the_deadline_are_late() -> None:
    names = ("done", "skipped", "slow", "failed", "mapped", "unwritten", "other")
    tasks = tuple(TaskDefinition(name, sla=7 if name != "other" else 8) for name in names)
    standing = [
        InstanceState("done", TaskState.SUCCESS, 5),
        InstanceState("skipped", TaskState.SKIPPED, 5),
        InstanceState("slow", TaskState.SUCCESS, 6),
        InstanceState("failed", TaskState.FAILED, 1),
        InstanceState("mapped", TaskState.SUCCESS, 1),
        InstanceState("mapped", TaskState.RUNNING, 0),
        InstanceState("other", TaskState.RUNNING, 0),
    ]
    found = deadlines.late_tasks(DagDefinition("d", tasks=tasks), 7, 5, standing)
    assert found == ["slow", "failed", "mapped", "unwritten"]
    assert deadlines.blocking_tasks(standing) == [("failed", "failed"), ("mapped", "running"), ("other", "running")]


def test_removed_instances_are_not_late() -> None:
    """The list of a mapped task became shorter: only its remaining instances count."""
    standing = [InstanceState("mapped", TaskState.SUCCESS, 1), InstanceState("mapped", TaskState.REMOVED, 9)]
    standing += [InstanceState("empty", TaskState.REMOVED, 0)]
    dag = DagDefinition("d", tasks=(TaskDefinition("mapped", sla=7), TaskDefinition("empty", sla=7)))
    assert deadlines.late_tasks(dag, 7, 5, standing) == []
    assert deadlines.blocking_tasks(standing) == []
