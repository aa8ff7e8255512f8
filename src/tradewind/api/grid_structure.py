"""The structure of one version of a DAG, which the grid and the graph draw: its rows and edges, and the row of each task id."""

from __future__ import annotations

import gzip
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tradewind.api.ui_shapes import Structure
from tradewind.kernel.grid_order import GridRow, grid_rows
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.store.port.grid_lists import GridVersion

DOC_MAX = 4_000
"""Maximum length of the documentation of a task in the structure, characters. Longer text is cut off."""

_encode = msgspec.json.Encoder().encode


class GridShape:
    """The rows of one version, kept while the page shows it."""

    __slots__ = ("groups", "id", "number", "order", "packed", "row_of", "rows", "size", "tasks")

    def __init__(self, version: GridVersion) -> None:
        definition = version.definition
        found = grid_rows(definition)
        self.id = version.id
        self.number = version.number
        self.size = len(found)
        """Number of rows."""
        self.tasks = {task.task_id: number for number, task in enumerate(definition.tasks)}
        """Task id → its number in the definition."""
        self.order = array("i", (row.task for row in found))
        """Row → number of its task; −1 for a group."""
        self.row_of = array("i", bytes(4 * len(definition.tasks)))
        """Number of a task → its row."""
        for place, row in enumerate(found):
            if row.task >= 0:
                self.row_of[row.task] = place
        self.groups = [(place, row.end) for place, row in enumerate(found) if row.task < 0]
        """(row of a group, the row after its last member)."""
        self.packed = gzip.compress(_encode(structure_of(version, found)), 5, mtime=0)
        """The structure as JSON, compressed."""

    @property
    def structure(self) -> Structure:
        """The structure, unpacked: for answers that contain it."""
        return msgspec.json.decode(gzip.decompress(self.packed), type=Structure)


def structure_of(version: GridVersion, rows: list[GridRow]) -> Structure:
    """Return the structure that the page gets."""
    definition = version.definition
    row_of = {row.task: place for place, row in enumerate(rows) if row.task >= 0}
    number_of = {task.task_id: number for number, task in enumerate(definition.tasks)}
    tasks = [definition.tasks[row.task] if row.task >= 0 else None for row in rows]
    operators, operator = _indexed(tasks, lambda task: task.operator)
    rules, rule = _indexed(tasks, lambda task: task.trigger_rule.value)
    pools, pool = _indexed(tasks, lambda task: task.pool)
    labels, docs = _texts(definition, rows)
    edges: list[int] = []
    for number, task in enumerate(definition.tasks):
        for up in task.upstream:
            edges += (row_of[number_of[up]], row_of[number])
    known = {row.id: place for place, row in enumerate(rows)}
    return Structure(
        dag_id=definition.dag_id,
        display_name=definition.display_name or definition.dag_id,
        version=version.number,
        task_count=len(definition.tasks),
        ids=[row.id for row in rows],
        parents=[row.parent for row in rows],
        kinds=[row.kind for row in rows],
        ends=[row.end for row in rows],
        operators=operators,
        operator=operator,
        trigger_rules=rules,
        trigger_rule=rule,
        pools=pools,
        pool=pool,
        retries=[-1 if task is None else task.retries for task in tasks],
        edges=edges,
        edge_labels=[(known[up], known[low], text) for up, low, text in definition.edge_labels if up in known and low in known],
        labels=labels,
        docs=docs,
        setups=[place for place, task in enumerate(tasks) if task is not None and task.is_setup],
        teardowns=[place for place, task in enumerate(tasks) if task is not None and task.is_teardown],
    )


def _indexed(tasks: Iterable[TaskDefinition | None], value: Callable[[TaskDefinition], Any]) -> tuple[list[str], list[int]]:
    """The different values, and for each row the index of its value; −1 for a group."""
    places: dict[str, int] = {}
    found = [-1 if task is None else places.setdefault(value(task), len(places)) for task in tasks]
    return list(places), found


def _texts(definition: DagDefinition, rows: list[GridRow]) -> tuple[dict[str, str], dict[str, str]]:
    """Row → display name, and row → documentation."""
    groups = {group.group_id: group for group in definition.groups}
    labels, docs = {}, {}
    for place, row in enumerate(rows):
        name: str | None
        doc: str | None
        if row.task >= 0:
            name, doc = definition.tasks[row.task].display_name, definition.tasks[row.task].doc
        else:
            name, doc = groups[row.id].display_name, groups[row.id].tooltip
        if name and name != row.id:
            labels[str(place)] = name
        if doc:
            docs[str(place)] = doc[:DOC_MAX]
    return labels, docs
