"""What an edit by a person is about: which runs, and which task instances of each. Clearing, marking and noting share it.

The arguments of these commands: `dag_id`; `run_id`, with `past` and `future` also the runs before and after it, else all runs from
`start` to `end` (logical dates, both included); `task_ids` and `instances` ([task id, map index]), none at all: every task;
`upstream`, `downstream`. A run is looked at as the version that it was made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.kernel.rules import selection
from tradewind.kernel.rules.selection import Chosen
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import RunRow
from tradewind.store.port import Store

Args = dict[str, Any]

ROWS_PER_EDIT = 2
"""Rows that changing one task instance writes: its own, and the journal's."""
LOOKS_PER_WRITE = 25
"""Rows that may be looked at for each one that may be written: where little is to be done, a step ends all the same."""


class Choice:
    """See the module."""

    def __init__(self, store: Store, args: Args) -> None:
        """Raises NotFound: no such DAG, run or task, with the nearest."""
        self._store = store
        self._topologies: dict[int, Topology] = {}
        self._tasks: list[str] = list(args.get("task_ids") or ())
        self._instances = [(str(task_id), int(index)) for task_id, index in args.get("instances") or ()]
        self._relatives = {name: bool(args.get(name)) for name in ("upstream", "downstream")}
        self._in_turn = bool(args.get("run_id"))
        store.need_dag(args["dag_id"])
        self.runs = runs_of(store, args)
        """The oldest first."""
        self._check_names(args["dag_id"])

    def _check_names(self, dag_id: str) -> None:
        wanted = {*self._tasks, *(task_id for task_id, _ in self._instances)}
        if not wanted:
            return
        known = {task.task_id for task in self._store.current_definition(dag_id).tasks}
        for row in self.runs:
            if wanted <= known:
                return
            known.update(self.topology(row).ids)
        for task_id in sorted(wanted - known):
            raise NotFound(f"DAG {dag_id} has no task {task_id!r}.{did_you_mean(task_id, known)}")

    def topology(self, row: RunRow) -> Topology:
        """The shape of a run."""
        found = self._topologies.get(row.version)
        if found is None:
            found = self._topologies[row.version] = Topology(self._store.definition(row.version))
        return found

    def of(self, row: RunRow) -> Chosen:
        """What is chosen in this run; it may be nothing, where the run's version has none of the tasks."""
        return selection.choose(
            self.topology(row),
            [task_id for task_id in self._tasks if all(task_id != one for one, _ in self._instances)],
            self._instances,
            **self._relatives,
            in_turn=self._in_turn,
        )


def runs_of(store: Store, args: Args) -> list[RunRow]:
    """The runs that are meant, the oldest first."""
    dag_id, past, future = args["dag_id"], bool(args.get("past")), bool(args.get("future"))
    if not args.get("run_id"):
        start, end = args.get("start"), args.get("end")
        return store.runs_between(dag_id, None if past else start, None if future else end)
    row = store.need_run(dag_id, args["run_id"])
    if not (past or future):
        return [row]
    moment = row.logical_date if row.logical_date is not None else row.run_after
    return store.runs_between(dag_id, None if past else moment, None if future else moment)


def steps(runs: list[RunRow], after: Any) -> Iterator[RunRow]:
    """Those that an earlier step has not come to: `after` is where it stopped."""
    last = tuple(after) if after else None
    return (row for row in runs if last is None or (row.run_after, row.id) > last)


def room_is_up(touched: int, looked: int, most_rows: int) -> bool:
    """Has one step of an edit done enough? It ends before the next run."""
    return touched >= max(1, most_rows // ROWS_PER_EDIT) or looked >= LOOKS_PER_WRITE * most_rows


def refuse_unwritten(row: RunRow) -> None:
    """Rows that are not there yet cannot be changed."""
    if row.rows_created < row.task_count:
        raise Conflict(f"the task instances of run {row.run_id} are still being written; try again in a moment")


def told(row: RunRow, task_id: str, map_index: int, before: str, after: str) -> Args:
    """One task instance that an edit touches, for people."""
    where = {"dag_id": row.dag_id, "run_id": row.run_id, "task_id": task_id, "map_index": map_index}
    return {**where, "state": before, "to": after}
