"""Links of operators."""

from __future__ import annotations

from tests.unit.api.conftest import World
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile, XComWrite


def test_extra_links_have_the_url_that_the_task_set(world: World) -> None:
    tasks = (TaskDefinition("t", extra_links=(("Job", "_link_JobLink"), ("Cost", "_link_CostLink"))), TaskDefinition("plain"))
    data = encode_definition(DagDefinition("d", tasks=tasks))
    found = ParsedFile("dags", "d.py", "h", (ParsedDag("d", data, version_hash(data)),), None, 9, False, 1)
    world.store.register_file(found, paused_at_creation=True)
    run = world.run("d")
    path = "/api/v2/dags/d/dagRuns/r1/taskInstances"
    assert world.json(f"{path}/plain/links") == {"extra_links": {}, "total_entries": 0}
    world.store.push_xcoms(run.id, [XComWrite("t", -1, "_link_JobLink", b'"https://jobs/7"', None, 16, 1)])
    answer = {"extra_links": {"Job": "https://jobs/7", "Cost": None}, "total_entries": 2}
    assert world.json(f"{path}/t/links") == answer
    assert world.json(f"{path}/t/links", role="viewer") == answer
    assert world.json("/api/tradewind/v1/dags/d/runs/r1/tasks/t")["extra_links"] == answer["extra_links"]
    world.json(f"{path}/none/links", status=404)
