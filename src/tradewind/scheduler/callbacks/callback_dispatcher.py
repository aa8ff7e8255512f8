"""The desk for what is called after the fact: it hands the posts of the outbox to the worker host and hears what became of them.

    commit with posts ─▶ ring ─▶ turn: due posts ─CallbackOrder─▶ host ─CallbackDone─▶ turn: acknowledge, postpone or park

A post stays in the outbox until its end is acknowledged, so whatever dies on the way, it is handed over again: at least once. One
that fails is tried again later, and parked after the last try, for a person to look at. So many are with the host at a time and no
more; one that hangs is ended by its time limit. While nothing is posted nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable

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
"""After its time limit the host has this long to say what became of one; then it is handed over again."""
TRY_AGAIN = SECOND
"""The store could not be used: look again after this."""


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
        self._send: Callable[[CallbackOrder], None] | None = None
        self._out: dict[int, tuple[OutboxItem, int]] = {}
        """With the host: the post, and when it was handed over."""
        self._heard: list[CallbackDone] = []
        self._own: list[tuple[AttemptKey, bool]] = []
        """Attempts whose process has called the callbacks itself, or (False) ended before that."""
        self._rung = True
        self._next: int | None = None

    def attach(self, send: Callable[[CallbackOrder], None] | None) -> None:
        """A worker host is there, or has gone. What the last one had is handed to the next; one that has it knows it."""
        self._send = send
        self._out.clear()
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
        for post in [post for post, (_, since) in self._out.items() if not since <= now <= since + patience]:
            del self._out[post]
        self.ring()

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
            self._hand_over(now)
            self._next = self._store.next_post_due(now)
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
        if self._send is None or room <= 0:
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
            try:
                self._send(order)
            except Exception as error:
                log.exception("a post cannot be sent; it is parked", post=item.identity)
                self._store.postpone(item.id, now, f"it cannot be sent: {error}", str(error))
                continue
            self._out[item.id] = (item, now)
            room -= 1

    def _order(self, item: OutboxItem) -> CallbackOrder:
        work: Workload = decode_workload(item.payload)
        folder, cost = self._place(work.dag_id)
        work = msgspec.structs.replace(
            work, bundle=folder, import_cost=cost, execution_timeout=self._config.callback_timeout or None
        )
        return CallbackOrder(item.id, item.tries, work, item.due_at)
