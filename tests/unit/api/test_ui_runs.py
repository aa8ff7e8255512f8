"""The pages of a run and of a task instance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, counted_statements, register, set_states
from tradewind.api.run_timeline import PHASES, critical_path, spans, usual_times
from tradewind.model.definition import DagDefinition, GroupDefinition, TaskDefinition
from tradewind.model.moments import SECOND
from tradewind.model.rows import RunRow
from tradewind.model.states import TASK_STATES, RunState, TaskState
from tradewind.store.port.run_page import FormerRun, TaskTime

S = TaskState
CODE = {state: code for code, state in enumerate(TASK_STATES)}
TASKS = (
    TaskDefinition("g.a", group="g", doc="reads"),
    TaskDefinition("g.b", group="g", upstream=("g.a",), template_fields=("sql",)),
    TaskDefinition("last", upstream=("g.b",)),
)
DAG = DagDefinition("sales", tasks=TASKS, groups=(GroupDefinition("g"),))
RUN = f"{PAGE}/dags/sales/runs/r1"


def set_times(world: World, run: RunRow, *times: tuple[int | None, int | None]) -> None:
    """Seconds after the start of the run, by slot."""
    start = world.clock.wall()
    with world.store.engine.transaction():
        for slot, moments in enumerate(times):
            began, ended = (None if one is None else start + one * SECOND for one in moments)
            world.store.engine.run(
                "UPDATE task_instance SET started_at = ?, ended_at = ?, try_number = 1 WHERE run = ? AND slot = ?",
                (began, ended, run.id, slot),
            )


@pytest.fixture
def failed(world: World) -> World:
    register(world, DAG)
    run = world.run("sales", "r1")
    set_states(world, run, (S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    set_times(world, run, (1, 3), (4, 9), (None, None))
    return world


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("no task that decides the state of the run failed", None),
        ("b is failed", "b is failed"),
        ("marked success by ada\nbecause", "marked success by ada"),
    ],
)
def test_only_reasons_that_somebody_has_to_know_are_shown(failed: World, stored: str, shown: str | None) -> None:
    with failed.store.engine.transaction():
        failed.store.engine.run("UPDATE dag_run SET reason = ? WHERE run_id = 'r1'", (stored,))
    assert failed.json(f"{PAGE}/dags/sales/runs/r1")["reason"] == shown


def test_a_run_has_its_tasks_in_the_rows_of_the_structure(failed: World) -> None:
    found = failed.json(RUN)
    assert (found["run"]["state"], found["version"]) == ("failed", 1)
    assert [found["states"][code] for code in found["state"]] == ["failed", "success", "failed", "upstream_failed"]
    assert found["start_ms"] == [1000, 1000, 4000, -1]
    assert found["duration_ms"] == [8000, 2000, 5000, -1]
    assert found["tries"] == [1, 1, 1, 1]
    assert found["totals"][CODE[S.FAILED]] == 1
    assert found["usual"] is None
    assert "r1" in failed.json(f"{PAGE}/dags/sales/runs/r2", 404)["detail"]


def test_a_running_task_has_no_duration_yet(failed: World) -> None:
    run = failed.run("sales", "r2")
    set_states(failed, run, (S.SUCCESS, S.RUNNING, S.NONE))
    set_times(failed, run, (0, 1), (2, None), (None, None))
    found = failed.json(f"{PAGE}/dags/sales/runs/r2")
    assert found["duration_ms"] == [-1, 1000, -1, -1]


def test_the_gantt_chart_of_a_run(failed: World) -> None:
    found = failed.json(f"{RUN}/gantt")
    assert [(bar["row"], found["states"][bar["state"]]) for bar in found["bars"]] == [
        (1, "success"),
        (2, "failed"),
        (3, "upstream_failed"),
    ]
    assert (found["critical"], found["omitted"], found["usual_runs"]) == ([1, 2], 0, 0)
    window = failed.json(f"{RUN}/gantt?rows_from=2&rows_to=3")
    assert [bar["row"] for bar in window["bars"]] == [2]


def test_spans_split_waiting_from_running() -> None:
    steps = [
        (0, S.NONE, S.SCHEDULED, 5),
        (0, S.SCHEDULED, S.QUEUED, 8),
        (0, S.QUEUED, S.RUNNING, 9),
        (0, S.RUNNING, S.UP_FOR_RETRY, 20),
        (0, S.UP_FOR_RETRY, S.SCHEDULED, 30),
        (0, S.SCHEDULED, S.QUEUED, 30),
        (0, S.QUEUED, S.RUNNING, 31),
        (1, S.NONE, S.UPSTREAM_FAILED, 40),
        (9, S.NONE, S.SCHEDULED, 41),
    ]
    coded = [(slot, before.code, after.code, at * 1000) for slot, before, after, at in steps]
    found = spans(coded, {0, 1, 2}, 0, 50_000)
    named = [(PHASES[phase], start, length) for phase, start, length in zip(*[iter(found[0])] * 3, strict=True)]
    assert named == [
        ("upstream", 0, 5),
        ("limit", 5, 3),
        ("queued", 8, 1),
        ("running", 9, 11),
        ("retry", 20, 10),
        ("queued", 30, 1),
        ("running", 31, 19),
    ]
    assert found[1] == [0, 0, 40]
    assert found[2] == [], "it was not examined yet"


def test_the_critical_path_follows_the_upstream_task_that_ended_last() -> None:
    tasks = (
        TaskDefinition("a"),
        TaskDefinition("b"),
        TaskDefinition("c", upstream=("a", "b")),
        TaskDefinition("d", upstream=("c",)),
    )
    definition = DagDefinition("d", tasks=tasks)
    assert critical_path(definition, {"a": 3, "b": 9, "c": 12, "d": 20}) == ["b", "c", "d"]
    assert critical_path(definition, {"a": 30, "b": 9, "c": 12}) == ["a"]
    assert critical_path(definition, {}) == []


def test_usual_times_are_medians_over_runs_and_a_mapped_task_counts_once() -> None:
    runs = [FormerRun(1, 0, 10), FormerRun(2, 100_000, 10), FormerRun(3, 0, 10)]
    times = [
        TaskTime(1, "m", 1000, 5000),
        TaskTime(1, "m", 2000, 9000),
        TaskTime(2, "m", 103_000, 105_000),
        TaskTime(3, "m", 2000, 6000),
    ]
    assert usual_times(runs, times) == {"m": (2, 4)}


def test_former_runs_give_usual_times(failed: World) -> None:
    for number in range(3):
        run = failed.run("sales", f"old{number}", run_after=1)
        set_states(failed, run, (S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
        set_times(failed, run, (1, 2), (3, 6), (7, 8))
    found = failed.json(f"{RUN}/gantt")
    assert (found["usual"]["2"], found["usual_runs"]) == ([3000, 3000], 3)
    assert failed.json(RUN)["usual"]["runs"] == 3


def test_a_task_instance_with_its_tries_and_xcoms(failed: World) -> None:
    run = failed.store.need_run("sales", "r1")
    with failed.store.engine.transaction():
        failed.store.engine.run(
            "INSERT INTO xcom (run, task_id, map_index, key, value, size, at) VALUES (?, 'g.b', -1, 'return_value', x'01', 7, 5)",
            (run.id,),
        )
    found: Any = failed.json(f"{RUN}/tasks/g.b")
    assert (found["instance"]["state"], found["upstream"], found["downstream"]) == ("failed", ["g.a"], ["last"])
    assert [(one["key"], one["size"]) for one in found["xcoms"]] == [("return_value", 7)]
    assert (found["template_fields"], found["instance"]["rendered_fields"]) == (["sql"], {})
    assert failed.json(f"{RUN}/tasks/g.a")["doc"] == "reads"
    assert "'g.b'" in failed.json(f"{RUN}/tasks/g.c", 404)["detail"]


def test_of_a_mapped_task_the_first_failed_instance_is_shown(failed: World) -> None:
    with failed.store.engine.transaction():
        failed.store.engine.run("UPDATE task_instance SET task_id = 'last', map_index = slot")
    assert failed.json(f"{RUN}/tasks/last")["instance"]["map_index"] == 1
    assert failed.json(f"{RUN}/tasks/last?map_index=2")["instance"]["state"] == "upstream_failed"
    with failed.store.engine.transaction():
        failed.store.engine.run(f"UPDATE task_instance SET state = {CODE[S.SUCCESS]}")
    assert failed.json(f"{RUN}/tasks/last")["instance"]["map_index"] == 0


@pytest.mark.parametrize("path", ["", "/gantt", "/tasks/t1"])
def test_the_number_of_statements_is_fixed(world: World, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    numbers = []
    for tasks in (2, 50):
        dag_id = f"d{tasks}"
        register(world, DagDefinition(dag_id, tasks=tuple(TaskDefinition(f"t{i}") for i in range(tasks))))
        world.run(dag_id, "r1")
        with counted_statements(monkeypatch) as statements:
            world.json(f"{PAGE}/dags/{dag_id}/runs/r1{path}")
        numbers.append(len(statements))
    assert numbers[0] == numbers[1] <= 20
