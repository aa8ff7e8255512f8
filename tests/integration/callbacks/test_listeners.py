"""The listeners of a plugin: in the processes of tasks, and in another process for DAG runs and lost tasks."""

from __future__ import annotations

from tests.integration.callbacks.conftest import Told


def test_the_listeners_are_called_once_for_each_event(told: Told) -> None:
    assert told.ended("listened", told.begin("listened")) == "failed"
    told.heard("listened", 8)
    told.nothing_left()
    result = told.lines("listened")
    assert sorted((one["event"], one.get("task", "")) for one in result) == [
        ("failed", "dies"),
        ("failed", "fails"),
        ("run failed", ""),
        ("run running", ""),
        ("running", "dies"),
        ("running", "fails"),
        ("running", "works"),
        ("success", "works"),
    ]
    errors = {one["task"]: one["error"] for one in result if one["event"] == "failed"}
    assert errors["fails"] == "boom"
    assert "killed by SIGKILL" in errors["dies"]
    (end,) = [one for one in result if one["event"] == "run failed"]
    assert (end["state"], end["msg"], end["tags"]) == ("failed", "task_failure", ["heard"])


def test_the_plugin_is_listed_with_its_events(told: Told) -> None:
    (plugin,) = told.world.get("/api/v2/plugins")["plugins"]
    assert plugin["name"] == "note_events"
    assert plugin["recorded_only"] == []
