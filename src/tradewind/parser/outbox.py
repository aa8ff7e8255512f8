"""Results that are not yet sent to the scheduler, in batches, one batch at a time.

While one batch is being committed, the next one is collected: a thousand files need about twenty commits. The outbox has at most
one result for each file; a newer one replaces it. Results that could not be stored are sent again. If the scheduler rejects a
batch, its files are sent one by one, so that one file does not block the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tradewind.model.moments import SECOND
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.parser.parse_result import FileOutcome
from tradewind.parser.registration import register_command
from tradewind.platform.backoff import Backoff
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.commands import Command, ForgetFiles, RegisterFiles, result_of
from tradewind.wire.messages import CommandResult

log = Log("outbox")

BATCH_FILES = 50
BATCH_BYTES = 8 * 1024 * 1024
LINGER_TIME = SECOND // 5
"""While more files are being read, a batch waits this long for more results."""
RETRIED_ERRORS = frozenset(
    {"StoreError", "StoreBusy", "StoreFull", "StoreUnwritable", "StoreMismatch", "Stale", "Changed", "Unreachable"}
)
"""Temporary errors, such as a locked database or a full disk."""

Send = Callable[[Command[Any], Callable[[CommandResult], None]], None]
"""Sends a command to the scheduler and calls back with the answer."""


Batch = dict[str, FileOutcome | None]
"""File → its result; None: the file was removed."""


class Outbox:
    """See the module's docstring.

    Args:
        is_reading: true while other files are being read.
        on_committed: called with a committed batch and the ids of the DAGs that it changed.
    """

    def __init__(
        self,
        bundle: str,
        loop: Loop,
        send: Send,
        is_reading: Callable[[], bool],
        on_committed: Callable[[Batch, list[str]], None],
    ) -> None:
        self.bundle = bundle
        self.loop = loop
        self._send = send
        self._is_reading = is_reading
        self._on_committed = on_committed
        self._waiting: Batch = {}
        self._in_flight: Batch = {}
        self._send_alone: set[str] = set()
        self._waits = Backoff(SECOND // 5, 10 * SECOND, random.random)
        self._paused = False
        self._lingering: TimerHandle | None = None

    def put(self, file: str, outcome: FileOutcome | None) -> None:
        """Add the result of a file; None: the file was removed."""
        self._waiting.pop(file, None)
        self._waiting[file] = outcome
        self.send_next()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    def send_next(self, *, linger: bool = True) -> None:
        """Send the next batch, unless one is in flight."""
        if self._in_flight or self._paused or not self._waiting:
            return
        if linger and len(self._waiting) < BATCH_FILES and self._is_reading():
            if self._lingering is None:
                self._lingering = self.loop.call_later(LINGER_TIME, lambda: self.send_next(linger=False))
            return
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        batch = self._next_batch()
        self._in_flight = batch
        outcomes = [outcome for outcome in batch.values() if outcome is not None]
        fp("parser.before_register")
        if outcomes:
            register = register_command(outcomes)
            self._send(register, lambda answer: self._answered(answer, _changed_ids(answer, register)))
        else:
            forget = ForgetFiles(self.bundle, list(batch))
            self._send(forget, lambda answer: self._answered(answer, _removed_ids(answer, forget)))

    def _next_batch(self) -> Batch:
        """The oldest results: either only removed files or only existing files."""
        batch: Batch = {}
        gone, size = next(iter(self._waiting.values())) is None, 0
        for file, outcome in self._waiting.items():
            if (outcome is None) is not gone:
                continue
            size += 0 if outcome is None else outcome.size()
            if batch and (len(batch) >= BATCH_FILES or size > BATCH_BYTES or file in self._send_alone):
                break
            batch[file] = outcome
            if file in self._send_alone:
                break
        for file in batch:
            del self._waiting[file]
        return batch

    def _answered(self, result: CommandResult, changed: list[str]) -> None:
        fp("parser.after_register")
        batch, self._in_flight = self._in_flight, {}
        if result.error is None:
            self._waits.succeeded()
            self._send_alone.difference_update(batch)
            self._on_committed(batch, changed)
        elif result.error in RETRIED_ERRORS:
            log.warning("results of DAG files cannot be stored now; trying again", why=result.message, files=len(batch))
            self._requeue(batch)
            self._paused = True
            self.loop.call_later(self._waits.failed(), self._resume)
        elif len(batch) > 1:
            self._send_alone.update(batch)
            self._requeue(batch)
        else:
            log.error("the scheduler rejected a DAG file", file=next(iter(batch)), why=f"{result.error}: {result.message}")
            self._send_alone.difference_update(batch)
        self.send_next()

    def _requeue(self, batch: Batch) -> None:
        """Put the batch before the results that arrived since. A newer result for the same file is kept."""
        self._waiting = {**{file: outcome for file, outcome in batch.items() if file not in self._waiting}, **self._waiting}

    def _resume(self) -> None:
        self._paused = False
        self.send_next()


def _changed_ids(answer: CommandResult, command: RegisterFiles) -> list[str]:
    return result_of(answer, command).changed if answer.error is None else []


def _removed_ids(answer: CommandResult, command: ForgetFiles) -> list[str]:
    return result_of(answer, command).gone if answer.error is None else []
