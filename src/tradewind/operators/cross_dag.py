"""A Python operator that depends on tasks of other DAGs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from tradewind.execution.call_arguments import arguments_for
from tradewind.execution.deferral_request import scheduler_can_wait, until, wait_for
from tradewind.execution.instance_names import micros_of
from tradewind.execution.state_queries import states_on_dates
from tradewind.model.errors import DefinitionError, did_you_mean
from tradewind.model.moments import duration_micros
from tradewind.model.states import RunState, TaskState
from tradewind.model.waits import EveryWait, TasksWait, judge
from tradewind.operators.python import PythonOperator
from tradewind.sdk.exceptions import AirflowException

_TASK_STATES = frozenset(state.value for state in TaskState if state is not TaskState.NONE)
_RUN_STATES = frozenset(state.value for state in RunState)
_FORM = "(dag_id, task_id, offset or date function, states)"

DateFunction = Callable[..., Any]
"""From the logical date of this run (and the context, by name) to the logical date or dates of the other DAG's runs."""


class Condition(NamedTuple):
    """One dependency, as given in `dag_dep_conditions`. A shorter tuple uses the defaults for the rest."""

    dag_id: str
    task_id: str | None = None
    """None: the whole run."""
    at: timedelta | DateFunction | None = None
    """A timedelta is subtracted from the logical date of this run; None means the same logical date."""
    states: Sequence[str] = ("success",)


class CrossDagDepPythonOperator(PythonOperator):
    """Calls a function as soon as tasks of other DAGs have the given states, for the same logical date or one derived from it.

    Until then the task is `deferred`: it uses no process and no pool slot, and the scheduler continues it when the last condition
    is met. If a task of another DAG fails, this task waits until the failed task is cleared and succeeds.

    Args:
        dag_dep_conditions: list of (dag_id, task_id, offset or date function, states); see `Condition`.
        others: see `PythonOperator`.
    """

    template_fields: Collection[str] = (*PythonOperator.template_fields, "dag_dep_conditions")

    def __init__(self, *, dag_dep_conditions: Iterable[Sequence[Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dag_dep_conditions: Any = [self._condition(one) for one in dag_dep_conditions]
        if not self.dag_dep_conditions:
            raise DefinitionError(
                f"{self._name_in_errors()}: dag_dep_conditions is empty; give at least one condition, or use PythonOperator"
            )

    def _condition(self, given: Any) -> Condition:
        if isinstance(given, str) or not isinstance(given, Sequence) or not 1 <= len(given) <= 4:
            raise DefinitionError(f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; each condition must be {_FORM}")
        dag_id, task_id, at, states = [*given, None, None, None][:4]
        if not isinstance(dag_id, str) or not isinstance(task_id, str | None):
            raise DefinitionError(
                f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; dag_id and task_id must be strings"
            )
        if not (at is None or isinstance(at, timedelta) or callable(at)):
            raise DefinitionError(
                f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; the third part must be a timedelta, function or None"
            )
        wanted_states = [states] if isinstance(states, str) else ["success"] if states is None else list(states)
        known = _RUN_STATES if task_id is None else _TASK_STATES
        names = [str(getattr(state, "value", state)) for state in wanted_states]
        for name in names:
            if name not in known:
                what = "run" if task_id is None else "task"
                raise DefinitionError(
                    f"{self._name_in_errors()}: dag_dep_conditions has {name!r}, which is not a state of a {what}."
                    f"{did_you_mean(name, known)}"
                )
        return Condition(dag_id, task_id, at, tuple(names))

    @property
    def other_dag_ids(self) -> tuple[str, ...]:
        """Ids of the other DAGs, shown as dependencies between DAGs."""
        return tuple(condition.dag_id for condition in self.dag_dep_conditions if "{{" not in condition.dag_id)

    def waits(self, context: Any) -> list[TasksWait]:
        """The conditions with the logical dates of this run.

        Raises:
            AirflowException: this run has no logical date, or a date function returned no dates.
        """
        return [
            TasksWait(
                dag_id,
                tuple(self._dates(context, dag_id, at)),
                task_ids=() if task_id is None else (task_id,),
                allowed=tuple(states),
            )
            for dag_id, task_id, at, states in self.dag_dep_conditions
        ]

    def _dates(self, context: Any, dag_id: str, at: timedelta | DateFunction | None) -> list[int]:
        date = context["ti"].workload.logical_date
        if callable(at):
            base = None if date is None else context["logical_date"]
            found = at(base, **arguments_for(at, (base,), {}, context))
            dates = sorted({micros_of(one) for one in ([found] if isinstance(found, datetime) else found)})
            if not dates:
                raise AirflowException(f"the date function of task {self.task_id!r} for DAG {dag_id!r} returned no dates")
            return dates
        if date is None:
            raise AirflowException(
                f"this run has no logical date, so task {self.task_id!r} cannot find the run of DAG {dag_id!r} that it depends on; "
                "use a date function, or trigger the run with a logical date"
            )
        return [date if at is None else date - duration_micros(at)]

    def execute(self, context: Any) -> Any:
        unmet = [wait for wait in self.waits(context) if not _is_met(wait)]
        if unmet:
            self._wait(context, unmet)
        return super().execute(context)

    def _wait(self, context: Any, unmet: list[TasksWait]) -> NoReturn:
        for wait in unmet:
            self.log.info("Waiting for %s to be %s on %s", wait.described(), " or ".join(wait.allowed), wait.shown_runs())
        if not scheduler_can_wait():
            raise AirflowException(
                f"the dependencies of task {self.task_id!r} are not met, and without a scheduler the task cannot wait for them"
            )
        started = context["ti"].workload.first_started or time.time_ns() // 1000
        timeout_at = until(self.execution_timeout, started)
        wait_for(EveryWait(tuple(unmet)), method="execute_when_met", timeout_at=timeout_at)

    def execute_when_met(self, context: Any, event: Any = None) -> Any:
        """Continue when the scheduler reports that the conditions are met. Check again, as a task may have been cleared since."""
        return self.execute(context)


def _is_met(wait: TasksWait) -> bool:
    answer = states_on_dates(wait.dag_id, list(wait.logical_dates), wait.task_ids, None)
    return answer.found and judge(wait, answer.value or ()) is not None
