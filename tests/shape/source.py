"""The source files as syntax trees, for the tests in this folder."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tradewind"
TESTS = ROOT / "tests"


class Module(NamedTuple):
    """One file below src/tradewind."""

    name: str
    """`tradewind.kernel.machine`; for `__init__.py` the name of the package."""
    path: Path
    tree: ast.Module

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(SOURCE))

    @property
    def package(self) -> str:
        """The package below `tradewind`: `kernel`; empty for the top module itself."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""


class Import(NamedTuple):
    """One import statement's target."""

    module: str
    line: int
    lazy: bool
    """The statement is inside a function."""
    types_only: bool
    """The statement is under `if TYPE_CHECKING`."""


@functools.cache
def syntax_tree(path: Path) -> ast.Module:
    """The syntax tree of a Python file. Every file is parsed once in a process.

    The garbage collector is disabled during this, because it would visit all trees again for each new one: five times as slow.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_bytes(), str(path))
    finally:
        if enabled:
            gc.enable()


@functools.cache
def modules() -> dict[str, Module]:
    """Every module of Tradewind, by name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["tradewind", *path.relative_to(SOURCE).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        found[name] = Module(name, path, syntax_tree(path))
    return found


@functools.cache
def imports(name: str) -> tuple[Import, ...]:
    """All imports of a module."""
    return tuple(_walk(modules()[name].tree, name, lazy=False, types_only=False))


def _walk(node: ast.AST, name: str, *, lazy: bool, types_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, lazy, types_only)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{name}, line {child.lineno}: relative imports hide where a name comes from"
            for alias in child.names:
                inner = f"{child.module}.{alias.name}"
                yield Import(inner if inner in modules() else str(child.module), child.lineno, lazy, types_only)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(child, name, lazy=True, types_only=types_only)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for part in child.body:
                yield from _walk(ast.Module([part], []), name, lazy=lazy, types_only=True)
            for part in child.orelse:
                yield from _walk(ast.Module([part], []), name, lazy=lazy, types_only=types_only)
        else:
            yield from _walk(child, name, lazy=lazy, types_only=types_only)


def names_passed(path: Path, *callables: str) -> set[str]:
    """The constant first arguments of all calls of these functions in a file."""
    if not any(f"{name}(" in path.read_text(encoding="utf-8") for name in callables):
        return set()
    return {
        node.args[0].value
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in callables
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }
