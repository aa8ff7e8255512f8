"""Compares the golden outcomes of Airflow 3.3.2 with the results of the public test kit: all but three undisputed ones agree.

The differences are listed here and, with their reasons, in docs/reference/airflow-differences.md.
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
"""Undisputed specifications with a different result, and their names on the page of differences."""

pytestmark = pytest.mark.timeout(600)  # much computing, which other tests slow down

PAGE = ROOT / "docs" / "reference" / "airflow-differences.md"


@functools.cache
def answered(family: str) -> list[tuple[Json, Json]]:
    """All undisputed specifications with their answers."""
    return [(spec, json.loads(json.dumps(adapter.answer(spec)))) for spec in specifications(family) if not spec.get("disputed")]


def normal(part: Any) -> Any:
    """Sort lists, except lists of steps and queues, because their order has a meaning. Replace every error by one word."""
    if isinstance(part, dict):
        if "error" in part:
            return "error"
        return {key: normal(value) for key, value in part.items() if value != []}
    if isinstance(part, list | tuple):
        found = [normal(one) for one in part]
        return found if all(isinstance(one, dict) for one in found) else sorted(found, key=repr)
    return part


def agrees(spec: Json, answer: Json) -> bool:
    """True if the outcome is Airflow's, or one that Airflow also reaches with another order at the same time."""
    skipped = set(spec.get("disputed_keys", ()))

    def judged(outcome: Json) -> Any:
        if "rendered" in outcome:
            return {key: normal(value) for key, value in outcome["rendered"].items() if key not in skipped}
        return normal(outcome) if spec["family"] != "C" else outcome

    expected = [spec["expect"]["outcome"], *spec["expect"].get("alternatives", ())]
    return judged(answer["outcome"]) in [judged(one) for one in expected]


@pytest.mark.parametrize("family", "ABCDE")
def test_outcomes_agree_with_airflow(family: str) -> None:
    """All outcomes agree, except the listed differences. A listed difference that agrees must be removed from the list."""
    response = [(spec, answer) for spec, answer in answered(family) if "unsupported" not in answer]
    different = {spec["id"] for spec, answer in response if not agrees(spec, answer)}
    assert different == {name for name in DIFFERENT if name.startswith(family)}
    assert len(response) >= {"A": 314, "B": 45, "C": 149, "D": 33, "E": 28}[family]


def test_attempts_and_edges_agree_with_airflow() -> None:
    """Each attempt has the same second, and the edges of groups and pairs are the same."""
    for spec, answer in answered("A"):
        if "unsupported" not in answer and answer["outcome"] == spec["expect"]["outcome"]:
            assert answer["graph"] == spec["expect"]["graph"], spec["id"]
            assert answer["trace"] == sorted(spec["expect"]["trace"]), spec["id"]


def test_no_specification_is_unsupported() -> None:
    """Every specification is answered."""
    for family in "ABCDE":
        assert [spec["id"] for spec, answer in answered(family) if "unsupported" in answer] == []


def test_logical_dates_of_disputed_timetables_increase() -> None:
    """In Airflow, disputed timetables repeat a logical date or raise an error. Tradewind's never do."""
    disputed = [spec for spec in specifications("C") if spec.get("disputed")]
    assert disputed
    for spec in disputed:
        runs = adapter.answer(spec)["outcome"].get("runs", [])
        assert max(Counter(run[0] for run in runs).values(), default=1) == 1, spec["id"]
        assert all(run[1] <= run[2] for run in runs), spec["id"]


def test_every_difference_is_explained_in_the_manual() -> None:
    """The page contains the name of the specification."""
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in DIFFERENT if f"`{name}`" not in text] == []


def test_the_adapter_is_small_and_uses_only_the_public_api() -> None:
    """Further functions belong into the test kit, where users have them too."""
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
    """A list with a date stays a list. Only values that JSON does not have are replaced by their text."""
    date = datetime(2026, 1, 2, tzinfo=UTC)
    result = adapter.as_json([date, {"at": date, "n": 1.5, "none": None}, (1, 2), {3: date}])
    text = {"str": "2026-01-02 00:00:00+00:00"}
    assert result == [text, {"at": text, "n": 1.5, "none": None}, {"str": "(1, 2)"}, {"str": str({3: date})}]
