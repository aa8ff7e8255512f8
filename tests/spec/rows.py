"""The rows of the specification, the entries of the reviewed page, and the markers in the source of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

from tests.shape.source import syntax_tree

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "specification.md"
ROWS = Path(__file__).with_name("rows.tsv")

ANSWERS = {"Superseded": "superseded", "Missing": "missing", "Elsewhere": "elsewhere"}
"""Heading on the page → the name of its rows in the report."""


class Row(NamedTuple):
    """One described behaviour of Airflow."""

    id: str
    group: str
    """A letter, `A` to `AC`."""
    title: str
    advice: str
    """`keep`, `modern semantics: …`, `compatibility: …` or `optional`."""


class Answer(NamedTuple):
    """The entry of one row on the page."""

    kind: str
    """One of the values of `ANSWERS`."""
    reason: str


class Marker(NamedTuple):
    """One `spec` marker in the source of a test."""

    place: str
    """`tests/unit/kernel/test_retry.py:14`."""
    rows: tuple[str, ...]


def all_rows() -> dict[str, Row]:
    """All rows by id, in the order of the file."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()
    return {row.id: row for row in (Row(*line.split("\t")) for line in lines)}


def spelled_out(text: str) -> list[str]:
    """`S1, S3–S5` → S1, S3, S4, S5. Raises ValueError for any other text."""
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
    """The entries in the tables of the page. A row that the page names twice is returned twice."""
    kind = ""
    for line in (PAGE.read_text(encoding="utf-8") if page is None else page).splitlines():
        if line.startswith("## "):
            kind = ANSWERS.get(line[3:].strip(), "")
        elif kind and line.startswith("| S"):
            ids, reason = (cell.strip() for cell in line.strip().strip("|").split("|"))
            for row_id in spelled_out(ids):
                yield row_id, Answer(kind, reason)


def claims(path: Path) -> Iterator[Marker]:
    """The rows that each test of a file claims to prove: from its own markers and those of its class and its file.

    A marker in another place, such as one parameter set, is returned as a claim of its own.
    """
    text = path.read_text(encoding="utf-8")
    if "mark.spec" not in text:
        return
    tree = syntax_tree(path)
    counted: set[ast.Call] = set()

    def taken(nodes: list[ast.expr]) -> tuple[str, ...]:
        calls = [call for node in nodes for call in (node.elts if isinstance(node, ast.List | ast.Tuple) else [node])]
        found = [call for call in calls if _is_spec(call)]
        counted.update(found)
        return tuple(row for call in found for row in _rows(call))

    def visit(body: list[ast.stmt], above: tuple[str, ...]) -> Iterator[Marker]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, above + taken(node.decorator_list))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Marker(f"{path.name}::{node.name}", above + taken(node.decorator_list))

    of_file = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    yield from visit(tree.body, taken(of_file))
    for node in ast.walk(tree):
        if _is_spec(node) and node not in counted:
            yield Marker(f"{path.name}:{node.lineno}", _rows(node))


def _is_spec(node: ast.AST) -> TypeGuard[ast.Call]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "spec"):
        return False
    return ast.unparse(node.func) == "pytest.mark.spec"


def _rows(call: ast.Call) -> tuple[str, ...]:
    return tuple(str(ast.literal_eval(argument)) for argument in call.args)


def markers() -> Iterator[Marker]:
    """All `spec` markers with literal rows, found without importing a test."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.spec" not in text:
            continue
        for node in ast.walk(syntax_tree(path)):
            if _is_spec(node):
                yield Marker(f"{path.relative_to(TESTS.parent)}:{node.lineno}", _rows(node))
