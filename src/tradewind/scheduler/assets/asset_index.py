"""DAGs that wait for assets: whether their condition holds, and the run that it makes.

Nothing is remembered here but which DAGs are to be looked at: the events that wait are in the store, so a restart loses none. A
look costs one query, and only DAGs whose schedule names assets are looked at: when an event was committed for one of them, when
one of their runs ended, and when they were parsed anew or unpaused.

A run consumes everything that waits for its DAG, in the transaction that makes it: also what came while the DAG was paused, or
while max_active_runs held it back. What comes while it is paused does not count towards the condition (Airflow's rule, and the
one for a calendar without catch-up: unpausing starts no history).
"""

from __future__ import annotations

from functools import lru_cache

from tradewind.model.assets import AssetSchedule, Update, decode_asset_schedule, holds
from tradewind.model.moments import iso
from tradewind.model.rows import DagPlan, NewRun, RunRow, WaitingAsset
from tradewind.model.states import RunType
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.store.port import Store


class AssetIndex:
    """See the module."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self.wanted: dict[str, None] = {}
        """DAGs to be looked at, in turn."""

    def clear(self) -> None:
        self.wanted.clear()

    def look_at(self, plan: DagPlan) -> None:
        if plan.assets is not None:
            self.wanted[plan.dag_id] = None

    def advance(self, entry: DagEntry, now: int) -> RunRow | None:
        """Make the run of a DAG whose condition holds, in one transaction; None where it does not, or no run may be made.

        Raises:
            StoreError, Stale: nothing was written.
        """
        plan = entry.plan
        if plan.assets is None or not entry.open or entry.unfinished >= plan.max_active_runs:
            return None
        schedule = asset_schedule(plan.assets)
        if not _due(schedule, self._store.waiting_assets(plan.dag_id)):
            return None
        with self._store.transaction():
            waiting = self._store.waiting_assets(plan.dag_id)
            if not _due(schedule, waiting):
                return None
            last = waiting[-1]
            return self._store.create_asset_run(_new_run(self._store, plan, schedule, last, now), last.last, self._epoch)


@lru_cache(maxsize=1024)
def asset_schedule(encoded: bytes) -> AssetSchedule:
    return decode_asset_schedule(encoded)


def counted(waiting: list[WaitingAsset]) -> list[Update]:
    """The updates that conditions are decided from."""
    return [Update(one.asset.name, one.asset.uri, one.aliases) for one in waiting if one.counts]


def assets_hold(store: Store, dag_id: str, encoded: bytes) -> bool:
    """Is the condition of a DAG fulfilled now?"""
    return _due(asset_schedule(encoded), store.waiting_assets(dag_id))


def _due(schedule: AssetSchedule, waiting: list[WaitingAsset]) -> bool:
    return holds(schedule.condition, counted(waiting))


def asset_run_id(last: WaitingAsset) -> str:
    """Deterministic: Airflow's form, with the number of the last event in place of its random letters."""
    return f"asset_triggered__{(iso(last.last_at) or '').replace('Z', '+00:00')}_{last.last}"


def _new_run(store: Store, plan: DagPlan, schedule: AssetSchedule, last: WaitingAsset, now: int) -> NewRun:
    """Airflow 3: it stands for no date. Airflow 2: for the last event, and for the data intervals of what emitted the events."""
    date: int | None = None
    interval: tuple[int | None, int | None] = (None, None)
    if schedule.dated:
        date = last.last_at
        while (taken := store.previous_run(plan.dag_id, date + 1, scheduled_only=False)) and taken.logical_date == date:
            date += 1
        interval = store.waiting_interval(plan.dag_id, last.last) or (date, date)
    return NewRun(
        dag_id=plan.dag_id,
        run_id=asset_run_id(last),
        run_type=RunType.ASSET_TRIGGERED,
        version=plan.version,
        logical_date=date,
        interval_start=interval[0],
        interval_end=interval[1],
        run_after=min(last.last_at, now),
        at=now,
        triggered_by="asset",
    )
