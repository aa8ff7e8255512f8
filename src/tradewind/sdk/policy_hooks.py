"""The functions of `airflow_local_settings` as pluggy hooks: packages offer them through the entry point group `airflow.policy`."""

from __future__ import annotations

from typing import Any

import pluggy

from tradewind.sdk.policies import ENTRY_POINTS as PROJECT

local_settings_hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks:
    """All hooks, with the arguments of Airflow."""

    @local_settings_hookspec
    def task_policy(self, task: Any) -> None:
        """Check a task, or change it."""

    @local_settings_hookspec
    def dag_policy(self, dag: Any) -> None:
        """Check a DAG, or change it."""

    @local_settings_hookspec
    def task_instance_mutation_hook(self, task_instance: Any) -> None:
        """Change a task instance before it runs."""

    @local_settings_hookspec
    def pod_mutation_hook(self, pod: Any) -> None:
        """Change the pod of a task. Called by the provider package of Kubernetes."""

    @local_settings_hookspec(firstresult=True)
    def get_airflow_context_vars(self, context: Any) -> dict[str, str] | None:
        """Return environment variables for a task."""

    @local_settings_hookspec(firstresult=True)
    def get_dagbag_import_timeout(self, dag_file_path: str) -> int | float | None:
        """Return the time limit of the import of a DAG file in seconds."""


def policies_of_packages() -> list[Any]:
    """The modules that installed packages offer. A module that cannot be imported raises its own error."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.load_setuptools_entrypoints(PROJECT)
    return list(manager.get_plugins())
