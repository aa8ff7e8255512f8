"""What the scheduler has yet to be told, in batches, one at a time.

While one batch is being committed the next one gathers: a thousand files become known in some twenty commits. A file has at most
one word waiting here; a newer one takes its place. What could not be committed waits again; when the scheduler refuses a batch
for a reason of its own making, its files are said one by one, so that one file harms no other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tradewind.model.moments import SECOND
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.parser.parse_result import FileOutcome
from tradewind.platform.backoff import Backoff
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.commands import Command, ForgetFiles, RegisterFiles, result_of
from tradewind.wire.messages import CommandResult

log = Log("outbox")

BATCH_FILES = 50
BATCH_BYTES = 8 * 1024 * 1024
LINGER = SECOND // 5
"""While more files are being read, a batch waits this long for company; the last one waits for nobody."""
RETRIED = frozenset(
    {"StoreError", "StoreBusy", "StoreFull", "StoreUnwritable", "StoreMismatch", "Stale", "Changed", "Unreachable"}
)
"""Errors that pass: the database is locked, the disk is full."""

Send = Callable[[Command[Any], Callable[[CommandResult], None]], None]
"""Has the scheduler carry out a command and calls back with its answer."""


Batch = dict[str, FileOutcome | None]
"""File → what is said about it; None: it is gone."""


class Outbox:
    """See the module.

    Args:
        more_soon: are other files being read just now?
        told: called with a batch that the scheduler has committed, and the ids of the DAGs that it changed.
    """

    def __init__(
        self,
        bundle: str,
        loop: Loop,
        send: Send,
        more_soon: Callable[[], bool],
        told: Callable[[Batch, list[str]], None],
    ) -> None:
        self.bundle = bundle
        self.loop = loop
        self._send = send
        self._more_soon = more_soon
        self._told = told
        self._waiting: Batch = {}
        self._under_way: Batch = {}
        self._singly: set[str] = set()
        self._waits = Backoff(SECOND // 5, 10 * SECOND, random.random)
        self._resting = False
        self._lingering: TimerHandle | None = None

    def put(self, file: str, outcome: FileOutcome | None) -> None:
        """Say this of a file; None: it is gone."""
        self._waiting.pop(file, None)
        self._waiting[file] = outcome
        self.push()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    def push(self, *, linger: bool = True) -> None:
        """Send the next batch, unless one is under way."""
        if self._under_way or self._resting or not self._waiting:
            return
        if linger and len(self._waiting) < BATCH_FILES and self._more_soon():
            if self._lingering is None:
                self._lingering = self.loop.call_later(LINGER, lambda: self.push(linger=False))
            return
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        batch = self._next_batch()
        self._under_way = batch
        outcomes = [outcome for outcome in batch.values() if outcome is not None]
        fp("parser.before_register")
        if outcomes:
            register = RegisterFiles([outcome.as_command() for outcome in outcomes])
            self._send(register, lambda answer: self._answered(answer, _changed(answer, register)))
        else:
            forget = ForgetFiles(self.bundle, list(batch))
            self._send(forget, lambda answer: self._answered(answer, _gone(answer, forget)))

    def _next_batch(self) -> Batch:
        """The longest waiting first: either files that are gone or files that are there."""
        batch: Batch = {}
        gone, size = next(iter(self._waiting.values())) is None, 0
        for file, outcome in self._waiting.items():
            if (outcome is None) is not gone:
                continue
            size += 0 if outcome is None else outcome.size()
            if batch and (len(batch) >= BATCH_FILES or size > BATCH_BYTES or file in self._singly):
                break
            batch[file] = outcome
            if file in self._singly:
                break
        for file in batch:
            del self._waiting[file]
        return batch

    def _answered(self, result: CommandResult, changed: list[str]) -> None:
        fp("parser.after_register")
        batch, self._under_way = self._under_way, {}
        if result.error is None:
            self._waits.succeeded()
            self._singly.difference_update(batch)
            self._told(batch, changed)
        elif result.error in RETRIED:
            log.warning("what DAG files say cannot be stored now; trying again", why=result.message, files=len(batch))
            self._wait_again(batch)
            self._resting = True
            self.loop.call_later(self._waits.failed(), self._rested)
        elif len(batch) > 1:
            self._singly.update(batch)
            self._wait_again(batch)
        else:
            log.error("the scheduler refuses a DAG file", file=next(iter(batch)), why=f"{result.error}: {result.message}")
            self._singly.difference_update(batch)
        self.push()

    def _wait_again(self, batch: Batch) -> None:
        """Before what has come meanwhile; a newer word about the same file stands."""
        self._waiting = {**{file: outcome for file, outcome in batch.items() if file not in self._waiting}, **self._waiting}

    def _rested(self) -> None:
        self._resting = False
        self.push()


def _changed(answer: CommandResult, command: RegisterFiles) -> list[str]:
    return result_of(answer, command).changed if answer.error is None else []


def _gone(answer: CommandResult, command: ForgetFiles) -> list[str]:
    return result_of(answer, command).gone if answer.error is None else []
