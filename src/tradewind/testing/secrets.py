"""Variables and connections that exist only during a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tradewind.execution.local_database import database
from tradewind.model.errors import DefinitionError
from tradewind.model.rows import ConnectionRow, VariableRow
from tradewind.sdk.variables import Connection
from tradewind.store.memory import MemoryStore
from tradewind.testing.inline_runtime import InlineRuntime
from tradewind.testing.secret_files import connection_row, variable_row
from tradewind.wire import runtime
from tradewind.wire.messages import ChangeRows, SetVariable, Value
from tradewind.wire.row_changes import change_tables

_BY = "a test"


class FakeVariables(dict[str, Any]):
    """Values by name; a value that is not a text is stored as JSON."""


class FakeConnections(dict[str, Any]):
    """By id: a URI, a mapping of parts, or a `Connection`."""


Fake = TypeVar("Fake", bound="dict[str, Any]")

_variables: list[FakeVariables] = []
_connections: list[FakeConnections] = []


@contextmanager
def fake_variables(values: Mapping[str, Any] | None = None, **more: Any) -> Iterator[FakeVariables]:
    """Define variables inside the block, for runs of the test kit and for `Variable.get` in the test itself.

    with fake_variables(bucket="s3://test") as variables:
        variables["later"] = {"a": 1}   # read with deserialize_json=True
    """
    with _active(_variables, FakeVariables({**(values or {}), **more})) as own:
        yield own


@contextmanager
def fake_connections(values: Mapping[str, Any] | None = None, **more: Any) -> Iterator[FakeConnections]:
    """Define connections inside the block: `with fake_connections(db="postgres://me:pw@host/db"): …`."""
    with _active(_connections, FakeConnections({**(values or {}), **more})) as own:
        yield own


@contextmanager
def _active(stack: list[Fake], own: Fake) -> Iterator[Fake]:
    stack.append(own)
    try:
        with runtime.installed(_TestRuntime()):
            yield own
    finally:
        stack.remove(own)


def fake_secrets() -> tuple[list[VariableRow], list[ConnectionRow]]:
    """The variables and connections of the active blocks; inner blocks have priority.

    Raises:
        DefinitionError, AirflowException: a value is invalid.
    """
    variables = {name: value for fake in _variables for name, value in fake.items()}
    connections = {name: value for fake in _connections for name, value in fake.items()}
    return (
        [variable_row(name, value) for name, value in variables.items()],
        [connection_row(name, _part(name, value)) for name, value in connections.items()],
    )


def _part(conn_id: str, value: Any) -> str | Mapping[str, Any] | Connection:
    if isinstance(value, str | Mapping | Connection):
        return value
    raise DefinitionError(f"connection {conn_id!r} is {value!r}; it must be a URI, a mapping of its parts or a Connection")


def _parts_of(row: ConnectionRow) -> dict[str, Any]:
    """The parts of a connection that are set, as `FakeConnections` takes them."""
    parts = {name: value.decode() if isinstance(value, bytes) else value for name, value in row._asdict().items()}
    return {name: value for name, value in parts.items() if value is not None and name != "conn_id"}


class _TestRuntime:
    """Answers requests of the test itself, outside of any task."""

    local = True

    def ask(self, question: runtime.Question) -> Any:
        if isinstance(question, SetVariable) and _variables:
            return self._set(question, _variables[-1])
        if isinstance(question, ChangeRows):
            return self._change(question)
        store = MemoryStore()
        variables, connections = fake_secrets()
        for variable in variables:
            store.set_variable(variable, _BY, 0)
        for connection in connections:
            store.set_connection(connection, _BY, 0)
        return InlineRuntime(store, _NoTime(), (0, 0, 0)).ask(question)

    def read_spill(self, name: str) -> bytes:
        raise LookupError(name)

    @staticmethod
    def _change(question: ChangeRows) -> Value:
        """Change the variables and connections of the innermost blocks. Pools exist only in the memory of the process."""
        variables, connections = fake_secrets()
        before = {
            "variable": {row.key: {"val": row.value.decode(), "description": row.description} for row in variables},
            "connection": {row.conn_id: _parts_of(row) for row in connections},
            "pool": database().pools,
            "dag": {},
        }
        answer = change_tables(before, question)
        if answer.found:
            for change in question.changes:
                fakes: list[Any] = _variables if change.table == "variable" else _connections
                if change.table in ("pool", "dag") or not fakes:
                    continue
                row = before[change.table].get(change.key)
                for fake in fakes:
                    fake.pop(change.key, None)
                if row is not None:
                    fakes[-1][change.key] = row["val"] if change.table == "variable" else row
        return answer

    @staticmethod
    def _set(question: SetVariable, variables: FakeVariables) -> Value:
        found = question.key in variables
        if question.value is not None:
            variables[question.key] = question.value
        else:
            variables.pop(question.key, None)
        return Value(question.op, found)


class _NoTime:
    def wall(self) -> int:
        return 0

    def monotonic(self) -> int:
        return 0
