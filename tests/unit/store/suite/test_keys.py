"""Pools, variables, connections."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import ConnectionRow, PoolRow, VariableRow
from tradewind.store.port import Store

DEFAULT = PoolRow("default_pool", 128, "Default pool", False)


@pytest.mark.spec("S105")
def test_the_default_pool_cannot_be_deleted(store: Store) -> None:
    assert store.pools() == [DEFAULT]
    with pytest.raises(Conflict, match="default_pool cannot be deleted"):
        store.delete_pool("default_pool", "ada", NOW)


def test_pools_are_created_changed_and_deleted(store: Store) -> None:
    assert store.set_pool(PoolRow("b", 3, None, True), "ada", NOW) == PoolRow("b", 3, None, True)
    store.set_pool(PoolRow("a", -1, "as many as you like", False), "ada", NOW)
    store.set_pool(PoolRow("b", 0, "closed", False), "ada", NOW)
    assert store.pools() == [PoolRow("a", -1, "as many as you like", False), PoolRow("b", 0, "closed", False), DEFAULT]
    store.delete_pool("a", "ada", NOW)
    assert [pool.name for pool in store.pools()] == ["b", "default_pool"]
    with pytest.raises(NotFound, match=r"no pool 'defaultpool'\. Did you mean 'default_pool'\?"):
        store.delete_pool("defaultpool", "ada", NOW)


@pytest.mark.parametrize(
    ("pool", "sentence"), [(PoolRow("p", -2, None, False), "-2 slots"), (PoolRow(" ", 1, None, False), "name")]
)
def test_an_impossible_pool_is_refused(store: Store, pool: PoolRow, sentence: str) -> None:
    with pytest.raises(Conflict, match=sentence):
        store.set_pool(pool, "ada", NOW)
    assert store.pools() == [DEFAULT]


def test_variables(store: Store) -> None:
    store.set_variable(VariableRow("b", b"\x00secret", "why", True), "ada", NOW)
    store.set_variable(VariableRow("a", b"plain", None, False), "ada", NOW)
    assert store.variables() == [VariableRow("a", b"plain", None, False), VariableRow("b", b"\x00secret", "why", True)]
    store.set_variable(VariableRow("b", b"new", None, False), "ada", NOW)
    assert store.variable("b") == VariableRow("b", b"new", "why", False)
    store.delete_variable("b", "ada", NOW)
    assert store.variable("b") is None
    with pytest.raises(NotFound, match="no variable 'b'"):
        store.delete_variable("b", "ada", NOW)


def test_connections(store: Store) -> None:
    one = ConnectionRow("pg", "postgres", None, "db.example", "ada", 5432, "main", b"\x01p", b"\x02e")
    store.set_connection(one, "ada", NOW)
    assert store.connections() == [one]
    assert store.connection("pg") == one
    other = ConnectionRow("pg", "mysql", "moved", None, None, None, None, None, None)
    with pytest.raises(Conflict, match="'pg' exists already"):
        store.set_connection(other, "ada", NOW, replace=False)
    assert store.connection("pg") == one
    store.set_connection(other, "ada", NOW)
    assert store.connection("pg") == other
    store.set_connection(one._replace(conn_id="a"), "ada", NOW, replace=False)
    assert [row.conn_id for row in store.connections()] == ["a", "pg"]
    store.delete_connection("pg", "ada", NOW)
    assert store.connection("pg") is None
    with pytest.raises(NotFound, match="no connection 'pg'"):
        store.delete_connection("pg", "ada", NOW)
