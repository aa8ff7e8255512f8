"""Statements outside the dialects keep to the form that every database can be given (see `store/sql/engine.py`)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

VERBS = Path(__file__).parents[2] / "src/tradewind/store/sql"

FOREIGN = {
    "a pragma": r"\bPRAGMA\b",
    "SQLite's own tables": r"\bsqlite_",
    "SQLite's row number": r"\browid\b",
    "an index hint": r"\bINDEXED BY\b|\bUSE INDEX\b",
    "an ordered join": r"\bCROSS JOIN\b|\bSTRAIGHT_JOIN\b",
    "INSERT OR …": r"\bINSERT OR\b|\bREPLACE INTO\b",
    "a comparison whose case depends on the database": r"\b(I?LIKE|GLOB|REGEXP)\b",
    "a negative limit": r"\bLIMIT -",
    "the larger of two values": r"\b(min|max)\([^()]*(\([^()]*\)[^()]*)*,",
    "a blob in the text": r"\bx'",
    "JSON functions": r"\bjson_\w+\(",
    "a condition that is no comparison": r"\bWHERE (1|true)\b|\bAND (1|true)\b",
    "a derived table without a name": r"\bFROM \(SELECT [^()]*\)(?! AS\b)",
}

_SQL = re.compile(r"\b(SELECT|INSERT|REPLACE|UPDATE|DELETE FROM|WHERE|JOIN|ORDER BY|LIMIT)\b")


def foreign(source: str) -> list[str]:
    """What stands in the SQL of a module and is not of the common form."""
    found = []
    tree = ast.parse(source)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            text = node.value
        else:
            continue
        text = re.sub(r"\s+", " ", text)
        if _SQL.search(text):
            found += [f"line {node.lineno}: {what}" for what, pattern in FOREIGN.items() if re.search(pattern, text)]
    return found


@pytest.mark.parametrize("path", sorted(VERBS.glob("*.py")), ids=lambda path: path.stem)
def test_statements_keep_to_the_common_form(path: Path) -> None:
    assert foreign(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM dag_run INDEXED BY dag_run_active WHERE state < 2",
        "SELECT id FROM dag LIMIT -1",
        "UPDATE outbox SET due_at = min(due_at, ?) WHERE id = ?",
        "SELECT max(coalesce(a, 0), 1) FROM dag",
        "SELECT dag_id FROM dag WHERE dag_id LIKE ?",
        "SELECT count(*) FROM (SELECT 1 FROM dag_run LIMIT ?)",
        "INSERT OR IGNORE INTO op (op) VALUES (?)",
    ],
)
def test_the_check_finds_what_is_foreign(statement: str) -> None:
    assert foreign(f'"""Reads."""\nrow = engine.row("{statement}")\n')
