"""The facts in the text of a DAG file, read without executing it: imports, calls, connections and variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

CONNECTION_CALLS = frozenset({"get_connection", "get_connections", "get_hook", "aget_connection"})
_IN_TEMPLATE = {
    "connections": re.compile(r"\{\{[^}]*\bconn\.(\w+)"),
    "variables": re.compile(r"\{\{[^}]*\bvar\.(?:value|json)\.(\w+)"),
}
_IN_TEMPLATE_GET = {
    "connections": re.compile(r"\{\{[^}]*\bconn\.get\(\s*['\"]([^'\"]+)"),
    "variables": re.compile(r"\{\{[^}]*\bvar\.(?:value|json)\.get\(\s*['\"]([^'\"]+)"),
}


class ImportedName(NamedTuple):
    """One name of an import statement."""

    module: str
    """`airflow.operators.bash_operator`; for `import airflow.x` the module itself."""
    name: str
    """The name in the module; empty for `import airflow.x`."""
    local: str
    """The name in the file."""
    line: int


class Argument(NamedTuple):
    """One keyword argument of a call."""

    callee: str
    """The last part of the called expression: `DAG`, `get`."""
    name: str
    line: int


class SourceFacts(NamedTuple):
    """The facts of one file. `error` is set if it is not valid Python; then everything else is empty."""

    imports: tuple[ImportedName, ...] = ()
    arguments: tuple[Argument, ...] = ()
    connections: tuple[tuple[str, int], ...] = ()
    """(connection id, line) of constants."""
    variables: tuple[tuple[str, int], ...] = ()
    task_decorators: tuple[str, ...] = ()
    """Names after `@task.`."""
    error: tuple[str, int] | None = None
    """Message and line of the syntax error."""


def read_source(source: str) -> SourceFacts:
    """The facts of a file."""
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
    except SyntaxError as error:
        return SourceFacts(error=(str(error.msg), error.lineno or 1))
    except (ValueError, RecursionError, MemoryError) as error:
        return SourceFacts(error=(str(error), 1))
    imports: list[ImportedName] = []
    arguments: list[Argument] = []
    connections: dict[str, int] = {}
    variables: dict[str, int] = {}
    decorators: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += imported_names(node)
        elif isinstance(node, ast.Call):
            callee = callee_name(node)
            arguments += [Argument(callee, one.arg, one.value.lineno) for one in node.keywords if one.arg]
            _read_call(node, callee, connections, variables)
        elif isinstance(node, ast.Dict):
            _read_dict(node, connections)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators.update(dict.fromkeys(_task_decorators(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{{" in node.value:
            for patterns in (_IN_TEMPLATE, _IN_TEMPLATE_GET):
                for found, where in (("connections", connections), ("variables", variables)):
                    for name in patterns[found].findall(node.value):
                        if name != "get":
                            where.setdefault(name, node.lineno)
    return SourceFacts(
        tuple(imports), tuple(arguments), tuple(connections.items()), tuple(variables.items()), tuple(decorators)
    )


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[ImportedName]:
    """The names of `airflow` in an import statement."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] == "airflow":
                yield ImportedName(alias.name, "", alias.asname or alias.name, node.lineno)
    elif node.level == 0 and (node.module or "").partition(".")[0] == "airflow":
        for alias in node.names:
            yield ImportedName(node.module or "", alias.name, alias.asname or alias.name, node.lineno)


def callee_name(node: ast.Call) -> str:
    """The last part of the called expression: `DAG` of `models.DAG(…)`."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _task_decorators(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """`docker` of `@task.docker` and `@dag.task.docker(image="…")`."""
    for one in function.decorator_list:
        made = one.func if isinstance(one, ast.Call) else one
        if isinstance(made, ast.Attribute):
            owner = made.value
            if (owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else "") == "task":
                yield made.attr


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value else None


def _read_call(node: ast.Call, callee: str, connections: dict[str, int], variables: dict[str, int]) -> None:
    for keyword in node.keywords:
        value = _text(keyword.value)
        if value is not None and is_connection_argument(keyword.arg or "") and callee != "Connection":
            connections.setdefault(value, keyword.value.lineno)
    first = _text(node.args[0]) if node.args else None
    if first is None:
        return
    if callee in CONNECTION_CALLS:
        connections.setdefault(first, node.lineno)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and callee == "get":
        if owner.id == "Variable":
            variables.setdefault(first, node.lineno)
        elif owner.id == "Connection":
            connections.setdefault(first, node.lineno)


def _read_dict(node: ast.Dict, connections: dict[str, int]) -> None:
    """`default_args = {"postgres_conn_id": "warehouse"}`."""
    for key, one in zip(node.keys, node.values, strict=True):
        name, value = _text(key), _text(one)
        if name is not None and value is not None and name.endswith("_conn_id"):
            connections.setdefault(value, one.lineno)


def is_connection_argument(name: str) -> bool:
    """Whether an argument of this name contains the id of a connection."""
    return name == "conn_id" or name.endswith("_conn_id")
