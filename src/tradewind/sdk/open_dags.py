"""The open DAGs and task groups, and the DAGs created, while a DAG file is imported.

`with DAG(...)` and `with TaskGroup(...)` open a block; operators created inside join it. `collecting()` records every DAG that a
file creates, with its source location.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tradewind.sdk.generation import CURRENT

if TYPE_CHECKING:
    from types import FrameType

    from tradewind.sdk.dag import DAG
    from tradewind.sdk.taskgroup import TaskGroup

open_dags: list[DAG] = []
"""DAGs whose `with` block is open, innermost last."""
open_groups: list[TaskGroup] = []
"""Task groups whose `with` block is open, innermost last; a DAG's block opens its root group."""


def current_dag() -> DAG | None:
    """The DAG of the innermost open block."""
    return open_dags[-1] if open_dags else None


def current_group(dag: DAG) -> TaskGroup:
    """The innermost open group of `dag`, or its root group."""
    for group in reversed(open_groups):
        if group.dag is dag:
            return group
    return dag.task_group


# --- source locations ------------------------------------------------------------------------------------------------


class SourceLocation(NamedTuple):
    """A file and a line number in it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller_location() -> SourceLocation:
    """The source location of the author's code that is calling into this package.

    While a DAG file is collected, this is the line of the file itself, not of a helper function that the file calls: a DAG
    created by a factory function belongs to the file that calls the factory.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return SourceLocation("", 0)
    nearest = SourceLocation(frame.f_code.co_filename, frame.f_lineno)
    if not _collections:
        return nearest
    boundary = _collections[-1].opened_by
    while frame is not None and frame is not boundary and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None or frame is boundary:
        return nearest
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("tradewind.")


# --- warnings --------------------------------------------------------------------------------------------------------


class AuthorWarning(NamedTuple):
    """A warning about what a DAG file does, other than an older name that works as before."""

    message: str
    dag: DAG | None
    """None: the DAG is not known, for example of a value at the top level of the file."""


WARNINGS_MAX = 1_000
"""Maximum number of warnings that are kept for one process."""

author_warnings: list[AuthorWarning] = []
"""The warnings so far, without deprecations. The parser adds them to the definitions of the file's DAGs."""

_dag_of_operator: list[DAG | None] = [None]
"""The argument `dag` of the operator that is being created."""


def operator_begins(dag: DAG | None) -> None:
    """Warnings belong to this DAG until the operator is complete: `operator_begins(None)`."""
    _dag_of_operator[0] = dag


def warn_author(message: str, category: type[Warning] = UserWarning, dag: DAG | None = None) -> None:
    """Issue a warning that points to the author's source line.

    Args:
        category: a DeprecationWarning is for names that work as before: the definition of the DAG does not contain it.
        dag: the DAG that the warning is about. None: that of the operator that is being created, or of the open block.
    """
    location = caller_location()
    if not issubclass(category, DeprecationWarning) and len(author_warnings) < WARNINGS_MAX:
        about = next((one for one in (dag, _dag_of_operator[0], current_dag()) if one is not None), None)
        author_warnings.append(AuthorWarning(message, about))
    text = message if dag is None else dag.located_message(message)
    warnings.warn_explicit(text, category, location.file, location.line)


# --- collecting ------------------------------------------------------------------------------------------------------


class Duplicate(NamedTuple):
    """One dag_id that is used more than once."""

    dag_id: str
    places: tuple[SourceLocation, ...]

    def __str__(self) -> str:
        places = " and ".join(f"line {location.line} of {location.file}" for location in self.places)
        return f"dag_id {self.dag_id!r} is used more than once: {places}. Only the last of these DAGs exists, as in Airflow"


class Found(NamedTuple):
    """The DAGs of a file, in the order of creation, and the dag_ids that occur more than once.

    A DAG imported from another module is included; its `dag.fileloc` names the file that creates it.
    """

    dags: tuple[DAG, ...]
    duplicates: tuple[Duplicate, ...]


class Collection:
    """A context manager that records the DAGs created while it is open.

    It also closes blocks of DAGs and groups that a failing file left open.
    """

    def __init__(self, generation: int = CURRENT) -> None:
        """`generation`: the generation of Airflow for which the file was written."""
        self.generation = generation
        self.opened_by: FrameType | None = None
        """The frame that opened the collection. The DAG file is imported inside of it."""
        self._made: dict[int, DAG] = {}
        self._registered: dict[int, DAG] = {}
        self._forgotten: list[DAG] = []
        self._outer: tuple[list[DAG], list[TaskGroup]] = ([], [])

    def __enter__(self) -> Self:
        self.opened_by = sys._getframe(1)
        self._outer = (open_dags[:], open_groups[:])
        open_dags.clear()
        open_groups.clear()
        _collections.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.opened_by = None
        _collections.remove(self)
        open_dags[:], open_groups[:] = self._outer

    def record_created(self, dag: DAG) -> None:
        self._made[id(dag)] = dag

    def record_entered(self, dag: DAG) -> None:
        """Record a DAG with `auto_register` whose `with` block was entered."""
        self._registered[id(dag)] = dag

    def forget(self, dag: DAG) -> None:
        """Forget a DAG whose tasks were moved into another DAG."""
        self._made.pop(id(dag), None)
        self._registered.pop(id(dag), None)
        self._forgotten.append(dag)

    def found(self, namespace: Mapping[str, Any]) -> Found:
        """The DAGs of a module: those registered by a `with` block, and those in its top-level variables."""
        # lazy import: dag.py imports this module
        from tradewind.sdk.dag import DAG

        wanted = dict(self._registered)
        for value in list(namespace.values()):
            if isinstance(value, DAG) and not any(value is gone for gone in self._forgotten):
                wanted.setdefault(id(value), value)
        order = {key: number for number, key in enumerate(self._made)}
        dags = tuple(sorted(wanted.values(), key=lambda dag: order.get(id(dag), -1)))
        by_id: dict[str, list[SourceLocation]] = {}
        for dag in dags:
            by_id.setdefault(dag.dag_id, []).append(dag.location)
        duplicates = tuple(Duplicate(dag_id, tuple(places)) for dag_id, places in by_id.items() if len(places) > 1)
        return Found(dags, duplicates)


_collections: list[Collection] = []


def record_created(dag: DAG) -> None:
    """Record that a DAG object was created."""
    if _collections:
        _collections[-1].record_created(dag)


def is_reading() -> bool:
    """Whether this process is importing a DAG file now."""
    return bool(_collections)


_of_running_task: list[Callable[[], int]] = []
"""Empty, or one function that gives the generation of the file of the running task."""


def ask_for_running_generation(function: Callable[[], int]) -> None:
    """Set the function that gives the generation of the file of the running task; 3 while no task is running."""
    _of_running_task[:] = [function]


def generation() -> int:
    """The generation of Airflow for which the DAG file was written that is being imported, or whose task or callback is running.

    A task and its callbacks may create operators, too. Outside of DAG files and tasks: 3.
    """
    if _collections:
        return _collections[-1].generation
    return _of_running_task[0]() if _of_running_task else CURRENT


def forget(dag: DAG) -> None:
    """Forget a DAG whose tasks were moved into another DAG: it does not belong to the file any more."""
    if _collections:
        _collections[-1].forget(dag)


def record_entered(dag: DAG) -> None:
    """Record that a DAG with `auto_register` was used as a context manager."""
    if _collections:
        _collections[-1].record_entered(dag)


def collecting(generation: int = CURRENT) -> Collection:
    """Record every DAG created inside a `with` block.

    Use: `with collecting() as collection: exec(code, namespace)`, then `collection.found(namespace)`.
    """
    return Collection(generation)
