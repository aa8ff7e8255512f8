"""The cells of the grid: the states of all tasks in the runs of a window, from summaries.

A run that has ended has a summary in the store, or gets one here from its rows; a summary is valid until the revision of the run
changes. For a run that has not ended, this cache keeps the states of all task instances by slot, and each request reads only
the steps that were added to the journal since. So the cost of a request depends on what has changed. The cost of the first
request of a window depends on the size of its runs.

The cache can be dropped at any moment. Its size is limited by `KEPT_SLOTS` and `KEPT_SUMMARIES`.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from tradewind.api.grid_structure import GridShape
from tradewind.api.ui_shapes import CellsRun
from tradewind.kernel.run_summary import (
    ABSENT,
    RunSummary,
    StateCounts,
    expanded,
    stretches,
    summarise,
    summarise_owned,
    worst,
)
from tradewind.model.moments import iso
from tradewind.model.states import FINISHED_RUNS, RUN_STATES, TASK_STATES
from tradewind.store.port.dag_overview import DagOverview
from tradewind.store.port.grid_lists import GridLists, GridRun, Step

KEPT_SLOTS = 1_000_000
"""Maximum number of task instances, of runs that have not ended, whose states are kept. About 5 bytes each."""
KEPT_SUMMARIES = 2_000
"""Maximum number of summaries of runs that are kept."""
KEPT_ROWS = 200_000
"""Maximum number of rows of the structures that are kept. About 300 bytes each."""
KEPT_POSITIONS = 64
"""Maximum number of pairs of versions whose `TaskPositions` are kept. About 8 bytes for each task."""

NAMES_AT_ONCE = 500
"""Number of versions whose display names one statement reads."""

STATE_NAMES = [state.value for state in TASK_STATES]


class LiveStates:
    """The states of a run that has not ended, by slot."""

    __slots__ = ("owners", "rows", "seq", "states", "version")

    def __init__(self, run: GridRun, shape: GridShape, rows: Sequence[tuple[int, str, int]]) -> None:
        self.version = shape.id
        """The version of the DAG whose task numbers `owners` contains."""
        self.rows = run.rows_created
        self.seq = run.journal_seq
        size = rows[-1][0] + 1 if rows else 0
        self.states = bytearray((ABSENT,)) * size
        self.owners = array("i", (-1,)) * size
        """Slot → number of the task; −1: the definition does not have it."""
        for slot, task_id, state in rows:
            self.states[slot] = state
            self.owners[slot] = shape.tasks.get(task_id, -1)

    def fits(self, run: GridRun, shape: GridShape) -> bool:
        """Whether later steps can be applied to these states: no task instance was added since."""
        return self.version == shape.id and self.rows == run.rows_created and self.seq <= run.journal_seq

    def apply(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.slot < len(self.states):
                self.states[step.slot] = step.state
            self.seq = max(self.seq, step.seq)

    def summary(self, tasks: int) -> RunSummary:
        """Summarise the states. `tasks`: how many the version has."""
        return summarise_owned(self.version, tasks, self.owners, self.states)


class Column(NamedTuple):
    """One run in the rows of one structure."""

    revision: int
    structure: int
    cells: tuple[int, ...]
    """Lengths and codes of the runs of equal states over all rows."""
    totals: list[int]
    mapped: dict[int, StateCounts]


class TaskPositions(NamedTuple):
    """The rows of the tasks of one version of a DAG in the structure of another version, or of the same version."""

    tasks: Sequence[int]
    """Row → number of the task in the version; −1: a group, or the version does not have the task."""
    rows: Sequence[int]
    """Number of a task in the version → its row; −1: it has none."""


class GridCache:
    """The cache that all requests of the grid share: structures, summaries of runs, and the states of runs that have not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: OrderedDict[int, GridShape] = OrderedDict()
        self._columns: OrderedDict[int, Column] = OrderedDict()
        self._live: OrderedDict[int, LiveStates] = OrderedDict()
        self._positions: OrderedDict[tuple[int, int], TaskPositions] = OrderedDict()
        """(version, structure) → the positions of the version's tasks."""
        self._names: dict[int, str] = {}

    # --- structures ------------------------------------------------------------------------------------------------

    def shapes(self, reader: GridLists, versions: Sequence[int]) -> dict[int, GridShape]:
        """The structures of these versions; those that are not kept are read in one statement."""
        with self._lock:
            found = {version: self._shapes[version] for version in versions if version in self._shapes}
            for version in found:
                self._shapes.move_to_end(version)
        missing = sorted(set(versions) - found.keys())
        for read in reader.grid_definitions(missing):
            found[read.id] = GridShape(read)
        with self._lock:
            self._shapes.update((version, found[version]) for version in missing if version in found)
            size = sum(shape.size for shape in self._shapes.values())
            while size > KEPT_ROWS and len(self._shapes) > 1:
                size -= self._shapes.popitem(last=False)[1].size
        return found

    def display_names(self, reader: DagOverview, versions: Sequence[int]) -> dict[int, str]:
        """Version → display name, where there is one. Each version is read once."""
        with self._lock:
            known = dict(self._names)
        missing = [version for version in versions if version not in known]
        for start in range(0, len(missing), NAMES_AT_ONCE):
            part = missing[start : start + NAMES_AT_ONCE]
            found = reader.display_names(part)
            known.update((version, found.get(version, "")) for version in part)
        with self._lock:
            self._names = {version: known[version] for version in versions}
        return {version: name for version, name in known.items() if name}

    # --- columns ---------------------------------------------------------------------------------------------------

    def columns(self, reader: GridLists, shape: GridShape, runs: Sequence[GridRun]) -> dict[int, Column]:
        """The columns of these runs in the rows of a structure.

        Executes at most three statements, and one for each run that has neither a summary nor states here. Runs with equal
        states share their cells: most runs of a window are successful in all tasks.
        """
        found: dict[int, Column] = {}
        with self._lock:
            for run in runs:
                kept = self._columns.get(run.id)
                if kept is not None and kept.revision == run.revision and kept.structure == shape.id:
                    self._columns.move_to_end(run.id)
                    found[run.id] = kept
        wanted = [run for run in runs if run.id not in found]
        summaries = self._summaries(reader, shape, wanted)
        positions = self._positions_in(reader, shape, {one.version for one in summaries.values()})
        known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        for run in wanted:
            summary = summaries[run.id]
            states = (summary.version, summary.states)
            if states not in known:
                known[states] = cells_of(shape, positions[summary.version], summary.states)
            found[run.id] = column_of(run.revision, shape, positions[summary.version], summary, known[states])
        with self._lock:
            self._columns.update((run.id, found[run.id]) for run in wanted)
            while len(self._columns) > KEPT_SUMMARIES:
                self._columns.popitem(last=False)
        return found

    def _positions_in(self, reader: GridLists, shape: GridShape, versions: set[int]) -> dict[int, TaskPositions]:
        """The positions of these versions' tasks in the rows of a structure. Executes at most one statement."""
        found = {shape.id: TaskPositions(shape.order, shape.row_of)}
        with self._lock:
            for version in versions - {shape.id}:
                kept = self._positions.get((version, shape.id))
                if kept is not None:
                    self._positions.move_to_end((version, shape.id))
                    found[version] = kept
        missing = sorted(versions - found.keys())
        ids = reader.grid_task_ids(missing)
        for version in missing:  # the version was deleted, so its tasks are unknown
            found[version] = positions_in(shape, ids.get(version, ()))
        with self._lock:
            self._positions.update(((version, shape.id), found[version]) for version in missing)
            while len(self._positions) > KEPT_POSITIONS:
                self._positions.popitem(last=False)
        return found

    def _summaries(self, reader: GridLists, shape: GridShape, runs: Sequence[GridRun]) -> dict[int, RunSummary]:
        stored = reader.run_summaries([run.id for run in runs if RUN_STATES[run.state] in FINISHED_RUNS]) if runs else {}
        found = {run.id: stored[run.id][1] for run in runs if run.id in stored and stored[run.id][0] == run.journal_seq}
        rest = [run for run in runs if run.id not in found]
        if not rest:
            return found
        with self._lock:  # the states of one run are changed by one request at a time
            known = [
                run
                for run in rest
                if run.id in self._live and self._live[run.id].fits(run, shape) and RUN_STATES[run.state] not in FINISHED_RUNS
            ]
            steps: dict[int, list[Step]] = {}
            for step in reader.steps_since([(run.id, self._live[run.id].seq) for run in known]):
                steps.setdefault(step.run, []).append(step)
            for run in known:
                self._live[run.id].apply(steps.get(run.id, ()))
                self._live.move_to_end(run.id)
            for run in rest:
                live = self._live.get(run.id)
                if RUN_STATES[run.state] in FINISHED_RUNS:
                    rows = reader.instance_states(run.id)
                    found[run.id] = summarise(shape.id, shape.tasks, ((task_id, state) for _, task_id, state in rows))
                    self._live.pop(run.id, None)
                    continue
                if live is None or not live.fits(run, shape):
                    live = self._live[run.id] = LiveStates(run, shape, reader.instance_states(run.id))
                found[run.id] = live.summary(len(shape.tasks))
            size = sum(len(live.states) for live in self._live.values())
            while size > KEPT_SLOTS and len(self._live) > 1:
                size -= len(self._live.popitem(last=False)[1].states)
        return found


def positions_in(shape: GridShape, task_ids: Sequence[str]) -> TaskPositions:
    """The positions of a version's tasks in the rows of a structure. `task_ids`: of the version, in its order."""
    rows = array("i", (shape.row_of[shape.tasks[one]] if one in shape.tasks else -1 for one in task_ids))
    tasks = array("i", (-1,)) * shape.size
    for number, row in enumerate(rows):
        if row >= 0:
            tasks[row] = number
    return TaskPositions(tasks, rows)


def cells_of(shape: GridShape, positions: TaskPositions, states: Sequence[int]) -> tuple[int, ...]:
    """The stretches of all rows of a structure. `states`: those of a summary."""
    codes = expanded(states) + bytes((ABSENT,))  # −1 is the last entry
    rows = bytearray(_select(codes, positions.tasks))
    for group, end in reversed(shape.groups):
        rows[group] = worst(rows[group + 1 : end])
    return stretches(rows)


def column_of(revision: int, shape: GridShape, positions: TaskPositions, summary: RunSummary, cells: tuple[int, ...]) -> Column:
    """A run's column. `cells`: of `cells_of`."""
    totals = [0] * len(TASK_STATES)
    for code, count in summary.counts:
        totals[code] = count
    known = len(positions.rows)
    mapped = {
        positions.rows[task]: counts for task, counts in summary.mapped.items() if task < known and positions.rows[task] >= 0
    }
    return Column(revision, shape.id, cells, totals, mapped)


def _select(states: bytes, positions: Sequence[int]) -> bytes:
    if len(positions) < 2:
        return bytes(states[position] for position in positions)
    return bytes(itemgetter(*positions)(states))


def window(cells: Sequence[int], start: int, end: int) -> list[int]:
    """The stretches of rows `start` … `end` − 1; ABSENT becomes −1."""
    found: list[int] = []
    place = 0
    for i in range(0, len(cells), 2):
        length, code = cells[i], cells[i + 1]
        inside = min(place + length, end) - max(place, start)
        if inside > 0:
            found += (inside, -1 if code == ABSENT else code)
        place += length
        if place >= end:
            break
    return found


def shown_run(run: GridRun, column: Column, start: int, end: int) -> CellsRun:
    """One run as the response has it. `start`, `end`: the window of rows."""
    return CellsRun(
        id=run.id,
        run_id=run.run_id,
        run_type=run.run_type,
        state=RUN_STATES[run.state].value,
        version=run.version_number,
        logical_date=iso(run.logical_date),
        run_after=iso(run.run_after) or "",
        queued_at=iso(run.queued_at) or "",
        start_date=iso(run.started_at),
        end_date=iso(run.ended_at),
        has_note=run.has_note,
        triggering_user=run.triggering_user or None,
        totals=column.totals,
        cells=window(column.cells, start, end),
        mapped={
            str(row): [value for pair in counts for value in pair]
            for row, counts in column.mapped.items()
            if start <= row < end
        },
    )


def token_of(structure: int, runs: Sequence[GridRun]) -> str:
    """A token for what the client knows after a response: the structure, and the revision of each run."""
    return ".".join([str(structure), *(f"{run.id}-{run.revision}" for run in runs)])


def known_revisions(token: str, structure: int) -> dict[int, int]:
    """Run → the revision that the client knows. Empty if the token is unknown or belongs to another structure; then all runs
    are sent.
    """
    first, *pairs = token.split(".")
    if first != str(structure):
        return {}
    found = {}
    for pair in pairs:
        run, _, revision = pair.partition("-")
        if not (run.isascii() and run.isdigit() and revision.isascii() and revision.isdigit() and len(pair) < 40):
            return {}
        found[int(run)] = int(revision)
    return found
