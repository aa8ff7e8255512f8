"""Requests of user code, answered from the store."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.store.suite.build import NOW, S, definition, finish, parsed, share, step, with_dag, with_run, xcom
from tests.unit.store.suite.build import commit as commit_batch
from tradewind.model.definition import DagDefinition, GroupDefinition, TaskDefinition
from tradewind.model.errors import ConfigError
from tradewind.model.moments import DAY
from tradewind.model.rows import ConnectionRow, VariableRow, XComWrite
from tradewind.model.states import RunState
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.memory import MemoryStore
from tradewind.wire.messages import (
    Failure,
    FindRuns,
    GetConnection,
    GetPreviousRun,
    GetTaskStates,
    GetVariable,
    ListRows,
    SetVariable,
    Start,
    Value,
    XComPull,
    XComs,
)


class Backwards:
    """A cipher that only reverses the text."""

    def encrypt(self, plain: str) -> str:
        return plain[::-1]

    def decrypt(self, stored: str, what: str) -> str:
        if stored == "lost":
            raise ConfigError(f"the key of {what} is lost")
        return stored[::-1]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    with_dag(store)
    with_run(store, day=5)
    return store


def ask(store: MemoryStore, question: Any) -> Any:
    return answer(store, Backwards(), question, (1, 2, 3), NOW)


# --- XComs --------------------------------------------------------------------------------------------------------------


def test_xcoms_of_a_run(store: MemoryStore) -> None:
    store.push_xcoms(1, [xcom("t0", b"1"), xcom("t1", None, spill="file")])
    pull = XComPull(7, "d", "r1", ("t1", "t0", "t2"))
    assert ask(store, pull) == XComs(7, (("t1", -1, b"", "file"), ("t0", -1, b"1", None)))
    assert ask(store, XComPull(8, "d", "nobody", ("t0",))) == XComs(8, ())
    assert ask(store, XComPull(9, "d", "r1", ("t0",), map_indexes=(0,))) == XComs(9, ())


def test_the_latest_xcom_of_each_task_up_to_this_run(store: MemoryStore) -> None:
    store.push_xcoms(1, [xcom("t0", b"5")])
    for day in (3, 4, 9):
        run = with_run(store, f"day{day}", day=day)
        store.push_xcoms(run.id, [xcom("t0", b"%d" % day), xcom("t1", b"%d" % day)])
    pull = XComPull(1, "d", "r1", ("t0", "t1", "t2"), include_prior_dates=True)
    assert ask(store, pull).values == (("t0", -1, b"5", None), ("t1", -1, b"4", None))
    dateless = with_run(store, "dateless")
    store.push_xcoms(dateless.id, [xcom("t0", b"0")])
    pull = XComPull(1, "d", "dateless", ("t0", "t1"), include_prior_dates=True)
    assert ask(store, pull).values == (("t0", -1, b"0", None),)


# --- variables and connections --------------------------------------------------------------------------------------------


def test_variables_are_decrypted_and_missing_ones_answered_with_the_nearest(store: MemoryStore) -> None:
    store.set_variable(VariableRow("bucket", b"terces", None, True), "ada", NOW)
    store.set_variable(VariableRow("plain", b"text", None, False), "ada", NOW)
    assert ask(store, GetVariable(1, "bucket")) == Value(1, True, "secret")
    assert ask(store, GetVariable(1, "plain")) == Value(1, True, "text")
    assert ask(store, GetVariable(1, "buckett")) == Value(1, False, "bucket")
    assert ask(store, GetVariable(1, "xyz")) == Value(1, False, None)


@pytest.mark.parametrize("name", ["db_password", "API_KEY", "my_secret_x", "TOKEN"])
def test_a_variable_whose_name_says_secret_is_hidden_in_logs(store: MemoryStore, name: str) -> None:
    store.set_variable(VariableRow(name, b"v", None, True), "ada", NOW)
    assert ask(store, GetVariable(1, name)).secret


def test_a_lost_key_is_an_error_that_names_the_variable(store: MemoryStore) -> None:
    store.set_variable(VariableRow("v", b"lost", None, True), "ada", NOW)
    with pytest.raises(ConfigError, match="variable 'v'"):
        ask(store, GetVariable(1, "v"))


def test_a_task_sets_a_variable_encrypted_and_under_its_name(store: MemoryStore) -> None:
    assert ask(store, SetVariable(4, "v", "abc", "why")) == Value(4, False)
    assert store.variable("v") == VariableRow("v", b"cba", "why", True)
    assert store.event_logs().rows[-1].owner == "task d.t2 in r1"
    assert ask(store, GetVariable(5, "v")).value == "abc"


def test_a_repeated_request_has_one_effect(store: MemoryStore) -> None:
    ask(store, SetVariable(1, "v", "abc"))
    assert ask(store, SetVariable(2, "v", None)).found
    ask(store, SetVariable(3, "v", "new"))
    assert ask(store, SetVariable(2, "v", None)).found
    assert ask(store, GetVariable(4, "v")).value == "new"
    second = answer(store, Backwards(), SetVariable(2, "w", None), (1, 2, 4), NOW)
    assert isinstance(second, Value)
    assert not second.found


def test_a_request_without_a_number_is_always_new(store: MemoryStore) -> None:
    ask(store, SetVariable(0, "v", "a"))
    ask(store, SetVariable(0, "v", "b"))
    assert ask(store, GetVariable(0, "v")).value == "b"
    assert [ask(store, SetVariable(0, "v", None)).found for _ in range(2)] == [True, False]


def test_connections_come_whole_and_secret(store: MemoryStore) -> None:
    store.set_connection(ConnectionRow("pg", "postgres", None, "db", "ada", 5432, "main", b"wp", b"}{"), "ada", NOW)
    parts = {"conn_type": "postgres", "description": None, "host": "db", "login": "ada", "port": 5432, "schema": "main"}
    assert ask(store, GetConnection(1, "pg")) == Value(1, True, {**parts, "password": "pw", "extra": "{}"}, secret=True)
    assert ask(store, GetConnection(2, "pgg")) == Value(2, False, "pg")


# --- other tasks and runs ---------------------------------------------------------------------------------------------------


def test_states_of_tasks_on_dates_and_in_runs(store: MemoryStore) -> None:
    step(store, 1, S.SCHEDULED, S.QUEUED, S.RUNNING, S.SUCCESS)
    date = NOW + 5 * DAY
    rows = [[date, "t0", "success"], [date, "t1", None]]
    by_date = GetTaskStates(1, "d", (date, date - 1, date + DAY), task_ids=("t0", "t1", "nobody"))
    assert ask(store, by_date) == Value(1, True, rows)
    assert ask(store, GetTaskStates(1, "d", run_ids=("r1", "nobody"), task_ids=("t0", "t1"))).value == rows
    assert ask(store, GetTaskStates(1, "dd")) == Value(1, False, "d")


def test_states_of_runs(store: MemoryStore) -> None:
    date = NOW + 5 * DAY
    assert ask(store, GetTaskStates(1, "d", (date,))).value == [[date, None, "queued"]]
    finish(store, 1, RunState.FAILED)
    assert ask(store, GetTaskStates(1, "d", run_ids=("r1",))).value == [[date, None, "failed"]]


def test_states_of_a_group_with_the_groups_inside(store: MemoryStore) -> None:
    names = {"a": None, "g.a": "g", "g.h.a": "g.h", "x.a": "x"}
    groups = (GroupDefinition("g"), GroupDefinition("g.h", "g"), GroupDefinition("x"))
    grouped = DagDefinition("g", tuple(TaskDefinition(name, group=group) for name, group in names.items()), groups=groups)
    store.register_file(parsed(grouped, file="g.py"), paused_at_creation=False)
    with_run(store, "r1", "g")
    assert [row[1] for row in ask(store, GetTaskStates(1, "g", run_ids=("r1",), group="g")).value] == ["g.a", "g.h.a"]
    assert ask(store, GetTaskStates(1, "g", run_ids=("r1",), group="nobody")) == Value(1, True, [])


def test_states_are_those_of_the_runs_own_version(store: MemoryStore) -> None:
    store.register_file(parsed(definition(tasks={"new": ()})), paused_at_creation=False)
    assert ask(store, GetTaskStates(1, "d", run_ids=("r1",), task_ids=("t0",))).value == [[NOW + 5 * DAY, "t0", None]]


def test_the_previous_run(store: MemoryStore) -> None:
    for day, state in ((1, RunState.SUCCESS), (3, RunState.FAILED)):
        run = with_run(store, f"day{day}", day=day, conf=b'{"n": 1}')
        commit_batch(store, share(store, run.id, {}, state=state, ended_at=NOW + 1))
    date = NOW + 5 * DAY
    found = ask(store, GetPreviousRun(1, "d", date))
    assert (found.found, found.value["run_id"], found.value["state"]) == (True, "day3", "failed")
    at = NOW + DAY
    assert ask(store, GetPreviousRun(1, "d", date, "success")).value == {
        "run_id": "day1",
        "run_type": "manual",
        "state": "success",
        "logical_date": at,
        "data_interval_start": at,
        "data_interval_end": at,
        "run_after": at,
        "start_date": NOW,
        "end_date": NOW + 1,
        "queued_at": NOW,
        "conf": {"n": 1},
        "id": store.need_run("d", "day1").id,
        "triggering_user_name": None,
        "note": None,
        "clear_number": 0,
        "bundle_version": None,
        "partition_key": None,
        "partition_date": None,
    }
    assert ask(store, GetPreviousRun(1, "d", NOW)) == Value(1, False)
    assert ask(store, GetPreviousRun(1, "d", date, "sucess")) == Failure(
        1, "'sucess' is no state of a run; there are queued, running, success, failed"
    )


def test_runs_are_found_by_state_type_date_and_id(store: MemoryStore) -> None:
    for day, state in ((1, RunState.SUCCESS), (2, RunState.FAILED), (3, RunState.SUCCESS)):
        run = with_run(store, f"day{day}", day=day)
        commit_batch(store, share(store, run.id, {}, state=state, ended_at=NOW + 1))

    def found(**filters: Any) -> list[str]:
        return [run["run_id"] for run in ask(store, FindRuns(1, "d", **filters)).value]

    assert found() == ["day1", "day2", "day3", "r1"], "the oldest first"
    assert found(state="success") == ["day1", "day3"]
    assert found(run_types=("scheduled", "backfill")) == []
    assert found(run_types=("manual",), start=NOW + 2 * DAY, end=NOW + 3 * DAY) == ["day2", "day3"]
    assert found(at_most=2) == ["day3", "r1"], "the latest"
    assert found(run_id="day2") == ["day2"]
    assert found(run_id="nothing") == []
    assert ask(store, FindRuns(1, "dd")) == Value(1, False, "d")
    assert "'sucess' is no state of a run" in ask(store, FindRuns(1, "d", state="sucess")).reason


def test_rows_of_tables(store: MemoryStore) -> None:
    """Queries of `settings.Session()` ask for them."""

    def rows(table: str, **where: Any) -> Any:
        return ask(store, ListRows(1, table, **where)).value

    store.set_variable(VariableRow("v", b"secret", "what it is", True), "admin", NOW)
    store.set_connection(ConnectionRow("c", "http", None, None, None, None, None, b"secret", None), "admin", NOW)
    assert rows("variable") == [{"key": "v", "description": "what it is"}], "names only"
    assert rows("connection") == [{"conn_id": "c"}], "names only"
    assert [row["pool"] for row in rows("pool")] == ["default_pool"]
    assert [(row["dag_id"], row["is_paused"]) for row in rows("dag")] == [("d", False)]
    run = store.latest_runs("d", 1, None, (), None, None)[0]
    instances = rows("task_instance", dag_id="d", run_ids=(run.run_id, "nothing"))
    assert {row["run_id"] for row in instances} == {run.run_id}
    assert {row["task_id"] for row in instances} == {task.task_id for task in store.definition(run.version).tasks}
    store.push_xcoms(run.id, [XComWrite("a", -1, key, b"1", None, 1, NOW) for key in ("other", "return_value")])
    keys = rows("xcom_key", dag_id="d", run_ids=(run.run_id, "nothing"))
    assert keys == [{"run_id": run.run_id, "key": key} for key in ("other", "return_value")]
    assert "there is no table 'users' here" in ask(store, ListRows(1, "users")).reason


def test_rows_of_chosen_tasks_and_groups(store: MemoryStore) -> None:
    run = with_run(store, "r2", day=2)
    step(store, run.id, S.FAILED)

    def rows(**where: Any) -> list[tuple[str, str | None, str]]:
        found = ask(store, ListRows(1, "task_instance", "d", ("r2",), **where)).value
        return [(row["task_id"], row["state"], row["pool"]) for row in found]

    assert rows(task_ids=("t0", "nobody")) == [("t0", "failed", "default_pool")]
    assert len(rows()) > 1
    assert rows(group="nobody") == [], "a group that does not exist has no tasks"
    assert rows(group="nobody", task_ids=("t0",)) == [("t0", "failed", "default_pool")]


def test_an_unknown_request_is_refused(store: MemoryStore) -> None:
    assert ask(store, Start(1, "n", 1)) == Failure(1, "Start is no question that can be answered")
