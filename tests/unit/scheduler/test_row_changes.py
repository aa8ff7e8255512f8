"""Changes of connections, variables and pools that tasks request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.store.suite.build import NOW, with_dag, with_run
from tradewind.model.errors import Conflict, Protected
from tradewind.model.rows import ConnectionRow, PoolRow, VariableRow
from tradewind.scheduler.attempts.change_effects import effects_of
from tradewind.scheduler.attempts.row_changes import CHANGES_MAX
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.memory import MemoryStore
from tradewind.wire.messages import ChangeRows, Failure, RowChange, SetVariable, Value


class Backwards:
    """A cipher that only reverses the text."""

    def encrypt(self, plain: str) -> str:
        return plain[::-1]

    def decrypt(self, stored: str, what: str) -> str:
        return stored[::-1]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    with_dag(store)
    with_run(store, day=5)
    return store


def ask(store: MemoryStore, *changes: RowChange, op: int = 0, only_variables: bool = False) -> Any:
    return answer(store, Backwards(), ChangeRows(op, changes), (1, 2, 3), NOW, only_variables=only_variables)


def test_rows_of_each_table_are_added_changed_and_deleted(store: MemoryStore) -> None:
    added = ask(
        store,
        RowChange(
            "connection", "db", "add", {"conn_type": "postgres", "host": "h", "port": 5432, "password": "abc", "extra": ""}
        ),
        RowChange("variable", "v", "add", {"val": "12", "description": "why"}),
        RowChange("pool", "wide", "add", {"slots": 4, "description": "d"}),
    )
    assert added == Value(0, True)
    assert store.connection("db") == ConnectionRow("db", "postgres", None, "h", None, 5432, None, b"cba", None)
    assert store.variable("v") == VariableRow("v", b"21", "why", True)
    assert PoolRow("wide", 4, "d", False) in store.pools()
    assert {row.owner for row in store.event_logs().rows if row.event.startswith("set")} == {"task d.t2 in r1"}
    ask(
        store,
        RowChange("connection", "db", "change", {"login": "me", "password": None}),
        RowChange("variable", "v", "put", {"val": "34"}),
        RowChange("pool", "wide", "put", {"include_deferred": True}),
    )
    assert store.connection("db") == ConnectionRow("db", "postgres", None, "h", "me", 5432, None, None, None)
    assert store.variable("v") == VariableRow("v", b"43", "why", True)
    assert PoolRow("wide", 4, "d", True) in store.pools()
    for table, key in (("connection", "db"), ("variable", "v"), ("pool", "wide")):
        assert ask(store, RowChange(table, key, "delete")).found
        assert ask(store, RowChange(table, key, "delete")).found, "it is gone, as requested"
    assert (store.connections(), store.variables(), [pool.name for pool in store.pools()]) == ([], [], ["default_pool"])


def test_a_dag_is_paused(store: MemoryStore) -> None:
    assert ask(store, RowChange("dag", "d", "change", {"is_paused": True})).found
    plan = store.dag("d")
    assert plan is not None
    assert plan.is_paused
    assert store.event_logs(dag_id="d").rows[-1].owner == "task d.t2 in r1"
    assert not ask(store, RowChange("dag", "e", "change", {"is_paused": True})).found
    with pytest.raises(Conflict, match="dag 'd': tasks can only pause and unpause DAGs, not delete them"):
        ask(store, RowChange("dag", "d", "delete"))


@pytest.mark.parametrize("verb", ["add", "change"])
def test_nothing_is_written_if_one_row_is_not_as_required(store: MemoryStore, verb: Any) -> None:
    if verb == "add":
        store.set_connection(ConnectionRow("db", "http", None, None, None, None, None, None, None), "ada", NOW)
    before = store.event_logs().rows
    found = ask(store, RowChange("variable", "v", "add", {"val": "1"}), RowChange("connection", "db", verb, {"host": "h"}))
    assert found == Value(0, False, {"table": "connection", "key": "db", "verb": verb})
    assert (store.variables(), store.event_logs().rows) == ([], before)


def test_a_repeated_request_has_one_effect(store: MemoryStore) -> None:
    change = RowChange("variable", "v", "add", {"val": "1"})
    assert ask(store, change, op=4).found
    assert ask(store, change, op=4).found, "the first answer again"
    assert not ask(store, change, op=5).found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            RowChange("dag_run", "r", "delete"),
            "tasks cannot change the table 'dag_run'; they can change connection, variable, pool, dag",
        ),
        (RowChange("connection", " ", "add"), "a connection needs a name"),
        (RowChange("pool", "p" * 251, "add"), "the name has 251 characters; at most 250 are possible"),
        (RowChange("connection", "c", "add", {"hots": "h"}), r"connection 'c' has no column 'hots'. Did you mean 'host'\?"),
        (RowChange("connection", "c", "add", {"port": "80"}), "connection 'c': port is '80'; it must be of the type int"),
        (RowChange("connection", "c", "add", {"port": 70_000}), "port 70000 is not possible; it must be between 0 and 65535"),
        (
            RowChange("connection", "c", "add", {"password": 123}),
            "connection 'c': password is a int; it must be of the type str",
        ),
        (RowChange("pool", "p", "add", {"slots": True}), "pool 'p': slots is True; it must be of the type int"),
        (RowChange("pool", "p", "add", {"slots": -2}), "-2 slots are not possible"),
    ],
)
def test_changes_that_are_not_valid(store: MemoryStore, change: RowChange, message: str) -> None:
    with pytest.raises(Conflict, match=message):
        ask(store, RowChange("variable", "v", "put", {"val": "1"}), change)
    assert store.variables() == []


def test_the_default_pool_and_too_many_changes(store: MemoryStore) -> None:
    with pytest.raises(Protected):
        ask(store, RowChange("pool", "default_pool", "delete"))
    with pytest.raises(Conflict, match=r"1,001 rows are changed at once; at most 1,000 are possible"):
        ask(store, *[RowChange("variable", f"v{number}", "put") for number in range(CHANGES_MAX + 1)])


def test_a_deployment_may_allow_only_variables(store: MemoryStore) -> None:
    refused = ask(store, RowChange("pool", "wide", "add", {"slots": 4}), only_variables=True)
    assert isinstance(refused, Failure)
    assert "may not change the pool 'wide': scheduler.tasks_may_change is variables. Use `tradewind pools`" in refused.reason
    assert ask(store, RowChange("variable", "v", "add", {"val": "1"}), only_variables=True).found


def test_the_effects_on_the_scheduler_and_the_parser() -> None:
    effects = effects_of(
        ChangeRows(
            0,
            (
                RowChange("connection", "db", "delete"),
                RowChange("variable", "v", "put"),
                RowChange("pool", "thin", "delete"),
                RowChange("pool", "wide", "put"),
                RowChange("dag", "d", "change", {"is_paused": True}),
            ),
        )
    )
    assert (effects.lookups, effects.gone_pools, effects.pools) == ({"connection db", "variable v"}, {"thin"}, True)
    assert effects.dags == {"d"}
    effects = effects_of(SetVariable(0, "w", "1"))
    assert (effects.lookups, effects.gone_pools, effects.pools) == ({"variable w"}, set(), False)
