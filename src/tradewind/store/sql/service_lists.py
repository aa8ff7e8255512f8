"""Lists that belong to no run: import errors, pools, jobs, the audit log, health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.states import TaskState
from tradewind.store.sql.engine import Row
from tradewind.store.sql.queries import Where, count, ordering, page
from tradewind.store.sql.task_lists import TaskLists
from tradewind.store.views import NO_CONDITIONS, Conditions, EventView, HealthFacts, ImportErrorView, JobView, Listing, PoolView

_SCHEDULED, _QUEUED, _DEFERRED = TaskState.SCHEDULED.code, TaskState.QUEUED.code, TaskState.DEFERRED.code
_RUNNING, _RESTARTING = TaskState.RUNNING.code, TaskState.RESTARTING.code


class ServiceLists(TaskLists):
    """See `store.port.lists`."""

    def import_errors(
        self,
        *,
        filename_pattern: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[ImportErrorView]:
        where = Where()
        where.pattern(self.engine.dialect, "e.file", filename_pattern)
        where.conditions(self.engine.dialect, {"filename": "e.file", "bundle_name": "e.bundle"}, conditions)
        order = ordering(self.engine.dialect, order_by, _ERROR_ORDERS, "e.id")
        rows = page(self.engine, f"SELECT {_ERROR} FROM import_error e{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM import_error e{where.sql}", where.parameters)
        return Listing([_import_error(row) for row in rows], total)

    def import_error(self, number: int) -> ImportErrorView:
        row = self.engine.row(f"SELECT {_ERROR} FROM import_error e WHERE e.id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no import error {number}; it is deleted when its file can be imported again.")
        return _import_error(row)

    def list_pools(
        self,
        *,
        name_pattern: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("name",),
    ) -> Listing[PoolView]:
        where = Where()
        where.pattern(self.engine.dialect, "p.name", name_pattern)
        where.conditions(self.engine.dialect, {"name": "p.name"}, conditions)
        order = ordering(self.engine.dialect, order_by, _POOL_ORDERS, "p.name")
        rows = page(self.engine, f"SELECT {_POOL} FROM pool p{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM pool p{where.sql}", where.parameters)
        taken = self._taken_slots() if rows else {}
        return Listing([_pool(row, taken.get(row[0], {})) for row in rows], total)

    def pool_details(self, name: str) -> PoolView:
        row = self.engine.row(f"SELECT {_POOL} FROM pool p WHERE p.name = ?", (name,))
        if row is None:
            names = [found[0] for found in self.engine.rows("SELECT name FROM pool")]
            raise NotFound(english(phrase("error_no_pool", pool=name)) + did_you_mean(name, names))
        return _pool(row, self._taken_slots().get(name, {}))

    def _taken_slots(self) -> dict[str, dict[int, int]]:
        """Pool → state code → number of occupied slots. Reads only runs that have not ended."""
        taken: dict[str, dict[int, int]] = {}
        dialect = self.engine.dialect
        rows = self.engine.rows(
            f"""SELECT r.version, t.slot, t.task_id, t.state, t.pool, count(*)
                FROM dag_run r{dialect.index_hint("dag_run_active")} {dialect.ordered_join} task_instance t ON t.run = r.id
                WHERE r.state < 2 AND t.state IN ({_SCHEDULED}, {_QUEUED}, {_RUNNING}, {_RESTARTING}, {_DEFERRED})
                GROUP BY r.version, t.slot, t.task_id, t.state, t.pool"""
        )
        shown = self.shown_versions([row[0] for row in rows])
        for version, slot, task_id, state, chosen, number in rows:
            task = shown[version].task(slot, task_id)
            counts = taken.setdefault(chosen or task.pool, {})
            counts[state] = counts.get(state, 0) + number * task.pool_slots
        return taken

    def event_logs(
        self,
        *,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        event: str | None = None,
        owner: str | None = None,
        excluded_events: Sequence[str] = (),
        conditions: Conditions = NO_CONDITIONS,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[EventView]:
        where = Where()
        for column, wanted in (
            ("dag_id", dag_id),
            ("task_id", task_id),
            ("run_id", run_id),
            ("event", event),
            ("actor", owner),
        ):
            if wanted is not None:
                where.add(f"e.{column} = ?", wanted)
        if excluded_events:
            where.add(f"e.event NOT IN ({', '.join('?' * len(excluded_events))})", *excluded_events)
        where.conditions(self.engine.dialect, _EVENT_FIELDS, conditions)
        where.ranges({"when": "e.at"}, ranges or {})
        order = ordering(self.engine.dialect, order_by, _EVENT_ORDERS, "e.id")
        rows = page(self.engine, f"SELECT {_EVENT} FROM audit e{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM audit e{where.sql}", where.parameters)
        return Listing([_event(row) for row in rows], total)

    def list_jobs(
        self,
        *,
        now: int,
        is_alive: bool | None = None,
        state: str | None = None,
        job_type: str | None = None,
        hostname: str | None = None,
        executor_class: str | None = None,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[JobView]:
        where = Where()
        for column, wanted in (
            ("state", state),
            ("job_type", job_type),
            ("hostname", hostname),
            ("executor_class", executor_class),
        ):
            if wanted is not None:
                where.add(f"j.{column} = ?", wanted)
        if is_alive is not None:
            where.add(f"{'' if is_alive else 'NOT '}(j.state = 'running' AND j.heartbeat_at > ?)", now - JOB_ALIVE)
        where.ranges({"start_date": "j.started_at", "end_date": "j.ended_at"}, ranges or {})
        order = ordering(self.engine.dialect, order_by, _JOB_ORDERS, "j.id")
        rows = page(self.engine, f"SELECT {_JOB} FROM job j{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM job j{where.sql}", where.parameters)
        return Listing([_job(row) for row in rows], total)

    def event_log(self, number: int) -> EventView:
        row = self.engine.row(f"SELECT {_EVENT} FROM audit e WHERE e.id = ?", (number,))
        if row is None:
            raise NotFound(f"There is no entry {number} in the event log.")
        return _event(row)

    def health_facts(self) -> HealthFacts:
        newest = self.engine.row("SELECT epoch, hostname, pid, started_at FROM scheduler ORDER BY epoch DESC LIMIT 1")
        parsed = self.engine.row("SELECT max(last_parsed_at) FROM dag")
        hosts = self.engine.row("SELECT count(*) FROM worker_host")
        assert parsed is not None
        assert hosts is not None
        epoch, hostname, pid, started = newest or (None, None, None, None)
        return HealthFacts(epoch, hostname, pid, started, parsed[0], hosts[0])


_ERROR = "e.id, e.at, e.file, e.bundle, e.stack_trace, e.message, e.line"
_ERROR_ORDERS = {
    "id": "e.id",
    "import_error_id": "e.id",
    "timestamp": "e.at",
    "filename": "e.file",
    "bundle_name": "e.bundle",
    "stack_trace": "e.stack_trace",
    "stacktrace": "e.stack_trace",
}

JOB_ALIVE = 30_000_000
"""Microseconds. A service with an older heartbeat counts as not alive. Services write a heartbeat every 10 seconds."""

_JOB = """j.id, j.state, j.job_type, j.started_at, j.ended_at, j.heartbeat_at, j.executor_class, j.hostname, j.unixname, j.pid,
    j.reason"""
_JOB_ORDERS = {
    "id": "j.id",
    "job_type": "j.job_type",
    "state": "j.state",
    "start_date": "j.started_at",
    "end_date": "j.ended_at",
    "latest_heartbeat": "j.heartbeat_at",
    "hostname": "j.hostname",
}

_POOL = "p.name, p.slots, p.description, p.include_deferred, p.team"
_POOL_ORDERS = {"id": "p.name", "name": "p.name", "pool": "p.name", "slots": "p.slots"}

_EVENT = "e.id, e.at, e.dag_id, e.task_id, e.run_id, e.event, e.actor, e.detail"
_EVENT_FIELDS = {
    "dag_id": "e.dag_id",
    "task_id": "e.task_id",
    "run_id": "e.run_id",
    "event": "e.event",
    "owner": "e.actor",
}
_EVENT_ORDERS = {
    "dttm": "e.at",
    "extra": "e.detail",
    "id": "e.id",
    "event_log_id": "e.id",
    "when": "e.at",
    "dag_id": "e.dag_id",
    "task_id": "e.task_id",
    "run_id": "e.run_id",
    "event": "e.event",
    "owner": "e.actor",
}


def _import_error(row: Row) -> ImportErrorView:
    return ImportErrorView(
        import_error_id=row[0],
        timestamp=iso(row[1]) or "",
        filename=row[2],
        bundle_name=row[3],
        stack_trace=row[4],
        message=row[5],
        line=row[6],
    )


def _pool(row: Row, taken: dict[int, int]) -> PoolView:
    running = taken.get(_RUNNING, 0) + taken.get(_RESTARTING, 0)
    queued, deferred = taken.get(_QUEUED, 0), taken.get(_DEFERRED, 0)
    occupied = running + queued + (deferred if row[3] else 0)
    return PoolView(
        name=row[0],
        slots=row[1],
        description=row[2],
        include_deferred=bool(row[3]),
        occupied_slots=occupied,
        running_slots=running,
        queued_slots=queued,
        scheduled_slots=taken.get(_SCHEDULED, 0),
        open_slots=-1 if row[1] < 0 else row[1] - occupied,
        deferred_slots=deferred,
        team_name=row[4],
    )


def _event(row: Row) -> EventView:
    detail = row[7]
    return EventView(
        event_log_id=row[0],
        when=iso(row[1]) or "",
        dag_id=row[2],
        task_id=row[3],
        run_id=row[4],
        map_index=None,
        try_number=None,
        event=row[5],
        logical_date=None,
        owner=row[6],
        extra=detail.decode() if isinstance(detail, bytes) else detail,
        dag_display_name=None,
        task_display_name=None,
    )


def _job(row: Row) -> JobView:
    return JobView(
        id=row[0],
        dag_id=None,
        dag_display_name=None,
        state=row[1],
        job_type=row[2],
        start_date=iso(row[3]) or "",
        end_date=iso(row[4]),
        latest_heartbeat=iso(row[5]) or "",
        executor_class=row[6],
        hostname=row[7],
        unixname=row[8],
        pid=row[9],
        reason=row[10],
    )
