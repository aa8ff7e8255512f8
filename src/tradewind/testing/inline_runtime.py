"""What user code asks, answered in the same process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tradewind.model.errors import NotFound, TradewindError
from tradewind.scheduler.questions import answer
from tradewind.service.clock import Clock
from tradewind.store.port import Store
from tradewind.wire import runtime
from tradewind.wire.messages import AttemptKey, Failure, GetAsset, RunnerAnswer, TriggerRun, Value


class PlainCipher:
    """Leaves texts as they are: what it keeps never leaves the memory of this process."""

    def encrypt(self, plain: str) -> str:
        return plain

    def decrypt(self, stored: str, what: str) -> str:
        return stored


class InlineRuntime:
    """The runtime of one attempt, over a store in this process."""

    def __init__(self, store: Store, clock: Clock, attempt: AttemptKey) -> None:
        self._store = store
        self._clock = clock
        self._attempt = attempt

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
            return answer(self._store, PlainCipher(), question, self._attempt, self._clock.wall())
        except TradewindError as error:
            return Failure(question.op, str(error))

    def read_spill(self, name: str) -> bytes:
        """Values stay inline here, however large."""
        raise NotFound(f"there is no spilled value {name!r}")


@contextmanager
def installed(own: runtime.Runtime) -> Iterator[None]:
    """User code of this process asks `own`; afterwards whomever it asked before."""
    before = runtime.current()
    runtime.install(own)
    try:
        yield
    finally:
        runtime.install(before)
