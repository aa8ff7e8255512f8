"""Markers and the reviewed page speak of rows that exist, and do not contradict each other."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.spec.rows import all_rows, answers, markers, spelled_out


def test_every_marker_names_known_rows() -> None:
    """A misspelt id would prove nothing, and nobody would notice."""
    known = all_rows()
    assert [(marker.place, row_id) for marker in markers() for row_id in marker.rows if row_id not in known] == []
    assert [marker.place for marker in markers() if not marker.rows] == []


def test_the_page_names_known_rows_once_with_a_reason() -> None:
    """A row is replaced or waits for something, not both; each with a sentence."""
    known, told = all_rows(), list(answers())
    assert told
    assert [row_id for row_id, _ in told if row_id not in known] == []
    assert [row_id for row_id, count in Counter(row_id for row_id, _ in told).items() if count > 1] == []
    assert [(row_id, answer.reason) for row_id, answer in told if not answer.reason.endswith(".")] == []


def test_a_proven_row_is_not_on_the_page() -> None:
    """Whoever builds what was missing strikes it from the page."""
    proven = {row_id for marker in markers() for row_id in marker.rows}
    assert sorted(proven & {row_id for row_id, _ in answers()}) == []


def test_spans_are_spelled_out() -> None:
    assert spelled_out("S1, S3–S5") == ["S1", "S3", "S4", "S5"]
    for wrong in ("S1-S3", "1", "S5–S3", ""):
        with pytest.raises(ValueError, match=r"neither|ends"):
            spelled_out(wrong)
