"""The read-only objects of queries. They are read through the channel of the running task."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tradewind.airflow.compat.dag_versions import DagVersion
from tradewind.airflow.compat.models import (
    AssetEvent,
    AssetModel,
    DagModel,
    DagTag,
    DagWarning,
    ImportErrorModel,
    Job,
    Log,
    Pool,
    SlaMiss,
    Table,
    TaskFail,
    Trigger,
)
from tradewind.airflow.compat.session import session_or_new
from tradewind.airflow.compat.xcom import BaseXCom
from tradewind.execution import run_task
from tradewind.execution.instance_names import micros_of, to_pendulum
from tradewind.execution.other_instances import OtherTaskInstance
from tradewind.execution.task_instance import DagRun, TaskInstance, run_of
from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import Connection, Variable, request_value, stored_connection
from tradewind.wire import runtime
from tradewind.wire.messages import Failure, FindRuns, GetVariable, ListRows, XComPull

Equal = Mapping[str, frozenset[Any]]
"""Column → values. An object must have one of these values."""

RUNS_OF_NAMED_DAG = 1_000
RUNS_OF_EACH_DAG = 100
RUNS_WITH_TASKS = 25


class Stored:
    """An object of a query's result: its columns as attributes, which cannot be changed."""

    table = ""

    def __init__(self, **columns: Any) -> None:
        self.__dict__.update(columns)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotYetSupported(
            f"{self.table}.{name} cannot be changed by user code. Use the command line (`tradewind airflow …`) or the "
            "REST API (/api/v2)"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in list(vars(self).items())[:4])
        return f"<{self.table} {shown}>"


class StoredDag(Stored):
    """A DAG. Its `is_paused` can be changed; the commit of the session stores it."""

    table = "DagModel"

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "is_paused":
            super().__setattr__(name, value)
        self.__dict__[name] = bool(value)

    def set_is_paused(self, is_paused: bool, including_subdags: bool = True, session: Any = None) -> None:
        """Pause or unpause the DAG.

        Args:
            including_subdags: has no effect.
            session: stores it at its commit. None: it is stored at once.
        """
        with session_or_new(session) as own:
            own.add(self)
            self.is_paused = is_paused

    def get_is_paused(self, *_args: Any, **_options: Any) -> bool:
        """Whether the DAG was paused when it was read."""
        return bool(vars(self)["is_paused"])


class StoredXCom(Stored):
    """An XCom; `value` is decoded."""

    table = "XCom"


class StoredTag(Stored):
    """A tag of a DAG."""

    table = "DagTag"


class StoredImportError(Stored):
    """Why a DAG file cannot be imported."""

    table = "ImportError"


def _list(table: str, **where: Any) -> list[dict[str, Any]]:
    answer = request_value(ListRows(0, table, **where), f"cannot read the table {table}")
    return list(answer.value or ())


def _names(known: Iterable[str], wanted: frozenset[Any] | None) -> list[str]:
    return [name for name in known if wanted is None or name in wanted]


def _variables(equal: Equal) -> Iterator[Variable]:
    """The stored variables, without those of the environment and of a secrets backend, as in Airflow."""
    for row in _list("variable"):
        if not _names([row["key"]], equal.get("key")):
            continue
        answer = request_value(GetVariable(0, row["key"]), f"cannot read variable {row['key']!r}")
        if answer.found:
            yield Variable(row["key"], answer.value, row["description"])


def _connections(equal: Equal) -> Iterator[Connection]:
    """The stored connections; see `_variables`."""
    wanted = equal.get("conn_id")
    for name in wanted if wanted is not None else [row["conn_id"] for row in _list("connection")]:
        found = stored_connection(name)
        if found is not None:
            yield found


def _pools(_equal: Equal) -> Iterator[Pool]:
    for row in _list("pool"):
        yield Pool(**row)


def _paths(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """DAG → absolute path of its file. The rows have paths relative to the folder of a bundle.

    The folder of the bundle of the running task follows from the path of its own DAG file, also on a machine that has a copy of the
    bundle. DAGs of other bundles keep the path that they have in the DAG folder, if there is such a file.
    """
    files = {row["dag_id"]: (row.get("bundle"), row["fileloc"]) for row in rows}
    folders = {}
    operator = run_task.running()
    dag = None if operator is None else operator.dag
    if dag is not None and dag.dag_id in files:
        bundle, file = files[dag.dag_id]
        if dag.fileloc.endswith(f"/{file}"):
            folders[bundle] = dag.fileloc.removesuffix(f"/{file}")
    found = {}
    for dag_id, (bundle, file) in files.items():
        path = os.path.join(folders.get(bundle, conf.get("core", "dags_folder", fallback="")), file)
        found[dag_id] = path if bundle in folders or os.path.exists(path) else file
    return found


def _dags(_equal: Equal) -> Iterator[StoredDag]:
    rows = _list("dag")
    paths = _paths(rows)
    for row in rows:
        dag_id = row["dag_id"]
        yield StoredDag(
            dag_id=dag_id,
            is_paused=row["is_paused"],
            is_active=row["is_active"],
            is_stale=not row["is_active"],
            fileloc=paths[dag_id],
            relative_fileloc=row["fileloc"],
            is_subdag=False,
            root_dag_id=None,
            dag_display_name=dag_id,
            owners=row.get("owners", ""),
            description=row.get("description"),
            tags=[StoredTag(name=name, dag_id=dag_id) for name in row.get("tags", ())],
            schedule_interval=row.get("schedule"),
            timetable_summary=row.get("schedule"),
            timetable_description=row.get("schedule"),
            has_import_errors=row.get("has_import_errors", False),
            max_active_runs=row.get("max_active_runs"),
            has_task_concurrency_limits=None,
            max_active_tasks=None,
            bundle_name=row.get("bundle"),
            next_dagrun=to_pendulum(row.get("next_logical_date")),
            next_dagrun_data_interval_start=to_pendulum(row.get("next_start")),
            next_dagrun_data_interval_end=to_pendulum(row.get("next_end")),
            next_dagrun_create_after=to_pendulum(row.get("next_run_after")),
        )


def _tags(equal: Equal) -> Iterator[StoredTag]:
    for dag in _dags(equal):
        yield from vars(dag)["tags"]


def _import_errors(_equal: Equal) -> Iterator[StoredImportError]:
    for at, row in enumerate(_list("import_error"), 1):
        yield StoredImportError(id=at, **row)


def _runs(equal: Equal, at_most: int = RUNS_OF_EACH_DAG) -> Iterator[DagRun]:
    named = equal.get("dag_id")
    dag_ids = sorted(named) if named is not None else [row["dag_id"] for row in _list("dag")]
    dates = [date for date in equal.get("execution_date", equal.get("logical_date", frozenset())) if date is not None]
    states = equal.get("state", frozenset())
    run_ids = equal.get("run_id")
    for dag_id in dag_ids:
        for run_id in sorted(run_ids) if run_ids is not None else [None]:
            question = FindRuns(
                0,
                dag_id,
                run_id=run_id,
                state=next(iter(states)) if len(states) == 1 else None,
                start=min(map(micros_of, dates)) if dates else None,
                end=max(map(micros_of, dates)) if dates else None,
                at_most=RUNS_OF_NAMED_DAG if named is not None and at_most == RUNS_OF_EACH_DAG else at_most,
            )
            answer = request_value(question, f"cannot read the runs of DAG {dag_id!r}")
            if answer.found:
                yield from (run_of(dag_id, row, None) for row in answer.value or ())


def _records(table: str, moments: tuple[str, ...], shown: str) -> Callable[[Equal], Iterator[Stored]]:
    """A reader of a table of records (see `scheduler.attempts.record_rows`).

    Args:
        moments: the columns that are moments.
        shown: the name of the table in messages.
    """
    kind = type(f"Stored{shown}", (Stored,), {"table": shown, "__doc__": f"A row of {shown}."})

    def read(equal: Equal) -> Iterator[Stored]:
        named = equal.get("dag_id")
        for dag_id in sorted(named) if named is not None else [""]:
            for row in _list(table, dag_id=dag_id):
                yield kind(**{name: to_pendulum(value) if name in moments else value for name, value in row.items()})

    return read


def _failed_tries(equal: Equal) -> Iterator[Stored]:
    make = type("StoredTaskFail", (Stored,), {"table": "TaskFail", "__doc__": "A failed try."})
    runs: dict[str, list[str]] = {}
    for run in _runs(_run_columns(equal), RUNS_WITH_TASKS):
        runs.setdefault(run.dag_id, []).append(run.run_id)
    moments = ("start_date", "end_date", "execution_date", "logical_date")
    for dag_id, run_ids in runs.items():
        for row in _list("task_fail", dag_id=dag_id, run_ids=tuple(run_ids)):
            yield make(**{name: to_pendulum(value) if name in moments else value for name, value in row.items()})


def _run_columns(equal: Equal) -> Equal:
    return {name: values for name, values in equal.items() if name in ("dag_id", "run_id", "execution_date", "logical_date")}


def _task_instances(equal: Equal) -> Iterator[OtherTaskInstance]:
    runs: dict[str, dict[str, DagRun]] = {}
    for run in _runs(_run_columns(equal), RUNS_WITH_TASKS):
        runs.setdefault(run.dag_id, {})[run.run_id] = run
    wanted = tuple(sorted(name for name in equal.get("task_id", ()) if isinstance(name, str)))
    for dag_id, of_dag in runs.items():
        for row in _list("task_instance", dag_id=dag_id, run_ids=tuple(of_dag), task_ids=wanted):
            yield OtherTaskInstance(
                dag_id, row["task_id"], row["run_id"], row["state"], facts=row, dag_run=of_dag[row["run_id"]]
            )


def _pulled(dag_id: str, run_id: str, task_ids: tuple[str, ...], key: str) -> Iterator[StoredXCom]:
    answer = runtime.ask(XComPull(0, dag_id, run_id, task_ids, key))
    if isinstance(answer, Failure):
        raise AirflowException(f"cannot read the XComs of DAG {dag_id!r}: {answer.reason}")
    for task_id, map_index, document, spill in answer.values:
        value = decode_xcom(runtime.current().read_spill(spill) if spill else document)
        yield StoredXCom(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index, key=key, value=value)


def _xcoms(equal: Equal) -> Iterator[StoredXCom]:
    wanted = equal.get("key")
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    dates: dict[tuple[str, str], Any] = {}
    for one in _task_instances(_run_columns(equal)):
        if _names([one.task_id], equal.get("task_id")):
            run = one.dag_id, one.run_id
            tasks.setdefault(run, {})[one.task_id] = None
            dates[run] = one.logical_date
    for run, of_run in tasks.items():
        dag_id, run_id = run
        keys = wanted if wanted is not None else {row["key"] for row in _list("xcom_key", dag_id=dag_id, run_ids=(run_id,))}
        for key in sorted(keys):
            for found in _pulled(*run, tuple(of_run), key):
                found.__dict__.update(logical_date=dates[run], execution_date=dates[run])
                yield found


_READERS: dict[type, Callable[[Equal], Iterator[Any]]] = {
    Variable: _variables,
    Connection: _connections,
    Pool: _pools,
    DagModel: _dags,
    DagTag: _tags,
    ImportErrorModel: _import_errors,
    DagRun: _runs,
    TaskInstance: _task_instances,
    AssetEvent: _records("asset_event", ("timestamp",), "AssetEvent"),
    AssetModel: _records("asset", ("created_at", "updated_at"), "AssetModel"),
    DagVersion: _records("dag_version", ("created_at", "last_updated"), "DagVersion"),
    DagWarning: _records("dag_warning", ("timestamp",), "DagWarning"),
    Job: _records("job", ("start_date", "end_date", "latest_heartbeat"), "Job"),
    Log: _records("log", ("dttm", "logical_date", "execution_date"), "Log"),
    SlaMiss: _records("sla_miss", ("timestamp", "logical_date", "execution_date"), "SlaMiss"),
    TaskFail: _failed_tries,
    Trigger: _records("trigger", ("created_date",), "Trigger"),
}

_ELSEWHERE: dict[str, str] = {
    "RenderedTaskInstanceFields": "`tradewind tasks render`, and the fields of the task in the REST API",
    "SerializedDagModel": "session.query(DagModel), or /api/v2/dags/{dag_id}/tasks",
    "DagCode": "/api/v2/dagSources/{dag_id}",
    "TaskReschedule": "session.query(TaskInstance): a sensor that waits for its next poll has the state up_for_reschedule",
    "TaskInstanceHistory": "/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/tries",
}
"""Table that cannot be read here → where its data are."""


def rows_of(table: type, equal: Equal) -> Iterator[Any]:
    """The objects of a table that have one of these values. There may be further objects in the result.

    Raises: NotYetSupported: user code cannot read this table.
        AirflowException: the scheduler could not answer.
    """
    reader = _xcoms if issubclass(table, BaseXCom) else _READERS.get(table)
    if reader is not None:
        return reader(equal)
    if issubclass(table, Table):
        known = ", ".join(sorted(one.__name__.replace("ImportErrorModel", "ImportError") for one in _READERS))
        raise NotYetSupported(
            f"the table {table.__name__} of Airflow's metadata database cannot be read here. Use "
            f"{_ELSEWHERE.get(table.__name__, 'the REST API (/api/v2)')}. Queries can read XCom, {known}"
        )
    raise NotYetSupported(f"{table.__name__} is no table that can be read here")
