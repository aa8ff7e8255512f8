"""Attributes of a DAG whose default is a setting, as tests of DAG files and policies read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import jinja2
import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator


def test_attributes_without_a_value_have_the_values_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = DAG("d", schedule=None)
    assert (dag.catchup, dag.max_active_runs, dag.max_active_tasks) == (False, 16, 16)
    monkeypatch.setenv("AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG", "3")
    monkeypatch.setenv("AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT", "True")
    assert (dag.catchup, dag.max_active_runs) == (True, 3)


def test_what_the_author_or_a_policy_gives_counts() -> None:
    dag = DAG("d", schedule=None, catchup=True, max_active_runs=2, max_active_tasks=5)
    assert (dag.catchup, dag.max_active_runs, dag.max_active_tasks, dag.concurrency) == (True, 2, 5, 5)
    dag.max_active_runs = 4
    dag.catchup = False
    found = to_definition(dag, "d.py", DefinitionDefaults(max_active_runs=9, catchup=True))
    assert (found.max_active_runs, found.catchup) == (4, False)


def test_the_defaults_of_the_scheduler_apply_to_what_is_not_given() -> None:
    """Reading the attributes gives nothing: the definition still takes the defaults that the scheduler sent."""
    dag = DAG("d", schedule=None)
    assert dag.max_active_runs == 16
    found = to_definition(dag, "d.py", DefinitionDefaults(max_active_runs=9, max_active_tasks=8, catchup=True))
    assert (found.max_active_runs, found.max_active_tasks, found.catchup) == (9, 8, True)


def test_a_file_for_airflow_2_catches_up_by_default() -> None:
    with open_dags.collecting(2):
        assert DAG("d", schedule=None).catchup is True


def test_dates_are_moments_in_utc() -> None:
    """Expected values: Airflow 3.3.2."""
    berlin = ZoneInfo("Europe/Berlin")
    dag = DAG("d", start_date=datetime(2024, 1, 1, tzinfo=berlin), end_date=datetime(2024, 6, 1))  # noqa: DTZ001 (as authors write)
    assert dag.start_date is not None
    assert dag.end_date is not None
    assert (type(dag.start_date).__name__, dag.start_date.isoformat()) == ("DateTime", "2023-12-31T23:00:00+00:00")
    assert dag.end_date.isoformat() == "2024-06-01T00:00:00+00:00"
    assert dag.timezone.name == "Europe/Berlin"
    assert DAG("d", default_args={"start_date": datetime(2024, 1, 1, tzinfo=UTC)}).start_date == datetime(
        2024, 1, 1, tzinfo=UTC
    )
    assert DAG("d").start_date is None


def test_a_date_without_a_zone_is_in_the_default_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DEFAULT_TIMEZONE", "Asia/Tokyo")
    dag = DAG("d", start_date=datetime(2024, 1, 1))  # noqa: DTZ001 (as authors write)
    assert dag.start_date is not None
    assert (dag.start_date.isoformat(), dag.timezone.name) == ("2023-12-31T15:00:00+00:00", "Asia/Tokyo")


def test_a_task_has_the_dates_of_its_dag_as_bounds() -> None:
    first, last = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 1, tzinfo=UTC)
    later, earlier = datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)
    with DAG("d", start_date=first, end_date=last):
        plain = BaseOperator("plain")
        inside = BaseOperator("inside", start_date=later, end_date=earlier)
        outside = BaseOperator("outside", start_date=first - timedelta(days=9), end_date=last + timedelta(days=9))
    assert (plain.start_date, plain.end_date) == (first, last)
    assert (inside.start_date, inside.end_date) == (later, earlier)
    assert (outside.start_date, outside.end_date) == (first, last)
    assert BaseOperator("alone").start_date is None


def test_values_that_are_not_given() -> None:
    """Expected values: Airflow 3.3.2."""
    dag = DAG("d")
    assert (dag.schedule, dag.deadline, dag.template_searchpath) == (None, None, None)
    assert (dag.on_success_callback, dag.on_failure_callback, dag.sla_miss_callback) == (None, None, None)
    assert (dag.max_consecutive_failed_dag_runs, dag.disable_bundle_versioning) == (0, False)
    assert dag.template_undefined is jinja2.StrictUndefined
    with open_dags.collecting(2):
        assert DAG("d").schedule_interval == timedelta(days=1)


def test_callbacks_and_folders_are_as_given() -> None:
    def call(context: object) -> None:
        """Do nothing."""

    dag = DAG("d", on_failure_callback=call, on_success_callback=[call], template_searchpath="/sql")
    assert (dag.on_failure_callback, dag.on_success_callback, dag.template_searchpath) == (call, [call], ("/sql",))
    assert dag.has_on_failure_callback
    found = to_definition(dag, "d.py", DefinitionDefaults())
    assert found.callbacks == {"on_success_callback": ("call",), "on_failure_callback": ("call",)}
