"""The pod of an attempt, as the JSON object that the API server of Kubernetes gets. Pure: no client and no files.

    pod template (or the setting of the image)
      + what the task changes (`executor_config={"pod_override": …}`)
      + what each pod needs: name, labels, command, token, address of the gateway

The parts are merged as Airflow does: the later part wins, lists such as volumes and environment variables are joined, and
containers are merged by position. The first container is called `base` and runs the task.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tradewind.model.errors import ConfigError
from tradewind.model.moments import from_micros
from tradewind.wire.messages import AttemptKey, Workload
from tradewind.wire.worker_names import pod_name

Pod = dict[str, Any]
"""A pod with the names of its YAML form."""

DEPLOYMENT_LABEL = "tradewind_deployment"
ATTEMPT_LABEL = "tradewind_attempt"
EPOCH_LABEL = "tradewind_epoch"
DONE_LABEL = "tradewind_done"
"""Marks a pod that has ended and is kept for people: the executor does not look at it any more."""
BASE = "base"
"""Name of the container that runs the task."""
COMMAND = ("tradewind", "worker", "--single-attempt")
HOME_FOLDER = "/tradewind-home"
HOME_VOLUME = "tradewind-home"
LABEL_MAX = 63
NAME_MAX = 63
DEFAULT_GRACE_SECONDS = 30
"""The grace period that Kubernetes gives a pod that names none."""
UPLOAD_SECONDS = 30
"""Time for the last logs and the report of a pod that is being stopped, in addition to the grace period of the task."""
OVERRIDE_MAX = 512 * 1024
"""Maximum size of a task's changes, characters of JSON. The API server accepts about 1.5 MB for a whole pod."""

_METADATA_LISTS = ("managedFields", "finalizers", "ownerReferences")
_SPEC_LISTS = ("initContainers", "volumes")
_CONTAINER_LISTS = ("volumeMounts", "env", "envFrom", "ports", "volumeDevices")


class PodSettings(NamedTuple):
    """What all pods of a deployment have in common."""

    deployment: str
    """Identifies the deployment among those that share the namespace."""
    namespace: str
    template: Pod
    """The pod template; `EMPTY_TEMPLATE` if there is none."""
    image: str
    """Image of the container that runs the task; empty: that of the template."""
    gateway: str
    """Address of the gateway, as pods reach it."""
    kill_grace_seconds: float
    """Time between TERM and KILL for a task."""
    epoch: int
    """The epoch of the scheduler that creates the pods."""


EMPTY_TEMPLATE: Pod = {"metadata": {}, "spec": {"containers": [{"name": BASE}]}}


def check_template(template: object, source: str) -> Pod:
    """Return a pod template.

    Args:
        template: the content of the YAML file.
        source: its path, for errors.

    Raises:
        ConfigError: it is not a pod, or has no container for the task.
    """
    if not isinstance(template, dict) or template.get("kind", "Pod") != "Pod":
        raise ConfigError(f"kubernetes_executor.pod_template_file: {source} does not contain a pod (kind: Pod)")
    containers = (template.get("spec") or {}).get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(one, dict) for one in containers):
        raise ConfigError(f"kubernetes_executor.pod_template_file: the pod in {source} has no spec.containers")
    if containers[0].get("name") != BASE:
        raise ConfigError(
            f"kubernetes_executor.pod_template_file: the first container in {source} is called "
            f"{containers[0].get('name')!r}; it runs the task, so call it {BASE!r}"
        )
    return template


def image_of(template: Pod) -> str:
    """The image of the container that runs the task; empty: the template names none."""
    return str(template["spec"]["containers"][0].get("image") or "")


def read_override(text: str) -> Pod | None:
    """Return what a task changes in its pod. See `TaskDefinition.pod_override`."""
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else None


def attempt_label(attempt: AttemptKey) -> str:
    """The value of the label that names an attempt."""
    return "{}-{}-{}".format(*attempt)


def attempt_in(pod: Mapping[str, Any]) -> AttemptKey | None:
    """The attempt of a pod; None: the pod has no such label."""
    text = ((pod.get("metadata") or {}).get("labels") or {}).get(ATTEMPT_LABEL, "")
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def name_of_pod(workload: Workload, deployment: str) -> str:
    """The name of an attempt's pod. It is the same whenever the pod is created again, so an attempt has one pod at a time."""
    end = f"{deployment}-{attempt_label(workload.key)}"
    words = re.sub(r"[^a-z0-9]+", "-", f"{workload.dag_id}-{workload.task_id}".lower()).strip("-")
    begin = words[: NAME_MAX - len(end) - 1].strip("-") or "task"
    return f"{begin}-{end}"


def label_value(text: str) -> str:
    """A text that Kubernetes accepts as the value of a label. One that had to be changed ends with a hash of the original."""
    safe = re.sub(r"^[^a-zA-Z0-9]+|[^a-zA-Z0-9]+$", "", re.sub(r"[^a-zA-Z0-9_.-]", "", text))
    if safe == text and len(safe) <= LABEL_MAX:
        return safe
    hashed = hashlib.sha256(text.encode()).hexdigest()[:9]
    return f"{safe[: LABEL_MAX - len(hashed) - 1]}-{hashed}".strip("-_.")


def make_pod(workload: Workload, settings: PodSettings, token: str) -> Pod:
    """Return the pod that runs an attempt.

    Args:
        token: the worker token of this pod.
    """
    override = read_override(workload.pod_override)
    merged = merge_pods(settings.template, override)
    pod = merge_pods(merged, _own_part(workload, settings, token, merged))
    if settings.image and not _image_in(override):
        pod["spec"]["containers"][0]["image"] = settings.image
    spec = pod["spec"]
    spec["restartPolicy"] = "Never"  # an attempt starts once; what follows a failure is decided by the scheduler
    shortest = int(settings.kill_grace_seconds) + UPLOAD_SECONDS
    spec["terminationGracePeriodSeconds"] = max(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE_SECONDS, shortest)
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    return pod


def _image_in(override: Pod | None) -> str:
    """The image that a task chooses for its container; empty: it chooses none."""
    containers = _part_list((override or {}).get("spec"))
    return str(containers[0].get("image") or "") if containers and isinstance(containers[0], dict) else ""


def _own_part(workload: Workload, settings: PodSettings, token: str, merged: Pod) -> Pod:
    """What each pod needs, as a pod. It is merged last, so nobody can change it."""
    container: dict[str, Any] = {"name": BASE}
    before = merged["spec"]["containers"][0]
    named = {one.get("name") for one in before.get("env") or ()}
    variables = {
        "TRADEWIND__WORKER__GATEWAY": settings.gateway,
        "TRADEWIND__WORKER__TOKEN": token,
        "TRADEWIND__CORE__KILL_GRACE": f"{settings.kill_grace_seconds:g}",
        "AIRFLOW_IS_K8S_EXECUTOR_POD": "True",
    }
    spec: dict[str, Any] = {"containers": [container]}
    if "TRADEWIND_HOME" not in named:
        variables["TRADEWIND_HOME"] = HOME_FOLDER
        container["volumeMounts"] = [{"name": HOME_VOLUME, "mountPath": HOME_FOLDER}]
        spec["volumes"] = [{"name": HOME_VOLUME, "emptyDir": {}}]
    container["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    container["args"] = list(COMMAND)
    names = {"dag_id": workload.dag_id, "task_id": workload.task_id, "run_id": workload.run_id}
    labels = {name: label_value(text) for name, text in names.items()}
    labels |= {"try_number": str(workload.try_number), "kubernetes_executor": "True"}
    labels |= {"map_index": str(workload.map_index)} if workload.map_index >= 0 else {}
    if workload.logical_date is not None:
        names["logical_date"] = from_micros(workload.logical_date).isoformat()
        labels["logical_date"] = names["logical_date"].replace(":", "_").replace("+", "_plus_")  # as in Airflow
    labels |= {
        DEPLOYMENT_LABEL: settings.deployment,
        ATTEMPT_LABEL: attempt_label(workload.key),
        EPOCH_LABEL: str(settings.epoch),
    }
    metadata = {
        "name": name_of_pod(workload, settings.deployment),
        "namespace": settings.namespace,
        "labels": labels,
        "annotations": {**names, "try_number": str(workload.try_number), "worker": pod_name(workload.key)},
    }
    return {"metadata": metadata, "spec": spec}


# --- merging --------------------------------------------------------------------------------------------------------------


def merge_pods(base: Pod, change: Pod | None) -> Pod:
    """Return a pod with everything of both; `change` wins. None: nothing is changed."""
    if not change:
        return {**base, "metadata": dict(base.get("metadata") or {}), "spec": dict(base["spec"])}
    metadata = _joined(base.get("metadata"), change.get("metadata"), _METADATA_LISTS)
    for name in ("labels", "annotations"):
        both = {**_part(base.get("metadata"), name), **_part(change.get("metadata"), name)}
        if both:
            metadata[name] = both
    spec = _joined(base.get("spec"), change.get("spec"), _SPEC_LISTS)
    spec["containers"] = _merge_containers(_part_list(base.get("spec")), _part_list(change.get("spec")))
    return {**_joined(base, change, ()), "metadata": metadata, "spec": spec}


def _merge_containers(base: list[Any], change: list[Any]) -> list[Any]:
    both = [_joined(one, other, _CONTAINER_LISTS) for one, other in zip(base, change, strict=False)]
    return [*both, *base[len(both) :], *change[len(both) :]]


def _joined(base: Mapping[str, Any] | None, change: Mapping[str, Any] | None, lists: tuple[str, ...]) -> dict[str, Any]:
    """The fields of both. An empty field of `change` counts as not given."""
    merged = {**(base or {}), **{name: value for name, value in (change or {}).items() if value not in (None, "", [], {})}}
    for name in lists:
        joined = [*((base or {}).get(name) or ()), *((change or {}).get(name) or ())]
        if joined:
            merged[name] = joined
    return merged


def _part(of: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    return dict((of or {}).get(name) or {})


def _part_list(spec: Mapping[str, Any] | None) -> list[Any]:
    return list((spec or {}).get("containers") or ())
