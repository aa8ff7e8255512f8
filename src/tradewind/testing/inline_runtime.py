"""Answers the requests of user code (variables, connections, XComs …) in the same process."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from tradewind.model.errors import Conflict, NotFound, TradewindError
from tradewind.platform.clock import Clock
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.port import FullStore
from tradewind.testing.secret_files import connection_row, variable_row
from tradewind.wire import runtime
from tradewind.wire.messages import (
    AttemptKey,
    ChangeRows,
    Failure,
    GetAsset,
    GetConnection,
    GetVariable,
    ListRows,
    RunnerAnswer,
    TriggerRun,
    Value,
    XComPull,
    XComs,
)


class PlainCipher:
    """Does not encrypt: the values never leave the memory of this process."""

    def encrypt(self, plain: str) -> str:
        return plain

    def decrypt(self, stored: str, what: str) -> str:
        return stored


class Outside(Protocol):
    """A deployment from which a run in this process reads. The run never writes to it."""

    def ask(self, question: GetVariable | GetConnection | ListRows | XComPull) -> RunnerAnswer:
        """The answer of the deployment; a `Failure` if its database or its key cannot be used."""
        ...

    def read_spill(self, name: str) -> bytes:
        """An XCom that is too large for the database of the deployment. Raises NotFound."""
        ...


class RehearsedChanges:
    """What a run in this process deletes from a deployment: the run does not see it any more, and the deployment keeps it."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._deleted: set[tuple[str, str]] = set()
        """(table, key)."""

    def delete(self, table: str, key: str) -> None:
        """Hide a variable or connection of the deployment from the rest of the run."""
        self._deleted.add((table, key))

    def ask(self, question: GetVariable | GetConnection | ListRows | XComPull) -> RunnerAnswer:
        """The answer of the deployment, without what was deleted."""
        match question:
            case GetVariable(key=key) if ("variable", key) in self._deleted:
                return Value(question.op, False)
            case GetConnection(conn_id=key) if ("connection", key) in self._deleted:
                return Value(question.op, False)
        answer = self._outside.ask(question)
        if isinstance(question, ListRows) and isinstance(answer, Value):
            kept = [row for row in answer.value or () if (question.table, row[_KEYS[question.table]]) not in self._deleted]
            return msgspec.structs.replace(answer, value=kept)
        return answer

    def read_spill(self, name: str) -> bytes:
        """An XCom that is too large for the database of the deployment. Raises NotFound."""
        return self._outside.read_spill(name)


_KEYS = {"variable": "key", "connection": "conn_id", "pool": "pool"}
"""The tables whose rows a run in this process also reads from a deployment → the column with the name of a row."""


class InlineRuntime:
    """The runtime of one attempt, over a store in this process.

    Args:
        outside: answers requests for variables, connections and XComs that the store does not have. Writes go to the store only.
    """

    def __init__(self, store: FullStore, clock: Clock, attempt: AttemptKey, outside: RehearsedChanges | None = None) -> None:
        self._store = store
        self._clock = clock
        self._attempt = attempt
        self._outside = outside

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        if isinstance(question, TriggerRun):
            # this DAG runs alone: tell the task that no run of the other DAG was created
            made = {"done": "rehearsed", "run_id": question.run_id, "logical_date": question.logical_date}
            return Value(question.op, True, made)
        try:
            if isinstance(question, GetAsset) and self._store.find_asset(name=question.name, uri=question.uri) is None:
                # this DAG runs alone: an asset of another DAG has only its name and URI
                name, uri = question.name or question.uri, question.uri or question.name
                return Value(question.op, True, {"name": name, "uri": uri, "group": "asset", "extra": {}})
            if isinstance(question, ChangeRows):
                question = self._rehearsed(question)
            own = answer(self._store, PlainCipher(), question, self._attempt, self._clock.wall())
            if self._outside is not None and isinstance(question, ListRows) and question.table in _KEYS:
                return _with_rows_of(self._outside, question, own)
            if self._outside is not None and isinstance(question, GetVariable | GetConnection | XComPull) and _is_empty(own):
                return self._outside.ask(question)
            return own
        except TradewindError as error:
            return Failure(question.op, str(error))

    def _rehearsed(self, question: ChangeRows) -> ChangeRows:
        """Copy the rows of the deployment that will be changed into the store, and hide those that will be deleted.

        The store has a pool of each name that a task of the run uses. So a pool that the deployment does not have is not added but
        changed.
        """
        outside, rows = self._outside, self._rows_of_deployment(question)
        for table, key, values in rows:
            if table == "connection" and self._store.connection(key) is None:
                self._store.set_connection(connection_row(key, values), _BY, self._clock.wall())
            elif table == "variable" and self._store.variable(key) is None:
                self._store.set_variable(variable_row(key, values), _BY, self._clock.wall())
        pools = {key for table, key, _ in rows if table == "pool"}
        changes = [
            msgspec.structs.replace(one, verb="put")
            if one.table == "pool" and one.verb != "delete" and (one.verb, one.key in pools) != ("add", True)
            else one
            for one in question.changes
        ]
        for change in question.changes:
            if change.verb == "delete" and outside is not None:
                outside.delete(change.table, change.key)
        return msgspec.structs.replace(question, changes=tuple(changes))

    def _rows_of_deployment(self, question: ChangeRows) -> list[tuple[str, str, Any]]:
        """(table, key, values) of the rows of the deployment that a question names."""
        outside = self._outside
        if outside is None:
            return []
        found: list[tuple[str, str, Any]] = []
        for change in question.changes:
            asked: GetConnection | GetVariable | ListRows = ListRows(question.op, "pool")
            if change.table == "connection":
                asked = GetConnection(question.op, change.key)
            elif change.table == "variable":
                asked = GetVariable(question.op, change.key)
            answer = outside.ask(asked)
            if isinstance(answer, Failure):
                raise Conflict(f"the {change.table} {change.key!r} of the deployment cannot be read: {answer.reason}")
            if isinstance(answer, Value) and change.table == "pool":
                found += [("pool", change.key, row) for row in answer.value or () if row["pool"] == change.key]
            elif isinstance(answer, Value) and answer.found:
                found.append((change.table, change.key, answer.value))
        return found

    def read_spill(self, name: str) -> bytes:
        """Read an XCom from the files of the deployment. XComs of this process, also large ones, are in its store."""
        if self._outside is None:
            raise NotFound(f"there is no spilled value {name!r}")
        return self._outside.read_spill(name)


def _with_rows_of(outside: RehearsedChanges, question: ListRows, own: RunnerAnswer) -> RunnerAnswer:
    """The rows of the store, and those of the deployment that it does not have."""
    behind = outside.ask(question)
    if not isinstance(own, Value) or not isinstance(behind, Value):
        return own
    key = _KEYS[question.table]
    rows = {row[key]: row for row in (*(behind.value or ()), *(own.value or ()))}
    return msgspec.structs.replace(own, value=[rows[name] for name in sorted(rows)])


_BY = "a run in this process"


def _is_empty(found: RunnerAnswer) -> bool:
    """True if the store does not have the value."""
    return (isinstance(found, Value) and not found.found) or (isinstance(found, XComs) and not found.values)
