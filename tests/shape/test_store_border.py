"""No code outside store/ knows which database holds the store: it takes a port, and `store.factory` opens what a URL names."""

from __future__ import annotations

import ast

import pytest

from tests.shape.source import SOURCE

EXCEPTIONS = {
    "airflow/compat/sql_operators.py": "Airflow's operator for databases of users",
    "cli/commands/connections_test.py": "tests connections to databases of users",
    "cli/import_airflow/database.py": "reads the database of an Airflow",
    "simulation/stores.py": "injects the database's own errors, statement by statement",
}
"""Modules that may name SQLite, and why."""

INSIDE = {
    "simulation/stores.py": "wraps the engine that it injects errors into",
}
"""Modules that may import the store's SQL, and why."""

_MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "store")


def names(tree: ast.AST) -> list[str]:
    """Everything in a module that is named, texts and comments excepted."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
        elif isinstance(node, ast.arg | ast.keyword):
            found.append(node.arg or "")
        elif isinstance(node, ast.alias):
            found += [node.name, node.asname or ""]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
    return found


@pytest.fixture(scope="module")
def named() -> dict[str, list[str]]:
    return {str(path.relative_to(SOURCE)): names(ast.parse(path.read_text(encoding="utf-8"))) for path in _MODULES}


def test_no_code_outside_the_store_names_its_database(named: dict[str, list[str]]) -> None:
    found = {module for module, all_names in named.items() if any("sqlite" in name.lower() for name in all_names)}
    assert found - EXCEPTIONS.keys() == set()
    assert EXCEPTIONS.keys() - found == set(), "an exception that is needed no more"


def test_only_the_store_imports_its_sql(named: dict[str, list[str]]) -> None:
    inside = {
        module for module, all_names in named.items() if any(name.startswith("tradewind.store.sql") for name in all_names)
    }
    assert inside == set(INSIDE)


def test_no_connection_of_the_store_is_used_outside(named: dict[str, list[str]]) -> None:
    """`store.engine` is the store's own."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in _MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "engine"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("store", "reader")
    ]
    assert found == []


def test_the_check_finds_names() -> None:
    code = "import sqlite3 as s\nfrom a.sqlite import B\ndef open_sqlite(sqlite_path): return s.SQLITE_BUSY"
    assert {name for name in names(ast.parse(code)) if "sqlite" in name.lower()} == {
        "sqlite3",
        "a.sqlite",
        "open_sqlite",
        "sqlite_path",
        "SQLITE_BUSY",
    }
