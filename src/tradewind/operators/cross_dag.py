"""A Python task that depends on tasks of other DAGs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from tradewind.execution.call_arguments import arguments_for
from tradewind.execution.deferral_request import scheduler_can_wait, until, wait_for
from tradewind.execution.task_instance import micros_of, states_on_dates
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
"""From this run's logical date (and the context, by name) to the date or dates to look at."""


class Condition(NamedTuple):
    """One dependency, as it is written in `dag_dep_conditions`. A shorter tuple leaves the rest at its defaults."""

    dag_id: str
    task_id: str | None = None
    """None: the whole run."""
    at: timedelta | DateFunction | None = None
    """A timedelta looks that much before this run's logical date; None at the date itself."""
    states: Sequence[str] = ("success",)


class CrossDagDepPythonOperator(PythonOperator):
    """Calls a function once tasks of other DAGs are in given states, at this run's logical date or one that follows from it.

    Until then the task is `deferred`: it holds neither a process nor a slot, nothing is skipped, and the scheduler wakes it when
    the last condition comes true. A task that fails elsewhere is waited for until somebody clears it.

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
                f"{self._name_in_errors()}: dag_dep_conditions is empty; use PythonOperator, or name what it depends on"
            )

    def _condition(self, given: Any) -> Condition:
        if isinstance(given, str) or not isinstance(given, Sequence) or not 1 <= len(given) <= 4:
            raise DefinitionError(f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; each one is {_FORM}")
        dag_id, task_id, at, states = [*given, None, None, None][:4]
        if not isinstance(dag_id, str) or not isinstance(task_id, str | None):
            raise DefinitionError(
                f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; the ids of DAG and task are texts"
            )
        if not (at is None or isinstance(at, timedelta) or callable(at)):
            raise DefinitionError(
                f"{self._name_in_errors()}: dag_dep_conditions has {given!r}; the third part is a timedelta, a function or None"
            )
        wanted = [states] if isinstance(states, str) else ["success"] if states is None else list(states)
        known = _RUN_STATES if task_id is None else _TASK_STATES
        names = [str(getattr(state, "value", state)) for state in wanted]
        for name in names:
            if name not in known:
                what = "run" if task_id is None else "task"
                raise DefinitionError(
                    f"{self._name_in_errors()}: dag_dep_conditions has {name!r}, which is no state of a {what}."
                    f"{did_you_mean(name, known)}"
                )
        return Condition(dag_id, task_id, at, tuple(names))

    @property
    def other_dag_ids(self) -> tuple[str, ...]:
        """Shown as dependencies."""
        return tuple(condition.dag_id for condition in self.dag_dep_conditions if "{{" not in condition.dag_id)

    def waits(self, context: Any) -> list[TasksWait]:
        """The conditions at the dates of this run.

        Raises:
            AirflowException: this run has no logical date to begin with, or a function gives no dates.
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
                raise AirflowException(f"the date function of task {self.task_id!r} for DAG {dag_id!r} gave no dates")
            return dates
        if date is None:
            raise AirflowException(
                f"this run has no logical date, so task {self.task_id!r} cannot know which run of {dag_id!r} it depends on; "
                "give a date function, or trigger with a logical date"
            )
        return [date if at is None else date - duration_micros(at)]

    def execute(self, context: Any) -> Any:
        open_ones = [wait for wait in self.waits(context) if not _holds(wait)]
        if open_ones:
            self._wait(context, open_ones)
        return super().execute(context)

    def _wait(self, context: Any, open_ones: list[TasksWait]) -> NoReturn:
        for wait in open_ones:
            self.log.info("Not yet: %s has to be %s on %s", wait.described(), " or ".join(wait.allowed), wait.places())
        if not scheduler_can_wait():
            raise AirflowException(
                f"the dependencies of task {self.task_id!r} are not met, and no scheduler is here to wait for them"
            )
        begun = context["ti"].workload.first_started or time.time_ns() // 1000
        timeout_at = until(self.execution_timeout, begun)
        wait_for(EveryWait(tuple(open_ones)), method="execute_when_met", timeout_at=timeout_at)

    def execute_when_met(self, context: Any, event: Any = None) -> Any:
        """The scheduler says that the conditions hold; what somebody cleared in between is waited for again."""
        return self.execute(context)


def _holds(wait: TasksWait) -> bool:
    answer = states_on_dates(wait.dag_id, list(wait.logical_dates), wait.task_ids, None)
    return answer.found and judge(wait, answer.value or ()) is not None
