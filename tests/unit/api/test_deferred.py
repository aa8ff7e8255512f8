"""What the API shows of a task instance that waits for a trigger."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.unit.api.conftest import World
from tests.unit.api.test_logs import Attempts
from tradewind.model.moments import MINUTE, iso
from tradewind.model.rows import Batch, DeferralRow, RunWrite
from tradewind.model.states import TaskState
from tradewind.model.waits import Deferral, MomentWait, TriggerWait, Wait

URL = "/api/v2/dags/sales/dagRuns/r1/taskInstances/t0"


@pytest.fixture
def attempts(world: World) -> Attempts:
    found = Attempts(world)
    found.start(1)
    found.end("deferred", TaskState.DEFERRED)
    return found


def _waits_for(attempts: Attempts, wait: Wait) -> None:
    world = attempts.world
    now = world.store.run(attempts.run.id)
    assert now is not None
    row = DeferralRow(0, 1, world.clock.wall(), Deferral(wait, "go_on"))
    write = RunWrite(now.id, now.revision, now.state, 1, None, None, 0, deferrals=[row])
    assert world.store.commit(Batch(0, 1, runs=[write])).stale == {}


def _trigger(kwargs: dict[str, Any]) -> TriggerWait:
    return TriggerWait("arrivals.Arrived", msgspec.json.encode(kwargs))


def test_a_trigger_is_shown_without_its_secrets(world: World, attempts: Attempts) -> None:
    kwargs = {
        "path": "/data/in",
        "api_token": "hunter-22",
        "headers": {"Authorization": "Bearer hunter-22", "accept": "json"},
        "logins": [{"user": "ann", "password": "hunter-22"}],
    }
    _waits_for(attempts, _trigger(kwargs))
    found = world.json(URL)
    assert found["state"] == "deferred"
    assert found["trigger"]["classpath"] == "arrivals.Arrived"
    assert found["trigger"]["created_date"] == iso(world.clock.wall())
    assert json.loads(found["trigger"]["kwargs"]) == {
        "path": "/data/in",
        "api_token": "***",
        "headers": {"Authorization": "***", "accept": "json"},
        "logins": [{"user": "ann", "password": "***"}],
    }
    for role in ("viewer", "admin"):
        assert "hunter-22" not in world.get(URL, role).text
        assert "hunter-22" not in world.get("/api/v2/dags/sales/dagRuns/r1/taskInstances", role).text


def test_the_triggerer_of_a_trigger_is_the_latest_worker_host(world: World, attempts: Attempts) -> None:
    _waits_for(attempts, _trigger({}))
    found = world.json(URL)
    assert (found["triggerer_job"], found["trigger"]["triggerer_id"]) == (None, None), "no host has ever come"
    world.store.record_worker_host("w1.00ab00ab00ab00ab", "old.example", 1, 0, world.clock.wall())
    world.clock.advance(MINUTE)
    world.store.record_worker_host("w1.00cd00cd00cd00cd", "new.example", 2, 0, world.clock.wall())
    found = world.json(URL)
    job = found["triggerer_job"]
    assert (job["job_type"], job["state"], job["hostname"]) == ("TriggererJob", "running", "new.example")
    assert job["id"] == found["trigger"]["triggerer_id"] > 0


def test_other_waits_and_other_states_have_no_trigger(world: World, attempts: Attempts) -> None:
    world.store.record_worker_host("00ab" * 4, "h", 1, 0, world.clock.wall())
    _waits_for(attempts, MomentWait(0))
    assert (world.json(URL)["trigger"], world.json(URL)["triggerer_job"]) == (None, None)
    _waits_for(attempts, _trigger({}))
    assert world.json(URL)["trigger"] is not None
    attempts.start(2)
    assert (world.json(URL)["trigger"], world.json(URL)["triggerer_job"]) == (None, None)
