"""Task instances of other DAGs that are cleared together with an external marker task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tradewind.kernel.rules import selection
from tradewind.kernel.topology import Topology
from tradewind.model.errors import Conflict
from tradewind.model.rows import RunRow
from tradewind.model.states import TaskState
from tradewind.store.port import RowReader

Found = tuple[int, str, int, TaskState]
"""Slot, task id, map index and state, as `EditReader.clearable` gives them."""


def clearable_beyond(
    store: RowReader, run: RunRow, found: Sequence[Found], *, only_failed: bool, only_running: bool
) -> Iterator[tuple[RunRow, list[Found]]]:
    """Yield runs of other DAGs with their task instances to clear, as the external markers among the cleared tasks say.

    A marker names a task in the run with the same logical date. If the run or the task does not exist, nothing is cleared.

    Raises:
        Conflict: the chain of markers is longer than the first marker allows.
    """
    seen = {(run.id, slot) for slot, *_ in found}
    waiting = [(run, list(found), 0, 0)]
    while waiting:
        here, cleared, depth, limit = waiting.pop(0)
        if here.logical_date is None:
            continue
        marks = {task.task_id: task.external for task in store.definition(here.version).tasks if task.external is not None}
        for task_id in dict.fromkeys(task_id for _, task_id, *_ in cleared if task_id in marks):
            mark = marks[task_id]
            there = _run_on(store, mark.dag_id, here.logical_date)
            topology = None if there is None else Topology(store.definition(there.version))
            if there is None or topology is None or mark.task_id not in topology.index:
                continue
            chosen = selection.with_setups(topology, selection.choose(topology, [mark.task_id], downstream=True))
            part = store.clearable(there, chosen, only_failed=only_failed, only_running=only_running)
            part = [one for one in part if (there.id, one[0]) not in seen]
            if not part:
                continue
            allowed = limit or mark.depth
            if depth + 1 > allowed:
                raise Conflict(
                    f"more than {allowed} external markers follow each other, at task {task_id!r} of DAG {here.dag_id!r}; nothing "
                    "was cleared. Raise recursion_depth of the first one, or clear fewer tasks"
                )
            seen.update((there.id, one[0]) for one in part)
            yield there, part
            waiting.append((there, part, depth + 1, allowed))


def _run_on(store: RowReader, dag_id: str, date: int) -> RunRow | None:
    """The run of a DAG with this logical date."""
    found = store.previous_run(dag_id, date + 1, scheduled_only=False)
    return found if found is not None and found.logical_date == date else None
