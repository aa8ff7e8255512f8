"""Airflow's executors as DAG files mention them, for example as `SubDagOperator(executor=SequentialExecutor())`.

Where a task runs is decided by the settings and by the argument `executor` of a task; these objects have only a name.
"""

from __future__ import annotations

from typing import Any

from tradewind.sdk.conf import conf

__all__ = [
    "CELERY_EXECUTOR",
    "CELERY_KUBERNETES_EXECUTOR",
    "CORE_EXECUTOR_NAMES",
    "DASK_EXECUTOR",
    "DEBUG_EXECUTOR",
    "DEFAULT_EXECUTOR",
    "KUBERNETES_EXECUTOR",
    "LOCAL_EXECUTOR",
    "LOCAL_KUBERNETES_EXECUTOR",
    "MOCK_EXECUTOR",
    "SEQUENTIAL_EXECUTOR",
    "CeleryExecutor",
    "CeleryKubernetesExecutor",
    "DaskExecutor",
    "DebugExecutor",
    "GetDefaultExecutor",
    "KubernetesExecutor",
    "LocalExecutor",
    "LocalKubernetesExecutor",
    "SequentialExecutor",
    "get_default_executor",
]


class _NamedExecutor:
    """An object that stands for an executor and has only its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        return type(self).__name__


class SequentialExecutor(_NamedExecutor):
    """One task at a time, on this machine."""


class LocalExecutor(_NamedExecutor):
    """Several tasks at a time, on this machine."""


class CeleryExecutor(_NamedExecutor):
    """Workers that take tasks from a broker."""


class KubernetesExecutor(_NamedExecutor):
    """One pod for each task."""


class CeleryKubernetesExecutor(_NamedExecutor):
    """Celery, and Kubernetes for one queue."""


class LocalKubernetesExecutor(_NamedExecutor):
    """This machine, and Kubernetes for one queue."""


class DaskExecutor(_NamedExecutor):
    """Workers of a Dask cluster."""


class DebugExecutor(_NamedExecutor):
    """One task at a time, in this process."""


def get_default_executor() -> _NamedExecutor:
    """The executor of the settings."""
    name = conf.get("core", "executor", fallback="LocalExecutor")
    known = {cls.__name__: cls for cls in _NamedExecutor.__subclasses__()}
    return known.get(str(name).rpartition(".")[2], LocalExecutor)()


GetDefaultExecutor = get_default_executor
"""Name of `get_default_executor` until Airflow 1.10."""

DEFAULT_EXECUTOR: _NamedExecutor = LocalExecutor()
"""Default of `SubDagOperator(executor=…)` in Airflow 1.7."""

LOCAL_EXECUTOR = "LocalExecutor"
LOCAL_KUBERNETES_EXECUTOR = "LocalKubernetesExecutor"
SEQUENTIAL_EXECUTOR = "SequentialExecutor"
CELERY_EXECUTOR = "CeleryExecutor"
CELERY_KUBERNETES_EXECUTOR = "CeleryKubernetesExecutor"
DASK_EXECUTOR = "DaskExecutor"
KUBERNETES_EXECUTOR = "KubernetesExecutor"
DEBUG_EXECUTOR = "DebugExecutor"
MOCK_EXECUTOR = "MockExecutor"
CORE_EXECUTOR_NAMES = {cls.__name__ for cls in _NamedExecutor.__subclasses__()} | {MOCK_EXECUTOR}
"""The constants of `airflow.executors.executor_constants`."""
