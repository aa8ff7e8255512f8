"""The structure of a DAG and the cells of its grid."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, counted_statements, register, set_states
from tradewind.kernel.run_summary import RunSummary, encode_summary, expanded
from tradewind.model.definition import DagDefinition, GroupDefinition, MapLiteral, TaskDefinition
from tradewind.model.states import TASK_STATES, RunState, TaskState

S = TaskState
CODE = {state: code for code, state in enumerate(TASK_STATES)}
TASKS = (
    TaskDefinition("g.a", group="g", operator="BashOperator", doc="reads", retries=2),
    TaskDefinition("g.b", group="g", upstream=("g.a",), pool="warehouse"),
    TaskDefinition("last", upstream=("g.b",)),
)
DAG = DagDefinition("sales", tasks=TASKS, groups=(GroupDefinition("g", tooltip="first part"),))


def cells(world: World, query: str = "") -> Any:
    return world.json(f"{PAGE}/dags/sales/cells{query}")


def stretch(*states: TaskState) -> list[int]:
    return [value for state in states for value in (1, CODE[state])]


def test_structure_lists_groups_and_tasks_as_columns(world: World) -> None:
    register(world, DAG)
    found = world.json(f"{PAGE}/dags/sales/structure")
    assert found["ids"] == ["g", "g.a", "g.b", "last"]
    assert found["parents"] == [-1, 0, 0, -1]
    assert found["kinds"] == [1, 0, 0, 0]
    assert found["ends"] == [3, 2, 3, 4]
    assert [found["operators"][i] if i >= 0 else None for i in found["operator"]] == [
        None,
        "BashOperator",
        "BaseOperator",
        "BaseOperator",
    ]
    assert [found["pools"][i] for i in found["pool"][1:]] == ["default_pool", "warehouse", "default_pool"]
    assert found["retries"] == [-1, 2, 0, 0]
    assert found["edges"] == [1, 2, 2, 3]
    assert found["docs"] == {"0": "first part", "1": "reads"}
    assert (found["version"], found["task_count"]) == (1, 3)


def test_structure_of_an_older_version_and_its_etag(world: World) -> None:
    register(world, DAG)
    world.run("sales")
    register(world, DagDefinition("sales", tasks=TASKS[:1], groups=DAG.groups))
    assert world.json(f"{PAGE}/dags/sales/structure")["ids"] == ["g", "g.a"]
    answer = world.get(f"{PAGE}/dags/sales/structure?version=1")
    assert answer.json()["ids"] == ["g", "g.a", "g.b", "last"]
    again = world.get(f"{PAGE}/dags/sales/structure?version=1", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "no version 9" in world.json(f"{PAGE}/dags/sales/structure?version=9", 404)["detail"]
    assert "'sales'" in world.json(f"{PAGE}/dags/sale/structure", 404)["detail"]


def test_cells_have_one_stretch_for_equal_states_and_groups_their_worst_state(world: World) -> None:
    register(world, DAG)
    first = world.run("sales", "first")
    set_states(world, first, (S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    second = world.run("sales", "second", run_after=world.clock.wall() + 5)
    set_states(world, second, (S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    found = cells(world)
    assert [run["run_id"] for run in found["runs"]] == ["first", "second"], "the newest run is last"
    assert found["order"] == [first.id, second.id]
    assert found["runs"][0]["cells"] == [4, CODE[S.SUCCESS]]
    assert found["runs"][1]["cells"] == stretch(S.FAILED, S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED)
    assert found["runs"][1]["totals"][CODE[S.FAILED]] == 1
    assert (found["states"][CODE[S.FAILED]], found["runs"][1]["state"]) == ("failed", "failed")


def test_a_window_of_rows_and_older_runs(world: World) -> None:
    register(world, DAG)
    for i in range(5):
        set_states(world, world.run("sales", f"r{i}", run_after=i), (S.SUCCESS, S.SUCCESS, S.FAILED), RunState.FAILED)
    found = cells(world, "?runs=2&tasks_from=2&tasks_to=9")
    assert [run["run_id"] for run in found["runs"]] == ["r3", "r4"]
    assert found["runs"][0]["cells"] == stretch(S.SUCCESS, S.FAILED)
    assert (found["rows_from"], found["rows_to"], found["rows"], found["older"]) == (2, 4, 4, True)
    older = cells(world, "?runs=9&before=r3")
    assert ([run["run_id"] for run in older["runs"]], older["older"]) == (["r0", "r1", "r2"], False)
    assert "r0" in world.json(f"{PAGE}/dags/sales/cells?before=r00", 404)["detail"]


def test_changes_since_a_token(world: World) -> None:
    register(world, DAG)
    old = world.run("sales", "old", run_after=1)
    set_states(world, old, (S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    live = world.run("sales", "live", run_after=2)
    set_states(world, live, (S.SUCCESS, S.RUNNING, S.NONE))
    answer = world.get(f"{PAGE}/dags/sales/cells")
    token = answer.json()["token"]
    assert cells(world, f"?since={token}")["runs"] == []
    assert world.get(f"{PAGE}/dags/sales/cells", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    set_states(world, live, (S.SUCCESS, S.FAILED, S.NONE))
    found = cells(world, f"?since={token}")
    assert [run["run_id"] for run in found["runs"]] == ["live"]
    assert found["order"] == [old.id, live.id]
    assert found["runs"][0]["cells"] == stretch(S.FAILED, S.SUCCESS, S.FAILED, S.NONE)
    assert len(cells(world, "?since=nonsense")["runs"]) == 2
    register(world, DagDefinition("sales", tasks=TASKS[:2], groups=DAG.groups))
    assert len(cells(world, f"?since={found['token']}")["runs"]) == 2, "a new version changes the rows"


def test_a_running_run_is_read_from_its_journal_after_the_first_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    register(world, DAG)
    live = world.run("sales", "live")
    set_states(world, live, (S.RUNNING, S.NONE, S.NONE))
    cells(world)
    for states in ((S.SUCCESS, S.RUNNING, S.NONE), (S.SUCCESS, S.SUCCESS, S.RUNNING)):
        set_states(world, live, states)
        with counted_statements(monkeypatch) as statements:
            found = cells(world)
        assert list(expanded(found["runs"][0]["cells"]))[1:] == [CODE[state] for state in states]
        assert not any("FROM task_instance" in one for one in statements)
    set_states(world, live, (S.SUCCESS, S.SUCCESS, S.FAILED), RunState.FAILED)
    assert cells(world)["runs"][0]["totals"][CODE[S.FAILED]] == 1
    set_states(world, live, (S.SUCCESS, S.SUCCESS, S.NONE))
    assert cells(world)["runs"][0]["totals"][CODE[S.FAILED]] == 0, "it was cleared and runs again"


def test_runs_of_another_version_are_shown_in_the_rows_of_this_one(world: World) -> None:
    register(world, DAG)
    set_states(world, world.run("sales", "r1"), (S.SUCCESS, S.FAILED, S.SKIPPED), RunState.FAILED)
    newer = (TaskDefinition("new"), *TASKS[1:])
    register(world, DagDefinition("sales", tasks=(newer[0], TASKS[2], TASKS[0], TASKS[1]), groups=DAG.groups))
    found = cells(world)
    assert world.json(f"{PAGE}/dags/sales/structure")["ids"] == ["new", "g", "g.a", "g.b", "last"]
    run = found["runs"][0]
    assert run["cells"] == [1, -1, *stretch(S.FAILED, S.SUCCESS, S.FAILED, S.SKIPPED)]
    assert run["version"] == 1


def test_mapped_tasks_have_counts(world: World) -> None:
    mapped = TaskDefinition("m", mapped=True, expand=(MapLiteral(3),))
    register(world, DagDefinition("sales", tasks=(mapped, TaskDefinition("after", upstream=("m",)))))
    run = world.run("sales", "r1")
    engine = world.store.engine
    with engine.transaction():
        engine.run("UPDATE task_instance SET map_index = 0 WHERE slot = 0")
        for slot in (2, 3):
            engine.run(
                "INSERT INTO task_instance (run, slot, task_id, map_index) VALUES (?, ?, 'm', ?)", (run.id, slot, slot - 1)
            )
        engine.run("UPDATE dag_run SET rows_created = 4, task_count = 4")
    set_states(world, run, (S.SUCCESS, S.NONE, S.FAILED, S.SUCCESS))
    found = cells(world)["runs"][0]
    assert found["mapped"] == {"0": [CODE[S.SUCCESS], 2, CODE[S.FAILED], 1]}
    assert found["cells"] == stretch(S.FAILED, S.NONE)


@pytest.mark.parametrize("runs", [3, 30])
def test_cells_execute_a_fixed_number_of_statements(world: World, monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    register(world, DAG)
    for i in range(runs):
        set_states(world, world.run("sales", f"r{i}", run_after=i), (S.SUCCESS, S.SUCCESS, S.RUNNING))
    cells(world, "?runs=50")
    with counted_statements(monkeypatch) as statements:
        assert len(cells(world, "?runs=50")["runs"]) == runs
    assert len(statements) <= 2
    set_states(world, world.store.need_run("sales", "r1"), (S.SUCCESS, S.SUCCESS, S.FAILED))
    with counted_statements(monkeypatch) as statements:
        cells(world, "?runs=50")
    assert len(statements) <= 4


def test_a_run_with_a_valid_summary_is_not_read_row_by_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    register(world, DAG)
    run = world.run("sales", "r1")
    set_states(world, run, (S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    seq = world.store.need_run("sales", "r1").journal_seq
    summary = RunSummary(run.version, (2, CODE[S.SKIPPED], 1, CODE[S.SUCCESS]), ((CODE[S.SUCCESS], 1), (CODE[S.SKIPPED], 2)))
    with world.store.engine.transaction():
        world.store.engine.run("INSERT INTO run_summary VALUES (?, ?, ?)", (run.id, seq, encode_summary(summary)))
    with counted_statements(monkeypatch) as statements:
        assert cells(world)["runs"][0]["cells"] == [3, CODE[S.SKIPPED], 1, CODE[S.SUCCESS]]
    assert not any("FROM task_instance" in one for one in statements)
    set_states(world, run, (S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    assert cells(world)["runs"][0]["cells"] == [4, CODE[S.SUCCESS]], "it was edited since: its rows are read"


def test_summaries_of_older_versions_are_shown_in_the_rows_of_this_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a mapped task, and for a version that was deleted. One statement reads the older versions, whatever the runs."""
    register(world, DAG)
    runs = [world.run("sales", f"r{i}", run_after=i) for i in range(4)]
    good, bad = (3, CODE[S.SUCCESS]), (1, CODE[S.SUCCESS], 1, CODE[S.FAILED], 1, CODE[S.UPSTREAM_FAILED])
    mapped = {1: ((CODE[S.SUCCESS], 1), (CODE[S.FAILED], 2)), 0: ((CODE[S.SUCCESS], 2),)}
    with world.store.engine.transaction():
        for run, states, version in zip(runs, (good, bad, good, bad), (1, 1, 1, 99), strict=True):
            summary = RunSummary(version, states, ((CODE[S.SUCCESS], 3),), mapped if states == bad else {})
            world.store.engine.run("UPDATE dag_run SET state = ? WHERE id = ?", (RunState.SUCCESS.code, run.id))
            world.store.engine.run("INSERT INTO run_summary VALUES (?, 0, ?)", (run.id, encode_summary(summary)))
    register(world, DagDefinition("sales", tasks=(TaskDefinition("last"), TaskDefinition("b"), TaskDefinition("g.b"))))
    assert world.json(f"{PAGE}/dags/sales/structure")["ids"] == ["last", "b", "g.b"]
    with counted_statements(monkeypatch) as statements:
        found = [(run["cells"], run["mapped"]) for run in cells(world)["runs"]]
    success = [1, CODE[S.SUCCESS], 1, -1, 1, CODE[S.SUCCESS]]
    failed = [1, CODE[S.UPSTREAM_FAILED], 1, -1, 1, CODE[S.FAILED]]
    counts = {"2": [CODE[S.SUCCESS], 1, CODE[S.FAILED], 2]}
    assert found == [(success, {}), (failed, counts), (success, {}), ([3, -1], {})]
    assert len(statements) == 4
