"""A sensor that waits for tasks or runs of another DAG, and a marker for tasks on which another DAG depends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.execution.call_arguments import arguments_for
from tradewind.execution.instance_names import micros_of, to_pendulum
from tradewind.execution.state_queries import states_on_dates
from tradewind.model.definition import ExternalMark
from tradewind.model.errors import DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.moments import duration_micros
from tradewind.model.states import Outcome, RunState, TaskState
from tradewind.model.wait_plans import TasksPlan
from tradewind.model.waits import TasksWait, Wait, judge
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.run_links import ExternalDagLink
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException, AirflowSkipException
from tradewind.sensors.base import BaseSensorOperator

if TYPE_CHECKING:
    from pendulum import DateTime

_TASK_STATES = frozenset(state.value for state in TaskState if state is not TaskState.NONE)
_RUN_STATES = frozenset(state.value for state in RunState)


class ExternalTaskSensor(BaseSensorOperator):
    """Waits until tasks (or a task group, or the whole run) of another DAG have a given state, for the same logical date.

    Args:
        external_dag_id: the other DAG.
        external_task_id, external_task_ids, external_task_group_id: what to wait for. None of them: the whole run.
        allowed_states: states that end the wait. Default: success.
        skipped_states: states after which this task becomes skipped.
        failed_states: states after which this task fails.
        execution_delta: wait for the run whose logical date is earlier by this timedelta.
        execution_date_fn: function from the logical date (and the context, by name) to the logical date or dates to wait for.
        check_existence: fail at once if the other DAG does not exist.
        deferrable, poll_interval: in Airflow, ways to use no slot. Here no slot is used anyway: after one poke the scheduler waits
            until the tasks of the other DAG change.
    """

    _last_wait: TasksWait | None = None
    """The tasks and dates of the last poke."""

    template_fields: Collection[str] = (
        "external_dag_id",
        "external_task_id",
        "external_task_ids",
        "external_task_group_id",
    )
    ui_color = "#4db7db"
    operator_extra_links: Collection[Any] = (ExternalDagLink(),)

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str | None = None,
        external_task_ids: Collection[str] | None = None,
        external_task_group_id: str | None = None,
        allowed_states: Iterable[str] | None = None,
        skipped_states: Iterable[str] | None = None,
        failed_states: Iterable[str] | None = None,
        execution_delta: timedelta | None = None,
        execution_date_fn: Callable[..., Any] | None = None,
        check_existence: bool = False,
        deferrable: bool = False,
        poll_interval: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        named = [name for name in (external_task_id, external_task_ids, external_task_group_id) if name is not None]
        if len(named) > 1:
            raise DefinitionError(
                f"{self._name_in_errors()}: give only one of external_task_id, external_task_ids and external_task_group_id"
            )
        if execution_delta is not None and execution_date_fn is not None:
            raise DefinitionError(f"{self._name_in_errors()}: give only one of execution_delta and execution_date_fn")
        if isinstance(external_task_ids, str):
            raise DefinitionError(f"{self._name_in_errors()}: external_task_ids is a string; it must be a list of task ids")
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.external_task_ids = None if external_task_ids is None else list(external_task_ids)
        self.external_task_group_id = external_task_group_id
        self._of_tasks = bool(named)
        self.allowed_states = self._states("allowed_states", ("success",) if allowed_states is None else allowed_states)
        self.skipped_states = self._states("skipped_states", skipped_states or ())
        self.failed_states = self._states("failed_states", failed_states or ())
        self._check_disjoint()
        self.execution_delta = execution_delta
        self.execution_date_fn = execution_date_fn
        self.check_existence = check_existence

    def _states(self, name: str, given: Iterable[Any]) -> list[str]:
        known = _TASK_STATES if self._of_tasks else _RUN_STATES
        states = [str(getattr(state, "value", state)) for state in ((given,) if isinstance(given, str) else given)]
        for state in states:
            if state not in known:
                what = "task" if self._of_tasks else "run"
                raise DefinitionError(
                    f"{self._name_in_errors()}: {name} has {state!r}, which is not a state of a {what}.{did_you_mean(state, known)}"
                )
        return states

    def _check_disjoint(self) -> None:
        every = [*self.allowed_states, *self.skipped_states, *self.failed_states]
        for state in every:
            if every.count(state) > 1:
                raise DefinitionError(
                    f"{self._name_in_errors()}: the state {state!r} may be in only one of allowed_states, skipped_states and "
                    "failed_states"
                )

    # --- poking ---------------------------------------------------------------------------------------------------

    def dates(self, context: Any) -> list[int]:
        """The logical dates to wait for, in microseconds.

        Raises:
            AirflowException: this run has no logical date, and there is no `execution_date_fn`.
        """
        at = context["ti"].workload.logical_date
        if at is None:
            if self.execution_date_fn is None:
                raise AirflowException(
                    f"this run has no logical date, so task {self.task_id!r} cannot find the run of DAG "
                    f"{self.external_dag_id!r} to wait for; use execution_date_fn, or trigger the run with a logical date"
                )
            base = None
        else:
            base = context["logical_date"]
        if self.execution_delta is not None:
            return [at - duration_micros(self.execution_delta)]
        if self.execution_date_fn is None:
            return [at]
        function = self.execution_date_fn
        found = function(base, **arguments_for(function, (base,), {}, context))
        dates = [found] if isinstance(found, datetime) else list(found)
        return sorted({micros_of(date) for date in dates})

    def _get_dttm_filter(self, context: Any) -> list[DateTime]:
        """`dates` as Airflow has them, for sensors of users that extend this class. Raises as `dates`."""
        return [date for micros in self.dates(context) if (date := to_pendulum(micros)) is not None]

    def poke(self, context: Any, session: Any = None) -> bool:
        """Look once. Subclasses may pass the session of the database that Airflow 1 and 2 take; it is not used.

        Raises:
            AirflowException: a state after which the wait fails, or no date to wait for.
            AirflowSkipException: a state after which the task is skipped.
            AirflowNotFoundException: the other DAG does not exist, and `check_existence` is set.
        """
        dates = self.dates(context)
        if not dates:
            raise AirflowException(f"execution_date_fn of task {self.task_id!r} returned no dates")
        wait = self._last_wait = self._tasks_wait(tuple(dates))
        self.log.info("Poking for %s on %s", wait.described(), wait.shown_runs())
        answer = states_on_dates(self.external_dag_id, dates, wait.task_ids, wait.group)
        if not answer.found:
            if self.check_existence:
                hint = f" Did you mean {answer.value!r}?" if isinstance(answer.value, str) else ""
                raise AirflowNotFoundException(f"the external DAG {self.external_dag_id!r} does not exist.{hint}")
            return False
        return is_met(wait, answer.value or ())

    def _tasks_wait(self, dates: tuple[int, ...]) -> TasksWait:
        tasks = (self.external_task_id,) if self.external_task_id is not None else tuple(self.external_task_ids or ())
        return TasksWait(
            dag_id=self.external_dag_id,
            logical_dates=dates,
            task_ids=tasks,
            group=self.external_task_group_id,
            allowed=tuple(self.allowed_states),
            skipped=tuple(self.skipped_states),
            failed=tuple(self.failed_states),
            soft_fail=self.soft_fail,
        )

    def as_wait(self, context: Any) -> Wait | None:
        if self._last_wait is None:
            return None
        failed = () if self.silent_fail else self._last_wait.failed  # with silent_fail the sensor waits on after a failure
        return msgspec.structs.replace(self._last_wait, failed=failed, soft_fail=self.soft_fail or self.never_fail)

    def plan(self) -> TasksPlan | None:
        if self.check_existence or self.execution_date_fn is not None:
            return None
        ids = [self.external_dag_id, self.external_task_group_id, self.external_task_id, *(self.external_task_ids or ())]
        tasks = [self.external_task_id] if self.external_task_id is not None else self.external_task_ids or []
        if not all(one is None or (type(one) is str and not is_template(one)) for one in ids):
            return None
        return TasksPlan(
            self.external_dag_id,
            0 if self.execution_delta is None else duration_micros(self.execution_delta),
            task_ids=tuple(tasks),
            group=self.external_task_group_id,
            allowed=tuple(self.allowed_states),
            skipped=tuple(self.skipped_states),
            failed=() if self.silent_fail else tuple(self.failed_states),
            failing_skips=self.soft_fail or self.never_fail,
        )


def is_template(text: str) -> bool:
    """True if the string contains Jinja syntax."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def is_met(wait: TasksWait, rows: Iterable[Any]) -> bool:
    """Check the wait against rows of (logical date, task id or None, state or None). Tasks that do not exist have no row.

    Raises:
        AirflowSkipException, AirflowException: a task or run has a state after which the waiting task is skipped or fails.
    """
    found = judge(wait, rows)
    if found is None:
        return False
    if found.outcome is Outcome.SUCCESS:
        return True
    raise (AirflowSkipException if found.outcome is Outcome.SKIPPED else AirflowException)(found.reason)


_OWN_DATES = frozenset(
    f"{name}{call}" for name in ("logical_date", "execution_date") for call in ("", ".isoformat()", "|string", "|ts")
) | {"ts"}
"""Templates of the run's own logical date, without spaces and braces."""


class ExternalTaskMarker(EmptyOperator):
    """Marks that a task of another DAG depends on this task. Clearing this task also clears that task and its downstream tasks.

    Args:
        external_dag_id, external_task_id: the task of the other DAG.
        logical_date: logical date of the other DAG's run. Only the default, this run's own logical date, is supported.
        recursion_depth: how many markers are followed one after the other.
        execution_date: Airflow 2's name of `logical_date`.
    """

    template_fields: Collection[str] = ("external_dag_id", "external_task_id", "logical_date")
    ui_color = "#4db7db"
    operator_extra_links: Collection[Any] = (ExternalDagLink(),)

    def __init__(
        self,
        *,
        external_dag_id: str,
        external_task_id: str,
        logical_date: str | datetime | None = "{{ logical_date.isoformat() }}",
        execution_date: str | datetime | None = None,
        recursion_depth: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        date = logical_date if execution_date is None else execution_date
        if not isinstance(date, str) or "".join(date.split()).removeprefix("{{").removesuffix("}}") not in _OWN_DATES:
            raise NotYetSupported(
                f"{self._name_in_errors()}: logical_date is {date!r}; only the logical date of the own run is supported yet"
            )
        for name, value in (("external_dag_id", external_dag_id), ("external_task_id", external_task_id)):
            if not isinstance(value, str) or "{{" in value:
                raise NotYetSupported(
                    f"{self._name_in_errors()}: {name} is {value!r}; it must be the id itself, not a template"
                )
        if isinstance(recursion_depth, bool) or not isinstance(recursion_depth, int) or recursion_depth < 1:
            raise DefinitionError(
                f"{self._name_in_errors()}: recursion_depth is {recursion_depth!r}; it must be an integer of at least 1"
            )
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.logical_date = date
        self.recursion_depth = recursion_depth

    @property
    def external_mark(self) -> ExternalMark:
        """The marker as a plain value, for the definition."""
        return ExternalMark(self.external_dag_id, self.external_task_id, self.recursion_depth)
