"""An operator that triggers a run of another DAG."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NoReturn

from tradewind.execution.deferral_request import TRIGGERED_RUN, scheduler_can_wait, until, wait_for
from tradewind.execution.other_runs import TriggerResult, trigger_run
from tradewind.execution.state_queries import run_state
from tradewind.execution.task_instance import micros_of
from tradewind.model.errors import DefinitionError, did_you_mean
from tradewind.model.moments import iso, parse_moment
from tradewind.model.run_links import TRIGGERED_DAG_ID, TRIGGERED_RUN_ID
from tradewind.model.states import RunState
from tradewind.model.waits import TasksWait
from tradewind.operators.run_links import TriggerDagRunLink
from tradewind.sdk import open_dags
from tradewind.sdk.exceptions import (
    AirflowException,
    AirflowSkipException,
    DagRunAlreadyExists,
    DagRunTriggerException,
)
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import NOTSET

XCOM_RUN_ID = TRIGGERED_RUN_ID
XCOM_DAG_ID = TRIGGERED_DAG_ID

# tests replace this clock
_sleep: Callable[[float], None] = time.sleep

_STATES = [state.value for state in RunState]


class DagIsPaused(AirflowException):
    """The DAG to trigger is paused, and `fail_when_dag_is_paused` is set."""


class DagRunOrder:
    """The argument of a `python_callable` of Airflow 1. The function returns it with the run's conf as `payload`, or returns None;
    then no run is triggered.

    Args:
        run_id: id of the run.
        payload: its conf.
    """

    def __init__(self, run_id: str | None = None, payload: Any = None) -> None:
        self.run_id = run_id
        self.payload = payload


class TriggerDagRunOperator(BaseOperator):
    """Triggers a run of another DAG, and can wait until it ends. The id of the run is pushed as XCom `trigger_run_id`.

    Args:
        trigger_dag_id: the DAG; a template.
        trigger_run_id: id of the run; a template. None: derived from the logical date.
        conf: the `conf` of the run, as dictionary or JSON string; a template.
        logical_date: a datetime, or a string in ISO 8601 (a template). Default: now. None: a run without a logical date.
        reset_dag_run: clear an existing run with this id or logical date. Otherwise the task fails if there is one.
        skip_when_already_exists: become skipped instead of failed if there is such a run.
        fail_when_dag_is_paused: fail without triggering if the DAG is paused.
        wait_for_completion: wait until the run ends. The scheduler waits, so the task uses no process and no slot during this time.
        poke_interval: seconds between two checks, if the task waits in its own process: in a subclass with its own `execute`.
        deferrable: let the scheduler wait for such a subclass, too.
        allowed_states: states of the run that end the wait. None: success.
        failed_states: states of the run after which this task fails. None: failed.
        note: a note on the run, for people.
        execution_date: Airflow 2's name of `logical_date`.
        python_callable: of Airflow 1: called with the context and a `DagRunOrder`; its result says whether a run is triggered,
            and with which conf.
    """

    template_fields: Collection[str] = (
        "trigger_dag_id",
        "trigger_run_id",
        "logical_date",
        "conf",
        "wait_for_completion",
        "skip_when_already_exists",
        "note",
    )
    template_fields_renderers: Mapping[str, str] = {"conf": "py"}
    ui_color = "#ffefeb"
    operator_extra_links: Collection[Any] = (TriggerDagRunLink(),)

    _continue_in = "execute_complete"
    """The method that is called when the scheduler ends the wait."""
    _continue_with: Mapping[str, Any] = {}
    """Further arguments of the method."""

    def __init__(
        self,
        *,
        trigger_dag_id: str,
        trigger_run_id: str | None = None,
        conf: Mapping[str, Any] | str | None = None,
        logical_date: Any = NOTSET,
        execution_date: Any = NOTSET,
        reset_dag_run: bool = False,
        wait_for_completion: bool = False,
        poke_interval: float = 60,
        allowed_states: Collection[str] | None = None,
        failed_states: Collection[str] | None = None,
        skip_when_already_exists: bool = False,
        fail_when_dag_is_paused: bool = False,
        note: str | None = None,
        deferrable: bool = False,
        python_callable: Callable[[Any, DagRunOrder], DagRunOrder | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if python_callable is not None:
            open_dags.warn_author(
                f"{self._name_in_errors()}: python_callable ended with Airflow 1; give conf, and a ShortCircuitOperator before it",
                DeprecationWarning,
            )
        if execution_date is not NOTSET:
            open_dags.warn_author(
                f"{self._name_in_errors()}: execution_date was renamed to logical_date in Airflow 3", DeprecationWarning
            )
            logical_date = execution_date
        if logical_date is not NOTSET and not isinstance(logical_date, str | datetime | None):
            raise DefinitionError(
                f"{self._name_in_errors()}: logical_date is {logical_date!r}; it must be a datetime, a string or None"
            )
        if isinstance(poke_interval, bool) or not isinstance(poke_interval, int | float) or poke_interval < 0:
            raise DefinitionError(
                f"{self._name_in_errors()}: poke_interval is {poke_interval!r}; it must be a number of seconds"
            )
        self.trigger_dag_id = trigger_dag_id
        self.trigger_run_id = trigger_run_id
        self.conf = conf
        self.logical_date = logical_date
        self.reset_dag_run = reset_dag_run
        self.wait_for_completion = wait_for_completion
        self.poke_interval = poke_interval
        self.allowed_states = self._states("allowed_states", allowed_states or [RunState.SUCCESS])
        self.failed_states = self._states("failed_states", [RunState.FAILED] if failed_states is None else failed_states)
        self.skip_when_already_exists = skip_when_already_exists
        self.fail_when_dag_is_paused = fail_when_dag_is_paused
        self.note = note
        self.deferrable = deferrable
        self.python_callable = python_callable

    def _states(self, name: str, given: Collection[Any]) -> list[str]:
        states = [str(getattr(state, "value", state)) for state in ([given] if isinstance(given, str) else given)]
        for state in states:
            if state not in _STATES:
                raise DefinitionError(
                    f"{self._name_in_errors()}: {name} has {state!r}, which is not a state of a run.{did_you_mean(state, _STATES)}"
                )
        return states

    def execute(self, context: Any) -> None:
        ti = context["ti"]
        if self.python_callable is not None and not self._is_ordered(self.python_callable, context):
            self.log.info("python_callable returned nothing: no run is triggered")
            return
        ti.xcom_push(XCOM_DAG_ID, self.trigger_dag_id)
        made = trigger_run(
            ti,
            self.trigger_dag_id,
            run_id=str(self.trigger_run_id) if self.trigger_run_id else None,
            logical_date=self._date(),
            conf=self._conf(),
            note=self.note,
            reset=self.reset_dag_run,
            fail_when_paused=self.fail_when_dag_is_paused,
        )
        self._report_result(made)
        if made.run_id:
            ti.xcom_push(XCOM_RUN_ID, made.run_id)
        if _is_true(self.wait_for_completion) and made.done != "rehearsed":
            self._wait(ti, made.run_id)

    def _is_ordered(self, function: Callable[[Any, DagRunOrder], DagRunOrder | None], context: Any) -> bool:
        """Call a `python_callable` of Airflow 1. Returns whether it wants a run; stores the run's id and conf of its result."""
        order = function(context, DagRunOrder(run_id=self.trigger_run_id))
        if not order:
            return False
        self.trigger_run_id = order.run_id
        self.conf = order.payload if order.payload is not None else self.conf
        return True

    def _date(self) -> int | None:
        date = self.logical_date
        if date is NOTSET:
            return time.time_ns() // 1000
        if date is None or isinstance(date, datetime):
            return None if date is None else micros_of(date)
        try:
            return parse_moment(str(date))
        except ValueError as error:
            raise AirflowException(f"logical_date of task {self.task_id!r}: {error}") from None

    def _conf(self) -> dict[str, Any]:
        """The conf as a dictionary, after a round trip through JSON."""
        conf = self.conf
        try:
            found = json.loads(conf) if isinstance(conf, str) else json.loads(json.dumps(conf or {}))
        except (TypeError, ValueError) as error:
            raise AirflowException(f"conf of task {self.task_id!r} cannot be written as JSON: {error}") from None
        if not isinstance(found, dict):
            raise AirflowException(f"conf of task {self.task_id!r} is {conf!r}; it must be a dictionary")
        return found

    def _report_result(self, made: TriggerResult) -> None:
        dag_id, date = self.trigger_dag_id, iso(made.logical_date)
        match made.done:
            case "created":
                self.log.info("Triggered run %r of DAG %r", made.run_id, dag_id)
            case "cleared":
                self.log.info("Cleared run %r of DAG %r", made.run_id, dag_id)
            case "rehearsed":
                self.log.warning(
                    "dag.test() triggers no runs of other DAGs; otherwise DAG %r would be triggered for %s", dag_id, date
                )
            case "paused":
                raise DagIsPaused(f"DAG {dag_id!r} is paused; unpause it with: tradewind dags unpause {dag_id}")
            case _:
                message = f"DAG {dag_id!r} already has the run {made.run_id!r} ({date or 'without a logical date'})"
                if _is_true(self.skip_when_already_exists):
                    raise AirflowSkipException(f"{message}; skipped because of skip_when_already_exists")
                raise DagRunAlreadyExists(f"{message}; set reset_dag_run=True to clear it, or use another trigger_run_id")

    def _wait(self, ti: Any, run_id: str) -> None:
        """Wait until the run has ended, for at most `execution_timeout`."""
        dag_id = self.trigger_dag_id
        self.log.info("Waiting for run %r of DAG %r to be %s", run_id, dag_id, " or ".join(self.allowed_states))
        plain = type(self).execute is TriggerDagRunOperator.execute
        while not self._has_ended(dag_id, run_id):
            if (plain or _is_true(self.deferrable)) and scheduler_can_wait():
                self._wait_in_scheduler(ti, dag_id, run_id)
            _sleep(self.poke_interval)

    def _has_ended(self, dag_id: str, run_id: str) -> bool:
        """True if the run has one of the allowed states. Raises AirflowException if it has a failed state or does not exist."""
        state = run_state(dag_id, run_id)
        if state is None:
            raise AirflowException(f"run {run_id!r} of DAG {dag_id!r} was deleted, so the task cannot wait for it")
        if state in self.failed_states:
            raise AirflowException(f"run {run_id!r} of DAG {dag_id!r} is {state}")
        if state in self.allowed_states:
            self.log.info("Run %r of DAG %r is %s", run_id, dag_id, state)
        return state in self.allowed_states

    def _wait_in_scheduler(self, ti: Any, dag_id: str, run_id: str) -> NoReturn:
        """End the attempt and let the scheduler wait for the run."""
        started = ti.workload.first_started or time.time_ns() // 1000
        wait_for(
            TasksWait(dag_id, run_ids=(run_id,), allowed=tuple(self.allowed_states), failed=tuple(self.failed_states)),
            method=self._continue_in,
            kwargs={"dag_id": dag_id, "run_id": run_id, **self._continue_with},
            timeout_at=until(self.execution_timeout, started),
        )

    def execute_complete(self, context: Any, event: Any = None, dag_id: str = "", run_id: str = "") -> None:
        """Continue when the scheduler ends the wait. If the run was cleared since, wait again."""
        if not self._has_ended(dag_id, run_id):
            self._wait_in_scheduler(context["ti"], dag_id, run_id)


def trigger_for(task: BaseOperator, request: DagRunTriggerException, context: Any) -> None:
    """Trigger the run that an operator of Airflow 3 requests by an exception, and wait for the run if the exception says so."""
    states = {"allowed": list(request.allowed_states or []), "failed": list(request.failed_states or [])}
    trigger = _in_place_of(task, request.trigger_dag_id, **states)
    trigger.trigger_run_id = request.dag_run_id
    trigger.conf = request.conf
    trigger.logical_date = request.logical_date
    trigger.reset_dag_run = request.reset_dag_run
    trigger.skip_when_already_exists = request.skip_when_already_exists
    trigger.wait_for_completion = request.wait_for_completion
    trigger.poke_interval = request.poke_interval
    trigger.note = request.note
    trigger.execute(context)


def wait_again(
    task: BaseOperator, context: Any, event: Any = None, dag_id: str = "", run_id: str = "", **states: list[str]
) -> None:
    """Continue a task of `trigger_for` when the scheduler ends the wait."""
    _in_place_of(task, dag_id, **states).execute_complete(context, event, dag_id, run_id)


def _in_place_of(task: BaseOperator, dag_id: str, allowed: list[str], failed: list[str]) -> TriggerDagRunOperator:
    """An operator that triggers the run that another operator requests. It belongs to no DAG."""
    trigger = TriggerDagRunOperator(task_id="trigger", trigger_dag_id=dag_id, allowed_states=allowed, failed_states=failed)
    trigger.execution_timeout = task.execution_timeout
    trigger._continue_in = TRIGGERED_RUN
    trigger._continue_with = {"allowed": allowed, "failed": failed}
    return trigger


def _is_true(value: Any) -> bool:
    """The value of a boolean argument that may be a rendered template."""
    return value.strip().lower() in ("true", "1", "yes", "t", "y") if isinstance(value, str) else bool(value)
