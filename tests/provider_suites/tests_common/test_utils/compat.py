"""Names that moved between releases."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import importlib

    if name == "timezone":
        return importlib.import_module("airflow.sdk.timezone")
    for module in (
        "airflow.sdk",
        "airflow.models",
        "airflow.serialization.serialized_objects",
        "airflow.utils.types",
        "airflow.models.xcom",
    ):
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise AttributeError(name)
