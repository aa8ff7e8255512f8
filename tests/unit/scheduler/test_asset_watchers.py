"""Triggers of asset watchers: which run, where, and which of their events count."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.unit.scheduler.bench import Bench, task
from tradewind.executors.local import LocalExecutor
from tradewind.model.assets import AssetKey, AssetSchedule, AssetWatch
from tradewind.model.errors import Stale
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewAssetEvent, WatcherRow
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.scheduler.assets.answers import waits_for_assets
from tradewind.scheduler.assets.watchers import COMES_BACK, AssetWatchers
from tradewind.scheduler.attempts.host_registry import HostRegistry
from tradewind.wire.messages import AttemptKey, DropTriggers, RunTriggers, WatcherEvent, WatcherEventTaken

A, B = AssetKey("a", "a"), AssetKey("b", "b")
INBOX, QUEUE = TriggerWait("triggers.Inbox"), TriggerWait("triggers.Queue")

_tokens = itertools.count()


def watched(bench: Bench, dag_id: str, asset: AssetKey = A, *triggers: TriggerWait, paused: bool = False) -> None:
    """Parse a DAG that is scheduled on an asset with these watchers."""
    watchers = tuple(AssetWatch(f"w{n}", asset.name, asset.uri, one) for n, one in enumerate(triggers))
    bench.dag(dag_id, task("t"), assets=AssetSchedule(asset, watchers=watchers), paused=paused)


def running(bench: Bench) -> list[str]:
    return sorted(order.wait.classpath for order in bench.executor.triggers.values())


def key_of(bench: Bench, trigger: TriggerWait = INBOX) -> AttemptKey:
    (key,) = (key for key, order in bench.executor.triggers.items() if order.wait == trigger)
    return key


def fire(bench: Bench, key: AttemptKey, payload: bytes = b'{"n":1}', token: str = "") -> str:
    token = token or f"token {next(_tokens)}"
    bench.scheduler.watchers.fired(WatcherEvent(key, token, payload))
    bench.process()
    return token


def fail(bench: Bench, key: AttemptKey, error: str | None = "boom") -> None:
    bench.scheduler.watchers.ended(key, TriggerEnd(error=error))
    bench.process()


def events(bench: Bench, name: str = "a") -> list[object]:
    return [json.loads(event.extra or b"{}") for event in bench.store.asset_events(name=name)]


def row(bench: Bench) -> WatcherRow:
    (found,) = bench.store.watchers()
    return found


def test_an_event_becomes_an_asset_event_and_starts_a_run(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    token = fire(bench, key_of(bench))
    assert events(bench) == [{"from_trigger": True, "payload": {"n": 1}}]
    assert bench.executor.taken_events == [token]
    assert len(bench.runs("c")) == 1
    assert running(bench) == ["triggers.Inbox"]  # it goes on
    bench.check()


def test_written_events_are_counted_for_metrics(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    counts: list[int] = []
    bench.scheduler.watchers.on_events = counts.append
    fire(bench, key_of(bench))
    assert counts == [1]


def test_an_event_that_is_sent_twice_counts_once(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    token = fire(bench, key_of(bench))
    bench.restart()
    fire(bench, key_of(bench), token=token)
    assert len(events(bench)) == 1
    assert bench.executor.taken_events == [token, token]  # the worker did not get the first acknowledgement


def test_watchers_with_the_same_trigger_share_it(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    watched(bench, "d", B, INBOX)
    fire(bench, key_of(bench))
    assert len(events(bench, "a")) == len(events(bench, "b")) == 1
    assert len(bench.runs("c")) == len(bench.runs("d")) == 1


def test_a_trigger_runs_while_an_unpaused_dag_uses_it(bench: Bench) -> None:
    watched(bench, "c", A, INBOX, paused=True)
    assert running(bench) == []
    bench.command("set_paused", dag_id="c", is_paused=False)
    assert running(bench) == ["triggers.Inbox"]
    watched(bench, "d", A, INBOX, QUEUE)
    assert running(bench) == ["triggers.Inbox", "triggers.Queue"]
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert running(bench) == ["triggers.Inbox"]
    key = key_of(bench)
    watched(bench, "c", A)
    assert running(bench) == []
    assert bench.store.watchers() == []
    fire(bench, key)
    assert events(bench) == []


def test_a_changed_trigger_replaces_the_old_one(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    old = key_of(bench)
    watched(bench, "c", A, QUEUE)
    assert running(bench) == ["triggers.Queue"]
    fire(bench, old)
    assert events(bench) == []


def test_a_trigger_that_fails_is_started_again_after_a_growing_pause(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    pauses = []
    for failures in (1, 2, 3):
        fail(bench, key_of(bench))
        found = row(bench)
        assert (found.failures, found.error, found.worker) == (failures, "boom", None)
        assert found.next_start is not None
        pauses.append(found.next_start - bench.clock.wall())
        bench.pass_time(pauses[-1] - 1)
        assert running(bench) == []
        bench.pass_time(1)
        assert running(bench) == ["triggers.Inbox"]
    assert pauses == sorted(set(pauses))
    result = waits_for_assets(bench.store, bench.store.need_dag("c"))
    assert result == "0 of 1 asset updated; missing: a; the trigger of watcher w0 failed 3 times in a row (boom)"
    fire(bench, key_of(bench))
    assert row(bench).failures == 0
    assert row(bench).error is None
    assert waits_for_assets(bench.store, bench.store.need_dag("c")) == "0 of 1 asset updated; missing: a"


def test_a_trigger_that_ends_without_an_error_is_started_again(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    first = key_of(bench)
    fail(bench, first, None)
    bench.next_timer()
    assert key_of(bench) != first
    assert row(bench).failures == 0
    fire(bench, first)
    assert events(bench) == []


def test_an_event_that_cannot_be_written_is_not_acknowledged(bench: Bench) -> None:
    watched(bench, "c", A, INBOX)
    key = key_of(bench)
    bench.store.begin_epoch("other", 2, "boot", bench.clock.wall())
    fire(bench, key)
    assert bench.scheduler.superseded
    assert bench.executor.taken_events == []
    assert events(bench) == []


def test_the_store_refuses_a_scheduler_of_the_past(bench: Bench) -> None:
    epoch = bench.scheduler.epoch
    bench.store.begin_epoch("other", 2, "boot", bench.clock.wall())
    with pytest.raises(Stale):
        bench.store.record_asset_events([NewAssetEvent("a", "a", "asset", None, 1)], epoch)
    with pytest.raises(Stale):
        bench.store.note_watcher(WatcherRow(1, "x", None, 0, None, None, 1), epoch)


class Workers:
    """Two workers behind a real executor, and what they were told."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.executor = LocalExecutor(may_live=lambda _: False)
        self.said: dict[str, list[object]] = {}
        state = bench.scheduler.state
        state.executor = self.executor
        self.watchers: AssetWatchers = bench.scheduler.watchers
        self.hosts: HostRegistry = bench.scheduler.hosts

    def connect(self, name: str, *triggers: AttemptKey) -> None:
        self.said[name] = []
        self.executor.connect(f"{name}.1", self.said[name].append, live=(), triggers=triggers)
        self.hosts.register(f"{name}.1", frozenset(), frozenset(triggers))
        self.bench.process()

    def disconnect(self, name: str) -> None:
        self.executor.disconnect(name)
        self.hosts.disconnected(name)
        self.bench.process()

    def orders(self, name: str) -> list[AttemptKey]:
        return [order.key for message in self.said[name] if isinstance(message, RunTriggers) for order in message.triggers]

    def drops(self, name: str) -> list[AttemptKey]:
        return [key for message in self.said[name] if isinstance(message, DropTriggers) for key in message.keys]


def test_a_trigger_moves_when_its_worker_does_not_come_back(bench: Bench) -> None:
    workers = Workers(bench)
    watched(bench, "c", A, INBOX)
    workers.connect("one")
    workers.connect("two")
    (first,) = workers.orders("one")
    workers.disconnect("one")
    assert workers.orders("two") == []
    bench.pass_time(COMES_BACK)
    (second,) = workers.orders("two")
    assert second != first
    workers.connect("one", first)  # it was only cut off
    assert workers.drops("one") == [first]
    workers.watchers.fired(WatcherEvent(first, "late", b"1"))
    workers.watchers.fired(WatcherEvent(second, "good", b"2"))
    bench.process()
    assert events(bench) == [{"from_trigger": True, "payload": 2}]
    assert WatcherEventTaken(second, "good") in workers.said["two"]


def test_a_trigger_stays_with_a_worker_that_comes_back(bench: Bench) -> None:
    workers = Workers(bench)
    watched(bench, "c", A, INBOX)
    workers.connect("one")
    workers.connect("two")
    (first,) = workers.orders("one")
    workers.disconnect("one")
    bench.pass_time(SECOND)
    workers.connect("one", first)
    bench.pass_time(COMES_BACK)
    assert workers.orders("one") == [first]  # so that the worker sends again what was not acknowledged
    assert workers.orders("two") == []


def test_a_worker_whose_process_is_new_gets_the_trigger_again(bench: Bench) -> None:
    workers = Workers(bench)
    watched(bench, "c", A, INBOX)
    workers.connect("one")
    (first,) = workers.orders("one")
    bench.pass_time(SECOND)
    workers.disconnect("one")
    workers.connect("one")
    (second,) = workers.orders("one")
    assert second != first
    assert workers.drops("one") == [first]  # behind a new gateway the worker may still run it
