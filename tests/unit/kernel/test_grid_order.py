"""The order of the grid's rows."""

from __future__ import annotations

from tradewind.kernel.grid_order import GROUP, MAPPED_GROUP, MAPPED_TASK, TASK, grid_rows
from tradewind.model.definition import DagDefinition, GroupDefinition, TaskDefinition


def ids(definition: DagDefinition) -> list[str]:
    return [row.id for row in grid_rows(definition)]


def task(task_id: str, *upstream: str, group: str | None = None, mapped: bool = False) -> TaskDefinition:
    return TaskDefinition(task_id, upstream=tuple(sorted(upstream)), group=group, mapped=mapped)


def test_upstream_comes_first_and_the_file_decides_the_rest() -> None:
    assert ids(DagDefinition("d", tasks=(task("c", "b"), task("b"), task("a")))) == ["b", "c", "a"]
    assert ids(DagDefinition("d", tasks=(task("z"), task("y"), task("x")))) == ["z", "y", "x"]


def test_a_group_stands_before_its_members_and_after_what_they_need() -> None:
    definition = DagDefinition(
        "d",
        tasks=(task("g.a", "first", group="g"), task("g.h.b", "g.a", group="g.h"), task("first"), task("last", "g.h.b")),
        groups=(GroupDefinition("g"), GroupDefinition("g.h", parent="g", mapped=True)),
    )
    rows = grid_rows(definition)
    assert [(row.id, row.kind, row.parent, row.end, row.task) for row in rows] == [
        ("first", TASK, -1, 1, 2),
        ("g", GROUP, -1, 5, -1),
        ("g.a", TASK, 1, 3, 0),
        ("g.h", MAPPED_GROUP, 1, 5, -1),
        ("g.h.b", MAPPED_TASK, 3, 5, 1),
        ("last", TASK, -1, 6, 3),
    ]


def test_groups_that_need_each_other_still_get_an_order() -> None:
    definition = DagDefinition(
        "d",
        tasks=(task("g.a", group="g"), task("mid", "g.a"), task("g.b", "mid", group="g")),
        groups=(GroupDefinition("g"),),
    )
    assert ids(definition) == ["g", "g.a", "g.b", "mid"]


def test_an_empty_group_is_a_row() -> None:
    assert ids(DagDefinition("d", groups=(GroupDefinition("g"),))) == ["g"]
