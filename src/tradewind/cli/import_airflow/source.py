"""Reads the contents of an Airflow database of any release into the same structures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tradewind.cli.import_airflow.database import AirflowDatabase, Row
from tradewind.cli.import_airflow.decisions import run_type
from tradewind.cli.import_airflow.values import micros
from tradewind.model.errors import WrongArgument
from tradewind.model.states import RunType

RUNS_AT_ONCE = 200
IDS_AT_ONCE = 500
_RUN = [
    *("id", "dag_id", "run_id", "run_type", "state", "execution_date", "logical_date", "data_interval_start"),
    *("data_interval_end", "run_after", "queued_at", "start_date", "end_date", "conf", "triggering_user_name", "partition_key"),
    "partition_date",
]
_TASK = [
    *(
        "id",
        "task_id",
        "run_id",
        "execution_date",
        "map_index",
        "state",
        "try_number",
        "max_tries",
        "queued_dttm",
        "start_date",
    ),
    *("end_date", "hostname", "operator"),
]
_TRY = ["task_id", "run_id", "map_index", "state", "try_number", "queued_dttm", "start_date", "end_date", "hostname"]
_BY_SCHEDULE = (RunType.SCHEDULED, RunType.BACKFILL)
_XCOM = ["task_id", "run_id", "execution_date", "map_index", "key", "value", "timestamp"]


class Scheduler(NamedTuple):
    """The scheduler of Airflow that sent the latest heartbeat."""

    hostname: str
    heartbeat: int


class SourceUser(NamedTuple):
    """A user with the names of its roles."""

    name: str
    is_active: bool
    roles: list[str]
    email: str
    full_name: str
    password: str
    """The hash of the password, as Flask-AppBuilder stores it; empty: another system checks the password."""


class SourceDag(NamedTuple):
    """A DAG. `heartbeat`, dates: microseconds."""

    dag_id: str
    is_paused: bool
    is_active: bool


class SourceRun(NamedTuple):
    """A run with the rows of its task instances and, where they were asked for, of its XComs."""

    row: Row
    logical_date: int | None
    tasks: list[Row]
    xcoms: list[Row]


class SourceEvent(NamedTuple):
    """An event of an asset (Airflow 2: of a dataset), and what became of it."""

    name: str
    uri: str
    group: str
    extra: Any
    at: int
    source_dag: str | None
    source_run: str | None
    source_task: str | None
    source_index: int
    aliases: list[str]
    partition_key: str | None
    waits: list[tuple[str, str]]
    """(DAG id, partition key of its run or an empty text) of the DAGs for which it waits."""
    consumed: list[tuple[str, str]]
    """(DAG id, run id) of the runs that consumed it."""


class Source:
    """The subjects of one database.

    Raises:
        WrongArgument: it is not a database of Airflow.
    """

    def __init__(self, database: AirflowDatabase) -> None:
        self._db = database
        columns = database.columns("dag_run")
        if not columns or not database.columns("task_instance"):
            raise WrongArgument("this is no database of Airflow: it has no tables dag_run and task_instance")
        self.generation = 3 if "logical_date" in columns else 2 if "run_type" in columns else 1
        self._counts_early = bool(database.columns("task_instance_history"))
        """Since Airflow 2.10 the number of the try is increased when a task instance is scheduled. Before 2.10 it is increased
        at the start.
        """
        self._date = "logical_date" if self.generation == 3 else "execution_date"

    @property
    def release(self) -> str:
        """`Airflow 2`, as the history shows it."""
        return "Airflow 1.10" if self.generation == 1 else f"Airflow {self.generation}"

    def scheduler(self) -> Scheduler | None:
        """The scheduler with the latest heartbeat, among those that have not stopped."""
        found = None
        where = f"{self._db.name('job_type')} = ? AND {self._db.name('state')} = ?"
        for row in self._db.rows("job", ["hostname", "latest_heartbeat"], where, ("SchedulerJob", "running")):
            beat = micros(row["latest_heartbeat"])
            if beat is not None and (found is None or beat > found.heartbeat):
                found = Scheduler(row["hostname"] or "", beat)
        return found

    def variables(self) -> Iterator[Row]:
        return self._db.rows("variable", ["key", "val", "description", "is_encrypted"], order=self._db.name("key"))

    def connections(self) -> Iterator[Row]:
        columns = ["conn_id", "conn_type", "description", "host", "schema", "login", "password", "port", "extra"]
        columns += ["is_encrypted", "is_extra_encrypted"]
        return self._db.rows("connection", columns, order=self._db.name("conn_id"))

    def pools(self) -> Iterator[Row]:
        return self._db.rows("slot_pool", ["pool", "slots", "description", "include_deferred"], order=self._db.name("pool"))

    def users(self) -> list[SourceUser]:
        """The users, with the roles of their groups. Airflow 1.10 without RBAC, and Airflow 3 without FAB, have no users."""
        roles = {row["id"]: row["name"] for row in self._db.rows("ab_role", ["id", "name"])}
        of_user: dict[Any, list[str]] = {}
        for row in self._db.rows("ab_user_role", ["user_id", "role_id"]):
            of_user.setdefault(row["user_id"], []).append(roles.get(row["role_id"], ""))
        of_group: dict[Any, list[str]] = {}
        for row in self._db.rows("ab_group_role", ["group_id", "role_id"]):
            of_group.setdefault(row["group_id"], []).append(roles.get(row["role_id"], ""))
        for row in self._db.rows("ab_user_group", ["user_id", "group_id"]):
            known = of_user.setdefault(row["user_id"], [])
            known += [name for name in of_group.get(row["group_id"], ()) if name not in known]
        columns = ["id", "username", "active", "email", "first_name", "last_name", "password"]
        return [
            SourceUser(
                row["username"],
                bool(row["active"]),
                of_user.get(row["id"], []),
                row["email"] or "",
                f"{row['first_name'] or ''} {row['last_name'] or ''}".strip(),
                row["password"] or "",
            )
            for row in self._db.rows("ab_user", columns, order=self._db.name("username"))
        ]

    def roles(self) -> dict[str, list[tuple[str, str]]]:
        """Role → its permissions: (`can_read`, `DAG:etl`)."""
        rows = self._db.rows
        actions = {row["id"]: row["name"] for row in rows("ab_permission", ["id", "name"])}
        objects = {row["id"]: row["name"] for row in rows("ab_view_menu", ["id", "name"])}
        pairs = {
            row["id"]: (actions.get(row["permission_id"], ""), objects.get(row["view_menu_id"], ""))
            for row in rows("ab_permission_view", ["id", "permission_id", "view_menu_id"])
        }
        names = {row["id"]: row["name"] for row in rows("ab_role", ["id", "name"])}
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in sorted(names.values())}
        for row in rows("ab_permission_view_role", ["permission_view_id", "role_id"]):
            if row["role_id"] in names and row["permission_view_id"] in pairs:
                found[names[row["role_id"]]].append(pairs[row["permission_view_id"]])
        return found

    def dags(self) -> list[SourceDag]:
        """The DAGs; sub-DAGs are parts of their DAGs."""
        columns = ["dag_id", "is_paused", "is_active", "is_stale", "is_subdag"]
        return [
            SourceDag(row["dag_id"], bool(row["is_paused"]), _is_active(row))
            for row in self._db.rows("dag", columns, order=self._db.name("dag_id"))
            if not row["is_subdag"]
        ]

    def latest_by_schedule(self, dag_id: str) -> Row | None:
        """Of the runs of a DAG that a schedule or a backfill has created, the one with the latest date. Runs of a schedule with
        partitions have no logical date; their date is `run_after`.
        """
        name = self._db.name
        dated = "run_after" if self.generation == 3 else self._date
        where = f"{name('dag_id')} = ? AND {name(dated)} IS NOT NULL"
        rows = self._db.rows("dag_run", _RUN, where, [dag_id], f"{name(dated)} DESC")
        return next((row for row in rows if run_type(row["run_type"], row["run_id"]) in _BY_SCHEDULE), None)

    def runs(self, dag_id: str, since: int | None, *, xcoms_of_all: bool) -> Iterator[list[SourceRun]]:
        """The runs of a DAG in parts, the oldest first.

        Args:
            since: only unfinished runs and those that ended at this moment or later (microseconds).
            xcoms_of_all: also the XComs of finished runs.
        """
        name = self._db.name
        part: list[Row] = []
        for row in self._db.rows("dag_run", _RUN, f"{name('dag_id')} = ?", [dag_id], name("id")):
            ended = micros(row["end_date"] or row["start_date"] or row[self._date])
            if since is not None and row["state"] in ("success", "failed") and (ended or 0) < since:
                continue
            part.append(row)
            if len(part) == RUNS_AT_ONCE:
                yield self._with_tasks(dag_id, part, xcoms_of_all)
                part = []
        if part:
            yield self._with_tasks(dag_id, part, xcoms_of_all)

    def asset_events(self, since: int | None) -> Iterator[SourceEvent]:
        """The events of assets, the oldest first: those that wait for a DAG, and those from this moment on (microseconds)."""
        word = "asset" if self._db.columns("asset_event") else "dataset"
        columns = ["id", "name", "uri", "group"]
        assets = {row["id"]: row for row in self._db.rows(word, columns)}
        runs = {row["id"]: (row["dag_id"], row["run_id"]) for row in self._runs_of_events(word)}
        consumed: dict[Any, list[tuple[str, str]]] = {}
        for row in self._db.rows(f"dagrun_{word}_event", ["dag_run_id", "event_id"]):
            if row["dag_run_id"] in runs:
                consumed.setdefault(row["event_id"], []).append(runs[row["dag_run_id"]])
        aliases = {row["id"]: row["name"] for row in self._db.rows(f"{word}_alias", ["id", "name"])}
        under: dict[Any, list[str]] = {}
        for row in self._db.rows(f"{word}_alias_{word}_event", ["alias_id", "event_id"]):
            under.setdefault(row["event_id"], []).append(aliases.get(row["alias_id"], ""))
        waits = self._waits(word, consumed)
        columns = ["id", f"{word}_id", "extra", "timestamp", "source_dag_id", "source_run_id", "source_task_id"]
        columns += ["source_map_index", "partition_key"]
        for row in self._db.rows(f"{word}_event", columns, order=self._db.name("id")):
            asset, number, at = assets.get(row[f"{word}_id"]), row["id"], micros(row["timestamp"]) or 0
            waiting = waits.get(number, [])
            if asset is None or (since is not None and at < since and not waiting):
                continue
            index = -1 if row["source_map_index"] is None else row["source_map_index"]
            yield SourceEvent(
                asset["name"] or asset["uri"],
                asset["uri"],
                asset["group"] or "asset",
                row["extra"],
                at,
                row["source_dag_id"],
                row["source_run_id"],
                row["source_task_id"],
                index,
                sorted(filter(None, under.get(number, ()))),
                row["partition_key"],
                waiting,
                consumed.get(number, []),
            )

    def _runs_of_events(self, word: str) -> Iterator[Row]:
        if not self._db.columns(f"dagrun_{word}_event"):
            return iter(())
        name = self._db.name
        where = f"{name('id')} IN (SELECT {name('dag_run_id')} FROM {name(f'dagrun_{word}_event')})"
        return self._db.rows("dag_run", ["id", "dag_id", "run_id"], where)

    def _waits(self, word: str, consumed: Mapping[Any, list[tuple[str, str]]]) -> dict[Any, list[tuple[str, str]]]:
        """Event → the DAGs for which it waits: events of a queued asset that are later than those which the DAG has consumed,
        and events of partitions whose run does not exist yet.
        """
        found: dict[Any, list[tuple[str, str]]] = {}
        queued: dict[Any, list[str]] = {}
        for row in self._db.rows(f"{word}_dag_run_queue", [f"{word}_id", "target_dag_id"]):
            queued.setdefault(row[f"{word}_id"], []).append(row["target_dag_id"])
        if queued:
            latest: dict[str, Any] = {}
            for event, by in consumed.items():
                for dag_id, _ in by:
                    latest[dag_id] = max(latest.get(dag_id, 0), event)
            marks = ", ".join("?" * len(queued))
            where = f"{self._db.name(f'{word}_id')} IN ({marks})"
            for row in self._db.rows(f"{word}_event", ["id", f"{word}_id", "partition_key"], where, list(queued)):
                for dag_id in queued[row[f"{word}_id"]]:
                    if row["partition_key"] is None and row["id"] > latest.get(dag_id, 0):
                        found.setdefault(row["id"], []).append((dag_id, ""))
        columns = ["id", "created_dag_run_id", "target_dag_id", "partition_key"]
        pending = {
            row["id"]: row for row in self._db.rows("asset_partition_dag_run", columns) if row["created_dag_run_id"] is None
        }
        for row in self._db.rows("partitioned_asset_key_log", ["asset_event_id", "asset_partition_dag_run_id"]):
            target = pending.get(row["asset_partition_dag_run_id"])
            if target is not None:
                wait = (target["target_dag_id"], target["partition_key"])
                if wait not in found.setdefault(row["asset_event_id"], []):
                    found[row["asset_event_id"]].append(wait)
        return found

    def count_runs(self, dag_id: str) -> int:
        return sum(1 for _ in self._db.rows("dag_run", ["id"], f"{self._db.name('dag_id')} = ?", [dag_id]))

    def _with_tasks(self, dag_id: str, rows: Sequence[Row], xcoms_of_all: bool) -> list[SourceRun]:
        tasks = self._of_runs("task_instance", _TASK, dag_id, rows)
        lengths = self._of_runs("task_map", ["task_id", "run_id", "map_index", "length"], dag_id, rows)
        wanted = [row for row in rows if xcoms_of_all or row["state"] not in ("success", "failed")]
        xcoms = self._of_runs("xcom", _XCOM, dag_id, wanted) if wanted else {}
        tries = self._of_runs("task_instance_history", _TRY, dag_id, rows)
        run_notes = self._notes("dag_run_note", "dag_run_id", [row["id"] for row in rows])
        task_notes = self._notes("task_instance_note", "ti_id", [task["id"] for of_run in tasks.values() for task in of_run])
        found = []
        for row in rows:
            earlier: dict[tuple[str, int], list[Row]] = {}
            for one in tries.get(row["run_id"], ()):
                earlier.setdefault((one["task_id"], one["map_index"]), []).append(one)
            known = {(one["task_id"], one["map_index"]): one["length"] for one in lengths.get(row["run_id"], ())}
            of_run = [
                {
                    **task,
                    "length": known.get((task["task_id"], task["map_index"])),
                    "try_number": self._tries(task),
                    "note": task_notes.get(task["id"]),
                    "tries": earlier.get((task["task_id"], task["map_index"]), []),
                }
                for task in tasks.get(row["run_id"], ())
            ]
            whole = {**row, "note": run_notes.get(row["id"])}
            found.append(SourceRun(whole, micros(row[self._date]), of_run, xcoms.get(row["run_id"], [])))
        return found

    def _notes(self, table: str, column: str, ids: Sequence[Any]) -> dict[Any, str]:
        """The notes of runs or task instances, by the id of their row. In Airflow 2 a task instance has no id."""
        found: dict[Any, str] = {}
        if column not in self._db.columns(table):
            return found
        known = [one for one in ids if one is not None]
        for at in range(0, len(known), IDS_AT_ONCE):
            part = known[at : at + IDS_AT_ONCE]
            where = f"{self._db.name(column)} IN ({', '.join('?' * len(part))})"
            for row in self._db.rows(table, [column, "content"], where, part):
                if row["content"]:
                    found[row[column]] = row["content"]
        return found

    def _tries(self, task: Row) -> int:
        """How many tries a task instance has begun."""
        tries = int(task["try_number"] or 0)
        return tries - 1 if self._counts_early and task["state"] == "scheduled" else tries

    def _of_runs(self, table: str, columns: Sequence[str], dag_id: str, runs: Sequence[Row]) -> dict[str, list[Row]]:
        """The rows of a table by run id. Older releases identify the run by its date."""
        name = self._db.name
        by_id = "run_id" in self._db.columns(table)
        column = "run_id" if by_id else "execution_date"
        run_ids = {row["run_id"] if by_id else micros(row[column]): row["run_id"] for row in runs}
        where = f"{name('dag_id')} = ? AND {name(column)} IN ({', '.join('?' * len(runs))})"
        found: dict[str, list[Row]] = {}
        for row in self._db.rows(table, columns, where, [dag_id, *(row[column] for row in runs)]):
            found.setdefault(run_ids.get(row["run_id"] if by_id else micros(row[column]), ""), []).append(row)
        return found

    def close(self) -> None:
        self._db.close()


def _is_active(row: Row) -> bool:
    """Whether the file of the DAG exists. Airflow 3 stores the opposite."""
    return not row["is_stale"] if row["is_active"] is None else bool(row["is_active"])
