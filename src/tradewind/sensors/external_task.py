"""A sensor that waits for another DAG, and a mark for what waits there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from tradewind.authoring.calling import arguments_for
from tradewind.authoring.exceptions import AirflowException, AirflowNotFoundException, AirflowSkipException
from tradewind.authoring.task_instance import micros_of, states_on_dates
from tradewind.model.definition import ExternalMark
from tradewind.model.errors import DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.moments import duration_micros, iso
from tradewind.model.states import RunState, TaskState
from tradewind.operators.empty import EmptyOperator
from tradewind.sensors.base import BaseSensorOperator, refuse_deferrable

_TASK_STATES = frozenset(state.value for state in TaskState if state is not TaskState.NONE)
_RUN_STATES = frozenset(state.value for state in RunState)


class ExternalTaskSensor(BaseSensorOperator):
    """Waits until tasks (or a group, or the whole run) of another DAG are in a given state, at this run's logical date.

    Args:
        external_dag_id: the other DAG.
        external_task_id, external_task_ids, external_task_group_id: what to wait for; none of them: the run.
        allowed_states: states that end the wait (default: success).
        skipped_states: states that skip this task.
        failed_states: states that fail it.
        execution_delta: look that much before this run's logical date.
        execution_date_fn: a function from the logical date (and the context, by name) to the date or dates to look at.
        check_existence: fail at once when the other DAG is not known.
    """

    template_fields: Collection[str] = (
        "external_dag_id",
        "external_task_id",
        "external_task_ids",
        "external_task_group_id",
    )
    ui_color = "#4db7db"

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
        refuse_deferrable(self, deferrable)
        if poll_interval is not None:
            raise DefinitionError(f"{self._called()}: poll_interval belongs to deferrable=True; use poke_interval")
        named = [name for name in (external_task_id, external_task_ids, external_task_group_id) if name is not None]
        if len(named) > 1:
            raise DefinitionError(
                f"{self._called()}: give only one of external_task_id, external_task_ids and external_task_group_id"
            )
        if execution_delta is not None and execution_date_fn is not None:
            raise DefinitionError(f"{self._called()}: give only one of execution_delta and execution_date_fn")
        if isinstance(external_task_ids, str):
            raise DefinitionError(f"{self._called()}: external_task_ids is a text; it must be a list of task ids")
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
                    f"{self._called()}: {name} has {state!r}, which is no state of a {what}.{did_you_mean(state, known)}"
                )
        return states

    def _check_disjoint(self) -> None:
        every = [*self.allowed_states, *self.skipped_states, *self.failed_states]
        for state in every:
            if every.count(state) > 1:
                raise DefinitionError(
                    f"{self._called()}: the state {state!r} occurs twice in allowed_states, skipped_states and failed_states"
                )

    # --- looking --------------------------------------------------------------------------------------------------

    def dates(self, context: Any) -> list[int]:
        """The logical dates to look at, in microseconds.

        Raises:
            AirflowException: this run has none to begin with.
        """
        at = context["ti"].workload.logical_date
        if at is None:
            if self.execution_date_fn is None:
                raise AirflowException(
                    f"this run has no logical date, so task {self.task_id!r} cannot know which run of "
                    f"{self.external_dag_id!r} to wait for; give execution_date_fn, or trigger with a logical date"
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

    def _wanted(self) -> tuple[str, ...]:
        if self.external_task_id is not None:
            return (self.external_task_id,)
        return tuple(self.external_task_ids or ())

    def poke(self, context: Any) -> bool:
        dates = self.dates(context)
        if not dates:
            raise AirflowException(f"execution_date_fn of task {self.task_id!r} gave no dates")
        tasks = self._wanted()
        what = self._described(tasks)
        self.log.info("Poking for %s on %s", what, ", ".join(str(iso(date)) for date in dates))
        answer = states_on_dates(self.external_dag_id, dates, tasks, self.external_task_group_id)
        if not answer.found:
            if self.check_existence:
                hint = f" Did you mean {answer.value!r}?" if isinstance(answer.value, str) else ""
                raise AirflowNotFoundException(f"the external DAG {self.external_dag_id!r} does not exist.{hint}")
            return False
        return self._decide(what, dates, tasks, answer.value or ())

    def _described(self, tasks: tuple[str, ...]) -> str:
        if self.external_task_group_id is not None:
            return f"task group {self.external_task_group_id!r} of DAG {self.external_dag_id!r}"
        if tasks:
            return f"{', '.join(map(repr, tasks))} of DAG {self.external_dag_id!r}"
        return f"DAG {self.external_dag_id!r}"

    def _decide(self, what: str, dates: list[int], tasks: tuple[str, ...], rows: Iterable[Any]) -> bool:
        """Rows are (logical date, task id or None, state or None); what does not exist is absent."""
        states: dict[tuple[int, str | None], list[str | None]] = {}
        for date, task_id, state in rows:
            states.setdefault((date, task_id), []).append(state)
        for (date, task_id), found in states.items():
            for state in found:
                where = f"{what}{f' ({task_id})' if task_id is not None and len(tasks) != 1 else ''} is {state} on {iso(date)}"
                if state in self.failed_states:
                    if self.soft_fail:
                        raise AirflowSkipException(f"{where}; skipped because of soft_fail")
                    raise AirflowException(where)
                if state in self.skipped_states:
                    raise AirflowSkipException(where)
        return all(self._complete(date, tasks, states) for date in dates)

    def _complete(self, date: int, tasks: tuple[str, ...], states: dict[tuple[int, str | None], list[str | None]]) -> bool:
        """Is everything that is waited for in an allowed state at this date?"""
        there = [found for (at, _), found in states.items() if at == date]
        if not there or any((date, task_id) not in states for task_id in tasks):
            return False
        return all(state in self.allowed_states for found in there for state in found)


_OWN_DATES = frozenset(
    f"{name}{call}" for name in ("logical_date", "execution_date") for call in ("", ".isoformat()", "|string", "|ts")
) | {"ts"}
"""Templates that stand for the run's own logical date, without blanks and braces."""


class ExternalTaskMarker(EmptyOperator):
    """Marks that a task of another DAG depends on this one: when this task is cleared, so are that one and all after it.

    Args:
        external_dag_id, external_task_id: the task.
        logical_date: of the run of the other DAG; only this run's own date, which is the default.
        recursion_depth: how many markers may follow each other.
        execution_date: Airflow 2's name of `logical_date`.
    """

    template_fields: Collection[str] = ("external_dag_id", "external_task_id", "logical_date")
    ui_color = "#4db7db"

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
                f"{self._called()}: logical_date is {date!r}; a marker for another date than the run's own is not built yet"
            )
        for name, value in (("external_dag_id", external_dag_id), ("external_task_id", external_task_id)):
            if not isinstance(value, str) or "{{" in value:
                raise NotYetSupported(f"{self._called()}: {name} is {value!r}; a marker needs the id itself, not a template")
        if isinstance(recursion_depth, bool) or not isinstance(recursion_depth, int) or recursion_depth < 1:
            raise DefinitionError(f"{self._called()}: recursion_depth is {recursion_depth!r}; it must be a number from 1")
        self.external_dag_id = external_dag_id
        self.external_task_id = external_task_id
        self.logical_date = date
        self.recursion_depth = recursion_depth

    @property
    def external_mark(self) -> ExternalMark:
        """What the definition records."""
        return ExternalMark(self.external_dag_id, self.external_task_id, self.recursion_depth)
