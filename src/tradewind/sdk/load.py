"""Import one DAG file, and learn what the import depended on.

Both the parser's children and the worker's templates do this; it changes the process (sys.path, sys.modules), so it is done
once in a process that is made for it.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tradewind.model.ids import DAG_FILE_MODULE
from tradewind.sdk.open_dags import collecting

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

MODULE_PREFIX = DAG_FILE_MODULE
PLUGINS_FOLDER = "TRADEWIND__CORE__PLUGINS_FOLDER"


class ParsingContext(NamedTuple):
    """For which DAG and task a file is being read."""

    dag_id: str | None
    task_id: str | None


def get_parsing_context() -> ParsingContext:
    """For which DAG and task the file is being read: for none in particular.

    Files that make many DAGs ask this to make only the one that is needed. Here a file is read once for all its tasks, which
    are forked from what it made, so the answer is always (None, None).
    """
    return ParsingContext(None, None)


class SourceFile(NamedTuple):
    """A file that the import read from the DAG or plugins folder, and how it looked."""

    path: str
    mtime_ns: int
    size: int


class Loaded(NamedTuple):
    """What importing a DAG file gave."""

    dags: dict[str, DAG]
    duplicates: list[str]
    """Sentences about DAG ids that the file gives twice."""
    sources: list[SourceFile]
    """The file itself first, then every module it loaded from the DAG folder and the plugins folder."""
    reads_world: str | None
    """Why its result may change although no file changed (`datetime.now` in line 7), or None."""


def module_of(file: str) -> str:
    """Name of the module as which a DAG file is imported."""
    return MODULE_PREFIX + "".join(c if c.isalnum() else "_" for c in file)


def open_folders(bundle: str, file: str) -> None:
    """Let modules beside a DAG file, and in its folder's root, be imported; and Airflow's names."""
    serve_airflow_names()
    for folder in (os.path.dirname(os.path.join(bundle, file)), bundle):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    add_plugins_folder(plugins_folder())


def serve_airflow_names() -> None:
    """Let `from airflow import …` find Tradewind's names in this process."""
    from tradewind.airflow.finder import activate  # lazy door: it stands above, and serves what stands here

    activate()


def plugins_folder() -> str:
    """Where this process finds plugins. The composition root sets the variable for whatever it starts."""
    found = os.environ.get(PLUGINS_FOLDER) or os.environ.get("AIRFLOW__CORE__PLUGINS_FOLDER")
    home = os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")
    return os.path.abspath(os.path.expanduser(found)) if found else os.path.join(home, "plugins")


def add_plugins_folder(folder: str) -> None:
    """Let modules of the plugins folder be imported, after everything else."""
    if folder not in sys.path and os.path.isdir(folder):
        sys.path.append(folder)


def load_file(bundle: str, file: str, *, analyse: bool = True) -> Loaded:
    """Import `file` (relative to the folder `bundle`) as a module of its own.

    Args:
        analyse: also learn what it depends on; without, `sources` and `reads_world` stay empty.

    Raises:
        BaseException: whatever the file raises, SystemExit included; SyntaxError when it is no Python.
    """
    path = os.path.join(bundle, file)
    open_folders(bundle, file)
    before = set(sys.modules) if analyse else set()
    seen = _source(path)
    name = module_of(file)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with collecting() as collected:
        spec.loader.exec_module(module)
    found = collected.found(vars(module))
    if not analyse:
        return Loaded({dag.dag_id: dag for dag in reversed(found.dags)}, [], [], None)
    sources = [seen, *_bundle_sources(bundle, path, before)]
    reads = next(filter(None, (_reads_world(Path(source.path)) for source in sources)), None)
    dags = {dag.dag_id: dag for dag in reversed(found.dags)}
    return Loaded(dags, [str(duplicate) for duplicate in found.duplicates], sources, reads)


def _source(path: str) -> SourceFile:
    facts = os.stat(path)
    return SourceFile(path, facts.st_mtime_ns, facts.st_size)


def _bundle_sources(bundle: str, path: str, before: set[str]) -> Iterator[SourceFile]:
    roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in (bundle, plugins_folder()))
    for name in list(sys.modules):
        origin = getattr(sys.modules.get(name), "__file__", None) if name not in before else None
        if origin and origin != path and os.path.realpath(origin).startswith(roots) and os.path.exists(origin):
            yield _source(origin)


_WORLD = frozenset(
    {"now", "today", "utcnow", "days_ago", "time", "time_ns", "monotonic", "environ", "getenv", "urandom", "random"}
    | {"randint", "choice", "uuid1", "uuid4", "urlopen", "glob", "iglob", "listdir", "scandir", "walk", "iterdir", "rglob"}
    | {"read_text", "read_bytes", "open", "connect", "get_variable"}
)
_OWNERS = frozenset({"Variable", "BaseHook", "Connection", "requests", "httpx"})


def _reads_world(path: Path) -> str | None:
    """Does running this module's top level look at the clock, the environment, data files or the network?

    Functions count only when the top level calls them by name: what a task does when it runs is its own affair. A wrong
    guess costs time, never correctness: such a template is short-lived, such a file is parsed again now and then.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    todo: list[ast.AST] = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    done: set[str] = set()
    while todo:
        for node in _outside_functions(todo.pop()):
            word = _suspicious(node)
            if word is not None:
                return f"{word} in line {getattr(node, 'lineno', 0)} of {path.name}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = functions.get(node.func.id)
                if called is not None and called.name not in done and not called.decorator_list:
                    done.add(called.name)
                    todo.extend(called.body)
    return None


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _outside_functions(child)


def _suspicious(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id in _OWNERS:
            return f"{node.value.id}.{node.attr}"
        if node.attr in _WORLD and node.attr not in ("time", "open", "connect"):
            return node.attr
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _WORLD:
            return f"{name}()"
    return None
