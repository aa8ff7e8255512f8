"""One measured value, as the parts of Tradewind and user code give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["count", "gauge", "change", "timing"]
"""count: add to a counter. gauge: set a value. change: add to a gauge. timing: a duration in milliseconds."""

NO_TAGS: Mapping[str, object] = {}


class Measurement(NamedTuple):
    """A value of one metric."""

    kind: Kind
    name: str
    """Airflow's name without the prefix, such as `ti.finish`."""
    value: float
    tags: Mapping[str, object] = NO_TAGS
    rate: float = 1.0
    """The fraction of the measurements that are sent, above 0 and at most 1. The server multiplies counters by its reciprocal."""
