"""DAG runs and their task instances, journals and XComs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from tradewind.model.rows import (
    AttemptRow,
    Batch,
    Committed,
    InstanceFacts,
    JournalEntry,
    NewRun,
    OpenWaitRow,
    RunRow,
    RunSnapshot,
    XComWrite,
)
from tradewind.model.states import RunState, TaskState


class RunReader(Protocol):
    """Reads runs. `run` is the number of a run, its key in the store; `run_id` is Airflow's id of it."""

    def run(self, run: int) -> RunRow | None:
        """The run with this number."""

    def find_run(self, dag_id: str, run_id: str) -> RunRow | None:
        """The run of a DAG with this run id."""

    def need_run(self, dag_id: str, run_id: str) -> RunRow:
        """The run of a DAG with this run id. Raises NotFound with the latest runs."""

    def active_runs(self, dag_id: str | None = None) -> list[RunRow]:
        """Queued and running runs, of one DAG or of all DAGs, by DAG and run_after. Unreadable rows are logged and left out."""

    def runs_between(self, dag_id: str, start: int | None, end: int | None) -> list[RunRow]:
        """Runs of a DAG by logical date (run_after if they have none), both bounds included, the oldest first.

        Args:
            start, end: microseconds; None: no bound.
        """

    def latest_runs(
        self,
        dag_id: str,
        at_most: int,
        state: RunState | None = None,
        run_types: Collection[str] = (),
        start: int | None = None,
        end: int | None = None,
    ) -> list[RunRow]:
        """The latest runs of a DAG that pass all filters, the oldest first. `start` and `end` as for `runs_between`."""

    def snapshot(self, run: int) -> RunSnapshot | None:
        """All rows that the scheduler needs to continue a run: rows, live attempts, deferrals. None: there is no such run."""

    def run_of_partition(self, dag_id: str, partition_date: int) -> RunRow | None:
        """The newest run of a partition date."""

    def previous_run(
        self, dag_id: str, logical_date: int, *, scheduled_only: bool, state: RunState | None = None
    ) -> RunRow | None:
        """The latest run with an earlier logical date.

        Args:
            scheduled_only: skip manual runs.
            state: only runs in this state.
        """

    def states_of(self, run: int, task_ids: Iterable[str]) -> dict[str, list[int]]:
        """Task id → state codes of its task instances in a run, by slot. Tasks without task instances are left out."""

    def instance_facts(self, run: int, task_ids: Collection[str], at_most: int) -> list[InstanceFacts]:
        """The task instances of these tasks in a run, by slot; without `task_ids` those of all tasks."""

    def task_state_counts(self, run: int) -> dict[TaskState, int]:
        """Number of task instances of a run in each state. States without task instances are left out."""

    def open_waits(self, *, run: int | None = None, dag_id: str | None = None, at_most: int | None = None) -> list[OpenWaitRow]:
        """Deferred task instances, of one run or of one DAG, the longest wait first."""

    def task_ever_ran(self, dag_id: str, task_id: str, before: int) -> bool:
        """Whether a run of the DAG with an earlier logical date has a task instance of this task."""

    def journal(self, run: int) -> list[JournalEntry]:
        """Every state change of a run's task instances, in order."""

    def attempts_of_run(self, run: int) -> list[AttemptRow]:
        """All attempts of a run, by slot and fence."""

    def xcoms(
        self, run: int, task_ids: Sequence[str], key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[str, int, bytes, str | None]]:
        """Values under a key: (task id, map index, JSON, name of the spill file).

        In the order of `task_ids`, then by map index. `map_indexes` None: all.
        """

    def pushed_keys(self, run: int) -> list[str]:
        """The keys under which tasks of a run have pushed XComs, sorted."""

    def last_run_with_xcom(self, dag_id: str, until: int, task_id: str, key: str) -> int | None:
        """Number of the latest run, up to and including a logical date, in which the task pushed this key."""


class RunStore(Protocol):
    """Writes runs."""

    def commit(self, batch: Batch) -> Committed:
        """Write a batch in one transaction; the changes of each run completely or not at all.

        Raises:
            Stale: a newer scheduler has begun an epoch; nothing was written.
        """

    def create_run(self, new: NewRun) -> RunRow:
        """Create a run with its first task instances. If a scheduled run exists already, return it.

        Raises:
            Conflict: another run of the DAG has this run id or logical date.
            NotFound: there is no such DAG.
        """

    def push_xcoms(self, run: int, xcoms: Sequence[XComWrite]) -> None:
        """Write XComs outside of a batch (for the API and test kits). Raises NotFound if there is no such run."""

    def delete_xcoms(self, run: int, task_id: str, map_index: int, key: str | None = None) -> int:
        """Delete an XCom of a task instance (`key` None: all of them); how many there were. Spill files stay for the sweep."""
