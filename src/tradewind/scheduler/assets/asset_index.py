"""DAGs that are scheduled by assets: whether their condition is met, and the run that is created then.

Only the DAGs to be examined are in memory. The asset events that wait for a run are in the store, so a restart loses none.
Examining a DAG costs one query, and only DAGs with an asset schedule are examined: when an event was committed for one of them,
when one of their runs ended, and when they were parsed or unpaused.

A run consumes all events that wait for its DAG, in the transaction that creates the run: also events that came while the DAG was
paused or while max_active_runs was reached. Events that come while the DAG is paused do not count towards the condition (as in
Airflow: unpausing a DAG does not start runs for its past).
"""

from __future__ import annotations

from functools import lru_cache

from tradewind.model.assets import AssetSchedule, Update, decode_asset_schedule, holds
from tradewind.model.moments import iso
from tradewind.model.rows import DagPlan, NewRun, RunRow, WaitingAsset
from tradewind.model.states import RunType
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.store.port import RowReader, Store


class AssetIndex:
    """See the module."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self.dirty: dict[str, None] = {}
        """DAGs to be examined, in order."""

    def clear(self) -> None:
        self.dirty.clear()

    def mark_dirty(self, plan: DagPlan) -> None:
        """Have a DAG examined, if its schedule has assets."""
        if plan.assets is not None:
            self.dirty[plan.dag_id] = None

    def advance(self, entry: DagEntry, now: int) -> RunRow | None:
        """Create the run of a DAG whose condition is met, in one transaction.

        Returns:
            The run; None where the condition is not met, or no run may be created now.

        Raises:
            StoreError, Stale: nothing was written.
        """
        plan = entry.plan
        if plan.assets is None or not entry.is_open or entry.unfinished >= plan.max_active_runs:
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
    """Return the updates that count towards a condition."""
    return [Update(one.asset.name, one.asset.uri, one.aliases) for one in waiting if one.counts]


def assets_hold(store: RowReader, dag_id: str, encoded: bytes) -> bool:
    """Return whether the condition of a DAG is met now."""
    return _due(asset_schedule(encoded), store.waiting_assets(dag_id))


def _due(schedule: AssetSchedule, waiting: list[WaitingAsset]) -> bool:
    return holds(schedule.condition, counted(waiting))


def asset_run_id(last: WaitingAsset) -> str:
    """Return the run id in Airflow's form, with the number of the last event instead of random letters."""
    return f"asset_triggered__{(iso(last.last_at) or '').replace('Z', '+00:00')}_{last.last}"


def _new_run(store: RowReader, plan: DagPlan, schedule: AssetSchedule, last: WaitingAsset, now: int) -> NewRun:
    """Return the run to create.

    As in Airflow 3 it has no logical date. As in Airflow 2 (`dated`) it has the date of the last event, and the data intervals
    of the runs that emitted the events.
    """
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
