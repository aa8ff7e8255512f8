"""What a task's `executor_config` changes in the pod of the KubernetesExecutor, as the JSON of a pod.

    executor_config={"pod_override": k8s.V1Pod(spec=…)}               objects of the package `kubernetes`, or the same as a dict
    executor_config={"KubernetesExecutor": {"image": "one:2", …}}     the form of Airflow 1.10

The package `kubernetes` is not needed: its objects say themselves how their fields are called in YAML (`attribute_map`). The
scheduler, which creates the pod, gets only the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

BASE = "base"
"""Name of the container that runs the task."""
LEGACY = "KubernetesExecutor"
DEPTH_MAX = 40
_LEGACY_SPEC = {
    "affinity": "affinity",
    "tolerations": "tolerations",
    "node_selectors": "nodeSelector",
    "node_selector": "nodeSelector",
    "volumes": "volumes",
    "init_containers": "initContainers",
    "service_account_name": "serviceAccountName",
    "hostnetwork": "hostNetwork",
    "dnspolicy": "dnsPolicy",
    "schedulername": "schedulerName",
    "priority_class_name": "priorityClassName",
    "security_context": "securityContext",
}
_LEGACY_CONTAINER = {
    "image": "image",
    "image_pull_policy": "imagePullPolicy",
    "volume_mounts": "volumeMounts",
    "ports": "ports",
}
_LEGACY_RESOURCES = {
    "request_memory": ("requests", "memory"),
    "request_cpu": ("requests", "cpu"),
    "request_ephemeral_storage": ("requests", "ephemeral-storage"),
    "limit_memory": ("limits", "memory"),
    "limit_cpu": ("limits", "cpu"),
    "limit_gpu": ("limits", "nvidia.com/gpu"),
    "limit_ephemeral_storage": ("limits", "ephemeral-storage"),
}


def pod_override(config: object) -> str:
    """Return the JSON of the pod that an `executor_config` describes; empty: it changes no pod, or cannot be read.

    Args:
        config: the argument of the task. Airflow ignores the parts for other executors, and so does this function.
    """
    if not isinstance(config, Mapping):
        return ""
    pod, legacy = config.get("pod_override"), config.get(LEGACY)
    try:
        found = as_yaml(pod) if pod else _from_legacy(as_yaml(legacy)) if isinstance(legacy, Mapping) else None
        return json.dumps(found, sort_keys=True) if isinstance(found, dict) and found else ""
    except (TypeError, ValueError):
        return ""


def as_yaml(value: Any, depth: int = 0) -> Any:
    """Return an object of the package `kubernetes` as the dict that its YAML has. Empty fields are left out.

    Raises:
        TypeError: it holds something that YAML cannot have.
        ValueError: it is nested too deeply.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): as_yaml(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_yaml(one, depth + 1) for one in value]
    names = getattr(type(value), "attribute_map", None)
    if isinstance(names, Mapping):
        fields = ((name, getattr(value, attribute, None)) for attribute, name in names.items())
        return {name: as_yaml(one, depth + 1) for name, one in fields if one is not None}
    to_dict = getattr(value, "to_dict", None)  # a dict with the names of its YAML form
    if callable(to_dict):
        return as_yaml(to_dict(), depth + 1)
    raise TypeError(f"{type(value).__name__} is not part of a pod")


def _from_legacy(given: Mapping[str, Any]) -> dict[str, Any]:
    """The pod of Airflow 1.10's form: a flat dict."""
    container: dict[str, Any] = {"name": BASE}
    container |= {name: given[key] for key, name in _LEGACY_CONTAINER.items() if given.get(key)}
    resources: dict[str, dict[str, str]] = {}
    for key, (kind, name) in _LEGACY_RESOURCES.items():
        if given.get(key):
            resources.setdefault(kind, {})[name] = str(given[key])
    if resources:
        container["resources"] = resources
    if isinstance(given.get("envs"), Mapping):
        container["env"] = [{"name": name, "value": str(value)} for name, value in given["envs"].items()]
    spec = {name: given[key] for key, name in _LEGACY_SPEC.items() if given.get(key)}
    if given.get("image_pull_secrets"):
        secrets = given["image_pull_secrets"]
        names = secrets.split(",") if isinstance(secrets, str) else secrets
        spec["imagePullSecrets"] = [{"name": one} if isinstance(one, str) else one for one in names]
    metadata = {name: given[name] for name in ("labels", "annotations") if given.get(name)}
    return {"metadata": metadata, "spec": {**spec, "containers": [container]}}
