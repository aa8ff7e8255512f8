"""Asset watchers: triggers that run while an active, unpaused DAG is scheduled on their asset, and whose events update the asset.

The number of a watcher is computed from the class and the arguments of its trigger: watchers with equal ones share one trigger.
The number and a fence, which is new for each start, are the key of the trigger. An event counts only under the current key, and an
event that was sent twice counts once: the store keeps the token of each event. The trigger continues after its event is committed.

A trigger that has ended is started again; after a failure there is a pause, which grows with each failure. If the worker of a
trigger does not connect again, the trigger is started on another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tradewind.model.assets import AssetWatch, watcher_number
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.rows import DagPlan, NewAssetEvent, WatcherRow
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.scheduler.assets.asset_index import asset_schedule
from tradewind.scheduler.shared_state import SharedState
from tradewind.wire.messages import WATCHER_RUN, AttemptKey, TriggerOrder, WatcherEvent

log = Log("scheduler")

PAUSE = SECOND
"""Pause before a trigger that has ended is started again; it grows after several failures in a row."""
LONGEST_PAUSE = 5 * MINUTE
COMES_BACK = 10 * SECOND
"""If a worker has been disconnected for this time, its triggers are started on another worker."""
ERROR_MAX = 4000
"""Maximum number of stored characters of an error; the end is kept."""


class WakeWatchers(NamedTuple):
    """A timer: examine the asset watchers."""


class Watcher:
    """One trigger and the assets that it watches."""

    __slots__ = (
        "bundle",
        "bundle_version",
        "error",
        "failures",
        "file",
        "gone_since",
        "key",
        "next_start",
        "number",
        "trigger",
        "uses",
        "worker",
    )

    def __init__(self, number: int, trigger: TriggerWait, plan: DagPlan) -> None:
        self.number = number
        self.trigger = trigger
        self.bundle = plan.bundle
        self.bundle_version = plan.bundle_version
        self.file = plan.file
        self.uses: dict[str, tuple[AssetWatch, ...]] = {}
        """DAG → the assets that it watches with this trigger."""
        self.key: AttemptKey | None = None
        """Key of the running trigger; None: it does not run."""
        self.worker = ""
        self.gone_since: int | None = None
        """The time since when its worker is known to be disconnected."""
        self.failures = 0
        """Number of failures in a row."""
        self.error: str | None = None
        self.next_start = 0
        """The earliest time of the next start."""

    def assets(self) -> list[tuple[str, str]]:
        """Return name and URI of each asset."""
        return list(dict.fromkeys((use.asset_name, use.asset_uri) for uses in self.uses.values() for use in uses))


class AssetWatchers:
    """See the module."""

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._by_number: dict[int, Watcher] = {}
        self._by_dag: dict[str, tuple[int, ...]] = {}
        self._events: dict[tuple[AttemptKey, str], WatcherEvent] = {}
        """Events that are not written yet. Each trigger has at most one event that is not acknowledged."""
        self._ends: dict[AttemptKey, TriggerEnd] = {}
        self.on_events: Callable[[int], None] | None = None
        """Called with the number of asset events that were written."""
        self._awake = True
        self._forgot_old_rows = False

    def clear(self) -> None:
        """Forget which DAGs use which watchers: the DAGs are loaded again. The triggers continue."""
        for watcher in self._by_number.values():
            watcher.uses.clear()
        self._by_dag.clear()
        self._events.clear()  # worker hosts send again what is not acknowledged
        self._ends.clear()
        self._forgot_old_rows = False
        self.wake()

    @property
    def busy(self) -> bool:
        """Whether `advance` has something to do."""
        return self._awake or bool(self._events or self._ends)

    @property
    def count(self) -> int:
        """Number of wanted triggers."""
        return sum(1 for watcher in self._by_number.values() if watcher.uses)

    def wake(self) -> None:
        self._awake = True

    # --- DAGs ---------------------------------------------------------------------------------------------------------

    def follow(self, plan: DagPlan) -> None:
        """Add or replace the watchers of a DAG that was loaded, parsed, paused or unpaused."""
        is_open = plan.is_active and not plan.is_paused
        watches = asset_schedule(plan.assets).watchers if plan.assets is not None and is_open else ()
        if watches or plan.dag_id in self._by_dag:
            self._replace(plan.dag_id, plan, watches)

    def forget(self, dag_id: str) -> None:
        """Remove the watchers of a DAG that does not exist any more."""
        if dag_id in self._by_dag:
            self._replace(dag_id, None, ())

    def _replace(self, dag_id: str, plan: DagPlan | None, watches: Iterable[AssetWatch]) -> None:
        uses: dict[int, list[AssetWatch]] = {}
        for watch in watches:
            assert plan is not None
            number = watcher_number(plan.bundle, watch.trigger)
            uses.setdefault(number, []).append(watch)
            if number not in self._by_number:
                self._by_number[number] = Watcher(number, watch.trigger, plan)
        for number in {*self._by_dag.pop(dag_id, ()), *uses}:
            watcher = self._by_number.get(number)
            if watcher is not None:
                watcher.uses.pop(dag_id, None)
                if number in uses:
                    watcher.uses[dag_id] = tuple(uses[number])
        if uses:
            self._by_dag[dag_id] = tuple(uses)
        self.wake()

    # --- worker hosts -------------------------------------------------------------------------------------------------

    def registered(self, worker: str, keys: Iterable[AttemptKey]) -> None:
        """Handle the registration of a worker: take over the triggers that it runs, and stop those that are not current.

        Args:
            keys: the triggers of asset watchers that the worker runs.
        """
        executor = self._state.executor
        here = set(keys)
        unwanted = []
        for key in sorted(here):
            watcher = self._by_number.get(key[1])
            if watcher is not None and watcher.uses and watcher.key is None:
                watcher.key, watcher.worker = key, worker
            if (watcher is None and self._sees_all) or (watcher is not None and (watcher.key, watcher.worker) != (key, worker)):
                unwanted.append(key)
        again = []
        for watcher in self._by_number.values():
            if watcher.worker == worker and watcher.key is not None:
                watcher.gone_since = None
                if watcher.key in here:
                    again.append(self._order(watcher, watcher.key))  # the host sends again what was not acknowledged
                else:
                    unwanted.append(watcher.key)  # a new gateway does not forward messages about its old triggers
                    watcher.key = None
        executor.drop_triggers(unwanted, worker)
        executor.run_triggers(again)
        if self._by_number:
            self.wake()

    @property
    def _sees_all(self) -> bool:
        """Whether this scheduler handles all DAGs (see `SchedulerConfig.scope`)."""
        scope = self._state.config.scope
        return not scope.bundles and scope.dag_id is None

    def disconnected(self, worker: str) -> None:
        """Handle the end of a worker's connection: its triggers are started on another worker if it does not connect again."""
        now = self._state.clock.wall()
        for watcher in self._by_number.values():
            if watcher.worker == worker and watcher.key is not None:
                watcher.gone_since = now
                self._state.timers.add(now + COMES_BACK, WakeWatchers())

    def repeat_orders(self) -> None:
        """Safety net: order every trigger again. A worker ignores the order for a trigger that it runs."""
        orders = [
            self._order(watcher, watcher.key)
            for watcher in self._by_number.values()
            if watcher.key is not None and watcher.uses and watcher.gone_since is None
        ]
        self._state.executor.run_triggers(orders)

    # --- triggers -----------------------------------------------------------------------------------------------------

    def fired(self, event: WatcherEvent) -> None:
        """Store the event of a trigger until the next `advance`. It is acknowledged when it is committed."""
        if self._current(event.key) is None:
            self._state.executor.drop_triggers([event.key])
        else:
            self._events[event.key, event.token] = event

    def ended(self, key: AttemptKey, end: TriggerEnd) -> None:
        """Store the end of a trigger until the next `advance`."""
        if self._current(key) is None:
            self._state.executor.drop_triggers([key])
        else:
            self._ends[key] = end

    def _current(self, key: AttemptKey) -> Watcher | None:
        watcher = self._by_number.get(key[1])
        return watcher if watcher is not None and watcher.key == key and watcher.uses else None

    def advance(self) -> set[str]:
        """Write the events and ends of triggers, then start and stop triggers. Uses its own transactions.

        Returns:
            DAGs whose condition may be met now.

        Raises:
            Stale: another scheduler has taken over.
            StoreError: nothing of the last transaction was written. Worker hosts repeat what is not acknowledged.
        """
        if not self.busy:
            return set()
        now = self._state.clock.wall()
        consumers = self._write_events(now)
        self._write_ends(now)
        if self._awake:
            self._awake = False
            self._stop_unwanted()
            self._start_wanted(now)
        return consumers

    def _write_events(self, now: int) -> set[str]:
        events, self._events = self._events, {}
        news: list[NewAssetEvent] = []
        for event in events.values():
            watcher = self._current(event.key)
            if watcher is None:
                continue
            extra = b'{"from_trigger":true,"payload":%b}' % event.payload
            news += [NewAssetEvent(name, uri, "asset", extra, now, origin=event.token) for name, uri in watcher.assets()]
        if not news:
            return set()
        state = self._state
        _, consumers = state.store.record_asset_events(news, state.epoch)
        fp("scheduler.watcher_event_written")
        if self.on_events is not None:
            self.on_events(len(news))
        for event in events.values():
            watcher = self._current(event.key)
            if watcher is not None:
                if watcher.failures:
                    watcher.failures, watcher.error = 0, None
                    self._note(watcher, now)
                state.executor.take_watcher_event(event.key, event.token)
        return set(consumers)

    def _write_ends(self, now: int) -> None:
        ends, self._ends = self._ends, {}
        for key, end in ends.items():
            watcher = self._current(key)
            if watcher is None:
                continue
            if end.error is None:
                watcher.failures, watcher.error, pause = 0, None, PAUSE
            else:
                watcher.failures += 1
                watcher.error = end.error[-ERROR_MAX:]
                pause = min(PAUSE * 2 ** min(watcher.failures - 1, 20), LONGEST_PAUSE)
                last = watcher.error.strip().splitlines()[-1] if watcher.error.strip() else ""
                log.warning(
                    "the trigger of an asset watcher failed; it is started again",
                    trigger=watcher.trigger.classpath,
                    assets=[name for name, _ in watcher.assets()],
                    error=last,
                    seconds=pause // SECOND,
                )
            watcher.key, watcher.next_start = None, now + pause
            self._note(watcher, now)
            self._state.executor.drop_triggers([key])
            self._state.timers.add(watcher.next_start, WakeWatchers())

    def _stop_unwanted(self) -> None:
        unwanted = [watcher for watcher in self._by_number.values() if not watcher.uses]
        if unwanted or not self._forgot_old_rows:
            self._state.store.keep_watchers([one.number for one in self._by_number.values() if one.uses], self._state.epoch)
            self._forgot_old_rows = True
        for watcher in unwanted:
            del self._by_number[watcher.number]
            if watcher.key is not None:
                self._state.executor.drop_triggers([watcher.key])

    def _start_wanted(self, now: int) -> None:
        executor, orders = self._state.executor, []
        for watcher in self._by_number.values():
            gone = watcher.gone_since
            if watcher.key is not None and gone is not None and now >= gone + COMES_BACK:
                if executor.runs_triggers and not executor.may_live(watcher.worker):
                    watcher.key = None
                else:
                    self._state.timers.add(now + COMES_BACK, WakeWatchers())
            if watcher.key is None and not executor.runs_triggers:
                continue  # the first worker that registers starts the triggers
            if watcher.key is None and watcher.next_start <= now:
                watcher.key = (WATCHER_RUN, watcher.number, now)
                watcher.gone_since = None
                orders.append(self._order(watcher, watcher.key))
        executor.run_triggers(orders)
        for order in orders:
            watcher = self._by_number[order.key[1]]
            watcher.worker = executor.trigger_worker(order.key) or ""
            self._note(watcher, now)

    def _order(self, watcher: Watcher, key: AttemptKey) -> TriggerOrder:
        name = f"the watcher of {', '.join(name for name, _ in watcher.assets())}"
        return TriggerOrder(
            key, watcher.trigger, watcher.bundle, name, file=watcher.file, watches=True, bundle_version=watcher.bundle_version
        )

    def _note(self, watcher: Watcher, now: int) -> None:
        """Write the state of the trigger, for people."""
        runs = watcher.key is not None
        row = WatcherRow(
            watcher.number,
            watcher.trigger.classpath,
            watcher.worker if runs else None,
            watcher.failures,
            watcher.error,
            None if runs else watcher.next_start,
            now,
        )
        self._state.store.note_watcher(row, self._state.epoch)
