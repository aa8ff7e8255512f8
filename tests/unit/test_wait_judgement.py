"""Is a wait for tasks over? Decided from the states that the tasks have."""

from __future__ import annotations

from tradewind.model.states import Outcome
from tradewind.model.waits import TasksWait, judge

PLACE = "r1"


def wait(*task_ids: str, allowed: tuple[str, ...] = ("success",)) -> TasksWait:
    return TasksWait("d", run_ids=(PLACE,), task_ids=task_ids, allowed=allowed, failed=("failed",))


def outcome(asked: TasksWait, *states: tuple[str, str | None]) -> Outcome | None:
    judgement = judge(asked, [(PLACE, task_id, state) for task_id, state in states])
    return None if judgement is None else judgement.outcome


def test_all_instances_have_to_be_in_an_allowed_state() -> None:
    assert outcome(wait("a"), ("a", "success"), ("a", "running")) is None
    assert outcome(wait("a"), ("a", "success"), ("a", "success")) is Outcome.SUCCESS


def test_a_removed_instance_is_not_waited_for() -> None:
    """A newer version of the DAG does not have it; nothing else will come of it."""
    assert outcome(wait("a"), ("a", "removed"), ("a", "success")) is Outcome.SUCCESS
    assert outcome(wait("a"), ("a", "removed")) is None, "the task is not there, and may come"


def test_a_wait_may_name_the_state_removed() -> None:
    assert outcome(wait("a", allowed=("removed",)), ("a", "removed")) is Outcome.SUCCESS
