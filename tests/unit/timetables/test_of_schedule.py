"""`dag.timetable` is a timetable, whatever the author wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tradewind.sdk.assets import Asset, AssetAlias, AssetOrTimeSchedule, AssetTriggeredTimetable
from tradewind.sdk.dag import DAG
from tradewind.timetables.events import EventsTimetable
from tradewind.timetables.interval import CronDataIntervalTimetable


@pytest.mark.parametrize(
    ("schedule", "kind", "summary"),
    [
        (None, "NullTimetable", "None"),
        ("@once", "OnceTimetable", "@once"),
        ("@continuous", "ContinuousTimetable", "@continuous"),
        ("@daily", "CronTriggerTimetable", "0 0 * * *"),
        ("5 6 * * *", "CronTriggerTimetable", "5 6 * * *"),
        (timedelta(hours=2), "DeltaTriggerTimetable", "2:00:00"),
        (CronDataIntervalTimetable("0 1 * * *", "UTC"), "CronDataIntervalTimetable", "0 1 * * *"),
        (EventsTimetable([datetime(2026, 3, 1, tzinfo=UTC)]), "EventsTimetable", "1 events"),
        (EventsTimetable([datetime(2026, 3, 1, tzinfo=UTC)], description="Games"), "EventsTimetable", "Games"),
        (Asset("a"), "AssetTriggeredTimetable", "Asset"),
        ([Asset("a"), Asset("b")], "AssetTriggeredTimetable", "Asset"),
        (AssetTriggeredTimetable([Asset("a")]), "AssetTriggeredTimetable", "Asset"),
        (AssetOrTimeSchedule(timetable="@daily", assets=Asset("a")), "AssetOrTimeSchedule", "Asset or @daily"),
    ],
)
def test_timetables(schedule: Any, kind: str, summary: str) -> None:
    dag = DAG("d", schedule=schedule, start_date=datetime(2024, 1, 1, tzinfo=UTC), max_active_runs=1)
    assert (type(dag.timetable).__name__, dag.timetable.summary) == (kind, summary)
    assert isinstance(dag.timetable.serialize(), dict)


def test_a_timetable_of_assets_contains_the_condition_as_airflow_serializes_it() -> None:
    schedule = (Asset("a", "s3://a") | AssetAlias("b")) & Asset.ref(name="c")
    either = {
        "__type": "asset_any",
        "objects": [
            {"__type": "asset", "name": "a", "uri": "s3://a/", "group": "asset", "extra": {}},
            {"__type": "asset_alias", "name": "b", "group": "asset"},
        ],
    }
    condition = {"__type": "asset_all", "objects": [either, {"__type": "asset_ref", "name": "c"}]}
    assert DAG("d", schedule=schedule).timetable.serialize() == {"asset_condition": condition}
    both = AssetOrTimeSchedule(timetable=CronDataIntervalTimetable("0 1 * * *", "UTC"), assets=schedule)
    assert DAG("d", schedule=both).timetable.serialize() == {
        "asset_condition": condition,
        "timetable": {
            "__type": "airflow.timetables.interval.CronDataIntervalTimetable",
            "__var": {"expression": "0 1 * * *", "timezone": "UTC"},
        },
    }


def test_a_timetable_of_assets_is_a_schedule() -> None:
    given = DAG("d", schedule=AssetTriggeredTimetable([Asset("a"), Asset("b")]))
    plain = DAG("d", schedule=[Asset("a"), Asset("b")])
    assert (given.time_schedule, given.asset_condition) == (plain.time_schedule, plain.asset_condition)


def test_a_dag_without_a_schedule() -> None:
    assert type(DAG("d").timetable).__name__ == "NullTimetable"


def test_the_time_zone_of_the_dag_counts() -> None:
    import pendulum

    dag = DAG("d", schedule="0 6 * * *", start_date=pendulum.datetime(2024, 1, 1, tz="Europe/Paris"))
    assert dag.timetable.serialize()["timezone"] == "Europe/Paris"
