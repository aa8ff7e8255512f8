"""Queued runs by DAG, queued runs whose rows are still being created, and the DAGs that have to be examined.

The queue is a separate part because two others change it: the DAG registry, when a schedule creates runs and lets them start,
and the run registry, when a person edits, clears or deletes a run.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.definition import DagDefinition
from tradewind.model.errors import NotFound
from tradewind.model.rows import RunRow
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.scheduler.shared_state import SharedState


class RunQueue:
    """See the module.

    Args:
        on_deadline: called when a queued run has deadlines, which may be due soon.
    """

    def __init__(self, state: SharedState, on_deadline: Callable[[], None]) -> None:
        self._state = state
        self._on_deadline = on_deadline
        self._queued: dict[int, str] = {}
        """Queued run → its DAG."""
        self.incomplete: dict[int, str] = {}
        """Queued runs with rows still to be created → their DAG, in the order in which they are handled."""
        self.dirty: dict[str, None] = {}
        """DAGs to be examined, in order: a run of the DAG started, ended or is due."""

    def clear(self) -> None:
        """Drop the runs, which are read again from the store."""
        self._queued.clear()
        self.incomplete.clear()

    def mark_dirty(self, dag_id: str) -> None:
        """Mark a DAG for examination: runs of it may be due or may start."""
        self.dirty[dag_id] = None

    def add(self, entry: DagEntry, row: RunRow) -> None:
        """Add a queued run, or replace its row. A new run may become the previous run of later ones."""
        known = row.id in entry.waiting
        entry.enqueue(row)
        self._queued[row.id] = row.dag_id
        if row.rows_created < row.task_count:
            self.incomplete.setdefault(row.id, row.dag_id)
        if not known:
            definition = self.definition(row.version)
            if definition is not None and (definition.slas or definition.deadlines):
                self._on_deadline()
            self._state.previous_runs.add_queued(row, self._state.active_runs_by_id, self._state.push_event)

    def get(self, run: int) -> RunRow | None:
        """Return the row of a queued run; None: it is not queued."""
        entry = self._entry_of(run)
        return None if entry is None else entry.waiting.get(run)

    def remove(self, run: int) -> None:
        """Remove a run that is not queued any more. Runs that were not queued are ignored."""
        entry = self._entry_of(run)
        self._queued.pop(run, None)
        if entry is not None:
            entry.dequeue(run)

    def remove_dag(self, entry: DagEntry) -> None:
        """Forget the queued runs of a deleted DAG."""
        for run in entry.waiting:
            self._queued.pop(run, None)

    def set_note(self, run: int, note: str | None) -> None:
        """Set the note of a run, if it is queued."""
        entry, row = self._entry_of(run), self.get(run)
        if entry is not None and row is not None:
            entry.waiting[run] = row._replace(note=note)

    def rows_created(self, run: int, have: int) -> None:
        """Record that some of a large run's rows were created; the next rows follow after rows of other large runs."""
        dag_id = self.incomplete.pop(run)
        entry = self._state.dags.get(dag_id)
        row = entry.waiting.get(run) if entry is not None else None
        if entry is None or row is None or not have:
            return
        if have >= row.task_count:
            entry.incomplete.discard(run)
            entry.waiting[run] = row._replace(rows_created=have)
            self.mark_dirty(dag_id)
        else:
            self.incomplete[run] = dag_id

    def definition(self, version: int) -> DagDefinition | None:
        """Return the definition of a version; None: the store does not have it any more."""
        try:
            return self._state.store.definition(version)
        except NotFound:
            return None

    def _entry_of(self, run: int) -> DagEntry | None:
        """Return the entry of the DAG in which a run is queued."""
        return self._state.dags.get(self._queued.get(run, ""))
