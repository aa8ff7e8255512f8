"""Reports to Sentry. The package sentry-sdk is replaced by a stand-in that keeps what it is told."""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.unit.execution.world import workload
from tradewind import DAG
from tradewind.execution import error_reports
from tradewind.execution.error_reports import init_arguments, open_reports
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.operator import BaseOperator


class StandIn(ModuleType):
    """Has the functions of sentry_sdk that are used."""

    def __init__(self) -> None:
        super().__init__("sentry_sdk")
        self.calls: list[tuple[str, Any]] = []
        self.tags: dict[str, object] = {}
        self.set_tag = self.tags.__setitem__

    def init(self, **arguments: Any) -> None:
        self.calls.append(("init", arguments))

    def get_isolation_scope(self) -> StandIn:
        return self

    def add_breadcrumb(self, **arguments: Any) -> None:
        self.calls.append(("breadcrumb", arguments))

    def capture_exception(self, error: BaseException) -> None:
        self.calls.append(("capture", error))

    def flush(self, timeout: float) -> None:
        self.calls.append(("flush", timeout))


@pytest.fixture
def sentry(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found, integration = StandIn(), ModuleType("sentry_sdk.integrations.logging")
    integration.ignore_logger = lambda name: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentry_sdk", found)
    monkeypatch.setitem(sys.modules, "sentry_sdk.integrations.logging", integration)
    monkeypatch.setenv("AIRFLOW__SENTRY__SENTRY_ON", "True")
    return found


def some_task() -> BaseOperator:
    with DAG("d"):
        return EmptyOperator(task_id="t")


def test_a_report_has_airflows_tags(sentry: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SENTRY__SENTRY_DSN", "https://key@sentry.example.com/1")
    monkeypatch.setenv("AIRFLOW__SENTRY__ENVIRONMENT", "production")
    found = open_reports(some_task(), workload("t"))
    assert found is not None
    ((name, arguments),) = sentry.calls
    assert (name, arguments["dsn"], arguments["environment"]) == ("init", "https://key@sentry.example.com/1", "production")
    assert sentry.tags.keys() >= {
        "dag_id",
        "task_id",
        "run_id",
        "try_number",
        "logical_date",
        "data_interval_start",
        "operator",
    }
    assert (sentry.tags["task_id"], sentry.tags["operator"]) == ("t", "EmptyOperator")


def test_an_error_is_sent_even_if_the_other_tasks_are_unknown(sentry: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> object:
        raise OSError("no answer")

    monkeypatch.setattr(error_reports, "instances_of_run", fail)
    found = open_reports(some_task(), workload("t"))
    assert found is not None
    error = ValueError("no")
    found.capture(error)
    assert sentry.calls[1:] == [("capture", error), ("flush", error_reports.FLUSH_SECONDS)]


def test_reports_are_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__SENTRY__SENTRY_ON", raising=False)
    assert open_reports(some_task(), workload("t")) is None


def test_a_missing_package_is_named_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("AIRFLOW__SENTRY__SENTRY_ON", "True")
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with caplog.at_level(logging.WARNING):
        assert open_reports(some_task(), workload("t")) is None
    assert "pip install 'tradewind[sentry]'" in caplog.text


def test_options_of_the_section_are_arguments(caplog: pytest.LogCaptureFixture) -> None:
    section = {"sentry_on": True, "sentry_dsn": "", "dsn": "https://d", "sample_rate": 1, "release": "", "integrations": "x"}
    assert init_arguments(section) == {"dsn": "https://d", "sample_rate": 1}
    assert init_arguments({"sentry_on": True}) == {}, "SENTRY_DSN in the environment counts"
    assert "not supported" in caplog.text


def test_before_send_is_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SENTRY__BEFORE_SEND", "os.path.join")
    import os.path

    assert init_arguments({"before_send": "os.path.join", "transport": ""}) == {"before_send": os.path.join}
