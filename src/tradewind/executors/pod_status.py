"""What the status of a pod says: whether it has ended, and why it does not start. Pure: reads the JSON object of the pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tradewind.executors.pod_spec import BASE, EPOCH_LABEL, attempt_in
from tradewind.wire.messages import AttemptKey

PENDING = "Pending"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
MESSAGE_MAX = 300
"""Maximum length of a message of Kubernetes in a reason, characters."""

_HARMLESS = frozenset({"ContainerCreating", "PodInitializing", ""})
"""Reasons for which a container waits in every pod that starts normally."""


class PodStatus(NamedTuple):
    """One pod, as the executor sees it."""

    name: str
    uid: str
    attempt: AttemptKey
    epoch: int
    """The epoch of the scheduler that created it."""
    run_id: str
    dag_id: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    is_being_deleted: bool
    processes_ended: bool
    """Surely no process of the pod is alive: all its containers have ended, or none was started. A node that is not reachable
    does not count.
    """
    problem: str
    """Why it does not start, or why it failed, for people; empty: nothing is known."""

    @property
    def has_ended(self) -> bool:
        return self.phase in (SUCCEEDED, FAILED)


def read_pod(pod: Mapping[str, Any]) -> PodStatus | None:
    """Return the status of a pod; None: it is not the pod of an attempt."""
    attempt = attempt_in(pod)
    metadata = pod.get("metadata") or {}
    if attempt is None or not metadata.get("name"):
        return None
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    epoch = str(labels.get(EPOCH_LABEL, ""))
    status = pod.get("status") or {}
    phase = str(status.get("phase") or PENDING)
    return PodStatus(
        str(metadata["name"]),
        str(metadata.get("uid") or ""),
        attempt,
        int(epoch) if epoch.isdecimal() else 0,
        str(notes.get("run_id", "")),
        str(notes.get("dag_id", "")),
        phase,
        bool(metadata.get("deletionTimestamp")),
        phase in (SUCCEEDED, FAILED) and _all_ended(status),
        _problem(status, phase),
    )


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return [one for one in found if isinstance(one, Mapping)]


def _all_ended(status: Mapping[str, Any]) -> bool:
    """Whether no container can have a process. Without a start time the kubelet has not seen the pod, so it started none."""
    containers = _containers(status)
    if not containers:
        return not status.get("startTime")
    states = [one.get("state") or {} for one in containers]
    return all("terminated" in state or "waiting" in state for state in states)


def _problem(status: Mapping[str, Any], phase: str) -> str:
    if phase == SUCCEEDED:
        return ""
    found = _of_containers(_containers(status), ended=phase == FAILED)
    if status.get("reason"):  # Evicted, NodeLost, DeadlineExceeded …
        found = _sentence(str(status["reason"]), status.get("message"))
    if not found and phase == PENDING:
        found = _of_conditions(status.get("conditions") or ())
    return found


def _of_containers(containers: Iterable[Mapping[str, Any]], *, ended: bool) -> str:
    """The most important thing that the containers say. The container of the task comes first."""
    found: list[str] = []
    for one in sorted(containers, key=lambda one: one.get("name") != BASE):
        state, name = one.get("state") or {}, one.get("name")
        waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting and str(waiting.get("reason", "")) not in _HARMLESS:
            said = _sentence(str(waiting["reason"]), waiting.get("message"))
            found.append(f"container {name}: {said} (image {one.get('image')})")
        elif terminated and (terminated.get("exitCode") or ended):
            code = terminated.get("exitCode")
            said = _sentence(str(terminated.get("reason") or "Error"), terminated.get("message"))
            found.append(f"container {name} ended with exit code {code}: {said}")
    return found[0] if found else ""


def _of_conditions(conditions: Iterable[Mapping[str, Any]]) -> str:
    for one in conditions:
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return _sentence(str(one.get("reason") or "Unschedulable"), one.get("message"))
    return ""


def _sentence(reason: str, message: object) -> str:
    text = " ".join(str(message or "").split())[:MESSAGE_MAX]
    return f"{reason}: {text}" if text else reason
