"""Jobs of services; a store that fails for a while loses none of them."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW
from tradewind.model.errors import StoreBusy
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewJob
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.jobs import HOST, LOST_AFTER, SCHEDULER, JobRegistry
from tradewind.store.memory import MemoryStore


class Failing(MemoryStore):
    """A store that raises while `busy`."""

    busy = False

    def begin_job(self, new: NewJob, at: int) -> None:
        if self.busy:
            raise StoreBusy("held")
        super().begin_job(new, at)


def job(life: str, job_type: str = HOST) -> NewJob:
    return NewJob(life, job_type, "box", "ada", 7)


def states(store: MemoryStore) -> dict[str, str]:
    return {one.service_id: one.state for one in store.jobs(100)}


def test_jobs_begin_beat_and_end() -> None:
    store, clock = Failing(), ManualClock(NOW)
    registry = JobRegistry(store, clock, job("s1", SCHEDULER))
    registry.begin()
    for life in ("well", "badly", "stays"):
        registry.service_connected(job(life))
    clock.advance(SECOND)
    registry.service_disconnected("well", None)
    registry.service_disconnected("badly", "its connection broke")
    registry.service_disconnected("nobody", None)
    clock.advance(SECOND)
    registry.beat()
    assert states(store) == {"s1": "running", "well": "success", "badly": "failed", "stays": "running"}
    assert {one.service_id: one.heartbeat_at - NOW for one in store.jobs(100) if one.state == "running"} == {
        "s1": 2 * SECOND,
        "stays": 2 * SECOND,
    }
    registry.end(None)
    assert states(store)["s1"] == "success"
    assert [entry.event for entry in store.event_logs().rows].count("service ended") == 3


def test_the_next_scheduler_ends_jobs_of_killed_services() -> None:
    store, clock = Failing(), ManualClock(NOW)
    first = JobRegistry(store, clock, job("s1", SCHEDULER))
    first.begin()
    first.service_connected(job("back"))
    first.service_connected(job("dead"))
    clock.advance(SECOND)
    second = JobRegistry(store, clock, job("s2", SCHEDULER))
    second.begin()
    second.service_connected(job("back"))
    assert states(store) == {"s1": "failed", "s2": "running", "back": "running", "dead": "running"}
    clock.advance(LOST_AFTER)
    second.beat()
    assert states(store) == {"s1": "failed", "s2": "running", "back": "running", "dead": "failed"}


def test_a_job_that_cannot_be_written_is_written_by_a_later_heartbeat() -> None:
    store, clock = Failing(), ManualClock(NOW)
    store.busy = True
    registry = JobRegistry(store, clock, job("s1", SCHEDULER))
    registry.begin()
    registry.service_connected(job("h"))
    assert states(store) == {}
    store.busy = False
    registry.beat()
    assert states(store) == {"s1": "running", "h": "running"}


def test_an_outage_of_the_store_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """All services disconnect when the scheduler stops because of it."""
    store, clock = Failing(), ManualClock(NOW)
    registry = JobRegistry(store, clock, job("s1", SCHEDULER))
    registry.begin()
    for outages in (1, 2):
        store.busy = True
        for life in ("a", "b", "c"):
            registry.service_connected(job(f"{life}{outages}"))
        assert caplog.text.count("jobs of services cannot be written now") == outages
        store.busy = False
        registry.beat()
