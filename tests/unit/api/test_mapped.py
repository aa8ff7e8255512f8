"""Task instances of mapped tasks over the API: listed by map index, asked for one by one."""

from __future__ import annotations

import pytest

from tests.unit.api.conftest import World
from tradewind.model.definition import DagDefinition, MapLiteral, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import Batch, NewTaskRow, ParsedDag, ParsedFile, RunWrite, TaskWrite
from tradewind.model.states import RunState

PATH = "/api/v2/dags/sales/dagRuns/r1/taskInstances"


@pytest.fixture
def mapped(world: World) -> World:
    """plain, and each[0..2] of which the second one has a label."""
    tasks = (TaskDefinition("plain"), TaskDefinition("each", upstream=("plain",), mapped=True, expand=(MapLiteral(3),)))
    data = encode_definition(DagDefinition("sales", tasks=tasks))
    found = ParsedFile("dags", "sales.py", "h", (ParsedDag("sales", data, version_hash(data)),), None, 9, False, 1)
    world.store.register_file(found, paused_at_creation=True)
    row = world.run()
    snapshot = world.store.snapshot(row.id)
    assert snapshot is not None
    first = snapshot.rows[1]._replace(map_index=0)
    write = RunWrite(row.id, row.revision, RunState.RUNNING, 1, None, None, row.journal_seq, [TaskWrite(first, 0, 0)])
    write.new_rows = [NewTaskRow(2, "each", 1, 0), NewTaskRow(3, "each", 2, 0)]
    write.labels = [(2, "second")]
    assert world.store.commit(Batch(0, 1, [write])).stale == {}
    return world


def test_they_are_listed_by_map_index(mapped: World) -> None:
    found = mapped.json(f"{PATH}/each/listMapped")
    shown = [(one["map_index"], one["rendered_map_index"], one["operator"]) for one in found["task_instances"]]
    assert shown == [(0, "0", "BaseOperator"), (1, "second", "BaseOperator"), (2, "2", "BaseOperator")]
    assert found["total_entries"] == 3
    backwards = mapped.json(f"{PATH}/each/listMapped?order_by=-map_index&limit=2")
    assert [one["map_index"] for one in backwards["task_instances"]] == [2, 1]
    assert mapped.json(f"{PATH}?map_index=1")["total_entries"] == 1
    assert mapped.json(PATH)["total_entries"] == 4
    assert mapped.json("/api/v2/dags/~/dagRuns/~/taskInstances")["total_entries"] == 4


def test_one_instance_of_a_mapped_task(mapped: World) -> None:
    assert mapped.json(f"{PATH}/each/2")["map_index"] == 2
    (itself,) = mapped.json(f"{PATH}/each/2/tries")["task_instances"]
    assert (itself["map_index"], itself["try_number"]) == (2, 0), "it has had no try"
    assert mapped.get(f"{PATH}/each/2/tries/1").status_code == 404


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("each", "give a map index from 0 to 2"),
        ("each/7", "with map index 7"),
        ("plain/listMapped", "Task id plain is not mapped"),
        ("eech/listMapped", "'each'"),
    ],
)
def test_a_map_index_that_does_not_exist_is_404(mapped: World, path: str, says: str) -> None:
    assert says in mapped.json(f"{PATH}/{path}", status=404)["detail"]
