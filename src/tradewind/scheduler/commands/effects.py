"""The changes of a command that a live scheduler has to apply to its memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tradewind.model.rows import RemovedRun, RunRow
from tradewind.wire.messages import AttemptKey

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler


@dataclass(slots=True)
class Effects:
    """Ids of DAGs and numbers of runs to read from the store again, and changes of pools, callbacks and lookups."""

    dags: set[str] = field(default_factory=set)
    created: list[RunRow] = field(default_factory=list)
    """New runs."""
    runs: set[int] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """DAGs whose file was parsed again, changed or not."""
    pools: bool = False
    removed: list[RemovedRun] = field(default_factory=list)
    """Deleted runs: other runs may depend on them or wait for them."""
    gone_pools: set[str] = field(default_factory=set)
    callbacks: bool = False
    """Callbacks are due now."""
    lookups: set[str] = field(default_factory=set)
    """Variables and connections that were changed or deleted: `variable bucket`, `connection db`."""
    stops: list[tuple[AttemptKey, str]] = field(default_factory=list)
    """Attempts to stop, because their result does not count any more, with the reason."""
    noted: dict[int, str | None] = field(default_factory=dict)
    """Runs whose note was changed → the note."""

    def apply(self, scheduler: Scheduler) -> None:
        """Update the memory of the scheduler after the commit of the command."""
        for run, note in self.noted.items():
            scheduler.runs.set_note(run, note)
        for attempt, cause in self.stops:
            scheduler.executor.cancel(attempt, cause, scheduler.config.kill_grace)
        for run in sorted(self.runs):
            scheduler.runs.refresh(run)
        for dag_id in sorted(self.read):
            scheduler.schedules.file_parsed(dag_id)
        for dag_id in sorted(self.dags):
            scheduler.schedules.refresh(dag_id)
        for row in self.created:
            if row.dag_id not in self.dags:
                scheduler.schedules.refresh(row.dag_id, [row])
        if self.removed:
            scheduler.runs.deleted(self.removed)
        if self.pools:
            scheduler.refresh_pools()
        for name in self.gone_pools:
            scheduler.forget_pool(name)
        if self.callbacks:
            scheduler.callbacks.wake()
        scheduler.readmit()
