"""What the scheduler asks of an executor, and all it may expect.

Messages are hints. Losing, repeating or delaying one changes timing, never an outcome: the truth is the row, the fence and the
accepted start. So an executor has no states of its own that anybody asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tradewind.wire.messages import AttemptKey, LastLine, ToRunner, TriggerOrder, Workload


class Executor(Protocol):
    """One way to run attempts."""

    name: str
    parallelism: int
    """Attempts at a time over all hosts; 0 is unlimited."""

    def submit(self, workloads: Sequence[Workload]) -> None:
        """Have these attempts made. Called after their dispatch is committed; may be called again for the same ones."""

    def cancel(self, attempt: AttemptKey, reason: str, grace: int) -> None:
        """Stop an attempt (TERM, after `grace` microseconds KILL); its end is reported as gone."""

    def reconcile(self, attempts: Mapping[AttemptKey, str]) -> None:
        """Ask who of these is known; for each that is not, `AttemptGone` comes back.

        Args:
            attempts: attempt → nonce of the process whose start was accepted; empty: of none.
        """

    def answer(self, answer: ToRunner) -> None:
        """Pass an answer on to the runner of an attempt."""

    def end_log(self, line: LastLine) -> None:
        """Write this line behind the log of an attempt that ended without a report."""

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        """Have triggers run; `TriggerFired` comes back for each. May be called again for the same ones."""

    def drop_triggers(self, keys: Sequence[AttemptKey]) -> None:
        """Nobody waits for them any more."""

    @property
    def ready(self) -> bool:
        """Is somebody there who takes work?"""
        ...
