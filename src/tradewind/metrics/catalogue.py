"""The metrics of Airflow 3.3: name, type, older name, and where Tradewind sends each, or why it does not.

Source of the names: the documentation and the metrics of Airflow 3.3.2. The table is `catalogue.tsv`, so that the names are read
only in a process that sends metrics.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

NOT_SENT = "-"
_NONE = "-"


class Metric(NamedTuple):
    """One row of the table."""

    name: str
    """May have variables in braces if Airflow has no name without ids."""
    kind: str
    """counter, gauge or timer."""
    legacy: str
    """The older name, with variables in braces; empty: there is none."""
    sender: str
    """The process that sends it; `NOT_SENT`: none does."""
    text: str
    """What is measured, and its tags; of a metric that is not sent: the reason."""

    @property
    def is_sent(self) -> bool:
        return self.sender != NOT_SENT


@lru_cache(1)
def metrics() -> tuple[Metric, ...]:
    """All rows, in the order of the table."""
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return tuple(
        Metric(name, kind, "" if legacy == _NONE else legacy, sender, text) for name, kind, legacy, sender, text in rows
    )


def legacy_names() -> dict[str, str]:
    """Name → older name, of the metrics that have one."""
    return {one.name: one.legacy for one in metrics() if one.legacy}
