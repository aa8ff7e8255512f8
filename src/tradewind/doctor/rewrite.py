"""Replaces old names and arguments in the text of a DAG file. Everything else stays as it is, comments included.

The places come from the syntax tree, the changes are made in the text. If a change removes the last sign of the generation of
an older file, the file gets the comment `# tradewind: airflow2`, so that its schedules keep their meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tradewind.doctor import old_names
from tradewind.doctor.source_facts import callee_name, imported_names
from tradewind.sdk.generation import generation_of


class Edit(NamedTuple):
    """Replace the text between two positions: (line from 1, column in bytes of UTF-8)."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def rewritten(source: str) -> str:
    """The text with today's names and arguments; the same text if there is nothing to change or it is not valid Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    if "\r" in source.replace("\r\n", ""):
        return source  # line ends of old systems (\r): the line numbers of the syntax tree would be wrong
    edits = [*_import_edits(tree, source), *_argument_edits(tree)]
    if not edits:
        return source
    changed = _applied(source, edits)
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError):
        return source
    generation = generation_of(source)
    if generation_of(changed) != generation:
        return _with_comment(changed, f"# tradewind: airflow{generation}")
    return changed


def _with_comment(source: str, comment: str) -> str:
    """Put a comment line at the top, below `#!` and the encoding."""
    lines = source.split("\n")
    at = 0
    while at < min(2, len(lines)) and (lines[at].startswith("#!") or ("coding" in lines[at] and lines[at].startswith("#"))):
        at += 1
    return "\n".join([*lines[:at], comment + ("\r" if "\r\n" in source else ""), *lines[at:]])


def _applied(source: str, edits: list[Edit]) -> str:
    lines = [line.encode() for line in source.split("\n")]
    for edit in sorted(edits, reverse=True):
        (first, start), (last, end) = edit.start, edit.end
        lines[first - 1 : last] = [lines[first - 1][:start] + edit.text.encode() + lines[last - 1][end:]]
    return b"\n".join(lines).decode()


# --- imports ----------------------------------------------------------------------------------------------------------


def _import_edits(tree: ast.Module, source: str) -> Iterator[Edit]:
    bound = _bound_names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.end_lineno is None or node.end_col_offset is None:
            continue
        places = [old_names.present_place(one.module, one.name) for one in imported_names(node)]
        if not any(places) or _has_comment(source, node):
            continue
        statements: dict[str, list[str]] = {}
        for alias, place in zip(node.names, places, strict=True):
            module, name = (place.module, place.name) if place is not None else (node.module or "", alias.name)
            local = alias.asname or alias.name
            renamed = name != alias.name and alias.asname is None and bound.get(local, 0) == 1
            if renamed:
                yield from _use_edits(tree, source, local, name)
                local = name
            statements.setdefault(module, []).append(name if name == local else f"{name} as {local}")
        indent = " " * node.col_offset
        text = f"\n{indent}".join(_statement(module, listed, indent) for module, listed in statements.items())
        yield Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)


def _statement(module: str, listed: list[str], indent: str) -> str:
    one_line = f"from {module} import {', '.join(listed)}"
    if len(indent) + len(one_line) <= 110:
        return one_line
    return f"from {module} import (\n" + "".join(f"{indent}    {name},\n" for name in listed) + f"{indent})"


def _has_comment(source: str, node: ast.ImportFrom) -> bool:
    """Whether replacing the statement would delete a comment inside it."""
    lines = source.split("\n")[node.lineno - 1 : node.end_lineno]
    return len(lines) > 1 and any("#" in line for line in lines)


def _bound_names(tree: ast.Module) -> dict[str, int]:
    """How often each name is bound in the file, by imports, assignments, definitions or as a parameter."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
        for name in names:
            found[name] = found.get(name, 0) + 1
    return found


def _use_edits(tree: ast.Module, source: str, old: str, new: str) -> Iterator[Edit]:
    lines = [line.encode() for line in source.split("\n")]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != old or node.end_col_offset is None:
            continue
        if lines[node.lineno - 1][node.col_offset : node.end_col_offset] == old.encode():  # not inside an f-string before 3.12
            yield Edit((node.lineno, node.col_offset), (node.lineno, node.end_col_offset), new)


# --- arguments --------------------------------------------------------------------------------------------------------


def _argument_edits(tree: ast.Module) -> Iterator[Edit]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        callee = callee_name(node)
        given = {keyword.arg for keyword in node.keywords}
        for keyword in node.keywords:
            newer = old_names.present_argument(callee, keyword.arg or "")
            if newer is not None and newer not in given:
                end = keyword.col_offset + len(keyword.arg or "")
                yield Edit((keyword.lineno, keyword.col_offset), (keyword.lineno, end), newer)
