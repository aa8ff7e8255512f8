"""Arguments that DAG files for Airflow 1 and 2 give to the operators of Kubernetes and Docker: `resources=`, `volumes=`.

The packages of today have `container_resources=` and `mounts=`, with objects of the clients. `extend` is called when one of their
modules was imported, and changes the operators in place.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from tradewind.airflow.compat.kubernetes_objects import Resources
from tradewind.sdk import open_dags
from tradewind.sdk.default_args import replace_init
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.operator import BaseOperator

_OF_PODS = frozenset(
    f"{kind}_{what}" for kind in ("request", "limit") for what in ("memory", "cpu", "ephemeral_storage", "gpu")
) - {"request_gpu"}


def extend(module: ModuleType) -> None:
    """Let the operators of a module accept the older arguments."""
    for name, change in (("KubernetesPodOperator", _extend_pod), ("DockerOperator", _extend_docker)):
        cls = getattr(module, name, None)
        if isinstance(cls, type) and issubclass(cls, BaseOperator):
            change(cls)


def _extend_pod(cls: Any) -> None:
    present = cls.__init__

    def init(self: Any, *, resources: Any = None, **more: Any) -> None:
        of_pod = _requirements(resources) if open_dags.generation() < CURRENT else None
        if of_pod is not None and more.get("container_resources") is None:
            more["container_resources"] = of_pod
        elif resources is not None:
            more["resources"] = resources
        present(self, **more)

    replace_init(cls, init)


def _requirements(resources: Any) -> Any:
    """The resources of a container as an object of the client. None: they are not resources of a container."""
    if isinstance(resources, Mapping):
        if resources and _OF_PODS.issuperset(resources):
            return Resources(**resources)
        if resources and {"requests", "limits"}.issuperset(resources):
            return importlib.import_module("kubernetes.client.models").V1ResourceRequirements(**resources)
        return None
    return resources if type(resources).__name__ == "V1ResourceRequirements" else None


def _extend_docker(cls: Any) -> None:
    present = cls.__init__

    def init(self: Any, *, volumes: Sequence[str] | None = None, **more: Any) -> None:
        if volumes is not None and open_dags.generation() >= CURRENT:
            more["volumes"] = volumes
        elif volumes:
            more["mounts"] = [*(more.get("mounts") or ()), *map(_mount, volumes)]
        present(self, **more)

    replace_init(cls, init)


def _mount(volume: str) -> Any:
    """`/host:/container:ro` as a mount of the client of Docker; a source that is no path is the name of a volume."""
    source, _, rest = volume.partition(":")
    target, _, mode = rest.partition(":")
    mount = importlib.import_module("docker.types").Mount
    if not rest:
        return mount(target=source, source=None, type="volume")
    kind = "bind" if source.startswith(("/", ".", "~")) else "volume"
    return mount(target=target, source=source, type=kind, read_only="ro" in mode.split(","))
