"""Export over OpenTelemetry, to a stand-in for a collector."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.otel_collector import Collector, started_collector
from tradewind.metrics import otel
from tradewind.metrics.config import MetricsConfig, OtelConfig, read_config
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.model.errors import ConfigError

FINISH = {"dag_id": "d", "task_id": "t", "state": "success"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with started_collector() as found:
        yield found


def config(collector: Collector) -> MetricsConfig:
    address = f"http://127.0.0.1:{collector.server_port}/v1/metrics"
    return MetricsConfig("", 0, otel=OtelConfig(address, 60_000, "flows"))


def tags(point: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in point.attributes}


def test_each_kind_is_exported(collector: Collector) -> None:
    meter = Meter(config(collector))
    meter.send("count", "ti.finish", 1, FINISH)
    meter.send("count", "ti.finish", 2, FINISH)
    meter.add(
        [
            Measurement("gauge", "pool.open_slots", 5, {"pool_name": "p"}),
            Measurement("change", "level", 2),
            Measurement("change", "level", 3),
            Measurement("timing", "task.duration", 1500.0),
            Measurement("count", "dag_processing.processes", 1),
            Measurement("count", "dag_processing.processes", -1),
            Measurement("count", "sampled", 1, {}, 0.5),
        ]
    )
    meter.close()
    found = collector.metrics()
    (finish,) = found["airflow.ti.finish"].sum.data_points
    assert (finish.as_double or finish.as_int, tags(finish)) == (3, FINISH)
    assert found["airflow.ti.finish"].sum.is_monotonic
    assert "airflow.ti.finish.d.t.success" in found, "the older name"
    (gauge,) = found["airflow.pool.open_slots"].gauge.data_points
    assert (gauge.as_double or gauge.as_int, tags(gauge)) == (5, {"pool_name": "p"})
    (level,) = found["airflow.level"].gauge.data_points
    assert (level.as_double or level.as_int) == 5
    (duration,) = found["airflow.task.duration"].exponential_histogram.data_points
    assert (duration.count, duration.sum) == (1, 1500.0)
    assert not found["airflow.dag_processing.processes"].sum.is_monotonic
    (sampled,) = found["airflow.sampled"].sum.data_points
    assert (sampled.as_double or sampled.as_int) == 2
    service = [one.value.string_value for one in collector.requests[0].resource_metrics[0].resource.attributes]
    assert "flows" in service


def test_the_number_of_series_has_a_limit(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otel, "SERIES_MAX", 2)
    meter = Meter(config(collector))
    for number in range(5):
        meter.send("count", "n", 1, {"key": number})
    meter.close()
    assert len(collector.metrics()["airflow.n"].sum.data_points) == 2
    assert len([record for record in caplog.records if "too many" in record.getMessage()]) == 1


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(ConfigError, match=r"pip install 'tradewind\[otel\]'"):
        Meter(MetricsConfig("", 0, otel=OtelConfig("http://localhost:1/v1/metrics", 1000, "s")))


def settings(env: dict[str, str], **given: object) -> MetricsConfig:
    found = read_config({"otel_on": "True", "otel_prefix": "airflow", "legacy_names_on": "True", **given}.get, env)
    assert found is not None
    return found


def test_settings_of_airflow() -> None:
    assert settings({}, otel_host="otel", otel_port="4318", otel_interval_milliseconds="30000").otel == OtelConfig(
        "http://otel:4318/v1/metrics", 30_000, "Airflow"
    )
    secure = settings({}, otel_host="::1", otel_port=4318, otel_ssl_active=True, otel_service="flows").otel
    assert secure == OtelConfig("https://[::1]:4318/v1/metrics", 60_000, "flows")


def test_the_standard_variables_come_first() -> None:
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_SERVICE_NAME": "flows",
    }
    assert settings(env, otel_host="other").otel == OtelConfig("", 1000, "flows")


def test_another_protocol_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="'grpc'"):
        settings({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


def test_statsd_comes_first() -> None:
    assert settings({}, statsd_on="True").otel is None
