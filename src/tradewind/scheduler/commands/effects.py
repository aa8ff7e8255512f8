"""The changes of a command that a live scheduler has to apply to its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tradewind.model.rows import RemovedRun, RunRow
from tradewind.scheduler.changes import POOLS, TRIAGE
from tradewind.wire.messages import AttemptKey, OutsideAssetEvent

if TYPE_CHECKING:
    from tradewind.scheduler.core import Scheduler


class Effects(msgspec.Struct):
    """Ids of DAGs and numbers of runs to read from the store again, and changes of pools, callbacks and lookups."""

    dags: set[str] = set()
    created: list[RunRow] = []
    """New runs."""
    runs: set[int] = set()
    read: set[str] = set()
    """DAGs whose file was parsed again, changed or not."""
    pools: bool = False
    removed: list[RemovedRun] = []
    """Deleted runs: other runs may depend on them or wait for them."""
    gone_pools: set[str] = set()
    plugins: bool = False
    """The list of plugins was stored again."""
    callbacks: bool = False
    """Callbacks have become due."""
    lookups: set[str] = set()
    """Variables and connections that were changed or deleted: `variable bucket`, `connection db`."""
    files: set[str] = set()
    """DAG files that the parser has to read again."""
    stops: list[tuple[AttemptKey, str]] = []
    """Attempts to stop, because their result does not count any more, with the reason."""
    answered: set[tuple[int, int]] = set()
    """(run, slot) of task instances whose question a person has answered."""
    noted: dict[int, str | None] = {}
    """Runs whose note was changed → the note."""
    asset_events: list[OutsideAssetEvent] = []
    """Events that a person has created, for the listeners of plugins."""

    def apply(self, scheduler: Scheduler) -> None:
        """Update the memory of the scheduler after the commit of the command."""
        for run, note in self.noted.items():
            scheduler.runs.set_note(run, note)
        for run, slot in self.answered:
            scheduler.waits.notice(run, slot)
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
        if self.plugins:
            scheduler.refresh_listeners()
        if self.callbacks:
            scheduler.callbacks.wake()
        scheduler.readmit()

    def note(self, scheduler: Scheduler) -> None:
        """Tell open web pages what the command has changed."""
        changes = scheduler.changes
        for dag_id in sorted(self.dags | self.read):
            changes.dag(dag_id)
        for row in self.created:
            changes.run(row.dag_id, row.run_id)
        for removed in self.removed:
            changes.run(removed.dag_id, removed.run_id)
        for run in sorted(self.runs | self.noted.keys()):
            edited = scheduler.store.run(run)
            if edited is not None:
                changes.edited(edited.dag_id, edited.run_id)
        if self.pools or self.gone_pools:
            changes.add(POOLS)
        if self.read:
            changes.add(TRIAGE)
