"""What the status of a pod tells people, and whether its processes have surely ended."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.executors.pod_status import PodStatus, read_pod


def status(phase: str, **more: Any) -> PodStatus:
    labels = {"tradewind_attempt": "1-2-3", "tradewind_epoch": "4"}
    metadata = {"name": "p", "uid": "u", "labels": labels, "annotations": {"dag_id": "etl", "run_id": "r"}}
    found = read_pod({"metadata": metadata, "status": {"phase": phase, **more}})
    assert found is not None
    return found


def container(state: dict[str, Any], name: str = "base") -> dict[str, Any]:
    return {"name": name, "image": "example.org/x:1", "state": state}


def test_the_fields() -> None:
    found = status("Running")
    assert (found.name, found.uid, found.attempt, found.epoch) == ("p", "u", (1, 2, 3), 4)
    assert (found.dag_id, found.run_id, found.has_ended, found.problem) == ("etl", "r", False, "")


@pytest.mark.parametrize("label", [None, "1-2", "a-b-c", ""])
def test_other_pods_are_ignored(label: str | None) -> None:
    labels = {} if label is None else {"tradewind_attempt": label}
    assert read_pod({"metadata": {"name": "p", "labels": labels}}) is None
    assert read_pod({}) is None


@pytest.mark.parametrize(
    ("phase", "more", "problem"),
    [
        ("Pending", {"containerStatuses": [container({"waiting": {"reason": "ContainerCreating"}})]}, ""),
        (
            "Pending",
            {"containerStatuses": [container({"waiting": {"reason": "ErrImagePull", "message": "not\nfound"}})]},
            "container base: ErrImagePull: not found (image example.org/x:1)",
        ),
        (
            "Pending",
            {"initContainerStatuses": [container({"waiting": {"reason": "CreateContainerConfigError"}}, "init")]},
            "container init: CreateContainerConfigError (image example.org/x:1)",
        ),
        (
            "Pending",
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]},
            "Unschedulable: 0/3 nodes",
        ),
        (
            "Failed",
            {"containerStatuses": [container({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})]},
            "container base ended with exit code 137: OOMKilled",
        ),
        ("Failed", {"reason": "Evicted", "message": "The node was low on memory."}, "Evicted: The node was low on memory."),
        ("Succeeded", {"containerStatuses": [container({"terminated": {"exitCode": 0, "reason": "Completed"}})]}, ""),
    ],
)
def test_the_problem(phase: str, more: dict[str, Any], problem: str) -> None:
    assert status(phase, **more).problem == problem


@pytest.mark.parametrize(
    ("phase", "more", "ended"),
    [
        ("Running", {"containerStatuses": [container({"running": {}})]}, False),
        ("Failed", {"containerStatuses": [container({"terminated": {"exitCode": 1}})]}, True),
        (
            "Failed",
            {"containerStatuses": [container({"terminated": {"exitCode": 1}}), container({"running": {}}, "proxy")]},
            False,
        ),
        ("Failed", {"reason": "Evicted"}, True),  # no node has seen it
        ("Failed", {"reason": "NodeLost", "startTime": "2026-01-01T00:00:00Z"}, False),  # its node may still run it
    ],
)
def test_whether_all_processes_have_ended(phase: str, more: dict[str, Any], ended: bool) -> None:
    assert status(phase, **more).processes_ended is ended
