"""The items of the scheduler's inbox."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.scheduler.waits.wait_index import WaitDue, WaitResult
from tradewind.wire.messages import AttemptKey, Report, Start


class FromWorker(NamedTuple):
    """The start or report of a task process, as its worker host sent it."""

    attempt: AttemptKey
    host: str
    body: Start | Report


class RunEvent(NamedTuple):
    """Any other event of a run."""

    run: int
    event: e.Event


class SettleRun(NamedTuple):
    """A run has more decisions than one batch can write, or leaves quarantine."""

    run: int


Item = FromWorker | RunEvent | SettleRun | WaitDue | WaitResult


def run_of(item: Item) -> int:
    """Return the number of the run that an item belongs to."""
    return item.attempt[0] if isinstance(item, FromWorker) else item.run
