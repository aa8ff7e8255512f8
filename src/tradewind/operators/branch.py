"""Branching: base classes of operators that choose which downstream tasks run.

An operator stores its decision in its task instance (`ti.branch`). The decision is part of the attempt's report, and the scheduler
skips the tasks that were not chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tradewind.execution.context import get_current_context
from tradewind.execution.task_instance import Branch
from tradewind.model.errors import did_you_mean
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator

DECISION = "skipmixin_key"
"""Key of the XCom with a decision: `{"followed": […]}` or `{"skipped": […]}`, as in Airflow."""

Choice = str | Iterable[str] | None
"""A task id, a task group id, several of them, or None for no task."""


def chosen_tasks(task: BaseOperator, choice: Choice) -> tuple[str, ...]:
    """The task ids of a choice. A task group stands for its first tasks.

    Raises:
        AirflowException: not a string, a list of strings or None; or the DAG has no such task or group.
    """
    if choice is None:
        return ()
    names = [choice] if isinstance(choice, str) else list(choice) if isinstance(choice, Iterable) else [choice]
    found: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str):
            raise AirflowException(
                f"the branch task {task.task_id!r} returned {choice!r}; it must return a task id, a task group id, a list of "
                "these, or None"
            )
        found.update(dict.fromkeys(_tasks_of(task, name)))
    unreachable = set(found) - task.get_flat_relative_ids()
    if unreachable:
        task.log.warning(
            "These chosen tasks are not downstream of %s and are not affected: %s", task.task_id, sorted(unreachable)
        )
    return tuple(found)


def _tasks_of(task: BaseOperator, name: str) -> list[str]:
    dag = task.dag
    if name in dag.task_dict:
        return [name]
    group = dag.task_group_dict.get(name)
    if group is not None:
        return [root.task_id for root in group.get_roots()]
    inside = task.task_group.child_id(name) if task.task_group is not None else name
    hint = f" Did you mean {inside!r}?" if inside in dag.ids else did_you_mean(name, dag.ids)
    raise AirflowException(
        f"the branch task {task.task_id!r} chose {name!r}, but DAG {dag.dag_id!r} has no such task or task group.{hint} "
        f"Its direct downstream tasks are: {', '.join(sorted(task.downstream_task_ids)) or 'none'}."
    )


Tasks = Iterable[BaseOperator | str]


def _skipped(ti: Any, tasks: Tasks) -> tuple[Any, Tasks]:
    return ti, tasks


def _skipped_in_airflow_2(
    dag_run: Any, execution_date: Any, tasks: Tasks, session: Any = None, map_index: int = -1
) -> tuple[Any, Tasks]:
    """The running task and the tasks that it skips. A task can skip tasks of its own run only."""
    return get_current_context()["ti"], tasks


class SkipMixin:
    """For operators that skip tasks."""

    def skip(self, *args: Any, **named: Any) -> None:
        """Skip exactly these tasks: `skip(ti, tasks)`, or `skip(dag_run, execution_date, tasks)` as in Airflow 1 and 2.

        Raises:
            TypeError: other arguments.
        """
        is_older = len(args) + ("tasks" in named) > 2 or "dag_run" in named or "execution_date" in named
        ti, tasks = (_skipped_in_airflow_2 if is_older else _skipped)(*args, **named)
        ids = tuple(task if isinstance(task, str) else task.task_id for task in tasks)
        if ids:
            ti.branch = Branch("skip", ids)
            ti.xcom_push(DECISION, {"skipped": list(ids)})

    def skip_all_except(self, ti: Any, branch_task_ids: Choice) -> None:
        """Skip the direct downstream tasks that are neither chosen nor downstream of a chosen task."""
        task = ti.task
        chosen = chosen_tasks(task, branch_task_ids)
        ti.branch = Branch("follow", chosen)
        if task.downstream_task_ids:
            run = set(chosen).union(*(task.dag.get_task(one).get_flat_relative_ids() for one in chosen))
            ti.xcom_push(DECISION, {"followed": sorted(run & task.downstream_task_ids)})


class BranchMixIn(SkipMixin):
    """For operators that choose branches."""

    def do_branch(self, context: Any, branches_to_execute: Choice) -> Choice:
        """Store the choice. Returns the choice."""
        if branches_to_execute is not None and not isinstance(branches_to_execute, str | Sequence | set | frozenset):
            # an iterator can be read only once, and the choice is also pushed as XCom
            branches_to_execute = (
                list(branches_to_execute) if isinstance(branches_to_execute, Iterable) else branches_to_execute
            )
        self.skip_all_except(context["ti"], branches_to_execute)
        return branches_to_execute


class BranchOnResult(BranchMixIn):
    """For branching operators whose `execute` returns the choice. It comes before the operator class among the bases."""

    def execute(self, context: Any) -> Any:
        return self.do_branch(context, super().execute(context))  # type: ignore[misc]


class BaseBranchOperator(BranchMixIn, BaseOperator):
    """Base class of branching operators. Subclasses define `choose_branch(context)`."""

    def choose_branch(self, context: Any) -> Choice:
        """Ids of the direct downstream tasks or task groups to run. The others are skipped."""
        raise NotImplementedError(f"{type(self).__name__} does not define choose_branch(context)")

    def execute(self, context: Any) -> Any:
        return self.do_branch(context, self.choose_branch(context))
