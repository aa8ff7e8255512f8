"""Volumes, mounts, ports and resources of Airflow 1.10's `KubernetesPodOperator`, as objects of the package `kubernetes`.

Airflow 1.10 had its own classes; current provider packages use those of the Kubernetes client. Needs `pip install kubernetes`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Pod", "PodRuntimeInfoEnv", "Port", "Resources", "Volume", "VolumeMount"]

_CAMEL = re.compile(r"(?<!^)([A-Z])")


def _models() -> Any:
    return importlib.import_module("kubernetes.client.models")


def _filled(made: Any, values: Mapping[str, Any]) -> Any:
    """Set attributes by their names in YAML (`persistentVolumeClaim`)."""
    for name, value in values.items():
        setattr(made, _CAMEL.sub(r"_\1", name).lower(), value)
    return made


class Volume:
    """A volume of a pod: calling it gives a `V1Volume`."""

    def __new__(cls, name: str, configs: Mapping[str, Any] | None = None) -> Any:
        return _filled(_models().V1Volume(name=name), configs or {})


class VolumeMount:
    """The mount of a volume in a container: calling it gives a `V1VolumeMount`."""

    def __new__(cls, name: str, mount_path: str, sub_path: str | None = None, read_only: bool = False) -> Any:
        return _models().V1VolumeMount(name=name, mount_path=mount_path, sub_path=sub_path, read_only=read_only)


class Port:
    """A port of a container: calling it gives a `V1ContainerPort`."""

    def __new__(cls, name: str | None = None, container_port: int | None = None) -> Any:
        return _models().V1ContainerPort(name=name, container_port=container_port)


class PodRuntimeInfoEnv:
    """An environment variable whose value is a field of the pod: calling it gives a `V1EnvVar`."""

    def __new__(cls, name: str, field_path: str) -> Any:
        models = _models()
        source = models.V1EnvVarSource(field_ref=models.V1ObjectFieldSelector(field_path=field_path))
        return models.V1EnvVar(name=name, value_from=source)


class Resources:
    """The requests and limits of a container: calling it gives a `V1ResourceRequirements`."""

    def __new__(
        cls,
        request_memory: str | None = None,
        request_cpu: str | None = None,
        request_ephemeral_storage: str | None = None,
        limit_memory: str | None = None,
        limit_cpu: str | None = None,
        limit_gpu: str | None = None,
        limit_ephemeral_storage: str | None = None,
    ) -> Any:
        requests = {"memory": request_memory, "cpu": request_cpu, "ephemeral-storage": request_ephemeral_storage}
        limits = {
            "memory": limit_memory,
            "cpu": limit_cpu,
            "nvidia.com/gpu": limit_gpu,
            "ephemeral-storage": limit_ephemeral_storage,
        }
        return _models().V1ResourceRequirements(
            requests={name: value for name, value in requests.items() if value is not None},
            limits={name: value for name, value in limits.items() if value is not None},
        )


class Pod:
    """A pod of Airflow 1.10: calling it gives a `V1Pod` with one container."""

    def __new__(cls, image: str, envs: Mapping[str, str] | None = None, cmds: list[str] | None = None, **more: Any) -> Any:
        models = _models()
        variables = [models.V1EnvVar(name=name, value=value) for name, value in (envs or {}).items()]
        container = models.V1Container(
            name="base", image=image, env=variables, command=cmds, args=more.get("args"), resources=more.get("resources")
        )
        metadata = models.V1ObjectMeta(
            name=more.get("name"),
            namespace=more.get("namespace"),
            labels=more.get("labels"),
            annotations=more.get("annotations"),
        )
        return models.V1Pod(metadata=metadata, spec=models.V1PodSpec(containers=[container]))
