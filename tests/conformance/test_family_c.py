"""Golden outcomes of Airflow 3.3.2's timetables: at least 99 % of those that are not disputed agree."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.timetables import outcome

DATA = Path(__file__).parent / "open" / "C.jsonl.gz"

DIFFERENT = {
    # `2 * 2 * *` in Sydney: between two ticks (Oct 2 and Nov 2) the clock goes forward. Airflow adds the wall-clock
    # difference to elapsed time and begins the day at 01:02; the expression says 00:02, and so do we.
    "C-0301": "Airflow leaves out the first tick of a day after a change of the clock",
}


def _specifications() -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


SPECIFICATIONS = _specifications()
JUDGED = [spec for spec in SPECIFICATIONS if not spec.get("disputed")]
DISPUTED = [spec for spec in SPECIFICATIONS if spec.get("disputed")]


@pytest.mark.parametrize("spec", JUDGED, ids=lambda spec: spec["id"])
def test_agrees_with_airflow(spec: dict[str, Any]) -> None:
    agrees = outcome(spec) == spec["expect"]["outcome"]
    assert agrees == (spec["id"] not in DIFFERENT), f"want {spec['expect']['outcome']}, got {outcome(spec)}"


def test_at_least_99_percent_agree() -> None:
    assert len(JUDGED) >= 140
    assert len(DIFFERENT) <= len(JUDGED) / 100


@pytest.mark.parametrize("spec", DISPUTED, ids=lambda spec: spec["id"])
def test_where_airflow_is_doubtful_logical_dates_still_increase(spec: dict[str, Any]) -> None:
    runs = outcome(spec).get("runs", [])
    dates = [run[0] for run in runs]
    assert len(set(dates)) == len(dates)
    assert all(run[1] <= run[2] for run in runs)
