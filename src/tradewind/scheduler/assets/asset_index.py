"""DAGs that are scheduled by assets: whether their condition is met, and the run that is created then.

Only the DAGs to be examined are in memory. The asset events that wait for a run are in the store, so a restart loses none.
Examining a DAG costs one query, and only DAGs with an asset schedule are examined: when an event was committed for one of them,
when one of their runs ended, and when they were parsed or unpaused.

A run consumes all events that wait for its DAG, in the transaction that creates the run: also events that came while the DAG was
paused or while max_active_runs was reached. Events that come while the DAG is paused do not count towards the condition (as in
Airflow: unpausing a DAG does not start runs for its past).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from tradewind.kernel.partitions import is_due, partition_date
from tradewind.model.assets import AssetSchedule, Update, decode_asset_schedule, holds
from tradewind.model.moments import iso
from tradewind.model.partitions import PartitionRules
from tradewind.model.rows import DagPlan, NewRun, RunRow, WaitingAsset, WaitingPartition
from tradewind.model.states import RunType
from tradewind.scheduler.assets.custom_mappers import CustomMappers
from tradewind.scheduler.dags.schedule import DagEntry
from tradewind.store.port import RowReader, Store

RUNS_AT_ONCE = 100
"""Maximum number of runs of one DAG that are created before other work is done."""


class AssetIndex:
    """See the module."""

    def __init__(self, store: Store, epoch: int, mappers: CustomMappers) -> None:
        self._store = store
        self._epoch = epoch
        self._mappers = mappers
        self.dirty: dict[str, None] = {}
        """DAGs to be examined, in order."""
        self._examined: dict[str, tuple[bytes | None, int]] = {}
        """DAG with partitions → its schedule, and the number of the last event that was examined."""

    def clear(self) -> None:
        self._mappers.clear()
        self.dirty.clear()
        self._examined.clear()

    def mark_dirty(self, plan: DagPlan) -> None:
        """Mark a DAG for examination, if its schedule has assets."""
        if plan.assets is not None:
            self.dirty[plan.dag_id] = None

    def mark_mapped(self, plan: DagPlan) -> None:
        """Mark a DAG for examination of all its keys: earlier events may have got keys now."""
        self._examined.pop(plan.dag_id, None)
        self.mark_dirty(plan)

    def advance(self, entry: DagEntry, now: int) -> list[RunRow]:
        """Create the runs of a DAG whose condition is met, each in a transaction of its own.

        Returns:
            The runs; none where the condition is not met, or no run may be created now. A DAG with partitions may get several.

        Raises:
            StoreError, Stale: nothing of the last transaction was written.
        """
        plan = entry.plan
        if plan.assets is None or not entry.is_open:
            return []
        schedule = asset_schedule(plan.assets)
        if schedule.partitions is not None:
            return self._advance_partitions(plan, schedule, schedule.partitions, now)
        if entry.unfinished >= plan.max_active_runs:
            return []
        row = self._advance_whole(plan, schedule, now)
        return [] if row is None else [row]

    def _advance_partitions(self, plan: DagPlan, schedule: AssetSchedule, rules: PartitionRules, now: int) -> list[RunRow]:
        """Create a run for each key that is complete. As in Airflow, max_active_runs limits only how many of them run at once."""
        self._mappers.consult(plan, rules)
        waiting = self._store.waiting_partitions(plan.dag_id, self._seen(plan))
        due = [one for one in waiting if is_due(schedule, one)]
        made = []
        for one in due[:RUNS_AT_ONCE]:
            new = NewRun(
                dag_id=plan.dag_id,
                run_id=partition_run_id(one),
                run_type=RunType.ASSET_TRIGGERED,
                version=plan.version,
                logical_date=None,
                interval_start=None,
                interval_end=None,
                run_after=min(one.last_at, now),
                at=now,
                triggered_by="asset",
                partition_key=one.key,
                partition_date=partition_date(rules, one),
            )
            made.append(self._store.create_asset_run(new, one.last, self._epoch))
        if len(due) > RUNS_AT_ONCE:
            self.mark_dirty(plan)
        elif waiting:
            self._examined[plan.dag_id] = (plan.assets, max(one.last for one in waiting))
        return made

    def _seen(self, plan: DagPlan) -> int:
        """Return the number of the last event that was examined with this schedule: only keys with later events may be due."""
        assets, number = self._examined.get(plan.dag_id, (None, 0))
        return number if assets == plan.assets else 0

    def _advance_whole(self, plan: DagPlan, schedule: AssetSchedule, now: int) -> RunRow | None:
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
    """Return whether the condition of a DAG is met now; with partitions, for one of its keys."""
    schedule = asset_schedule(encoded)
    if schedule.partitions is not None:
        return any(is_due(schedule, one) for one in store.waiting_partitions(dag_id))
    return _due(asset_schedule(encoded), store.waiting_assets(dag_id))


def _due(schedule: AssetSchedule, waiting: list[WaitingAsset]) -> bool:
    return holds(schedule.condition, counted(waiting))


def asset_run_id(last: WaitingAsset) -> str:
    """Return the run id in Airflow's form, with the number of the last event instead of random letters."""
    return f"asset_triggered__{(iso(last.last_at) or '').replace('Z', '+00:00')}_{last.last}"


def partition_run_id(waiting: WaitingPartition) -> str:
    """Return the run id of a partition key: one event may give several keys, so the id ends with a hash of the key."""
    hashed = hashlib.blake2b(waiting.key.encode(), digest_size=4).hexdigest()
    return f"asset_triggered__{(iso(waiting.last_at) or '').replace('Z', '+00:00')}_{waiting.last}_{hashed}"


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
