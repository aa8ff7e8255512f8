"""The listeners of a plugin: in the processes of tasks, and in another process for DAG runs and lost tasks."""

from __future__ import annotations

from tests.integration.callbacks.conftest import Instance


def test_the_listeners_are_called_once_for_each_event(instance: Instance) -> None:
    assert instance.ended("listened", instance.begin("listened")) == "failed"
    instance.wait_for_lines("listened", 8)
    instance.nothing_left()
    result = instance.lines("listened")
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


def test_the_plugin_is_listed_with_its_events(instance: Instance) -> None:
    (plugin,) = instance.world.get("/api/v2/plugins")["plugins"]
    assert plugin["name"] == "note_events"
    assert plugin["recorded_only"] == []
