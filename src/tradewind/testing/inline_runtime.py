"""Answers the requests of user code (variables, connections, XComs …) in the same process."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.errors import NotFound, TradewindError
from tradewind.platform.clock import Clock
from tradewind.scheduler.attempts.task_requests import answer
from tradewind.store.port import Store
from tradewind.wire import runtime
from tradewind.wire.messages import (
    AttemptKey,
    Failure,
    GetAsset,
    GetConnection,
    GetVariable,
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

    def ask(self, question: GetVariable | GetConnection | XComPull) -> RunnerAnswer:
        """The answer of the deployment; a `Failure` if its database or its key cannot be used."""
        ...

    def read_spill(self, name: str) -> bytes:
        """An XCom that is too large for the database of the deployment. Raises NotFound."""
        ...


class InlineRuntime:
    """The runtime of one attempt, over a store in this process.

    Args:
        outside: answers requests for variables, connections and XComs that the store does not have. Writes go to the store only.
    """

    def __init__(self, store: Store, clock: Clock, attempt: AttemptKey, outside: Outside | None = None) -> None:
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
            own = answer(self._store, PlainCipher(), question, self._attempt, self._clock.wall())
            if self._outside is not None and isinstance(question, GetVariable | GetConnection | XComPull) and _is_empty(own):
                return self._outside.ask(question)
            return own
        except TradewindError as error:
            return Failure(question.op, str(error))

    def read_spill(self, name: str) -> bytes:
        """Read an XCom from the files of the deployment. XComs of this process, also large ones, are in its store."""
        if self._outside is None:
            raise NotFound(f"there is no spilled value {name!r}")
        return self._outside.read_spill(name)


def _is_empty(found: RunnerAnswer) -> bool:
    """True if the store does not have the value."""
    return (isinstance(found, Value) and not found.found) or (isinstance(found, XComs) and not found.values)
