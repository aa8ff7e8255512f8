"""Where metrics are sent and under which names, as a value that any process can be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

TagStyle = Literal["none", "influxdb", "datadog"]
"""How a line shows tags: not at all, in the name (`name,key=value:1|c`), or at its end (`name:1|c|#key:value`)."""

_TRUE = frozenset({"t", "true", "1", "yes", "on"})


class OtelConfig(NamedTuple):
    """Where and how often metrics are exported over OpenTelemetry."""

    endpoint: str
    """Address of the collector for metrics. Empty: the standard environment variables of OpenTelemetry name it."""
    interval_ms: int
    """Milliseconds between two exports."""
    service: str
    """The service that the metrics belong to, as collectors show it."""


class MetricsConfig(NamedTuple):
    """See the module."""

    host: str
    port: int
    ipv6: bool = False
    prefix: str = "airflow"
    tag_style: TagStyle = "none"
    constant_tags: tuple[str, ...] = ()
    """Tags of every line for a Datadog agent: `key:value`."""
    disabled_tags: str = ""
    """Regular expressions, separated by commas: tags whose key matches one are not sent."""
    allow: str = ""
    """Regular expressions, separated by commas: only names that match one are sent. Empty: all."""
    block: str = ""
    """Regular expressions, separated by commas: names that match one are not sent. It is ignored if `allow` is given."""
    legacy_names: bool = True
    """Send a metric under its older name, too."""
    otel: OtelConfig | None = None
    """If set, metrics are exported over OpenTelemetry, and `host` and `port` have no meaning."""


def read_config(get: Callable[[str], object], env: Mapping[str, str]) -> MetricsConfig | None:
    """Read the settings `metrics.…`. If several destinations are on, Datadog comes first, then StatsD, as in Airflow.

    Args:
        get: returns the value of a key, a text or already converted; None: it has no value.
        env: the environment, for the standard variables of OpenTelemetry (`OTEL_…`). They come before the settings.

    Returns:
        None: metrics are not sent.

    Raises:
        ValueError: a number is wrong, or the environment asks for another protocol than http/protobuf.
    """
    datadog = _is_true(get("statsd_datadog_enabled"))
    if not datadog and not _is_true(get("statsd_on")):
        return _otel(get, env) if _is_true(get("otel_on")) else None
    style: TagStyle = "none"
    if datadog:
        style = "datadog"
    elif _is_true(get("statsd_influxdb_enabled")):
        style = "influxdb"
    disabled = _text(get("statsd_disabled_tags"))
    return MetricsConfig(
        host=_text(get("statsd_host")) or "localhost",
        port=int(_text(get("statsd_port")) or 8125),
        ipv6=_is_true(get("statsd_ipv6")),
        prefix=_text(get("statsd_prefix")),
        tag_style=style,
        constant_tags=_items(get("statsd_datadog_tags")) if datadog else (),
        disabled_tags=disabled if not datadog or _is_true(get("statsd_datadog_metrics_tags")) else ".*",
        allow=_text(get("metrics_allow_list")),
        block=_text(get("metrics_block_list")),
        legacy_names=_is_true(get("legacy_names_on")),
    )


def _otel(get: Callable[[str], object], env: Mapping[str, str]) -> MetricsConfig:
    protocol = env.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol != "http/protobuf":
        raise ValueError(
            f"the environment asks for the protocol {protocol!r} of OpenTelemetry; metrics are exported by http/protobuf. "
            "Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and the port of the collector for it (often 4318)"
        )
    host, port = _text(get("otel_host")) or "localhost", int(_text(get("otel_port")) or 8889)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    scheme = "https" if _is_true(get("otel_ssl_active")) else "http"
    by_env = env.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") or env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return MetricsConfig(
        host=host,
        port=port,
        prefix=_text(get("otel_prefix")),
        allow=_text(get("metrics_allow_list")),
        block=_text(get("metrics_block_list")),
        legacy_names=_is_true(get("legacy_names_on")),
        otel=OtelConfig(
            endpoint="" if by_env else f"{scheme}://{host}:{port}/v1/metrics",
            interval_ms=int(env.get("OTEL_METRIC_EXPORT_INTERVAL") or float(_text(get("otel_interval_milliseconds")) or 60000)),
            service=env.get("OTEL_SERVICE_NAME") or _text(get("otel_service")) or "Airflow",
        ),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _is_true(value: object) -> bool:
    return _text(value).lower() in _TRUE


def _items(value: object) -> tuple[str, ...]:
    return tuple(one.strip() for one in _text(value).split(",") if one.strip())
