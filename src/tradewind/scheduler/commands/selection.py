"""The runs, and the task instances of each, that a clear, a mark or a note selects.

`wire.commands.EditTasks` says how a command selects them. Each run is examined in the version of the DAG with which it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tradewind.kernel.rules import selection
from tradewind.kernel.rules.selection import Chosen
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import RunRow
from tradewind.store.port import RowReader
from tradewind.wire import commands as c

ROWS_PER_EDIT = 2
"""Number of rows that the change of one task instance writes: its own, and one of the journal."""
LOOKS_PER_WRITE = 25
"""Number of rows that one step may read for each row that it may write: a step ends even if only few rows must be changed."""


class TaskSelection:
    """The runs that a command selects (`runs`, the oldest first), and the task instances of each.

    Raises:
        NotFound: there is no such DAG, run or task, with the nearest one.
    """

    def __init__(self, store: RowReader, command: c.EditTasks) -> None:
        self._store = store
        self._command = command
        self._topologies: dict[int, Topology] = {}
        store.need_dag(command.dag_id)
        self.runs = _runs_of(store, command)
        self._check_names()

    def _check_names(self) -> None:
        dag_id = self._command.dag_id
        wanted = {*self._command.task_ids, *(task_id for task_id, _ in self._command.instances)}
        if not wanted:
            return
        known = {task.task_id for task in self._store.current_definition(dag_id).tasks}
        for row in self.runs:
            if wanted <= known:
                return
            known.update(self.topology(row).ids)
        for task_id in sorted(wanted - known):
            raise NotFound(english(phrase("error_no_task", dag=dag_id, task=task_id)) + did_you_mean(task_id, known))

    def topology(self, row: RunRow) -> Topology:
        """The task graph of a run."""
        found = self._topologies.get(row.version)
        if found is None:
            found = self._topologies[row.version] = Topology(self._store.definition(row.version))
        return found

    def of(self, row: RunRow) -> Chosen:
        """Return the task instances that are selected in this run: none if its version has none of the tasks."""
        command = self._command
        return selection.choose(
            self.topology(row),
            [task_id for task_id in command.task_ids if all(task_id != one for one, _ in command.instances)],
            command.instances,
            upstream=command.upstream,
            downstream=command.downstream,
            in_turn=bool(command.run_id),
        )


def _runs_of(store: RowReader, command: c.EditTasks) -> list[RunRow]:
    if not command.run_id:
        return store.runs_between(
            command.dag_id, None if command.past else command.start, None if command.future else command.end
        )
    row = store.need_run(command.dag_id, command.run_id)
    if not (command.past or command.future):
        return [row]
    moment = row.logical_date if row.logical_date is not None else row.run_after
    return store.runs_between(command.dag_id, None if command.past else moment, None if command.future else moment)


def runs_after(runs: list[RunRow], after: tuple[int, int] | None) -> Iterator[RunRow]:
    """Yield the runs that earlier steps have not handled: `after` is (run_after, id) of the last run of the previous step."""
    return (row for row in runs if after is None or (row.run_after, row.id) > after)


def is_step_full(touched: int, looked: int, most_rows: int) -> bool:
    """Whether one step of an edit has changed, or read, the maximum number of rows. The step then ends before the next run."""
    return touched >= max(1, most_rows // ROWS_PER_EDIT) or looked >= LOOKS_PER_WRITE * most_rows


def refuse_unwritten(row: RunRow) -> None:
    """Raise Conflict if rows of the run are not written yet: they cannot be changed."""
    if row.rows_created < row.task_count:
        raise Conflict(english(phrase("error_being_written", run=row.run_id)))


def refuse_other_changes(command: c.EditTasks, touched: Sequence[c.EditedTask]) -> None:
    """Raise Conflict if the command would change other task instances than the dry run that the person has seen."""
    if command.expected is not None and command.expected != c.fingerprint(touched):
        raise Conflict(english(phrase("error_preview", count=len(touched))))
