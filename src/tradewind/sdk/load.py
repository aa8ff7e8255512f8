"""Import a DAG file, and find out which files and outside data the import depends on.

Child processes of the parser and the templates of the worker use this. An import changes the process (sys.path, sys.modules), so
each process is made for one import.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.model.ids import DAG_FILE_MODULE
from tradewind.sdk.dag_files import files_of, import_files, is_zipped, may_hold_dags, source_text
from tradewind.sdk.generation import CURRENT, generation_of
from tradewind.sdk.import_paths import (
    add_config_folders,
    add_plugins_folder,
    add_project_folder,
    is_of_project,
    plugins_folder,
    project_folder,
    serve_airflow_names,
    set_airflow_home,
)
from tradewind.sdk.open_dags import collecting
from tradewind.sdk.plugin_links import add_plugin_links
from tradewind.sdk.policies import apply_policies, policies_of_process

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

MODULE_PREFIX = DAG_FILE_MODULE


class ParsingContext(NamedTuple):
    """The DAG and the task for which a file is parsed."""

    dag_id: str | None
    task_id: str | None


def get_parsing_context() -> ParsingContext:
    """The DAG and the task for which the file is parsed: always (None, None).

    In Airflow, files that create many DAGs use this to create only the DAG that is needed. Here a file is imported once for all its
    tasks, whose processes are forked from that import.
    """
    return ParsingContext(None, None)


class SourceFile(NamedTuple):
    """A file of the DAG or plugins folder that was imported, with its modification time in ns and size in bytes."""

    path: str
    mtime_ns: int
    size: int


class Loaded(NamedTuple):
    """The result of importing a DAG file."""

    dags: dict[str, DAG]
    duplicates: dict[str, str]
    """dag_ids that the file uses more than once, each with a sentence. The last DAG of this id is in `dags`."""
    sources: list[SourceFile]
    """The DAG file itself first, then all modules imported from the DAG folder, the plugins folder and the project folder."""
    volatile_because: str | None
    """Why the result may change although no file changed (`datetime.now in line 7`), or None."""


def module_of(file: str) -> str:
    """Module name under which a DAG file is imported."""
    return MODULE_PREFIX + "".join(c if c.isalnum() else "_" for c in file)


def open_folders(bundle: str, file: str) -> None:
    """Add the DAG folder, the folder of a DAG file, the folders `config`, the plugins folder and the project folder to sys.path,
    make Airflow's names importable, and set `AIRFLOW_HOME`.

    They come last, as in Airflow: a DAG file `docker.py`, or a folder `kubernetes` with DAG files, does not hide the package.
    """
    serve_airflow_names()
    set_airflow_home()
    for folder in (bundle, os.path.dirname(os.path.join(bundle, file))):
        if folder not in sys.path:
            sys.path.append(folder)
    add_config_folders()
    add_plugins_folder(plugins_folder())
    add_project_folder(project_folder(bundle))


def load_file(bundle: str, file: str, *, analyse: bool = True, policies: bool = True) -> Loaded:
    """Import `file` (relative to the folder `bundle`) as a module of its own.

    Args:
        analyse: also find out what the import depends on; otherwise `sources` is empty and `volatile_because` is None.

        policies: apply the policies of the deployment to the DAGs.

    Raises:
        BaseException: any exception of the file, including SystemExit; SyntaxError if it is not valid Python.
    """
    path = os.path.join(bundle, file)
    open_folders(bundle, file)
    with _NewModules() as new_modules:
        seen = source_file(path)
        with collecting(_generation(path)) as collected:
            namespace = _import_archive(path) if is_zipped(path) else _import_file(file, path)
        found = collected.found(namespace)
        if policies:
            found = found._replace(dags=tuple(apply_policies(list(found.dags))))
        add_plugin_links(found.dags)
        if not analyse:
            return Loaded(_by_id(found.dags), {}, [], None)
        sources = [seen, *_bundle_sources(bundle, path, new_modules.names())]
    if policies:
        known = {source.path for source in sources}
        sources += [source_file(name) for name in policies_of_process().files if name not in known and os.path.exists(name)]
    reads = next(filter(None, (_why_volatile(Path(source.path)) for source in sources)), None)
    dags = _by_id(found.dags)
    duplicates = {duplicate.dag_id: str(duplicate) for duplicate in found.duplicates}
    return Loaded(dags, duplicates, sources, reads)


def _import_file(file: str, path: str) -> dict[str, Any]:
    """Import a DAG file as a module of its own; return its names."""
    name = module_of(file)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return vars(module)


def _import_archive(path: str) -> dict[str, Any]:
    """Import the DAG files of a zip archive; return the names of all of them."""
    wanted = [name for name, text in files_of(path) if may_hold_dags(text)]
    return {f"{module.__name__}.{name}": value for module in import_files(path, wanted) for name, value in vars(module).items()}


def _by_id(dags: Sequence[DAG]) -> dict[str, DAG]:
    """DAG id → DAG, the last one first. Of several DAGs with one id, the last one."""
    found: dict[str, DAG] = {}
    for dag in reversed(dags):
        found.setdefault(dag.dag_id, dag)
    return found


def _generation(path: str) -> int:
    """For which generation of Airflow the file was written."""
    try:
        return generation_of(source_text(path) if is_zipped(path) else Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return CURRENT


def source_file(path: str) -> SourceFile:
    """A file or folder as it is now. Time and size are 0 if it does not exist."""
    try:
        facts = os.stat(path)
    except OSError:
        return SourceFile(path, 0, 0)
    return SourceFile(path, facts.st_mtime_ns, facts.st_size)


class _NewModules:
    """Context manager that finds the modules that are imported inside.

    It puts an entry into `sys.modules`; new modules come after this entry. Only they are read, because a forked process copies the
    memory page of each name that it reads.
    """

    def __init__(self) -> None:
        self._mark = f"_tradewind_before_{id(self)}"

    def __enter__(self) -> _NewModules:
        sys.modules[self._mark] = ModuleType(self._mark)
        return self

    def __exit__(self, *_: object) -> None:
        sys.modules.pop(self._mark, None)

    def names(self) -> list[str]:
        """The names of the new modules, in the order in which their imports ended; of all modules if the entry was removed."""
        try:
            return list(itertools.takewhile(lambda name: name != self._mark, reversed(sys.modules)))[::-1]
        except RuntimeError:  # a thread of the file imports something at this moment
            names = list(sys.modules)
            return names[names.index(self._mark) + 1 :] if self._mark in names else names


def _bundle_sources(bundle: str, path: str, modules: Iterable[str]) -> Iterator[SourceFile]:
    """The files of those modules that are in the bundle, in the plugins folder, or imported from the project folder."""
    roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in (bundle, plugins_folder()))
    project = project_folder(bundle)
    for name in modules:
        origin = getattr(sys.modules.get(name), "__file__", None)
        if not origin or origin == path or not os.path.exists(origin):
            continue
        if os.path.realpath(origin).startswith(roots) or is_of_project(name, origin, project):
            yield source_file(origin)


_UNSTABLE_NAMES = frozenset(
    {"now", "today", "utcnow", "days_ago", "time", "time_ns", "monotonic", "environ", "getenv", "urandom", "random"}
    | {"randint", "choice", "uuid1", "uuid4", "urlopen", "glob", "iglob", "listdir", "scandir", "walk", "iterdir", "rglob"}
    | {"read_text", "read_bytes", "open", "connect", "get_variable"}
)
_UNSTABLE_OBJECTS = frozenset({"Variable", "BaseHook", "Connection", "requests", "httpx"})


def _why_volatile(path: Path) -> str | None:
    """Tell whether the module's top level reads the clock, the environment, data files or the network; None if not.

    Functions count only if the top level calls them by name: code that runs only in a task does not matter. A wrong guess costs
    time, never correctness: the template is kept for a short time only, and the file is parsed again from time to time.
    """
    try:
        tree = ast.parse(source_text(str(path)) if is_zipped(str(path)) else path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    todo: list[ast.AST] = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    done: set[str] = set()
    while todo:
        for node in _outside_functions(todo.pop()):
            name = _unstable_name(node)
            if name is not None:
                return f"{name} in line {getattr(node, 'lineno', 0)} of {path.name}"
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


def _unstable_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id in _UNSTABLE_OBJECTS:
            return f"{node.value.id}.{node.attr}"
        if node.attr in _UNSTABLE_NAMES and node.attr not in ("time", "open", "connect"):
            return node.attr
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _UNSTABLE_NAMES:
            return f"{name}()"
    return None
