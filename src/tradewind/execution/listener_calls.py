"""Calling the listeners of plugins in the process of a task.

    on_starting, on_task_instance_running     after the templates are rendered, before `execute`
    on_task_instance_success | …_skipped | …_failed, on_asset_changed, before_stopping
                                              after the result was reported and the callbacks of the task were called

Most installations have no listeners. So the module `sdk.listeners`, which loads the plugins, is imported only if a plugin may
have listeners.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.execution import callbacks
from tradewind.model.states import Outcome, TaskState
from tradewind.sdk.import_paths import plugins_folder
from tradewind.sdk.load import SourceFile, source_file
from tradewind.sdk.plugins import listener_sources, plugins_folder_tree

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance
    from tradewind.sdk.listeners import ListenerManager

log = logging.getLogger("tradewind.task")

_LISTENERS = "tradewind.sdk.listeners"

_are_silent = False
"""False: no listener is called."""
_there_are_none = False
"""The process from which this process was forked has found no listeners."""


@contextlib.contextmanager
def without_listeners() -> Iterator[None]:
    """Call no listener inside the block, because its tasks do not belong to the user."""
    global _are_silent
    _are_silent = True
    try:
        yield
    finally:
        _are_silent = False


class ListenedTaskInstance:
    """A task instance as listeners get it: it has the attributes of `ti`, but is no instance of `airflow.models.TaskInstance`.

    Airflow 3 gives listeners another class for a running task, and an `airflow.models.TaskInstance` if a person has set
    the state. The listener of OpenLineage tells them apart by `isinstance`: it describes data sets only for a running task.
    """

    __slots__ = ("_ti",)

    def __init__(self, ti: TaskInstance) -> None:
        object.__setattr__(self, "_ti", ti)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_ti"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ti, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(self._ti == (other._ti if isinstance(other, ListenedTaskInstance) else other))

    def __hash__(self) -> int:
        return hash(self._ti)

    def __repr__(self) -> str:
        return repr(self._ti)


def find_listeners() -> ListenerManager | None:
    """The listeners of this process; None if there are none. The plugins are loaded only if one may have listeners."""
    known = sys.modules.get(_LISTENERS)
    if known is None or not known.get_listener_manager.cache_info().currsize:
        if not listener_sources():
            return None
        known = importlib.import_module(_LISTENERS)
    manager: ListenerManager = known.get_listener_manager()
    return manager if manager.has_listeners else None


def prepare_listeners() -> list[SourceFile]:
    """Load the listeners before processes are forked from this process. If there are none, the forked processes do not search.

    Returns:
        The files that decide which listeners there are: the plugins folder and the files in it with listeners, or everything
        in it if there are none. Time and size of a plugins folder that does not exist are 0.
    """
    global _there_are_none
    _there_are_none = find_listeners() is None
    paths = plugins_folder_tree() if _there_are_none else (Path(plugins_folder()), *listener_sources())
    return [source_file(str(path)) for path in paths]


def task_is_running(ti: TaskInstance) -> None:
    """Call the listeners before the task is executed. Exceptions of listeners do not affect the task."""
    listeners = _find()
    if listeners is not None:
        listeners.call("on_starting", component=_marker())
        _call(listeners, "on_task_instance_running", ti, TaskState.QUEUED)


def after_result(ti: TaskInstance, outcome: Outcome, error: BaseException | None) -> Callable[[], None] | None:
    """Return a function that calls the listeners after the result was reported; None if there are no listeners.

    Args:
        error: the exception of the task, if there was one. None is called for a task that was terminated: another process calls.
    """
    listeners = None if isinstance(error, KeyboardInterrupt) or callbacks.was_terminated(error) else _find()
    if listeners is None:
        return None
    state = callbacks.state_after(outcome, ti)

    def run() -> None:
        if state is not None:
            ti.state = state.value
            ti.ended = time.time_ns() // 1000
            if state is TaskState.SUCCESS:
                _call(listeners, "on_task_instance_success", ti)
                _call_for_assets(listeners, ti)
            elif state is TaskState.SKIPPED:
                _call(listeners, "on_task_instance_skipped", ti)
            else:
                _call(listeners, "on_task_instance_failed", ti, error=error)
        listeners.call("before_stopping", component=_marker())

    return run


def call_for_task(event: str, ti: TaskInstance, reason: str | None, *, by_hand: bool = False) -> None:
    """Call the listeners of a task instance whose process was killed or lost before it could call them.

    Args:
        by_hand: a person has set the state. As in Airflow, there is no previous state, and the object is a `TaskInstance`.
    """
    listeners = _find()
    if listeners is None:
        return
    if by_hand:
        session = sys.modules[_LISTENERS].session()
        listeners.call(event, previous_state=None, task_instance=ti, error=reason, session=session)
    else:
        _call(listeners, event, ti, error=reason)


def call_for_run(event: str, dag_run: Any, message: str) -> None:
    """Call the listeners of a DAG run."""
    listeners = _find()
    if listeners is not None:
        listeners.call(event, dag_run=dag_run, msg=message)


def _find() -> ListenerManager | None:
    if _are_silent or _there_are_none:
        return None
    try:
        return find_listeners()
    except Exception:
        log.exception("The listeners of the plugins cannot be loaded")
        return None


def _call(
    listeners: ListenerManager,
    event: str,
    ti: TaskInstance,
    previous: TaskState = TaskState.RUNNING,
    error: BaseException | str | None = None,
) -> None:
    module = sys.modules[_LISTENERS]
    given = ListenedTaskInstance(ti)
    listeners.call(event, previous_state=previous, task_instance=given, error=error, session=module.session())


def _call_for_assets(listeners: ListenerManager, ti: TaskInstance) -> None:
    if not ti.task.outlets:
        return
    from tradewind.execution.asset_events import emitted_events  # lazy import: only tasks with outlets need it

    for event in emitted_events(ti):
        listeners.call("on_asset_changed", asset=event.asset)
        listeners.call("on_dataset_changed", dataset=event.asset)
        listeners.call("on_asset_event_emitted", asset_event=event)


def _marker() -> Any:
    return sys.modules[_LISTENERS].TaskRunnerMarker()
