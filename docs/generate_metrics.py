"""Writes `reference/metrics.md` from the table of metrics, so that no metric is missing.

python docs/generate_metrics.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tradewind.metrics.catalogue import Metric, metrics

PAGE = Path(__file__).parent / "reference" / "metrics.md"

INTRODUCTION = """\
# Metrics

<!-- Written by docs/generate_metrics.py from metrics/catalogue.tsv. Edit that, then run `make docs`. -->

The metrics of Airflow 3.3 that Tradewind sends. [Send metrics](../how-to/metrics.md) says how to switch them on. Each name begins
with the prefix of the settings (`airflow.`). A metric with an older name is sent under both names. The older name contains the
ids; its tags are the others. Timers are milliseconds.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    for kind, title in (("counter", "Counters"), ("gauge", "Gauges"), ("timer", "Timers")):
        yield f"## {title}\n"
        yield "| name | older name | sent by | meaning |\n|---|---|---|---|"
        for one in metrics():
            if one.kind == kind and one.is_sent:
                yield f"| `{one.name}` | {_code(one)} | {one.sender} | {one.text} |"
        yield ""
    left_out = [one for one in metrics() if not one.is_sent]
    if left_out:
        yield "## Not sent\n"
        yield "| name | reason |\n|---|---|"
        for one in left_out:
            yield f"| `{one.name}` | {one.text} |"
        yield ""


def _code(metric: Metric) -> str:
    return f"`{metric.legacy}`" if metric.legacy else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
