"""Markers and the reviewed page name rows that exist, and do not contradict each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.spec.rows import TESTS, all_rows, answers, claims, markers, spelled_out

MOST_ROWS = 3


def test_every_marker_names_known_rows() -> None:
    """A marker with a misspelt id would prove nothing."""
    known = all_rows()
    assert [(marker.place, row_id) for marker in markers() for row_id in marker.rows if row_id not in known] == []
    assert [marker.place for marker in markers() if not marker.rows] == []


def test_the_page_names_known_rows_once_with_a_reason() -> None:
    """A row stands under one heading only (superseded, missing, elsewhere), and has a sentence as its reason."""
    known, entries = all_rows(), list(answers())
    assert entries
    assert [row_id for row_id, _ in entries if row_id not in known] == []
    assert [row_id for row_id, count in Counter(row_id for row_id, _ in entries).items() if count > 1] == []
    assert [(row_id, answer.reason) for row_id, answer in entries if not answer.reason.endswith(".")] == []


def test_a_proven_row_is_not_on_the_page() -> None:
    """After you build a missing behaviour: remove its row from the page."""
    proven = {row_id for marker in markers() for row_id in marker.rows}
    assert sorted(proven & {row_id for row_id, _ in answers()}) == []


def test_a_test_claims_a_few_rows_at_most() -> None:
    """A test with many rows cannot show that each of them holds: split it."""
    found = [claim for path in sorted(TESTS.rglob("test_*.py")) for claim in claims(path)]
    assert found
    assert [(claim.place, claim.rows) for claim in found if len(claim.rows) > MOST_ROWS] == []


def test_claims_are_counted_by_test_and_by_parameter_set(tmp_path: Path) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(SOME_TESTS, encoding="utf-8")
    assert sorted(claim.rows for claim in claims(path)) == [("S1", "S2", "S3", "S4"), ("S1", "S5"), ("S6",), ("S7", "S8")]


SOME_TESTS = """
pytestmark = pytest.mark.spec("S1")

@pytest.mark.spec("S2")
class TestMany:
    @pytest.mark.spec("S3")
    @pytest.mark.spec("S4")
    def test_one(self): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("S6")), 2])
@pytest.mark.spec("S5")
def test_two(x): ...

MARKS = {"x": pytest.mark.spec("S7", "S8")}
"""


def test_spans_of_rows_are_expanded() -> None:
    assert spelled_out("S1, S3–S5") == ["S1", "S3", "S4", "S5"]
    for wrong in ("S1-S3", "1", "S5–S3", ""):
        with pytest.raises(ValueError, match=r"neither|ends"):
            spelled_out(wrong)
