"""`airflow.stats` in user code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.statsd_server import StatsdServer
from tradewind.airflow.compat import stats
from tradewind.airflow.compat.stats import Stats


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatsdServer]:
    with StatsdServer() as found:
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
        monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(found.port))
        monkeypatch.setattr(stats, "_pid", 0)
        yield found
    stats._pid = 0


def test_each_method_sends(server: StatsdServer) -> None:
    Stats.incr("a")
    Stats.incr("b", 2, 1, tags={"x": "y"})
    Stats.decr("c", 3)
    Stats.gauge("d", 4)
    Stats.gauge("e", 5, delta=True)
    Stats.timing("f", timedelta(seconds=1.5))
    Stats.timing("g", 7)
    stats.incr("ti.start", tags={"dag_id": "d", "task_id": "t"})
    server.wait_for(
        "airflow.a:1|c",
        "airflow.b:2|c",
        "airflow.c:-3|c",
        "airflow.d:4|g",
        "airflow.e:+5|g",
        "airflow.f:1500.000000|ms",
        "airflow.g:7.000000|ms",
        "airflow.ti.start.d.t:1|c",
    )


def test_timers(server: StatsdServer) -> None:
    with Stats.timer("block", tags={"x": "y"}) as block:
        pass
    assert block.duration is not None

    @Stats.timer("function")
    def work(number: int) -> int:
        return number + 1

    assert work(1) == 2
    watch = Stats.timer().start()
    watch.stop()
    assert watch.duration is not None
    stopped = Stats.timer("dropped").start()
    stopped.stop(send=False)
    Stats.incr("last")
    lines = server.wait_for("airflow.block:", "airflow.function:", "airflow.last:1|c")
    assert not any("dropped" in line for line in lines)


def test_a_sample_of_calls(server: StatsdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([0.9, 0.1])
    monkeypatch.setattr("random.random", lambda: next(draws))
    Stats.incr("n", rate=0.5)
    Stats.incr("n", rate=0.5)
    Stats.incr("last")
    assert server.wait_for("airflow.last:1|c").count("airflow.n:1|c|@0.5") == 1


def test_a_wrong_setting_does_not_end_the_code_that_sends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "perhaps")
    monkeypatch.setattr(stats, "_pid", 0)
    with caplog.at_level(logging.WARNING):
        Stats.incr("n")
        Stats.incr("n")
    assert len(caplog.records) == 1
    assert "statsd_on" in str(caplog.records[0].__dict__["values"])


def test_a_name_is_made_valid(caplog: pytest.LogCaptureFixture) -> None:
    assert stats.normalize_name_for_stats("my pool", log_warning=False) == "my_pool"
    assert caplog.records == []
    assert stats.normalize_name_for_stats("a:b") == "a_b"
    assert stats.normalize_name_for_stats("a.b-c_1") == "a.b-c_1"
    assert len(caplog.records) == 1


def test_each_name_of_airflow_is_served() -> None:
    """User code of Airflow 3.3 calls the functions of the module."""
    from airflow.observability import stats as core_stats
    from airflow.sdk.observability import stats as sdk_stats
    from airflow.stats import Stats as old

    assert core_stats.incr == sdk_stats.incr == old.incr == Stats.incr
