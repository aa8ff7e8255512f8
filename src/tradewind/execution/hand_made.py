"""Methods of task instances that a test of a DAG file has created: run, change the state, read the states of others.

The state and the XComs are kept in the memory of the process (see `local_database`). Task instances of the same run see them.
Inside a real task, nothing is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tradewind.execution import callbacks, context, local_database, run_task
from tradewind.execution.call_arguments import call_post_execute
from tradewind.execution.instance_names import micros_of
from tradewind.execution.listener_calls import ListenedTaskInstance
from tradewind.execution.other_instances import instances_of_run
from tradewind.execution.task_instance import TaskInstance
from tradewind.model.states import Outcome, TaskState, TriggerRule
from tradewind.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSkipException,
    DownstreamTasksSkipped,
    TaskDeferred,
    TaskWaits,
)
from tradewind.sdk.mapping import MappedOperator
from tradewind.wire import runtime
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from tradewind.execution.local_database import LocalRun
    from tradewind.model.branch import Branch

_RUN_DATES = ("logical_date", "data_interval_start", "data_interval_end", "run_after", "start_date")
_DONE = frozenset({"success", "skipped"})
_ENDED = frozenset({"success", "skipped", "failed", "upstream_failed", "removed"})


def run(ti: TaskInstance, mark_success: bool = False) -> None:
    """Run the task in this process: templates, `pre_execute`, `execute`, `post_execute`, XComs, callbacks.

    Raises:
        Exception: what the task raises, except exceptions that stand for skipping, rescheduling or deferring.
    """
    if mark_success:
        set_state(ti, TaskState.SUCCESS.value)
        return
    with answering(ti) as kept:
        if kept is not None:
            kept.forget(ti.task_id, ti.map_index)
        try:
            _execute(ti)
        except AirflowSkipException:
            _end(ti, TaskState.SKIPPED, Outcome.SKIPPED)
        except DownstreamTasksSkipped as error:
            _end(ti, TaskState.SUCCESS, Outcome.SUCCESS)
            _skip(ti, {one if isinstance(one, str) else one[0] for one in error.tasks})
        except AirflowRescheduleException:
            _set(ti, TaskState.UP_FOR_RESCHEDULE)
        except (TaskDeferred, TaskWaits):
            _set(ti, TaskState.DEFERRED)
        except Exception as error:
            retried = ti.try_number <= ti.max_tries
            _end(ti, TaskState.UP_FOR_RETRY if retried else TaskState.FAILED, Outcome.FAILED, error)
            raise
        else:
            _end(ti, TaskState.SUCCESS, Outcome.SUCCESS)
            if ti.branch is not None:
                _skip(ti, _skipped_by(ti, ti.branch))


def fail(ti: TaskInstance, error: Exception, force_fail: bool) -> None:
    """End a task instance as after an exception of its task: `failed`, or `up_for_retry` if there is a next try."""
    retried = ti.try_number <= ti.max_tries and bool(ti.max_tries) and not force_fail
    with answering(ti):
        ti.get_template_context()
        _end(ti, TaskState.UP_FOR_RETRY if retried else TaskState.FAILED, Outcome.FAILED, error)


def forget_xcoms(ti: TaskInstance) -> None:
    """Remove the values that a task instance has pushed."""
    ti.pushed.clear()
    ti._encoded.clear()
    with answering(ti) as kept:
        if kept is not None:
            kept.forget(ti.task_id, ti.map_index)


def construct(fields: Mapping[str, Any]) -> TaskInstance:
    """A task instance from the values that Airflow 3's `RuntimeTaskInstance.model_construct` gets in tests.

    Args:
        fields: the task, the ids, and in `_ti_context_from_server` the run (see `airflow.compat.execution_api`).
    """
    task = fields["task"]
    server_context = fields.get("_ti_context_from_server")
    run = getattr(server_context, "dag_run", None)
    dates = {name: _micros(getattr(run, name, None)) for name in _RUN_DATES}
    workload = Workload(
        run=0,
        slot=0,
        fence=0,
        dag_id=fields.get("dag_id") or task.dag_id,
        task_id=fields.get("task_id") or task.task_id,
        run_id=fields.get("run_id") or "",
        map_index=-1 if fields.get("map_index") is None else fields["map_index"],
        try_number=fields.get("try_number") or 1,
        max_tries=fields.get("max_tries") or 0,
        run_type=local_database.run_type_of(getattr(run, "run_type", None)),
        logical_date=dates["logical_date"],
        interval_start=dates["data_interval_start"],
        interval_end=dates["data_interval_end"],
        run_after=dates["run_after"] or dates["logical_date"] or 0,
        partition_key=getattr(run, "partition_key", None),
        run_started=dates["start_date"],
        reschedules=getattr(server_context, "task_reschedule_count", 0),
        conf=dict(getattr(run, "conf", None) or {}),
    )
    ti = TaskInstance(task, workload, started=_micros(fields.get("start_date")), made_by_hand=True)
    ti.state = TaskState.RUNNING.value
    ti.__dict__["_ti_context_from_server"] = server_context  # listeners of packages (openlineage) read it
    return cast(TaskInstance, ListenedTaskInstance(ti))


def _micros(date: datetime | None) -> int | None:
    return None if date is None else micros_of(date)


def _execute(ti: TaskInstance) -> None:
    values = ti.get_template_context()
    with context.current_context(values):
        if isinstance(ti.task, MappedOperator):
            ti.task = values["task"] = ti.task.unmap(values)
        ti.render_templates(values)
        task = ti.task
        if task._pre_execute_hook is not None:
            task._pre_execute_hook(values)
        task.pre_execute(values)
        if task.on_execute_callback:
            callbacks.call(task, "on_execute_callback", values)
        result = run_task.run_to_end(task.execute(values))
        call_post_execute(task, values, result)
        if task._post_execute_hook is not None:
            task._post_execute_hook(values, result)
        run_task.push_result(task, ti, result)


def _end(ti: TaskInstance, state: TaskState, outcome: Outcome, error: Exception | None = None) -> None:
    """Set the state, then call the callbacks that follow from it."""
    _set(ti, state)
    call = callbacks.callbacks_after(ti.task, ti.context, ti, outcome, error)
    if call is not None:
        with context.current_context(ti.context):
            call()


def _set(ti: TaskInstance, state: TaskState) -> None:
    set_state(ti, state.value)


def workload_of_run(task: Any, run_id: str | None, at: int | None, map_index: int) -> Workload | None:
    """The attempt of a task in an existing run: a run of this process, or the run of the task that is running. None: no such run.

    Args:
        run_id: id of the run; None: the run of the date.
        at: logical date, microseconds.
    """
    dag_id = getattr(task, "dag_id", "") or ""
    if runtime.is_local():
        found = local_database.database().find(dag_id, run_id, at)
        return None if found is None else found.workload(task, map_index)
    own: Workload | None = context.workload_that_runs()
    if own is None or own.dag_id != dag_id or (own.run_id != run_id if run_id is not None else own.logical_date != at):
        return None
    retries = getattr(task, "retries", 0) or 0
    return msgspec.structs.replace(
        own, task_id=task.task_id, map_index=map_index, try_number=1, max_tries=retries, resumption=None
    )


def keep_xcom(ti: TaskInstance, key: str, data: bytes) -> None:
    """Keep an encoded value that a task instance of a test pushed."""
    local_database.database().record_xcom(ti, key, data)


def set_state(ti: TaskInstance, state: Any) -> bool:
    """Set the state of a task instance. Returns whether it has changed."""
    text = None if state is None else str(getattr(state, "value", state))
    changed = ti.state != text
    ti.state = text
    if ti.by_hand and runtime.is_local():
        local_database.database().record_state(ti)
    return changed


def current_state(ti: TaskInstance) -> str | None:
    """The state that was kept for a task instance, or that the scheduler knows; otherwise the state of the object itself.

    Raises:
        AirflowException: the scheduler could not answer.
    """
    if not runtime.is_local():
        asked = instances_of_run(ti.dag_id, ti.run_id, (ti.task_id,))
        return next((one.state for one in asked if one.map_index == ti.map_index), ti.state)
    found = local_database.database().find(ti.dag_id, ti.run_id)
    return ti.state if found is None else found.states.get((ti.task_id, ti.map_index), ti.state)


def are_dependencies_met(ti: TaskInstance) -> bool:
    """Whether all direct upstream tasks have ended, and with `all_success` also succeeded or been skipped."""
    found = local_database.database().find(ti.dag_id, ti.run_id)
    states = {} if found is None else {task_id: state for (task_id, _), state in found.states.items()}
    wanted = _DONE if ti.task.trigger_rule is TriggerRule.ALL_SUCCESS else _ENDED
    return all(states.get(task_id) in wanted for task_id in ti.task.upstream_task_ids)


def dry_run(ti: TaskInstance) -> None:
    """Replace `ti.task` with a copy of the task, render the templates of the copy, and log them."""
    ti.task = copy.copy(ti.task)
    with answering(ti):
        ti.render_templates()
        ti.task.dry_run()


@contextmanager
def answering(ti: TaskInstance) -> Iterator[LocalRun | None]:
    """Let the rows of this process answer requests inside the block, unless a real task runs. Yields the instance's run."""
    if not (ti.by_hand and runtime.is_local()):
        yield None
        return
    with local_database.answering() as database:
        yield database.of_instance(ti)


def _skipped_by(ti: TaskInstance, branch: Branch) -> set[str]:
    """The tasks that a branch decision skips, except tasks that are downstream of a chosen task."""
    if branch.kind == "skip":
        return set(branch.tasks)
    if branch.kind == "stop":
        return set(ti.task.downstream_task_ids if branch.direct_only else ti.task.get_flat_relative_ids())
    chosen = set(branch.tasks)
    for task in ti.task.downstream_list:
        if task.task_id in branch.tasks:
            chosen |= task.get_flat_relative_ids()
    return set(ti.task.downstream_task_ids) - chosen


def _skip(ti: TaskInstance, task_ids: set[str]) -> None:
    """Keep `skipped` as the state of other tasks of the run."""
    if ti.by_hand and runtime.is_local():
        states = local_database.database().of_instance(ti).states
        states.update({(task_id, -1): TaskState.SKIPPED.value for task_id in sorted(task_ids)})
