"""Calls everything that is to be told about missed deadlines: `sla_miss_callback`, SLA mails, callbacks of `DeadlineAlert`s."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.execution.instance_names import to_pendulum
from tradewind.execution.other_instances import OtherTaskInstance
from tradewind.execution.task_instance import DagRun
from tradewind.model.moments import from_micros
from tradewind.sdk.deadlines import DeadlineAlert
from tradewind.sdk.notifier import BaseNotifier
from tradewind.wire.messages import Call, Workload
from tradewind.worker.alert_mail import send

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.sdk.dag import DAG


@dataclass
class SlaMiss:
    """One missed SLA, as Airflow shows it to callbacks."""

    task_id: str
    dag_id: str
    execution_date: DateTime | None
    timestamp: DateTime | None
    """The time by which the task should have succeeded."""
    email_sent: bool = False
    notification_sent: bool = False
    description: str | None = None

    @property
    def logical_date(self) -> DateTime | None:
        return self.execution_date


def call_sla(callback: Callable[..., Any], dag: DAG, workload: Workload, wanted: Call) -> Any:
    """Call the callback with Airflow's five arguments: dag, task_list, blocking_task_list, slas, blocking_tis."""
    date = to_pendulum(workload.logical_date)
    slas = [SlaMiss(task_id, dag.dag_id, date, to_pendulum(wanted.due)) for task_id in wanted.late]
    blocking = [OtherTaskInstance(dag.dag_id, task_id, workload.run_id, state) for task_id, state in wanted.blocking]
    return callback(dag, _lines(wanted.late, workload), _lines(_ids(wanted), workload), slas, blocking)


def mail_sla(workload: Workload, wanted: Call) -> None:
    """Send the mail about missed SLAs, with Airflow's text."""
    body = (
        f"Here's a list of tasks that missed their SLAs: <pre><code>{html.escape(_lines(wanted.late, workload))}\n</code></pre>"
        f"Blocking tasks: <pre><code>{html.escape(_lines(_ids(wanted), workload))}</code></pre>"
    )
    send(wanted.to, f"[airflow] SLA miss on DAG={workload.dag_id}", body)


def call_deadline(alert: DeadlineAlert, dag: DAG, workload: Workload, wanted: Call) -> Any:
    """With its own arguments, and with `context` where it takes that; a notifier class is made and called."""
    run = DagRun.of_workload(workload, dag)
    run.state = wanted.run_state
    context: dict[str, Any] = {
        "dag": dag,
        "dag_run": run,
        "run_id": workload.run_id,
        "deadline": {"alert_name": alert.name, "deadline_time": to_pendulum(wanted.due), "interval": alert.interval},
    }
    target, kwargs = alert.callback.load(), alert.callback.kwargs
    if isinstance(target, type) and issubclass(target, BaseNotifier):
        return target(**kwargs)(context)
    return target(**kwargs, **({"context": context} if _takes_context(target, kwargs) else {}))


def _takes_context(target: Callable[..., Any], kwargs: Mapping[str, Any]) -> bool:
    if "context" in kwargs:
        return False
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == "context" or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)


def _ids(wanted: Call) -> tuple[str, ...]:
    return tuple(task_id for task_id, _ in wanted.blocking)


def _lines(task_ids: tuple[str, ...], workload: Workload) -> str:
    date = workload.logical_date if workload.logical_date is not None else workload.run_after
    return "\n".join(f"{task_id} on {from_micros(date).isoformat()}" for task_id in task_ids)
