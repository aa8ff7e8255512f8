"""The lines of the StatsD protocol for a measurement. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.names import Names

DATAGRAM_BYTES_MAX = 1432
"""Lines that are sent together fit into one Ethernet frame."""
_ENDS_A_TAG = re.compile(r"[,|#\n\r]")
_NOT_IN_INFLUX = re.compile(r"[^A-Za-z0-9_.:/+-]")
_TYPES = {"count": "c", "gauge": "g", "change": "g", "timing": "ms"}


def lines_of(measurement: Measurement, names: Names, config: MetricsConfig) -> list[bytes]:
    """The lines for a measurement, one for each of its names."""
    start = f"{config.prefix}." if config.prefix else ""
    rate = f"|@{measurement.rate:g}" if measurement.rate < 1 else ""
    found = []
    for name, tags in names.of(measurement):
        end = ""
        if config.tag_style == "influxdb":
            name += "".join(f",{key}={_NOT_IN_INFLUX.sub('_', value)}" for key, value in tags.items() if value)
        elif config.tag_style == "datadog":
            every = [*config.constant_tags, *(f"{key}:{_ENDS_A_TAG.sub('_', value)}" for key, value in tags.items())]
            end = f"|#{','.join(every)}" if every else ""
        kind = _TYPES[measurement.kind]
        found += [f"{start}{name}:{value}|{kind}{rate}{end}".encode() for value in _values(measurement)]
    return found


def _values(measurement: Measurement) -> list[str]:
    """The values to send. A negative gauge is first set to 0: a sign means that a value is added."""
    value = measurement.value
    if measurement.kind == "timing":
        return [f"{value:.6f}"]
    text = str(int(value)) if float(value).is_integer() else repr(float(value))
    if measurement.kind == "change":
        return [text if value < 0 else f"+{text}"]
    if measurement.kind == "gauge" and value < 0:
        return ["0", text]
    return [text]


def datagrams(lines: Iterable[bytes], limit: int = DATAGRAM_BYTES_MAX) -> list[bytes]:
    """Join lines to datagrams of at most `limit` bytes. A longer line has a datagram of its own."""
    found: list[bytes] = []
    for line in lines:
        if found and len(found[-1]) + 1 + len(line) <= limit:
            found[-1] += b"\n" + line
        else:
            found.append(line)
    return found
