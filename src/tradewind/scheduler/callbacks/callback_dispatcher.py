"""Callback dispatcher: sends the callbacks and mails of the outbox to worker hosts, and records their results.

    commit with requests ─▶ wake ─▶ run_once: due requests ─CallbackOrder─▶ worker ─CallbackDone─▶ run_once: delete, postpone or
    park

A request stays in the outbox until its success is reported, so it is called at least once, whichever process dies. A request that
fails is tried again later. After the last try it is *parked*: it stays in the outbox until a person decides. The number of
requests at the workers at the same time is limited, and a callback that hangs is ended by its time limit. Without requests the
outbox is not read.
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
from tradewind.scheduler.callbacks.requests import CALLBACK, identity_prefix
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import Store
from tradewind.wire.messages import AttemptKey, CallbackDone, CallbackOrder, Workload, decode_workload

log = Log("callbacks")

GROWTH = 6
"""Factor by which the pause grows after each failure."""
LONGEST_PAUSE = 3600 * SECOND
SILENCE = 60 * SECOND
"""After the time limit of a callback its worker has this time to report the result; then the callback is sent again."""
ABSENCE = 5 * SECOND
"""A disconnected worker keeps its callbacks for this time; then they are sent to another worker."""
TRY_AGAIN = SECOND
"""Pause after the store failed."""


class Sent(NamedTuple):
    """A request that was sent to a worker."""

    item: OutboxItem
    since: int
    worker: str


class CallbackDispatcher:
    """See the module.

    epoch: epoch of the scheduler.
        epoch: of the scheduler.
        bundle_of: (DAG id) → (name of its bundle, its version there, microseconds that parsing its file took).
    """

    def __init__(
        self, store: Store, config: SchedulerConfig, epoch: int, bundle_of: Callable[[str], tuple[str, str | None, int]]
    ) -> None:
        self._store = store
        self._epoch = epoch
        self._config = config
        self._bundle_of = bundle_of
        self._senders: dict[str, Callable[[CallbackOrder], None]] = {}
        """Connected worker → function that sends one order to it."""
        self._gone_since: dict[str, int] = {}
        """Disconnected worker that has callbacks → the time since when it is disconnected."""
        self._out: dict[int, Sent] = {}
        self._again: dict[int, str] = {}
        """Request to be sent again → the worker that had it, which knows whether the callback runs or has ended."""
        self._results: list[CallbackDone] = []
        self._own: list[tuple[AttemptKey, bool]] = []
        """Attempt → whether its process has called all callbacks itself (False: it ended before)."""
        self.on_deadline_missed: missed_deadlines.OnMiss | None = None
        self._awake = True
        self._next: int | None = None

    def attach(self, worker: str, send: Callable[[CallbackOrder], None]) -> None:
        """Add a worker that has connected. Its requests are sent to it again; it calls no callback twice."""
        self._senders[worker] = send
        self._gone_since.pop(worker, None)
        for callback_id in [one for one, sent in self._out.items() if sent.worker == worker]:
            del self._out[callback_id]
            self._again[callback_id] = worker
        self.wake()

    def detach(self, worker: str, now: int) -> None:
        """Remove a worker whose connection is closed. Its requests wait `ABSENCE` for it, then they are sent to another worker."""
        self._senders.pop(worker, None)
        self._gone_since[worker] = now
        self.wake()

    def wake(self) -> None:
        """Let the next `run_once` read the outbox: it has new requests."""
        self._awake = True

    def done(self, message: CallbackDone) -> None:
        """Store the result of a request until the next `run_once`."""
        self._results.append(message)
        self.wake()

    def called_back(self, attempt: AttemptKey, done: bool) -> None:
        """Record that the process of an attempt has called its callbacks itself.

        Args:
            done: False: the process ended before it had called all of them.
        """
        self._own.append((attempt, done))
        self.wake()

    def due(self) -> int | None:
        """Return when `run_once` is to be called: 0: now; None: after the next `wake`."""
        return 0 if self._awake else self._next

    def compare_with_store(self, now: int) -> None:
        """Safety net: send requests again whose result is overdue, or which were sent in the future: the clock was set back."""
        patience = self._config.callback_timeout + SILENCE
        for callback_id in [one for one, sent in self._out.items() if not sent.since <= now <= sent.since + patience]:
            del self._out[callback_id]
        self.wake()

    def _give_up_absent_workers(self, now: int) -> int | None:
        """Free the requests of workers that do not connect again, and return when to check again."""
        for worker, since in list(self._gone_since.items()):
            if not since <= now < since + ABSENCE:
                del self._gone_since[worker]
                for callback_id in [one for one, sent in self._out.items() if sent.worker == worker]:
                    del self._out[callback_id]
        return min(self._gone_since.values()) + ABSENCE if self._gone_since else None

    def try_again(self, now: int) -> None:
        """Let `run_once` be called again after a pause, because it failed."""
        self._next = now + TRY_AGAIN

    def run_once(self, now: int) -> None:
        """Write the results, and send the due requests.

        Raises:
            Stale: a newer scheduler has started; nothing more was written.
        """
        self._awake = False
        try:
            self._write_results(now)
            if missed_deadlines.record_missed(self._store, now, self._epoch, self.on_deadline_missed):
                self.wake()
            absence_ends = self._give_up_absent_workers(now)
            self._send_due(now)
            moments = [moment for moment in (self._store.next_outbox_due(now), absence_ends) if moment is not None]
            self._next = min(moments) if moments else None
        except StoreError as error:
            log.warning("the outbox cannot be used now; it is tried again", error=str(error))
            self.try_again(now)

    # --- results ------------------------------------------------------------------------------------------------------

    def _write_results(self, now: int) -> None:
        if not self._results and not self._own:
            return
        with self._store.transaction():
            must_be_newest(self._store, self._epoch)
            for message in self._results:
                try:
                    self._write_result(message, now)
                except Exception as error:
                    if isinstance(error, Stale | StoreError) and not isinstance(error, StoreRefused):
                        raise
                    log.exception(
                        "the result of a callback cannot be written; it is called again", callback=message.callback_id
                    )
            for attempt, done in self._own:
                self._store.settle_outbox_items(CALLBACK, identity_prefix(attempt), None if done else now)
        self._own.clear()
        for message in self._results:
            self._out.pop(message.callback_id, None)
            self._again.pop(message.callback_id, None)
        self._results.clear()

    def _write_result(self, message: CallbackDone, now: int) -> None:
        if message.ok:
            self._store.delete_outbox_item(message.callback_id)
            return
        item = self._store.outbox_item(message.callback_id)
        if item is None or item.parked is not None:
            return
        if (item.tries, item.due_at) == (message.tries, message.due):  # otherwise the result is outdated
            self._failed(item, message.reason, now)

    def _failed(self, item: OutboxItem, problem: str, now: int) -> None:
        tries = item.tries + 1
        if tries > self._config.callback_retries:
            times = "once" if tries == 1 else f"{tries} times"
            parked = f"tried {times}, the last time: {problem}"
            log.error(
                "a callback is parked: it is not tried again until somebody asks for it", callback=item.identity, why=parked
            )
            self._store.postpone_outbox_item(item.id, now, parked, problem)
            return
        pause = min(self._config.callback_retry_delay * GROWTH**item.tries, LONGEST_PAUSE)
        log.warning("a callback failed; it is tried again", callback=item.identity, why=problem, seconds=pause // SECOND)
        self._store.postpone_outbox_item(item.id, now + pause, None, problem)

    # --- sending ------------------------------------------------------------------------------------------------------

    def _send_due(self, now: int) -> None:
        room = self._config.callback_parallelism - len(self._out)
        if not self._senders or room <= 0:
            return
        for item in self._store.due_outbox_items(now, room + len(self._out), without=DEADLINE):
            if item.id in self._out or room <= 0:
                continue
            try:
                order = self._order(item)
            except Exception as error:
                log.exception("a callback request cannot be read; it is parked", callback=item.identity)
                self._store.postpone_outbox_item(item.id, now, f"it cannot be read: {error}", str(error))
                continue
            worker = self._worker_for(item.id)
            try:
                self._senders[worker](order)
            except Exception as error:
                log.exception("a callback request cannot be sent; it is parked", callback=item.identity)
                self._store.postpone_outbox_item(item.id, now, f"it cannot be sent: {error}", str(error))
                continue
            self._out[item.id] = Sent(item, now, worker)
            room -= 1

    def _worker_for(self, callback_id: int) -> str:
        """Return the connected worker that had the request before, otherwise the worker with the fewest requests."""
        before = self._again.pop(callback_id, None)
        if before in self._senders:
            return before
        busy = Counter(sent.worker for sent in self._out.values())
        return min(self._senders, key=lambda worker: (busy[worker], worker))

    def _order(self, item: OutboxItem) -> CallbackOrder:
        work: Workload = decode_workload(item.payload)
        bundle, newest, cost = self._bundle_of(work.dag_id)
        version = work.bundle_version or newest
        work = msgspec.structs.replace(
            work,
            bundle=bundle,
            bundle_version=version,
            import_cost=cost,
            execution_timeout=self._config.callback_timeout or None,
        )
        return CallbackOrder(item.id, item.tries, work, item.due_at)
