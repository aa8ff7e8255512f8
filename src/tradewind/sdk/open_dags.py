"""What is open, and what has been made, while a DAG file is read.

`with DAG(...)` and `with TaskGroup(...)` open a block; operators made inside join it. `collecting()` notes every DAG
that a file makes, with the place in the file where it was made.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

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
    """The innermost open group of `dag`, else its root group."""
    for group in reversed(open_groups):
        if group.dag is dag:
            return group
    return dag.task_group


# --- where things are made -------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller_place() -> Place:
    """Where the code outside this package, now calling into it, stands.

    While a file is collected, it is the line of the module being imported, not of a helper function that the module
    calls: a DAG made by a factory belongs to the file that called the factory.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return Place("", 0)
    nearest = Place(frame.f_code.co_filename, frame.f_lineno)
    if not _collections:
        return nearest
    boundary = _collections[-1].opened_by
    while frame is not None and frame is not boundary and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is None or frame is boundary:
        return nearest
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("tradewind.")


def warn_author(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that stands at the author's line, however deep in this package it was noticed."""
    place = caller_place()
    warnings.warn_explicit(message, category, place.file, place.line)


# --- collecting ------------------------------------------------------------------------------------------------------


class Duplicate(NamedTuple):
    """One dag_id, made in several places."""

    dag_id: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        places = " and ".join(f"line {place.line} of {place.file}" for place in self.places)
        return f"dag_id {self.dag_id!r} is made more than once: {places}"


class Found(NamedTuple):
    """What a file made: its DAGs in the order they were made, and the ids that occur more than once.

    A DAG imported from another module is among them, with `dag.fileloc` naming the file that made it.
    """

    dags: tuple[DAG, ...]
    duplicates: tuple[Duplicate, ...]


class Collection:
    """Notes the DAGs made while it is open, as a context manager.

    Blocks of DAGs and groups that a failing file left open are closed at its end.
    """

    def __init__(self) -> None:
        self.opened_by: FrameType | None = None
        """The frame that opened it: the module being read runs inside."""
        self._made: dict[int, DAG] = {}
        self._registered: dict[int, DAG] = {}
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

    def note_made(self, dag: DAG) -> None:
        self._made[id(dag)] = dag

    def note_registered(self, dag: DAG) -> None:
        """Its `with` block was entered and it wants to be registered by that."""
        self._registered[id(dag)] = dag

    def found(self, namespace: Mapping[str, Any]) -> Found:
        """The DAGs of a module: those registered by a `with` block and those among its top-level names."""
        # lazy door: dag.py imports this module
        from tradewind.sdk.dag import DAG

        wanted = dict(self._registered)
        for value in list(namespace.values()):
            if isinstance(value, DAG):
                wanted.setdefault(id(value), value)
        order = {key: number for number, key in enumerate(self._made)}
        dags = tuple(sorted(wanted.values(), key=lambda dag: order.get(id(dag), -1)))
        by_id: dict[str, list[Place]] = {}
        for dag in dags:
            by_id.setdefault(dag.dag_id, []).append(dag.place)
        duplicates = tuple(Duplicate(dag_id, tuple(places)) for dag_id, places in by_id.items() if len(places) > 1)
        return Found(dags, duplicates)


_collections: list[Collection] = []


def note_made(dag: DAG) -> None:
    """A DAG object was created."""
    if _collections:
        _collections[-1].note_made(dag)


def note_registered(dag: DAG) -> None:
    """A DAG with `auto_register` was used as a context manager."""
    if _collections:
        _collections[-1].note_registered(dag)


def collecting() -> Collection:
    """Note every DAG made inside a block.

    Use: `with collecting() as collection: exec(code, namespace)`, then `collection.found(namespace)`.
    """
    return Collection()
