"""What user code asks, answered in the same process."""

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
    """Leaves texts as they are: what it keeps never leaves the memory of this process."""

    def encrypt(self, plain: str) -> str:
        return plain

    def decrypt(self, stored: str, what: str) -> str:
        return stored


class Outside(Protocol):
    """A deployment that a run in this process reads from, and never writes to."""

    def ask(self, question: GetVariable | GetConnection | XComPull) -> RunnerAnswer:
        """The deployment's answer; a `Failure` where its database or its key cannot be used."""
        ...

    def read_spill(self, name: str) -> bytes:
        """A value that was too large for the deployment's database. Raises NotFound."""
        ...


class InlineRuntime:
    """The runtime of one attempt, over a store in this process.

    Args:
        outside: answers what the store does not know: variables, connections, XComs. What the attempt writes stays in the store.
    """

    def __init__(self, store: Store, clock: Clock, attempt: AttemptKey, outside: Outside | None = None) -> None:
        self._store = store
        self._clock = clock
        self._attempt = attempt
        self._outside = outside

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        if isinstance(question, TriggerRun):
            # this DAG is tried alone; the one that waits for the other DAG's run is told that there is none
            made = {"done": "rehearsed", "run_id": question.run_id, "logical_date": question.logical_date}
            return Value(question.op, True, made)
        try:
            if isinstance(question, GetAsset) and self._store.find_asset(name=question.name, uri=question.uri) is None:
                # likewise: an asset that another DAG makes is known by what it is called
                name, uri = question.name or question.uri, question.uri or question.name
                return Value(question.op, True, {"name": name, "uri": uri, "group": "asset", "extra": {}})
            own = answer(self._store, PlainCipher(), question, self._attempt, self._clock.wall())
            if self._outside is not None and isinstance(question, GetVariable | GetConnection | XComPull) and _is_empty(own):
                return self._outside.ask(question)
            return own
        except TradewindError as error:
            return Failure(question.op, str(error))

    def read_spill(self, name: str) -> bytes:
        """Values of this process stay inline, however large: only the deployment has others."""
        if self._outside is None:
            raise NotFound(f"there is no spilled value {name!r}")
        return self._outside.read_spill(name)


def _is_empty(found: RunnerAnswer) -> bool:
    """Does the store know nothing?"""
    return (isinstance(found, Value) and not found.found) or (isinstance(found, XComs) and not found.values)
