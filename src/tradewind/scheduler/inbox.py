"""What stands in the scheduler's inbox."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.kernel import events as e
from tradewind.scheduler.waits.wait_index import WaitDue, WaitNews
from tradewind.wire.messages import AttemptKey, Report, Start


class FromWorker(NamedTuple):
    """A runner's start or report, as it came through its host."""

    attempt: AttemptKey
    host: str
    body: Start | Report


class RunEvent(NamedTuple):
    """Something else that happened to a run."""

    run: int
    event: e.Event


class SettleRun(NamedTuple):
    """A run has more decisions than fitted into one batch."""

    run: int


Item = FromWorker | RunEvent | SettleRun | WaitDue | WaitNews


def run_of(item: Item) -> int:
    """The run that it is about."""
    return item.attempt[0] if isinstance(item, FromWorker) else item.run
