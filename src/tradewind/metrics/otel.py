"""Exports metrics over OpenTelemetry (OTLP, http/protobuf). Needs the packages of the extra otel.

The library collects the values and exports them from a thread of its own at an interval. So a collector that does not answer delays
nobody; what it does not take is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.metrics.config import OtelConfig
from tradewind.metrics.measurement import Kind
from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log

log = Log("metrics")

SERIES_MAX = 20_000
"""Maximum number of different names and tags. The library keeps each of them in memory; values of further ones are dropped."""
CLOSE_MILLISECONDS = 3000
"""Maximum time for the last export."""
EXPORT_SECONDS = 10
"""Maximum time of one export, with its repetitions."""
_UP_AND_DOWN = frozenset({"dag_processing.processes"})
"""Counters that also go down."""

Series = tuple[str, frozenset[tuple[str, str]]]


class OtelExport:
    """See the module.

    Raises:
        ConfigError: the packages of OpenTelemetry are not installed.
    """

    def __init__(self, config: OtelConfig, prefix: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.metrics import Histogram
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise ConfigError(
                f"metrics.otel_on needs the packages of OpenTelemetry ({error}). Install them: pip install 'tradewind[otel]'"
            ) from error
        exporter = OTLPMetricExporter(endpoint=config.endpoint or None, timeout=EXPORT_SECONDS)
        reader = PeriodicExportingMetricReader(exporter, config.interval_ms, EXPORT_SECONDS * 1000)
        histogram = View(instrument_type=Histogram, aggregation=ExponentialBucketHistogramAggregation())
        resource = Resource.create({"service.name": config.service})
        self._provider = MeterProvider([reader], resource, shutdown_on_exit=False, views=[histogram])
        self._meter = self._provider.get_meter("tradewind")
        self._prefix = f"{prefix}." if prefix else ""
        self._instruments: dict[tuple[str, str], Any] = {}
        self._series: set[Series] = set()
        self._gauges: dict[Series, float] = {}
        """The last value of each gauge to which something was added."""
        self._dropped = 0

    def record(self, kind: Kind, name: str, value: float, tags: Mapping[str, str]) -> None:
        """Add a value to the next export."""
        series = (name, frozenset(tags.items()))
        if series not in self._series:
            if len(self._series) >= SERIES_MAX:
                self._drop(name)
                return
            self._series.add(series)
        if kind == "count":
            self._instrument("up_down_counter" if name in _UP_AND_DOWN else "counter", name).add(value, dict(tags))
        elif kind == "timing":
            self._instrument("histogram", name).record(value, dict(tags))
        else:
            if kind == "change":
                value += self._gauges.get(series, 0.0)
            self._gauges[series] = value
            self._instrument("gauge", name).set(value, dict(tags))

    def _instrument(self, form: str, name: str) -> Any:
        found = self._instruments.get((form, name))
        if found is None:
            options = {"unit": "ms"} if form == "histogram" else {}
            found = getattr(self._meter, f"create_{form}")(f"{self._prefix}{name}", **options)
            self._instruments[form, name] = found
        return found

    def _drop(self, name: str) -> None:
        if not self._dropped:
            log.warning(
                "metrics are dropped, because there are too many different names and tags; "
                "leave some out with metrics.metrics_block_list, or set metrics.legacy_names_on to false",
                limit=SERIES_MAX,
                metric=name,
            )
        self._dropped += 1

    def close(self) -> None:
        """Export what was added since the last export, and end the thread."""
        try:
            self._provider.shutdown(timeout_millis=CLOSE_MILLISECONDS)
        except Exception as error:  # the collector does not answer: its errors are not specified
            log.warning("the last metrics were not exported", error=f"{type(error).__name__}: {error}")
