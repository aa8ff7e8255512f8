"""`dag.timetable` is a timetable, whatever the author wrote."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tradewind.sdk.dag import DAG
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
    ],
)
def test_timetables(schedule: Any, kind: str, summary: str) -> None:
    dag = DAG("d", schedule=schedule, start_date=datetime(2024, 1, 1, tzinfo=UTC), max_active_runs=1)
    assert (type(dag.timetable).__name__, dag.timetable.summary) == (kind, summary)
    assert isinstance(dag.timetable.serialize(), dict)


def test_a_dag_without_a_schedule() -> None:
    assert type(DAG("d").timetable).__name__ == "NullTimetable"


def test_the_time_zone_of_the_dag_counts() -> None:
    import pendulum

    dag = DAG("d", schedule="0 6 * * *", start_date=pendulum.datetime(2024, 1, 1, tz="Europe/Paris"))
    assert dag.timetable.serialize()["timezone"] == "Europe/Paris"
