"""A runtime for one task, in memory: variables, connections, XComs, states and earlier runs that the tests set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.moments import parse_moment
from tradewind.model.states import RunType
from tradewind.sdk.operator import BaseOperator
from tradewind.wire import runtime
from tradewind.wire.messages import (
    ChangeRows,
    Failure,
    FindRuns,
    GetAsset,
    GetAssetEvents,
    GetConnection,
    GetPreviousRun,
    GetStateEntry,
    GetTaskStates,
    GetVariable,
    ListRows,
    MaskSecrets,
    RunnerAnswer,
    SetStateEntry,
    SetVariable,
    TriggerRun,
    Value,
    Workload,
    XComPull,
    XComs,
)
from tradewind.wire.row_changes import change_tables

DAY = "2024-03-05T00:00:00Z"


class World:
    """Answers requests as the scheduler does, and records them in `questions`."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.connections: dict[str, Any] = {}
        self.xcoms: dict[tuple[str, str, int], Any] = {}
        """(task id, key, map index) → value."""
        self.states: list[tuple[int | str, str | None, str | None]] | None = []
        """None: there is no such DAG."""
        self.previous: dict[str | None, dict[str, Any]] = {}
        self.runs: list[dict[str, Any]] | None = []
        """The answer to `FindRuns`. None: there is no such DAG."""
        self.tables: dict[str, list[dict[str, Any]]] = {}
        """The answers to `ListRows`."""
        self.spills: dict[str, bytes] = {}
        self.kept: dict[tuple[str, str, str], tuple[str, int | None]] = {}
        """(asset name, asset URI, key) → (JSON text, when it expires), of state stores; the store of the task has no name."""
        self.questions: list[runtime.Question] = []
        self.triggers: dict[str, Any] | None = None
        """The error of a request for a run. None: the run is created."""
        self.broken = ""

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        self.questions.append(question)
        if self.broken:
            return Failure(0, self.broken)
        match question:
            case GetVariable(key=key):
                return Value(0, found=key in self.variables, value=self.variables.get(key))
            case SetVariable(key=key, value=value):
                before = key in self.variables
                if value is None:
                    self.variables.pop(key, None)
                else:
                    self.variables[key] = value
                return Value(0, found=before)
            case ChangeRows():
                return self._change(question)
            case GetConnection(conn_id=conn_id):
                return Value(0, found=conn_id in self.connections, value=self.connections.get(conn_id))
            case GetTaskStates():
                return Value(0, found=self.states is not None, value=self.states)
            case FindRuns(run_id=run_id):
                runs = None if self.runs is None else [run for run in self.runs if run_id in (None, run["run_id"])]
                return Value(0, found=runs is not None, value=runs)
            case ListRows(table=table, run_ids=run_ids, task_ids=task_ids):
                rows = [row for row in self.tables.get(table, []) if not run_ids or row["run_id"] in run_ids]
                wanted = [dict(row) for row in rows if not task_ids or row["task_id"] in task_ids]
                return Value(0, found=True, value=wanted)
            case GetPreviousRun(state=state):
                return Value(0, found=True, value=self.previous.get(state))
            case GetStateEntry(key=key, name=name, uri=uri):
                kept = self.kept.get((name, uri, key))
                return Value(0, found=kept is not None, value=None if kept is None else kept[0])
            case SetStateEntry(key=key, value=value, name=name, uri=uri, expires_at=expires_at):
                if value is not None:
                    self.kept[name, uri, str(key)] = value, expires_at
                else:
                    for one in [one for one in self.kept if one[:2] == (name, uri) and key in (None, one[2])]:
                        del self.kept[one]
                return Value(0, found=True)
            case TriggerRun(run_id=run_id, logical_date=date):
                made = {"done": "created", "run_id": run_id or "made", "logical_date": date}
                return Value(0, found=True, value=made if self.triggers is None else self.triggers)
            case XComPull(task_ids=task_ids, key=key, map_indexes=indexes):
                pulled = [
                    (task_id, index, b"", value[1])
                    if isinstance(value, tuple) and value[:1] == ("spill",)
                    else (task_id, index, encode_xcom(value), None)
                    for (task_id, name, index), value in sorted(self.xcoms.items(), key=lambda item: item[0])
                    if task_id in task_ids and name == key and (indexes is None or index in indexes)
                ]
                return XComs(0, tuple(pulled))
            case GetAsset() | GetAssetEvents() | MaskSecrets():
                return Value(0, found=False)

    def _change(self, question: ChangeRows) -> Value:
        variables = {key: {"val": value} for key, value in self.variables.items()}
        pools = {row["pool"]: row for row in self.tables.get("pool", [])}
        dags = {row["dag_id"]: row for row in self.tables.get("dag", [])}
        tables = {"connection": self.connections, "variable": variables, "pool": pools, "dag": dags}
        answer = change_tables(tables, question)
        if dags:
            self.tables["dag"] = list(dags.values())
        self.variables = {key: row["val"] for key, row in variables.items()}
        self.tables["connection"] = [{"conn_id": key} for key in self.connections]
        self.tables["variable"] = [{"key": key, "description": row.get("description")} for key, row in variables.items()]
        self.tables["pool"] = [{"description": None, **row, "pool": key} for key, row in pools.items()]
        return answer

    def read_spill(self, name: str) -> bytes:
        return self.spills[name]


@contextmanager
def installed() -> Iterator[World]:
    """Install a world as the runtime of user code in this process."""
    world = World()
    runtime.install(world)
    try:
        yield world
    finally:
        runtime.install(None)


def workload(task_id: str = "t", *, at: str | None = DAY, until: str | None = None, **changes: Any) -> Workload:
    """An attempt of task `task_id` in a scheduled run at `at` (without a logical date for None)."""
    moment = None if at is None else parse_moment(at)
    fields: dict[str, Any] = {
        "run": 7,
        "slot": 0,
        "fence": 3,
        "dag_id": "d",
        "task_id": task_id,
        "run_id": "r1",
        "run_type": RunType.SCHEDULED if at is not None else RunType.MANUAL,
        "logical_date": moment,
        "interval_start": moment,
        "interval_end": moment if until is None else parse_moment(until),
        "run_after": parse_moment(until or at or DAY),
    }
    return Workload(**{**fields, **changes})


def carry_out(task: BaseOperator, **changes: Any) -> TaskResult:
    """Run one attempt of a task as the task runner does."""
    return execute_task(task, workload(task.task_id, **changes), on_copy=True)


def pushed(result: TaskResult) -> dict[str, Any]:
    """The values that an attempt pushed."""
    return {one.key: decode_xcom(one.value) for one in result.pushed}
