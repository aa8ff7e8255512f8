"""Airflow's class names of schedules: `timetable_type` of its lists of DAGs."""

from __future__ import annotations

from tradewind.model.assets import decode_asset_schedule
from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    OnceSchedule,
    Schedule,
)
from tradewind.model.partitions import CronPartition


def timetable_type(schedule: Schedule, assets: bytes | None) -> str:
    """Return the full name of the timetable class that Airflow 3 uses for such a schedule.

    Args:
        assets: the encoded `AssetSchedule` of a DAG that is scheduled on assets too.
    """
    if assets is not None:
        if decode_asset_schedule(bytes(assets)).partitions is not None:
            return "airflow.timetables.simple.PartitionedAssetTimetable"
        return f"airflow.timetables.{'assets' if not isinstance(schedule, NoSchedule) else 'simple'}.{_with_assets(schedule)}"
    match schedule:
        case NoSchedule(partitioned_at_runtime=True):
            return "airflow.timetables.simple.PartitionedAtRuntime"
        case NoSchedule():
            return "airflow.timetables.simple.NullTimetable"
        case OnceSchedule():
            return "airflow.timetables.simple.OnceTimetable"
        case ContinuousSchedule():
            return "airflow.timetables.simple.ContinuousTimetable"
        case CronSchedule(interval_kind="data"):
            return "airflow.timetables.interval.CronDataIntervalTimetable"
        case CronSchedule(partition=CronPartition()):
            return "airflow.timetables.trigger.CronPartitionTimetable"
        case CronSchedule(expressions=expressions) if len(expressions) > 1:
            return "airflow.timetables.trigger.MultipleCronTriggerTimetable"
        case CronSchedule():
            return "airflow.timetables.trigger.CronTriggerTimetable"
        case DeltaSchedule(interval_kind="data"):
            return "airflow.timetables.interval.DeltaDataIntervalTimetable"
        case DeltaSchedule():
            return "airflow.timetables.trigger.DeltaTriggerTimetable"
        case EventsSchedule():
            return "airflow.timetables.events.EventsTimetable"
        case CustomSchedule(module=module, name=name):
            return f"{module}.{name}" if module else name
    raise AssertionError(f"a schedule without a name: {type(schedule).__name__}")


def _with_assets(schedule: Schedule) -> str:
    return "AssetTriggeredTimetable" if isinstance(schedule, NoSchedule) else "AssetOrTimeSchedule"
