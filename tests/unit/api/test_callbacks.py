"""Callbacks that failed, and missed deadlines, over the API."""

from __future__ import annotations

from tests.unit.api.conftest import World
from tradewind.model.rows import DEADLINE, DeadlineMiss
from tradewind.wire.messages import Call, Workload, encode


def posted(world: World, name: str, parked: str | None = None) -> int:
    """A callback of the task t0 that failed once."""
    work = Workload(1, 0, 1, "sales", "t0", "r1", call=Call("on_failure_callback", 1))
    world.store.add_outbox_item("callback", name, encode(work), world.clock.wall(), run=1, slot=0)
    number = next(item.id for item in world.store.outbox_items() if item.identity == name)
    world.store.postpone_outbox_item(number, world.clock.wall(), parked, "ValueError: away")
    return number


def test_they_are_listed(world: World) -> None:
    waiting, parked = posted(world, "a"), posted(world, "b", "parked")
    found = world.json("/api/v2/callbacks")["callbacks"]
    assert [one["id"] for one in found] == [waiting, parked]
    (one,) = world.json("/api/v2/callbacks?parked=true")["callbacks"]
    assert one == world.json(f"/api/v2/callbacks/{parked}")
    assert (one["what"], one["place"], one["task_id"], one["tries"]) == ("on_failure_callback", 1, "t0", 1)
    assert (one["parked"], one["problem"]) == (True, "ValueError: away")
    assert "999" in world.json("/api/v2/callbacks/999", 404)["detail"]


def test_future_deadlines_are_not_listed_as_callbacks(world: World) -> None:
    """Deadlines are rows of the outbox, too."""
    world.store.add_outbox_item(DEADLINE, "deadline/1/0/alert/0", b"alert/0", world.clock.wall(), run=1)
    (item,) = world.store.due_outbox_items(world.clock.wall(), only=DEADLINE)
    assert str(item.id) in world.json(f"/api/v2/callbacks/{item.id}", 404)["detail"]
    assert world.request("DELETE", f"/api/v2/callbacks/{item.id}").status_code == 404


def test_retry_and_delete_of_callbacks(world: World) -> None:
    number = posted(world, "a", "parked")
    assert world.request("POST", f"/api/v2/callbacks/{number}/retry", "viewer").status_code == 403
    assert world.request("POST", f"/api/v2/callbacks/{number}/retry").status_code == 204
    assert [one["tries"] for one in world.json("/api/v2/callbacks?parked=false")["callbacks"]] == [0]
    assert world.request("DELETE", f"/api/v2/callbacks/{number}").status_code == 204
    assert world.request("DELETE", f"/api/v2/callbacks/{number}").status_code == 404
    assert world.json("/api/v2/callbacks")["callbacks"] == []


def test_missed_deadlines(world: World) -> None:
    world.dag()
    run = world.run()
    world.store.record_deadline_miss(DeadlineMiss(run.id, "sales", "r1", "t0", "sla/60000000", None, 0, 5_000_000))
    (miss,) = world.json("/api/v2/deadlineMisses?dag_id=sales")["deadline_misses"]
    assert (miss["task_id"], miss["name"]) == ("t0", "sla of 60 s")
    assert world.json("/api/v2/deadlineMisses?dag_id=other")["deadline_misses"] == []
