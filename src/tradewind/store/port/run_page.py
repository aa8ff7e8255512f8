"""Rows for the page of a run and of a task instance. All moments are microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class InstanceSummary(NamedTuple):
    """One task instance of a run."""

    slot: int
    task_id: str
    map_index: int
    state: int
    try_number: int
    max_tries: int
    started_at: int | None
    ended_at: int | None


class FormerRun(NamedTuple):
    """An earlier successful run of the same DAG."""

    run: int
    started_at: int
    ended_at: int


class TaskTime(NamedTuple):
    """When an instance of a task ran in an earlier run."""

    run: int
    task_id: str
    started_at: int
    ended_at: int


class XComKey(NamedTuple):
    """An XCom without its value."""

    key: str
    size: int
    """Bytes."""
    at: int


class RunPageLists(Protocol):
    """Each method executes one statement."""

    def instance_summaries(self, run: int) -> list[InstanceSummary]:
        """All task instances of a run, by slot."""

    def states_of_task(self, run: int, task_id: str) -> list[tuple[int, int]]:
        """(map index, code of the state) of each instance of a task, sorted; index −1: it is not mapped, or not expanded yet."""

    def run_steps(self, run: int) -> list[tuple[int, int, int, int]]:
        """(slot, state before, state after, moment) of each step of a run, in order."""

    def former_runs(self, dag_id: str, run_after: int, limit: int) -> list[FormerRun]:
        """The newest successful runs of a DAG that were due before a moment."""

    def task_times(self, runs: Sequence[int]) -> list[TaskTime]:
        """The times when the task instances of these runs ran, without those that never started."""

    def xcom_keys(self, run: int, task_id: str, map_index: int) -> list[XComKey]:
        """The keys of the XComs that a task instance has pushed."""
