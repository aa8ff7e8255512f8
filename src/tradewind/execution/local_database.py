"""Runs, XComs, variables and connections in the memory of a process without a scheduler, as tests of DAG files write them.

    run = dag.create_dagrun(state="running", execution_date=date, run_type="manual", data_interval=(date, date))
    ti = run.get_task_instance("load")
    ti.run(ignore_ti_state=True)
    assert ti.state == "success"

Airflow keeps such rows in its metadata database. Here they exist only in this process, and no deployment sees them. A process that
a scheduler has started (a task, the import of a DAG file) never uses this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradewind.model.ids import ANY_KEY
from tradewind.model.states import RunType
from tradewind.sdk.conf import conf
from tradewind.wire import runtime
from tradewind.wire.messages import (
    ChangeRows,
    Failure,
    FindRuns,
    GetConnection,
    GetPreviousRun,
    GetTaskStates,
    GetVariable,
    ListRows,
    RunnerAnswer,
    SetVariable,
    Value,
    Workload,
    XComPull,
    XComs,
)
from tradewind.wire.row_changes import change_tables

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance
    from tradewind.sdk.variables import Connection

RUNS_MAX = 10_000
"""Maximum number of runs that are kept. The oldest runs are dropped first."""

_RETURN_VALUE = "return_value"

Instance = tuple[str, int]
"""Task id and map index."""


class LocalRun:
    """A run with the states and XComs of its task instances.

    Attributes:
        facts: its fields by Airflow's names, as in an answer to `FindRuns`; times in microseconds.
        dag: the DAG, if it is known.
    """

    def __init__(self, dag_id: str, run_id: str, facts: dict[str, Any], dag: Any = None) -> None:
        self.dag_id = dag_id
        self.run_id = run_id
        self.facts = {"run_id": run_id, "run_type": RunType.MANUAL.value, "state": "running", "conf": {}, **facts}
        self.dag = dag
        self.states: dict[Instance, str | None] = {}
        self.xcoms: dict[tuple[str, int, str], bytes] = {}
        """(task id, map index, key) → encoded value."""

    @property
    def logical_date(self) -> int | None:
        """Microseconds."""
        found: int | None = self.facts.get("logical_date")
        return found

    @property
    def moment(self) -> int:
        """The logical date, or `run_after` of a run without one; microseconds."""
        return self.logical_date if self.logical_date is not None else self.facts.get("run_after") or 0

    def workload(self, task: Any, map_index: int = -1) -> Workload:
        """The attempt of one of its task instances."""
        facts = self.facts
        return Workload(
            run=0,
            slot=0,
            fence=0,
            dag_id=self.dag_id,
            task_id=task.task_id,
            run_id=self.run_id,
            map_index=map_index,
            max_tries=getattr(task, "retries", 0) or 0,
            run_type=run_type_of(facts["run_type"]),
            logical_date=self.logical_date,
            interval_start=facts.get("data_interval_start"),
            interval_end=facts.get("data_interval_end"),
            run_after=facts.get("run_after") or self.moment,
            partition_key=facts.get("partition_key"),
            run_started=facts.get("start_date"),
            conf=facts["conf"],
        )

    def forget(self, task_id: str, map_index: int = -1) -> None:
        """Remove the XComs of a task instance that is executed again."""
        self.xcoms = {key: data for key, data in self.xcoms.items() if key[:2] != (task_id, map_index)}


def run_type_of(name: Any) -> RunType:
    """The type of a run from Airflow's name; `dataset_triggered` is Airflow 2's name of `asset_triggered`."""
    text = str(getattr(name, "value", name) or RunType.MANUAL.value)
    known = {**{one.value: one for one in RunType}, "dataset_triggered": RunType.ASSET_TRIGGERED}
    return known.get(text, RunType.MANUAL)


class LocalDatabase:
    """The rows of this process (implements `runtime.Runtime`)."""

    local = True

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], LocalRun] = {}
        """(DAG id, run id) → run, in the order of creation."""
        self.variables: dict[str, str] = {}
        self.connections: dict[str, dict[str, Any]] = {}
        """Connection id → its parts."""
        self.paused: set[str] = set()
        """Ids of the paused DAGs."""
        self.pools: dict[str, dict[str, Any]] = {}
        """Name → slots, description and include_deferred of the pools that were added."""

    def reset(self) -> None:
        """Delete everything."""
        self.runs.clear()
        self.variables.clear()
        self.connections.clear()
        self.pools.clear()
        self.paused.clear()

    # --- runs -------------------------------------------------------------------------------------------------------

    def add(self, run: LocalRun) -> LocalRun:
        """Add a run. A run with the same id is replaced."""
        self.runs.pop((run.dag_id, run.run_id), None)
        while len(self.runs) >= RUNS_MAX:
            del self.runs[next(iter(self.runs))]
        self.runs[run.dag_id, run.run_id] = run
        return run

    def find(self, dag_id: str, run_id: str | None = None, logical_date: int | None = None) -> LocalRun | None:
        """The run with this id, otherwise the latest run of this logical date (microseconds); None if there is none."""
        if run_id is not None:
            return self.runs.get((dag_id, run_id))
        of_date = (run for run in self.of_dag(dag_id) if logical_date is not None and run.logical_date == logical_date)
        return next(reversed(list(of_date)), None)

    def of_dag(self, dag_id: str) -> list[LocalRun]:
        """The runs of a DAG, the oldest logical date first."""
        return sorted((run for run in self.runs.values() if run.dag_id == dag_id), key=lambda run: run.moment)

    def of_instance(self, ti: TaskInstance) -> LocalRun:
        """Return the run of a task instance. Create it if there is none."""
        found = self.find(ti.dag_id, ti.run_id)
        if found is None:
            work = ti.workload
            facts = {
                "run_type": work.run_type.value,
                "logical_date": work.logical_date,
                "data_interval_start": work.interval_start,
                "data_interval_end": work.interval_end,
                "run_after": work.run_after,
                "conf": work.conf,
            }
            found = self.add(LocalRun(ti.dag_id, ti.run_id, facts, ti.task.get_dag()))
        return found

    def record_state(self, ti: TaskInstance) -> None:
        """Keep the state of a task instance."""
        state = ti.state
        self.of_instance(ti).states[ti.task_id, ti.map_index] = None if state is None else str(getattr(state, "value", state))

    def record_xcom(self, ti: TaskInstance, key: str, data: bytes) -> None:
        """Keep an encoded value that a task instance pushed."""
        self.of_instance(ti).xcoms[ti.task_id, ti.map_index, key] = data

    def add_connection(self, connection: Connection) -> None:
        """Keep a connection; one with the same id is replaced."""
        parts = ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")
        self.connections[str(connection.conn_id)] = {name: getattr(connection, name, None) for name in parts}

    # --- answers ----------------------------------------------------------------------------------------------------

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        """Answer a request. A request that needs a scheduler is answered by `Failure`."""
        match question:
            case GetVariable():
                return Value(question.op, question.key in self.variables, self.variables.get(question.key))
            case SetVariable():
                found = self.variables.pop(question.key, None) is not None
                if question.value is not None:
                    self.variables[question.key] = question.value
                return Value(question.op, found)
            case ChangeRows():
                return self._change(question)
            case GetConnection():
                parts = self.connections.get(question.conn_id)
                return Value(question.op, parts is not None, parts)
            case XComPull():
                return XComs(question.op, tuple(self._xcoms(question)))
            case GetTaskStates():
                return Value(question.op, True, list(self._states(question)))
            case GetPreviousRun():
                return self._previous_run(question)
            case FindRuns():
                return Value(question.op, True, [run.facts for run in self._found(question)][-question.at_most :])
            case ListRows():
                return Value(question.op, True, list(self._rows(question)))
            case _:
                return Failure(question.op, f"{type(question).__name__} needs a scheduler, and none runs in this process")

    def read_spill(self, name: str) -> bytes:
        """Raises NoRuntime: values of this process are never in files."""
        raise runtime.NoRuntime(f"there is no file {name} of a large XCom in this process")

    def _change(self, question: ChangeRows) -> Value:
        variables = {key: {"val": value} for key, value in self.variables.items()}
        dags = {dag_id: {"is_paused": dag_id in self.paused} for dag_id, _ in self.runs}
        tables = {"connection": self.connections, "variable": variables, "pool": self.pools, "dag": dags}
        answer = change_tables(tables, question)
        self.paused = {dag_id for dag_id, row in dags.items() if row["is_paused"]}
        self.variables = {key: str(row.get("val") or "") for key, row in variables.items()}
        return answer

    def _xcoms(self, question: XComPull) -> Iterator[tuple[str, int, bytes, str | None]]:
        run = self.find(question.dag_id, question.run_id)
        runs = [] if run is None else [run]
        if run is not None and question.include_prior_dates and run.logical_date is not None:
            runs += [one for one in reversed(self.of_dag(run.dag_id)) if one is not run and one.moment <= run.moment]
        for task_id in question.task_ids:
            for one in runs:
                values = _values(one, task_id, question.key)
                wanted = {at: data for at, data in values.items() if question.map_indexes is None or at in question.map_indexes}
                if wanted:
                    yield from ((task_id, at, wanted[at], None) for at in sorted(wanted))
                    break

    def _states(self, question: GetTaskStates) -> Iterator[list[Any]]:
        asked: list[tuple[Any, LocalRun | None]] = [
            (date, self.find(question.dag_id, logical_date=date)) for date in question.logical_dates
        ]
        asked += [(run_id, self.find(question.dag_id, run_id)) for run_id in question.run_ids]
        for place, run in asked:
            if run is None:
                continue
            if not question.task_ids and question.group is None:
                yield [place, None, run.facts["state"]]
                continue
            inside = f"{question.group}." if question.group is not None else None
            for (task_id, _), state in run.states.items():
                if task_id in question.task_ids or (inside is not None and task_id.startswith(inside)):
                    yield [place, task_id, state]

    def _previous_run(self, question: GetPreviousRun) -> Value:
        earlier = [
            run
            for run in self.of_dag(question.dag_id)
            if run.logical_date is not None
            and run.logical_date < question.logical_date
            and question.state in (None, run.facts["state"])
        ]
        return Value(question.op, bool(earlier), earlier[-1].facts if earlier else None)

    def _found(self, question: FindRuns) -> Iterator[LocalRun]:
        for run in self.of_dag(question.dag_id):
            facts = run.facts
            if (
                question.run_id in (None, run.run_id)
                and question.state in (None, facts["state"])
                and (not question.run_types or facts["run_type"] in question.run_types)
                and (question.start is None or run.moment >= question.start)
                and (question.end is None or run.moment <= question.end)
            ):
                yield run

    def _rows(self, question: ListRows) -> Iterator[dict[str, Any]]:
        match question.table:
            case "variable":
                yield from ({"key": key, "description": None} for key in self.variables)
            case "connection":
                yield from ({"conn_id": name} for name in self.connections)
            case "pool":
                default = {"slots": 128, "description": "Default pool", "include_deferred": False}
                for name, row in {"default_pool": default, **self.pools}.items():
                    yield {"pool": name, "slots": 0, "description": None, "include_deferred": False, **row}
            case "dag":
                for dag_id in dict.fromkeys(run.dag_id for run in self.runs.values()):
                    dag = next(run.dag for run in self.runs.values() if run.dag_id == dag_id)
                    file = getattr(dag, "fileloc", "")
                    yield {"dag_id": dag_id, "is_paused": dag_id in self.paused, "is_active": True, "fileloc": file}
            case "task_instance":
                for run_id in question.run_ids:
                    run = self.find(question.dag_id, run_id)
                    yield from () if run is None else _instance_rows(run, question)
            case "xcom_key":
                for run_id in question.run_ids:
                    run = self.find(question.dag_id, run_id)
                    keys = {key for _, _, key in run.xcoms} if run is not None else set()
                    yield from ({"run_id": run_id, "key": key} for key in sorted(keys))


def _values(run: LocalRun, task_id: str, key: str) -> dict[int, bytes]:
    """Map index → value of a task. `ANY_KEY`: the returned value if there is one, otherwise any other value."""
    if key != ANY_KEY:
        return {at: data for (task, at, name), data in run.xcoms.items() if (task, name) == (task_id, key)}
    every = {at: data for (task, at, _), data in run.xcoms.items() if task == task_id}
    return every | _values(run, task_id, _RETURN_VALUE)


def _instance_rows(run: LocalRun, question: ListRows) -> Iterator[dict[str, Any]]:
    tasks = run.dag.task_dict if run.dag is not None else {}
    inside = f"{question.group}." if question.group is not None else None
    for (task_id, map_index), state in run.states.items():
        in_group = inside is not None and task_id.startswith(inside)
        if (question.task_ids or inside) and task_id not in question.task_ids and not in_group:
            continue
        task = tasks.get(task_id)
        yield {
            "dag_id": run.dag_id,
            "task_id": task_id,
            "run_id": run.run_id,
            "map_index": map_index,
            "state": state,
            "logical_date": run.logical_date,
            "try_number": 0 if state is None else 1,
            "max_tries": getattr(task, "retries", 0) or 0,
            "pool": getattr(task, "pool", "default_pool"),
            "queue": getattr(task, "queue", "default"),
            "operator": getattr(task, "task_type", ""),
            "custom_operator_name": getattr(task, "operator_name", ""),
        }


class _Layered:
    """Answers from the rows of this process, then from the variables and connections of a test fixture."""

    local = True

    def __init__(self, own: LocalDatabase, behind: runtime.Runtime) -> None:
        self._own = own
        self._behind = behind

    def ask(self, question: runtime.Question) -> Any:
        if isinstance(question, GetVariable | GetConnection):
            behind = self._behind.ask(question)
            if isinstance(behind, Value) and behind.found:
                return behind
        elif isinstance(question, SetVariable | ChangeRows):
            return self._behind.ask(question)
        return self._own.ask(question)

    def read_spill(self, name: str) -> bytes:
        return self._own.read_spill(name)


_database = LocalDatabase()


def database() -> LocalDatabase:
    """The rows of this process."""
    return _database


def open_database() -> LocalDatabase:
    """Return the rows of this process. From now on they answer all requests of the process."""
    if not runtime.is_installed():
        runtime.install(_database)
    return _database


def is_open() -> bool:
    """Whether the rows of this process answer its requests."""
    return runtime.current() is _database


def close_database() -> None:
    """Delete the rows, and stop answering."""
    _database.reset()
    if runtime.current() is _database:
        runtime.install(None)


@contextmanager
def answering() -> Iterator[LocalDatabase]:
    """Let the rows of this process answer requests inside the block. Variables and connections of a fixture have priority."""
    before = runtime.current()
    if before is _database:
        yield _database
        return
    layered: runtime.Runtime = _Layered(_database, before) if runtime.is_installed() else _database
    with runtime.installed(layered):
        yield _database


def in_test_process() -> bool:
    """Whether this process runs tests: pytest, unittest, or `core.unit_test_mode`."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    if "pytest" in sys.modules or os.path.basename(os.path.dirname(main)) == "unittest":
        return True
    return conf.getboolean("core", "unit_test_mode", fallback=False)
