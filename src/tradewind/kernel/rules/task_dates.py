"""A task's own start_date and end_date: runs with an earlier or later logical date do not contain the task."""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.kernel.topology import Topology
from tradewind.model.moments import shown_moment
from tradewind.model.phrases import Phrase, phrase


def outside(topology: Topology, moment: int) -> Iterator[tuple[int, Phrase]]:
    """Yield (task, reason) for every task that a run of logical date `moment` does not contain."""
    dag_start = topology.definition.start_date
    for i, task in enumerate(topology.tasks):
        if task.start_date is not None and moment < task.start_date and task.start_date != dag_start:
            yield i, phrase("date_before_task", date=shown_moment(moment), start=shown_moment(task.start_date))
        elif task.end_date is not None and moment > task.end_date:
            yield i, phrase("date_after_task", date=shown_moment(moment), end=shown_moment(task.end_date))
