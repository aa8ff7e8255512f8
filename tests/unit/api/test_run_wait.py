"""Waiting for the end of a run, and the results that its last line has."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.api.conftest import World
from tests.unit.api.page_world import set_states
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile, XComWrite
from tradewind.model.states import RunState
from tradewind.model.states import TaskState as S

TASKS = (TaskDefinition("result", returns_dag_result=True), TaskDefinition("side"))


def ended_run(world: World) -> str:
    """A run that has ended, with a return value of each task."""
    data = encode_definition(DagDefinition("d", tasks=TASKS))
    world.store.register_file(
        ParsedFile("dags", "d.py", "h", (ParsedDag("d", data, version_hash(data)),), None, 9, False, 1), paused_at_creation=True
    )
    run = world.run("d")
    set_states(world, run, (S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    values = [XComWrite(task.task_id, -1, "return_value", json.dumps(task.task_id).encode(), None, 8, 1) for task in TASKS]
    world.store.push_xcoms(run.id, values)
    return "/api/v2/dags/d/dagRuns/r1/wait?interval=1"


def last_line(world: World, path: str) -> Any:
    return json.loads(world.get(path).text.splitlines()[-1])


def test_the_last_line_has_the_results_that_the_dag_names(world: World) -> None:
    assert last_line(world, ended_run(world)) == {"state": "success", "results": {"result": "result"}}


def test_the_last_line_has_the_results_that_the_caller_names(world: World) -> None:
    assert last_line(world, ended_run(world) + "&result=side") == {"state": "success", "results": {"side": "side"}}
