"""Names of executors, as DAG files (`executor=`) and the setting `core.executor` write them.

The setting is a list, as in Airflow: `LocalExecutor,SequentialExecutor`. The first one is the default. An entry is a class name, or
the import path of a class, whose last part is the name; `alias:name` gives it a second name for DAG files.

This module imports nothing, because every command loads it with the settings.
"""

from __future__ import annotations

LOCAL = "LocalExecutor"
SEQUENTIAL = "SequentialExecutor"
CELERY = "CeleryExecutor"
KUBERNETES = "KubernetesExecutor"
SUPPORTED = (LOCAL, SEQUENTIAL, CELERY, KUBERNETES)


def class_name(name: str) -> str:
    """Return the last part of an import path: `airflow.executors.local_executor.LocalExecutor` → `LocalExecutor`."""
    return name.strip().rpartition(".")[2]


def split_entry(entry: str) -> tuple[str, str]:
    """Return the name and the alias of one entry of the setting; an empty alias: the entry has no alias."""
    alias, _, name = entry.rpartition(":")
    return class_name(name), alias.strip()


def entries(setting: str) -> list[tuple[str, str]]:
    """Return (name, alias) of each executor in the setting, the default first."""
    return [split_entry(entry) for entry in setting.split(",") if entry.strip()]
