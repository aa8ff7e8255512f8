"""A process that calls a callback, or sends a mail, instead of running a task; `Workload.call` names it.

The process is forked like a task process, has the task's context of that moment, and may send the same requests. Its report says
whether the call succeeded. Its output is kept in the log of the attempt, or beside the logs of the tasks for a whole run.
"""

from __future__ import annotations

import inspect
import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tradewind.client.channel import Channel
from tradewind.execution import run_task as pipeline
from tradewind.execution.context import Context, build_context, push_context
from tradewind.execution.listener_calls import call_for_run, call_for_task
from tradewind.execution.task_instance import DagRun, TaskInstance
from tradewind.kernel.callbacks import LISTENED_MARKS, LISTENED_RUN_STATES
from tradewind.model.errors import did_you_mean
from tradewind.model.states import Outcome
from tradewind.sdk.dag_warnings import callback_name
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.load import load_file
from tradewind.sdk.mapping import MappedOperator
from tradewind.sdk.operator import BaseOperator
from tradewind.wire import runtime
from tradewind.wire.messages import Call, Report, Workload

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

log = logging.getLogger("tradewind.task")

DEADLINES = ("deadline", "sla_miss_callback")

EMAIL = "email"
"""The name of the argument in `kernel.callbacks`."""


class CannotCall(AirflowException):
    """There is nothing to call; the message says why."""


def run_callback_and_report(workload: Workload, dags: Mapping[str, DAG] | None, channel: Channel, refused: str | None) -> None:
    """Call the callback and report. `dags` as for `task_process.run_attempt`; `refused`: why nothing can be called."""
    runtime.install(channel)
    reason = refused
    if reason is None:
        try:
            call(workload, dags)
        except (Exception, SystemExit) as error:
            reason = pipeline.describe_error(error)
            if isinstance(error, CannotCall):
                log.error("%s", error)
            else:
                log.error("%s failed:\n%s", _description(workload), pipeline.format_traceback(error))
    outcome = Outcome.SUCCESS if reason is None else Outcome.FAILED
    channel.report(Report(0, outcome, reason=reason, ended=time.time_ns() // 1000))


def call(workload: Workload, dags: Mapping[str, DAG] | None) -> None:
    """Call the callback of the workload.

    Raises:
        CannotCall: the DAG file no longer has the callback.
        Exception: raised by the callback.
    """
    wanted = workload.call
    assert wanted is not None
    if wanted.argument == EMAIL:
        _mail(workload, dags)
        return
    if wanted.argument in LISTENED_RUN_STATES:
        _call_listeners(workload, wanted, dags)
        return
    if dags is None:
        dags = load_file(workload.folder, workload.file, analyse=False).dags
    dag = dags.get(workload.dag_id)
    if dag is None:
        raise CannotCall(
            f"the file {workload.file} no longer contains the DAG {workload.dag_id!r}.{did_you_mean(workload.dag_id, dags)}"
        )
    if wanted.argument in DEADLINES:
        _call_for_deadline(dag, workload, wanted)
        return
    if wanted.of_run:
        context = run_context(dag, workload, wanted)
        owner: Any = dag
    else:
        if workload.task_id not in dag.task_dict:
            raise CannotCall(f"the DAG {workload.dag_id!r} in {workload.file} no longer has the task {workload.task_id!r}")
        context = task_context(dag.task_dict[workload.task_id], workload, wanted)
        if wanted.argument in LISTENED_MARKS.values():
            call_for_task(wanted.argument, context["ti"], wanted.reason, by_hand=wanted.by_hand)
            return
        owner = context["task"]
    callback = _find_callback(owner, workload, wanted)
    log.info("Calling %s (%s).", callback_name(callback), _description(workload))
    finish(callback(context))


def _call_listeners(workload: Workload, wanted: Call, dags: Mapping[str, DAG] | None) -> None:
    """Tell the listeners of plugins of a DAG run, even if its DAG file cannot be imported."""
    try:
        if dags is None:
            dags = load_file(workload.folder, workload.file, analyse=False).dags
    except (Exception, SystemExit) as error:
        log.warning("The listeners get the DAG run without its DAG: %s", pipeline.describe_error(error))
    run = DagRun.of_workload(workload, (dags or {}).get(workload.dag_id))
    _end(run, wanted)
    call_for_run(wanted.argument, run, wanted.end_reason)


def _find_callback(owner: Any, workload: Workload, wanted: Call) -> Any:
    """Return the callback that has the workload's position in the argument now."""
    given = getattr(owner, wanted.argument)
    found = given if isinstance(given, list | tuple) else [given] if given else []
    if wanted.index >= len(found):
        raise CannotCall(f"{_description(workload)} does not exist any more: {workload.file} has {len(found)} of them now")
    return found[wanted.index]


def _call_for_deadline(dag: DAG, workload: Workload, wanted: Call) -> None:
    from tradewind.worker import deadline_calls  # lazy: few DAGs have deadlines

    one = _find_callback(dag, workload, wanted)
    if wanted.argument == "deadline":
        log.info("Calling %s (the deadline %s was missed).", one.callback.path, one.name or wanted.index + 1)
        finish(deadline_calls.call_deadline(one, dag, workload, wanted))
    else:
        log.info("Calling %s (%s).", callback_name(one), _description(workload))
        finish(deadline_calls.call_sla(one, dag, workload, wanted))


def _mail(workload: Workload, dags: Mapping[str, DAG] | None) -> None:
    """Send a mail, even if the DAG file cannot be imported: that may be the reason why the task failed."""
    from tradewind.worker.alert_mail import send_alert  # lazy: most callbacks are no mails

    wanted = workload.call
    assert wanted is not None
    if wanted.of_run:
        from tradewind.worker.deadline_calls import mail_sla  # lazy: few DAGs have deadlines

        mail_sla(workload, wanted)
        return
    context: Mapping[str, Any] = {"ti": (ti := _instance(None, workload, wanted)), "task_instance": ti}
    try:
        if dags is None:
            dags = load_file(workload.folder, workload.file, analyse=False).dags
        context = task_context(dags[workload.dag_id].task_dict[workload.task_id], workload, wanted)
    except (Exception, SystemExit) as error:
        log.warning("The mail is written without the task's context: %s", pipeline.describe_error(error))
    send_alert(wanted.to, context, wanted.reason or "")


def finish(result: Any) -> None:
    """Await the return value of a callback if it is awaitable."""
    if inspect.isawaitable(result):

        async def await_result() -> Any:
            return await result

        pipeline.run_to_end(await_result())


def _description(workload: Workload) -> str:
    wanted = workload.call
    assert wanted is not None
    return f"{wanted.argument} of {'the DAG' if wanted.of_run else 'task ' + workload.task_id}"


def task_context(task: BaseOperator, workload: Workload, wanted: Call) -> Context:
    """The context of the attempt, as its own process would have passed it to a callback."""
    ti = _instance(task, workload, wanted)
    context = _entered(task, workload, ti)
    if isinstance(task, MappedOperator):
        try:
            ti.task = context["task"] = task.unmap(context)
        except Exception as error:  # this may be the reason why the task failed
            log.warning("The arguments of map index %s are not known: %s", workload.map_index, pipeline.describe_error(error))
    if wanted.argument not in ("on_success_callback", "on_skipped_callback"):
        context["exception"] = AirflowException(wanted.reason or "")
    return context


def run_context(dag: DAG, workload: Workload, wanted: Call) -> Context | dict[str, Any]:
    """The context of a run that has ended: the context of its most relevant task instance. `reason` is a term of Airflow."""
    task = dag.task_dict.get(workload.task_id)
    if task is None:  # a DAG without tasks
        run = DagRun.of_workload(workload, dag)
        _end(run, wanted)
        return {"dag": dag, "dag_run": run, "run_id": workload.run_id, "reason": wanted.end_reason, "params": dag.params.dump()}
    ti = _instance(task, workload, wanted)
    context = _entered(task, workload, ti)
    _end(ti.dag_run, wanted)
    context["reason"] = wanted.end_reason
    if wanted.run_state != "success":
        context["exception"] = AirflowException(wanted.reason or "")
    return context


def _instance(task: BaseOperator | None, workload: Workload, wanted: Call) -> TaskInstance:
    ti = TaskInstance(task, workload, started=wanted.started)
    ti.state = wanted.state or None
    ti.ended = wanted.ended
    return ti


def _entered(task: BaseOperator, workload: Workload, ti: TaskInstance) -> Context:
    context = build_context(task, workload, ti=ti)
    os.environ.update(ti.environment())
    push_context(context)
    return context


def _end(run: DagRun, wanted: Call) -> None:
    run.state = wanted.run_state
    run._dates["end_date"] = wanted.run_ended
