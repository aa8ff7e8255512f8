"""Links of operators."""

from __future__ import annotations

from tests.unit.api.conftest import World
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile, RunRow, XComWrite
from tradewind.model.run_links import EXTERNAL_DAG, EXTERNAL_DAG_KEY, TRIGGERED_DAG, TRIGGERED_DAG_KEY
from tradewind.model.wait_plans import TasksPlan, WaitPlan


def register(world: World, dag_id: str, task: TaskDefinition) -> None:
    data = encode_definition(DagDefinition(dag_id, tasks=(task,)))
    found = ParsedFile("dags", f"{dag_id}.py", dag_id, (ParsedDag(dag_id, data, version_hash(data)),), None, 9, False, 1)
    world.store.register_file(found, paused_at_creation=True)


def run_with(world: World, task: TaskDefinition, logical_date: int | None = None) -> RunRow:
    register(world, "d", task)
    return world.run("d", logical_date=logical_date)


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


def test_a_triggered_run_is_linked_as_soon_as_its_id_is_known(world: World) -> None:
    task = TaskDefinition("t", extra_links=((TRIGGERED_DAG, TRIGGERED_DAG_KEY),), waits_for=("other",))
    run = run_with(world, task)
    path = "/api/v2/dags/d/dagRuns/r1/taskInstances/t/links"
    assert world.json(path) == {"extra_links": {"Triggered DAG": None}, "total_entries": 1}
    pushed = [("trigger_dag_id", b'"other"'), ("trigger_run_id", b'"manual__2026-01-01T00:00:00+00:00"')]
    world.store.push_xcoms(run.id, [XComWrite("t", -1, key, value, None, 16, 1) for key, value in pushed])
    address = "/dags/other/runs/manual__2026-01-01T00%3A00%3A00%2B00%3A00"
    assert world.json(path)["extra_links"] == {"Triggered DAG": address}
    assert world.json("/api/tradewind/v1/dags/d/runs/r1/tasks/t")["extra_links"] == {"Triggered DAG": address}


def test_the_external_run_is_the_one_of_the_date_that_the_task_waits_for(world: World) -> None:
    day = 86_400_000_000
    plan = WaitPlan(TasksPlan("world_dag", earlier=day), timeout=day)
    task = TaskDefinition("t", extra_links=((EXTERNAL_DAG, EXTERNAL_DAG_KEY),), waits_for=("world_dag",), wait=plan)
    run_with(world, task, logical_date=10 * day)
    path = "/api/v2/dags/d/dagRuns/r1/taskInstances/t/links"
    assert world.json(path)["extra_links"] == {"External DAG": "/dags/world_dag"}
    register(world, "world_dag", TaskDefinition("a"))
    world.run("world_dag", "same_day", logical_date=10 * day)
    assert world.json(path)["extra_links"] == {"External DAG": "/dags/world_dag"}
    world.run("world_dag", "day_before", logical_date=9 * day)
    assert world.json(path)["extra_links"] == {"External DAG": "/dags/world_dag/runs/day_before"}
