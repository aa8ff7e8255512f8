"""Listeners: functions of plugins that are called when the state of a task instance or DAG run changes.

    from airflow.listeners import hookimpl

    @hookimpl
    def on_task_instance_failed(previous_state, task_instance, error): ...

A plugin lists modules or objects with such functions in its attribute `listeners`. The functions and their arguments are those of
Airflow 2 and 3; a function may leave out arguments. Listeners are user code: they run in the processes of tasks and of callbacks.
"""

from __future__ import annotations

import functools
import importlib
import logging
from types import ModuleType
from typing import Any

import pluggy

from tradewind.sdk.plugins import Loaded, plugins_of_process

log = logging.getLogger("tradewind.task")

hookspec = pluggy.HookspecMarker("airflow")
hookimpl = pluggy.HookimplMarker("airflow")

TASK_EVENTS = (
    "on_task_instance_running",
    "on_task_instance_success",
    "on_task_instance_failed",
    "on_task_instance_skipped",
)
RUN_EVENTS = ("on_dag_run_running", "on_dag_run_success", "on_dag_run_failed")
"""Events of a DAG run. They are called in the process of a callback."""


class Events:
    """All events, with the arguments of Airflow 2 and 3."""

    @hookspec
    def on_starting(self, component: Any) -> None:
        """The process of a task has begun. `component`: a `TaskRunnerMarker`."""

    @hookspec
    def before_stopping(self, component: Any) -> None:
        """The process of a task is about to end."""

    @hookspec
    def on_task_instance_running(self, previous_state: Any, task_instance: Any, session: Any) -> None:
        """The templates of the task are rendered, and the task is about to be executed."""

    @hookspec
    def on_task_instance_success(self, previous_state: Any, task_instance: Any, session: Any) -> None:
        """The task has succeeded."""

    @hookspec
    def on_task_instance_failed(self, previous_state: Any, task_instance: Any, error: Any, session: Any) -> None:
        """The task has failed, with or without a retry. `error`: its exception, or a text if its process was lost."""

    @hookspec
    def on_task_instance_skipped(self, previous_state: Any, task_instance: Any, session: Any) -> None:
        """The task has skipped itself."""

    @hookspec
    def on_dag_run_running(self, dag_run: Any, msg: str) -> None:
        """The DAG run has started."""

    @hookspec
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:
        """The DAG run has succeeded."""

    @hookspec
    def on_dag_run_failed(self, dag_run: Any, msg: str) -> None:
        """The DAG run has failed. `msg`: Airflow's reason, for example `task_failure`."""

    @hookspec
    def on_asset_changed(self, asset: Any) -> None:
        """A task has updated the asset."""

    @hookspec
    def on_dataset_changed(self, dataset: Any) -> None:
        """`on_asset_changed` of Airflow 2."""

    @hookspec
    def on_asset_created(self, asset: Any) -> None:
        """An asset is new: a DAG file names it, or a task has added it under an alias. Called in a child process of the parser."""

    @hookspec
    def on_asset_alias_created(self, asset_alias: Any) -> None:
        """An alias is new. Called in a child process of the parser."""

    @hookspec
    def on_asset_event_emitted(self, asset_event: Any) -> None:
        """A task has emitted an event of an asset: `asset`, `extra`, `source_dag_id` …, `source_aliases`, `partition_key`."""

    @hookspec
    def on_dataset_created(self, dataset: Any) -> None:
        """`on_asset_created` of Airflow 2."""

    @hookspec
    def on_dataset_alias_created(self, dataset_alias: Any) -> None:
        """`on_asset_alias_created` of Airflow 2."""

    @hookspec
    def on_new_dag_import_error(self, filename: str, stacktrace: str) -> None:
        """A DAG file that was in order, or is new, cannot be imported. Called in a child process of the parser."""

    @hookspec
    def on_existing_dag_import_error(self, filename: str, stacktrace: str) -> None:
        """A DAG file that could not be imported has another error now. Called in a child process of the parser."""


CALLED = frozenset(
    {
        "on_starting",
        "before_stopping",
        *TASK_EVENTS,
        *RUN_EVENTS,
        "on_asset_changed",
        "on_asset_event_emitted",
        "on_dataset_changed",
        "on_asset_created",
        "on_asset_alias_created",
        "on_dataset_created",
        "on_dataset_alias_created",
        "on_new_dag_import_error",
        "on_existing_dag_import_error",
    }
)
"""The events that Tradewind calls."""


class TaskRunnerMarker:
    """The `component` of the events `on_starting` and `before_stopping`: the process of a task."""


class ListenerManager:
    """The listeners of a process. The attributes are those of Airflow."""

    def __init__(self) -> None:
        self.pm = pluggy.PluginManager("airflow")
        self.pm.add_hookspecs(Events)

    @property
    def has_listeners(self) -> bool:
        """True if there is at least one listener."""
        return bool(self.pm.get_plugins())

    @property
    def hook(self) -> Any:
        """The events as functions: each calls that function of all listeners."""
        return self.pm.hook

    def add_listener(self, listener: Any) -> None:
        """Add a module or object whose functions have the names of events. An object that was added before is not added again.

        Raises:
            pluggy.PluginValidationError: a function has an argument that the event does not have.
        """
        if not self.pm.is_registered(listener):
            self.pm.register(listener)

    def clear(self) -> None:
        """Remove all listeners."""
        for listener in list(self.pm.get_plugins()):
            self.pm.unregister(listener)

    def events(self) -> set[str]:
        """The events for which there is a listener."""
        return {name for name, caller in vars(self.pm.hook).items() if name.startswith(_EVENT_NAMES) and caller.get_hookimpls()}

    def call(self, event: str, **arguments: Any) -> None:
        """Call the function of each listener. An exception is logged, and does not affect the other listeners or the task."""
        caller = getattr(self.pm.hook, event)
        for implementation in reversed(caller.get_hookimpls()):
            try:
                implementation.function(*(arguments[name] for name in implementation.argnames))
            except (Exception, SystemExit):
                log.exception("The listener %s of %s failed", event, _name(implementation.plugin))


_EVENT_NAMES = ("on_", "before_")


def _name(listener: Any) -> str:
    if isinstance(listener, ModuleType):
        return listener.__name__
    kind = listener if isinstance(listener, type) else type(listener)
    return f"{kind.__module__}.{kind.__qualname__}"


def events_of(listeners: list[Any]) -> set[str]:
    """The events for which these listeners have functions.

    Raises:
        pluggy.PluginValidationError: see `ListenerManager.add_listener`.
    """
    manager = ListenerManager()
    for listener in listeners:
        manager.add_listener(listener)
    return manager.events()


@functools.cache
def get_listener_manager() -> ListenerManager:
    """The listeners of this process. The first call loads the plugins and adds their listeners."""
    manager = ListenerManager()
    integrate(manager, plugins_of_process())
    return manager


def integrate(manager: ListenerManager, loaded: Loaded) -> None:
    """Add the listeners of plugins. A listener that cannot be added is logged."""
    for plugin in loaded.plugins:
        for listener in getattr(plugin.plugin, "listeners", None) or ():
            try:
                manager.add_listener(listener)
            except Exception as error:
                log.error("The plugin %s of %s: the listener %s cannot be used: %s", *plugin[:2], _name(listener), error)


def session() -> Any:
    """The object for the argument `session` of Airflow 2's listeners: `settings.Session()`."""
    return importlib.import_module("airflow.settings").Session()
