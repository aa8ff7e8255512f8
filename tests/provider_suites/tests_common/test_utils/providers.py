"""Facts about installed provider packages."""

from __future__ import annotations

import importlib
import importlib.metadata


def get_provider_min_airflow_version(provider_name: str) -> tuple[int, ...]:
    """The oldest Airflow that a package accepts: `apache-airflow-providers-ssh` → (2, 11, 0)."""
    requirement = next(
        (one for one in importlib.metadata.requires(provider_name) or () if one.startswith("apache-airflow>=")), None
    )
    if requirement is None:
        raise RuntimeError(f"{provider_name} does not say which Airflow it needs")
    return tuple(int(part) for part in requirement.partition(">=")[2].split(";")[0].strip().split("."))


def object_exists(path: str) -> bool:
    """Whether the object with this full name can be imported."""
    module, _, name = path.rpartition(".")
    return hasattr(importlib.import_module(module), name)
