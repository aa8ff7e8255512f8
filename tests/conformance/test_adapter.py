"""Golden outcomes of Airflow 3.3.2, answered through the public test kit: all but three of the undisputed ones agree.

Where we differ from Airflow is listed here and, with the reasons, in docs/reference/airflow-differences.md.
"""

from __future__ import annotations

import ast
import functools
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import adapter, workflows
from tests.conformance.golden import Json, specifications
from tests.shape.source import ROOT

DIFFERENT = {
    "A-mapped_group-0020": "a branch in a mapped group",
    "B-0189": "a run that waits for the one before it gives its place to it",
    "C-0301": "the first tick of a day after a change of the clock",
}
"""Undisputed specifications that we answer otherwise, as the page of differences calls them."""

PAGE = ROOT / "docs" / "reference" / "airflow-differences.md"


@functools.cache
def answered(family: str) -> list[tuple[Json, Json]]:
    """Every undisputed specification with its answer."""
    return [(spec, json.loads(json.dumps(adapter.answer(spec)))) for spec in specifications(family) if not spec.get("disputed")]


def normal(part: Any) -> Any:
    """Order carries no meaning but in lists of steps and of a queue; of an error only the fact counts."""
    if isinstance(part, dict):
        if "error" in part:
            return "error"
        return {key: normal(value) for key, value in part.items() if value != []}
    if isinstance(part, list | tuple):
        found = [normal(one) for one in part]
        return found if all(isinstance(one, dict) for one in found) else sorted(found, key=repr)
    return part


def agrees(spec: Json, told: Json) -> bool:
    """The outcome is Airflow's, or one that it also reaches with another order inside one instant."""
    skipped = set(spec.get("disputed_keys", ()))

    def judged(outcome: Json) -> Any:
        if "rendered" in outcome:
            return {key: normal(value) for key, value in outcome["rendered"].items() if key not in skipped}
        return normal(outcome) if spec["family"] != "C" else outcome

    expected = [spec["expect"]["outcome"], *spec["expect"].get("alternatives", ())]
    return judged(told["outcome"]) in [judged(one) for one in expected]


@pytest.mark.parametrize("family", "ABCDE")
def test_what_is_answered_is_airflows_answer(family: str) -> None:
    """Every one, but for the listed differences: these are wrong in the list once they agree."""
    told = [(spec, answer) for spec, answer in answered(family) if "unsupported" not in answer]
    different = {spec["id"] for spec, answer in told if not agrees(spec, answer)}
    assert different == {name for name in DIFFERENT if name.startswith(family)}
    assert len(told) >= {"A": 314, "B": 45, "C": 149, "D": 33, "E": 28}[family]


def test_attempts_and_arrows_are_airflows_too() -> None:
    """Each attempt at its second, and the edges that groups and pairs stand for."""
    for spec, told in answered("A"):
        if "unsupported" not in told and told["outcome"] == spec["expect"]["outcome"]:
            assert told["graph"] == spec["expect"]["graph"], spec["id"]
            assert told["trace"] == sorted(spec["expect"]["trace"]), spec["id"]


def test_nothing_is_called_unsupported() -> None:
    """Every specification is answered."""
    for family in "ABCDE":
        assert [spec["id"] for spec, told in answered(family) if "unsupported" in told] == []


def test_where_airflow_is_doubtful_logical_dates_still_increase() -> None:
    """Disputed timetables repeat a logical date, or raise; ours never do."""
    disputed = [spec for spec in specifications("C") if spec.get("disputed")]
    assert disputed
    for spec in disputed:
        runs = adapter.answer(spec)["outcome"].get("runs", [])
        assert max(Counter(run[0] for run in runs).values(), default=1) == 1, spec["id"]
        assert all(run[1] <= run[2] for run in runs), spec["id"]


def test_every_difference_has_its_reason_in_the_manual() -> None:
    """By the specification's name."""
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in DIFFERENT if f"`{name}`" not in text] == []


def test_the_adapter_is_small_and_uses_the_public_api_alone() -> None:
    """What it needs more belongs into the kit, where users have it, too."""
    public = ("tradewind", "tradewind.testing", "tradewind.operators", "tradewind.timetables")
    for module in (adapter, workflows):
        path = Path(str(module.__file__))
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 200
        assert not any('"A-' in line or 'spec.get("id")' in line or 'spec["features"]' in line for line in lines)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tradewind"):
                assert node.module in public
            elif isinstance(node, ast.Import):
                assert all(one.name in public for one in node.names if one.name.startswith("tradewind"))


def test_a_rendered_value_is_answered_leaf_by_leaf() -> None:
    """A list with a date in it is a list; only what JSON does not have is told by its text."""
    date = datetime(2026, 1, 2, tzinfo=UTC)
    told = adapter.as_json([date, {"at": date, "n": 1.5, "none": None}, (1, 2), {3: date}])
    text = {"str": "2026-01-02 00:00:00+00:00"}
    assert told == [text, {"at": text, "n": 1.5, "none": None}, {"str": "(1, 2)"}, {"str": str({3: date})}]
