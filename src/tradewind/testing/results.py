"""The results of runs, tasks and attempts in a test."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import SECOND
from tradewind.model.rows import JournalEntry, RunRow
from tradewind.model.states import TASK_STATES, Outcome, RunState, TaskState
from tradewind.model.waits import Deferral, TriggerWait
from tradewind.store.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class TestedWait:
    """The wait of a task that deferred itself."""

    trigger: str | None
    """Import path of the class of the trigger; None: the scheduler itself waits, see `deferral`."""
    trigger_kwargs: dict[str, Any]
    method: str | None
    """The method with which the task continues."""
    kwargs: dict[str, Any]
    """Further arguments of the method."""
    deferral: Deferral
    """All data of the wait."""

    __test__ = False

    @classmethod
    def of(cls, deferral: Deferral) -> TestedWait:
        wait = deferral.wait
        path, arguments = (wait.classpath, decode_xcom(wait.kwargs)) if isinstance(wait, TriggerWait) else (None, {})
        return cls(path, arguments, deferral.method, decode_xcom(deferral.kwargs), deferral)


@dataclass(frozen=True, slots=True)
class TestedAttempt:
    """One attempt of a task."""

    task_id: str
    map_index: int
    """-1 if the task is not mapped."""
    try_number: int
    started: datetime
    ended: datetime
    outcome: Outcome
    """The reported outcome, whether or not the report counted."""
    reason: str | None
    rendered: dict[str, Any]
    """Template field → its rendered value at the end of the task."""
    log: str
    """Everything that the attempt printed and logged."""
    stopped: bool = False
    """The attempt was stopped before its end, and its report did not count."""
    left: TaskState | None = None
    """The state of the task after the attempt: success, failed, up_for_retry …"""
    waits: TestedWait | None = None
    """The wait, if the task deferred itself."""
    pushed: tuple[str, ...] = ()
    """Keys of the XComs that it pushed."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestedTask:
    """The result of a task instance."""

    task_id: str
    state: TaskState
    try_number: int
    seconds: float | None
    """Duration of its last attempt; None if it never ran."""
    reason: str | None
    """The reason for the state, as a sentence."""
    map_index: int = -1
    read_xcom: Callable[[str, str, Any], Any] | None = field(default=None, repr=False, compare=False)
    """(task id, key, default) → XCom of a task of the same run."""

    __test__ = False

    def current_state(self, session: Any = None) -> TaskState:
        return self.state

    def xcom_pull(
        self, task_ids: str | Iterable[str] | None = None, dag_id: str | None = None, key: str = "return_value", **more: Any
    ) -> Any:
        """An XCom of a task of the same run; for several task ids a list. None as `task_ids`: of this task."""
        read, default = self.read_xcom, more.get("default")
        if read is None:
            return default
        if task_ids is None or isinstance(task_ids, str):
            return read(task_ids or self.task_id, key, default)
        return [read(task_id, key, default) for task_id in task_ids]


@dataclass(frozen=True, slots=True)
class TestedRun:
    """The result of a run. You can compare states with Airflow's texts: `run.state == "success"`."""

    row: RunRow
    tasks: dict[str, TestedTask]
    """By task id, or `task_id[map index]` for an instance of a mapped task; in the order of the DAG file."""
    store: MemoryStore
    """The complete store: `store.journal(run.row.id)`, `store.attempts_of_run(run.row.id)`."""
    attempts: list[TestedAttempt] = field(default_factory=list)
    """All attempts in the order of their ends."""

    __test__ = False

    @property
    def state(self) -> RunState:
        return self.row.state

    @property
    def run_id(self) -> str:
        return self.row.run_id

    @property
    def dag_id(self) -> str:
        return self.row.dag_id

    def get_state(self) -> RunState:
        return self.row.state

    def get_task_instance(self, task_id: str, map_index: int = -1) -> TestedTask | None:
        return self.tasks.get(_named(task_id, map_index))

    def get_task_instances(self) -> list[TestedTask]:
        return list(self.tasks.values())

    def task(self, task_id: str, map_index: int = -1) -> TestedTask:
        """The task instance with this id. Raises NotFound with the nearest id."""
        name = _named(task_id, map_index)
        if name not in self.tasks:
            raise NotFound(f"DAG {self.dag_id!r} has no task {name!r}.{did_you_mean(name, self.tasks)}")
        return self.tasks[name]

    def instances_of(self, task_id: str) -> list[TestedTask]:
        """All instances of a task, by map index. Raises NotFound with the nearest id."""
        found = [task for task in self.tasks.values() if task.task_id == task_id]
        return found or [self.task(task_id)]

    def attempts_of(self, task_id: str, map_index: int | None = None) -> list[TestedAttempt]:
        """All attempts of a task, or of one instance of a mapped task. Raises NotFound."""
        self.instances_of(task_id)
        return [one for one in self.attempts if one.task_id == task_id and map_index in (None, one.map_index)]

    def xcom(self, task_id: str, key: str = "return_value", default: Any = None) -> Any:
        """The XCom of a task; for a mapped task, the list of the XComs of its instances."""
        return _read_xcom(self.store, self.row.id, task_id, key, default)

    def every_xcom(self) -> list[tuple[str, int, str, bytes]]:
        """(task id, map index, key, encoded value) of all XComs."""
        tasks = sorted({task.task_id for task in self.tasks.values()})
        keys = sorted({key for attempt in self.attempts for key in attempt.pushed})
        return [(*one[:2], key, one[2]) for key in keys for one in self.store.xcoms(self.row.id, tasks, key)]

    def table(self, only_task: str | None = None) -> list[str]:
        """A line for each task: id, state, seconds, and the reason if it is not a success; then a line for the run.

        Args:
            only_task: only the lines of this task.
        """
        shown = {name: task for name, task in self.tasks.items() if only_task in (None, task.task_id)}
        width = max((len(name) for name in shown), default=4)
        lines = []
        for name, task in shown.items():
            took = "" if task.seconds is None else f"{task.seconds:.2f} s"
            why = "" if task.state is TaskState.SUCCESS else f"  {task.reason or ''}"
            lines.append(f"{name:<{width}}  {task.state.value:<15}  {took:>9}{why}".rstrip())
        return lines if only_task is not None else [*lines, f"{self.dag_id} {self.run_id}: {self.state.value}"]


def _read_xcom(store: MemoryStore, run: int, task_id: str, key: str, default: Any) -> Any:
    found = store.xcoms(run, [task_id], key)
    if any(index >= 0 for _, index, *_ in found):
        return [decode_xcom(data) for _, _, data, _ in found]
    return decode_xcom(found[0][2]) if found else default


def _named(task_id: str, map_index: int) -> str:
    return task_id if map_index < 0 else f"{task_id}[{map_index}]"


def tested_run(store: MemoryStore, row: RunRow, attempts: list[TestedAttempt]) -> TestedRun:
    """The result of a run, read from the store."""
    snapshot = store.snapshot(row.id)
    assert snapshot is not None
    causes = {entry.slot: entry.cause for entry in store.journal(row.id)}
    spans = {
        attempt.slot: (attempt.ended_at - attempt.started_at) / SECOND
        for attempt in store.attempts_of_run(row.id)
        if attempt.started_at is not None and attempt.ended_at is not None
    }
    instances = {one.slot: (one.task_id, one.map_index) for one in snapshot.rows}
    order = {task.task_id: number for number, task in enumerate(store.definition(row.version).tasks)}
    tasks = {}
    for one in sorted(snapshot.rows, key=lambda one: (order[one.task_id], one.map_index)):
        reason = one.reason or causes.get(one.slot)
        tasks[_named(one.task_id, one.map_index)] = TestedTask(
            one.task_id,
            TASK_STATES[one.state],
            one.try_number,
            spans.get(one.slot),
            reason,
            one.map_index,
            functools.partial(_read_xcom, store, row.id),
        )
    return TestedRun(row, tasks, store, _with_states(store.journal(row.id), instances, attempts))


def _with_states(
    journal: list[JournalEntry], instances: dict[int, tuple[str, int]], attempts: list[TestedAttempt]
) -> list[TestedAttempt]:
    """Set `left` of each attempt: the n-th attempt of a task instance belongs to the n-th time that the instance stopped
    running.
    """
    left: dict[tuple[str, int], list[TaskState]] = {}
    for entry in journal:
        if entry.before == TaskState.RUNNING.code:
            left.setdefault(instances[entry.slot], []).append(TASK_STATES[entry.after])
    states = {instance: iter(found) for instance, found in left.items()}
    return [replace(one, left=next(states[one.task_id, one.map_index], None)) for one in attempts]
