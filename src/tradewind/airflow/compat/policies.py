"""`airflow.settings.pod_mutation_hook`: a function of the user's `airflow_local_settings` that changes pods."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["pod_mutation_hook"]


def pod_mutation_hook(pod: Any) -> None:
    """Change a pod before it is created. Calls the function with this name in `airflow_local_settings`, if there is one."""
    try:
        settings = importlib.import_module("airflow_local_settings")
    except ModuleNotFoundError as error:
        if error.name != "airflow_local_settings":
            raise
        return
    own = getattr(settings, "pod_mutation_hook", None)
    if own is not None:
        own(pod)
