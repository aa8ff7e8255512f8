"""The rows, what the reviewed page says of them, and the markers in the source of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "specification.md"
ROWS = Path(__file__).with_name("rows.tsv")

ANSWERS = {"Superseded": "superseded", "Elsewhere": "elsewhere"}
"""Headings of the page → what rows below them are called in the report."""


class Row(NamedTuple):
    """One thing that the descriptions say."""

    id: str
    group: str
    """A letter, `A` to `AC`."""
    title: str
    advice: str
    """`keep`, `modern semantics: …`, `compatibility: …` or `optional`."""


class Answer(NamedTuple):
    """What the page says of one row."""

    kind: str
    """One of the values of `ANSWERS`."""
    reason: str


class Marker(NamedTuple):
    """One `spec` marker in the source."""

    place: str
    """`tests/unit/kernel/test_retry.py:14`."""
    rows: tuple[str, ...]


def all_rows() -> dict[str, Row]:
    """By id, in order."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    return {row.id: row for row in (Row(*line.split("\t")) for line in lines)}


def spelled_out(text: str) -> list[str]:
    """`S1, S3–S5` → S1, S3, S4, S5. ValueError where something else stands there."""
    ids = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*S(\d+)(?:–S(\d+))?\s*", part)
        if match is None:
            raise ValueError(f"{part!r} is neither a row (S12) nor a span of rows (S12–S15)")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f"{part.strip()} ends before it begins")
        ids += [f"S{number}" for number in range(first, last + 1)]
    return ids


def answers(page: str | None = None) -> Iterator[tuple[str, Answer]]:
    """Row by row what the tables of the page say; a row named twice comes twice."""
    kind = ""
    for line in (PAGE.read_text(encoding="utf-8") if page is None else page).splitlines():
        if line.startswith("## "):
            kind = ANSWERS.get(line[3:].strip(), "")
        elif kind and line.startswith("| S"):
            ids, reason = (cell.strip() for cell in line.strip().strip("|").split("|"))
            for row_id in spelled_out(ids):
                yield row_id, Answer(kind, reason)


def markers() -> Iterator[Marker]:
    """All `spec` markers with literal rows, found without importing a test."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.spec" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                rows = tuple(str(ast.literal_eval(argument)) for argument in node.args)
                yield Marker(f"{path.relative_to(TESTS.parent)}:{node.lineno}", rows)
