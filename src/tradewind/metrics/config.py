"""Where metrics are sent and under which names, as a value that any process can be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

TagStyle = Literal["none", "influxdb", "datadog"]
"""How a line shows tags: not at all, in the name (`name,key=value:1|c`), or at its end (`name:1|c|#key:value`)."""

_TRUE = frozenset({"t", "true", "1", "yes", "on"})


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


def read_config(get: Callable[[str], object]) -> MetricsConfig | None:
    """Read the settings `metrics.…`.

    Args:
        get: returns the value of a key, a text or already converted; None: it has no value.

    Returns:
        None: metrics are not sent.

    Raises:
        ValueError: the port is not a number.
    """
    datadog = _is_true(get("statsd_datadog_enabled"))
    if not datadog and not _is_true(get("statsd_on")):
        return None
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


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _is_true(value: object) -> bool:
    return _text(value).lower() in _TRUE


def _items(value: object) -> tuple[str, ...]:
    return tuple(one.strip() for one in _text(value).split(",") if one.strip())
