"""Callback dispatcher: sends the callbacks that stand in the outbox to the worker hosts, and writes down their results.

    commit with posts ─▶ ring ─▶ turn: due posts ─CallbackOrder─▶ worker ─CallbackDone─▶ turn: acknowledge, postpone or park

A post stays in the outbox until its result is acknowledged, so whatever dies on the way, the post is sent again: at least once. A
post that fails is tried again later, and parked after the last try, until a person looks at it. The number of posts that are with
the workers is limited; a callback that hangs is ended by its time limit. While nothing is posted nothing is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tradewind.model.errors import Stale, StoreError, StoreRefused
from tradewind.model.moments import SECOND
from tradewind.model.rows import DEADLINE, OutboxItem
from tradewind.observe.log import Log
from tradewind.scheduler.callbacks import missed_deadlines
from tradewind.scheduler.callbacks.requests import CALLBACK, of_attempts_own
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import Store
from tradewind.wire.messages import AttemptKey, CallbackDone, CallbackOrder, Workload, decode_workload

log = Log("callbacks")

GROWTH = 6
"""Each pause is so many times as long as the one before."""
LONGEST_PAUSE = 3600 * SECOND
SILENCE = 60 * SECOND
"""After the time limit of a callback its worker has this long to report the result; then the callback is sent again."""
ABSENCE = 5 * SECOND
"""A worker whose connection broke keeps its callbacks for this long; then they are sent to another worker."""
TRY_AGAIN = SECOND
"""The store could not be used: look again after this."""


class Sent(NamedTuple):
    """A post that is with a worker."""

    item: OutboxItem
    since: int
    worker: str


class CallbackDispatcher:
    """See the module.

    Args:
        epoch: of the scheduler.
        place: (DAG id) → (folder of its files, microseconds that parsing its file took).
    """

    def __init__(self, store: Store, config: SchedulerConfig, epoch: int, place: Callable[[str], tuple[str, int]]) -> None:
        self._store = store
        self._epoch = epoch
        self._config = config
        self._place = place
        self._senders: dict[str, Callable[[CallbackOrder], None]] = {}
        """Connected worker → sends one order to it."""
        self._gone_since: dict[str, int] = {}
        """Worker that was disconnected and has callbacks → since when."""
        self._out: dict[int, Sent] = {}
        self._again: dict[int, str] = {}
        """Post that is sent again → the worker that had it: that worker knows whether the callback is under way or done."""
        self._heard: list[CallbackDone] = []
        self._own: list[tuple[AttemptKey, bool]] = []
        """Attempts whose process has called the callbacks itself, or (False) ended before that."""
        self._rung = True
        self._next: int | None = None

    def attach(self, worker: str, send: Callable[[CallbackOrder], None]) -> None:
        """A worker has connected. The posts that it had are sent to it again; it carries out none twice."""
        self._senders[worker] = send
        self._gone_since.pop(worker, None)
        for post in [post for post, sent in self._out.items() if sent.worker == worker]:
            del self._out[post]
            self._again[post] = worker
        self.ring()

    def detach(self, worker: str, now: int) -> None:
        """The connection of a worker is closed. Its posts wait `ABSENCE` for it, then they are sent to another worker."""
        self._senders.pop(worker, None)
        self._gone_since[worker] = now
        self.ring()

    def ring(self) -> None:
        """Something was posted."""
        self._rung = True

    def done(self, message: CallbackDone) -> None:
        """The host says what became of one."""
        self._heard.append(message)
        self.ring()

    def called_back(self, attempt: AttemptKey, done: bool) -> None:
        """The process of an attempt has called its task's callbacks itself, or has ended before."""
        self._own.append((attempt, done))
        self.ring()

    def due(self) -> int | None:
        """When `turn` is to be called: 0 is now; None: only when it rings."""
        return 0 if self._rung else self._next

    def compare_with_store(self, now: int) -> None:
        """Safety net: what the host has not spoken of for too long is handed over again, also when the clock was set back since."""
        patience = self._config.callback_timeout + SILENCE
        for post in [post for post, sent in self._out.items() if not sent.since <= now <= sent.since + patience]:
            del self._out[post]
        self.ring()

    def _give_up_absent_workers(self, now: int) -> int | None:
        """Free the posts of workers that stay away; when to look again."""
        for worker, since in list(self._gone_since.items()):
            if not since <= now < since + ABSENCE:
                del self._gone_since[worker]
                for post in [post for post, sent in self._out.items() if sent.worker == worker]:
                    del self._out[post]
        return min(self._gone_since.values()) + ABSENCE if self._gone_since else None

    def try_again(self, now: int) -> None:
        """A turn failed: another one follows after a pause."""
        self._next = now + TRY_AGAIN

    def turn(self, now: int) -> None:
        """Write down what was heard, hand over what is due.

        Raises:
            Stale: a newer scheduler has begun; nothing more was written.
        """
        self._rung = False
        try:
            self._settle(now)
            if missed_deadlines.turn(self._store, now, self._epoch):
                self.ring()
            absence_ends = self._give_up_absent_workers(now)
            self._hand_over(now)
            moments = [moment for moment in (self._store.next_post_due(now), absence_ends) if moment is not None]
            self._next = min(moments) if moments else None
        except StoreError as error:
            log.warning("the outbox cannot be used now; it is tried again", error=str(error))
            self.try_again(now)

    # --- what was heard -----------------------------------------------------------------------------------------------

    def _settle(self, now: int) -> None:
        if not self._heard and not self._own:
            return
        with self._store.transaction():
            must_be_newest(self._store, self._epoch)
            for message in self._heard:
                try:
                    self._settle_one(message, now)
                except Exception as error:
                    if isinstance(error, Stale | StoreError) and not isinstance(error, StoreRefused):
                        raise
                    log.exception("what became of a callback cannot be written down; it is called again", post=message.post)
            for attempt, done in self._own:
                self._store.settle_posts(CALLBACK, of_attempts_own(attempt), None if done else now)
        self._own.clear()
        for message in self._heard:
            self._out.pop(message.post, None)
            self._again.pop(message.post, None)
        self._heard.clear()

    def _settle_one(self, message: CallbackDone, now: int) -> None:
        if message.ok:
            self._store.acknowledge(message.post)
            return
        item = self._store.find_post(message.post)
        if item is None or item.parked is not None:
            return
        if (item.tries, item.due_at) == (message.tries, message.due):  # else it is an old word
            self._failed(item, message.reason, now)

    def _failed(self, item: OutboxItem, problem: str, now: int) -> None:
        tries = item.tries + 1
        if tries > self._config.callback_retries:
            times = "once" if tries == 1 else f"{tries} times"
            parked = f"tried {times}, the last time: {problem}"
            log.error("a callback is parked: it is not tried again until somebody asks for it", post=item.identity, why=parked)
            self._store.postpone(item.id, now, parked, problem)
            return
        pause = min(self._config.callback_retry_delay * GROWTH**item.tries, LONGEST_PAUSE)
        log.warning("a callback failed; it is tried again", post=item.identity, why=problem, seconds=pause // SECOND)
        self._store.postpone(item.id, now + pause, None, problem)

    # --- handing over -------------------------------------------------------------------------------------------------

    def _hand_over(self, now: int) -> None:
        room = self._config.callback_parallelism - len(self._out)
        if not self._senders or room <= 0:
            return
        for item in self._store.due_posts(now, room + len(self._out), without=DEADLINE):
            if item.id in self._out or room <= 0:
                continue
            try:
                order = self._order(item)
            except Exception as error:
                log.exception("a post cannot be read; it is parked", post=item.identity)
                self._store.postpone(item.id, now, f"it cannot be read: {error}", str(error))
                continue
            worker = self._worker_for(item.id)
            try:
                self._senders[worker](order)
            except Exception as error:
                log.exception("a post cannot be sent; it is parked", post=item.identity)
                self._store.postpone(item.id, now, f"it cannot be sent: {error}", str(error))
                continue
            self._out[item.id] = Sent(item, now, worker)
            room -= 1

    def _worker_for(self, post: int) -> str:
        """The connected worker that had the post before, else the one with the fewest posts."""
        before = self._again.pop(post, None)
        if before in self._senders:
            return before
        busy = Counter(sent.worker for sent in self._out.values())
        return min(self._senders, key=lambda worker: (busy[worker], worker))

    def _order(self, item: OutboxItem) -> CallbackOrder:
        work: Workload = decode_workload(item.payload)
        folder, cost = self._place(work.dag_id)
        work = msgspec.structs.replace(
            work, bundle=folder, import_cost=cost, execution_timeout=self._config.callback_timeout or None
        )
        return CallbackOrder(item.id, item.tries, work, item.due_at)
