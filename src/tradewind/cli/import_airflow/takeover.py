"""Imports the contents of an Airflow database, one kind after the other, and counts the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from tradewind.api.auth.airflow_passwords import is_airflow_hash
from tradewind.cli.import_airflow.decisions import ROLES, Grants, decide_pause, decide_role, lives, role_of
from tradewind.cli.import_airflow.runs import XComRules, prepare_run
from tradewind.cli.import_airflow.source import Source, SourceDag
from tradewind.cli.import_airflow.values import Keys, Unreadable, conf_of_run, micros
from tradewind.model.counts import counted
from tradewind.model.errors import TradewindError
from tradewind.model.rows import DagPlan
from tradewind.wire import commands as c

R = TypeVar("R")

SUBJECTS = ("variables", "connections", "pools", "roles", "users", "dags", "runs", "assets")
ROWS_AT_ONCE = 2000
"""Maximum number of task instances and XComs in one transaction."""
EVENTS_AT_ONCE = 500
BYTES_AT_ONCE = 4 * 1024 * 1024


@dataclass(slots=True)
class Count:
    """The result for one kind of contents. `found`: the number in Airflow. `done`: the number that was written, or that a dry
    run would write.
    """

    subject: str
    found: int = 0
    done: int = 0
    unchanged: int = 0
    left_out: int = 0

    def row(self) -> dict[str, Any]:
        return {
            "what": self.subject,
            "in_airflow": self.found,
            "imported": self.done,
            "unchanged": self.unchanged,
            "left_out": self.left_out,
        }


class ExistingContents(NamedTuple):
    """The contents of this installation."""

    variables: dict[str, tuple[str, str | None]]
    """Key → (value, description)."""
    connections: dict[str, dict[str, Any]]
    pools: dict[str, tuple[int, str | None, bool]]
    dags: dict[str, DagPlan]
    users: Collection[str]
    roles: dict[str, Grants]
    """Custom roles."""
    default_pool_slots: int = 128
    """Slots of the default pool, if they were never changed."""


class ImportOptions(NamedTuple):
    """The options of the user."""

    subjects: Collection[str] = SUBJECTS
    dag_ids: Collection[str] = ()
    since: int | None = None
    activate: bool = False
    overwrite: bool = False
    dry_run: bool = False
    xcoms_of_all: bool = False


class NewUser(NamedTuple):
    """A user to create. `password`: a hash; None: an administrator has to set a password first."""

    name: str
    role: str
    custom_roles: list[str]
    email: str
    full_name: str
    password: str | None


@dataclass(slots=True)
class Takeover:
    """One import.

    Args:
        call: executes a command.
        set_role: creates a custom role, or replaces its grants.
        create_user: creates a user.
        now: microseconds.
        advance: called with the number of runs that were handled.
    """

    source: Source
    keys: Keys
    existing: ExistingContents
    options: ImportOptions
    xcom_rules: XComRules
    call: Callable[[c.Command[Any]], Any]
    set_role: Callable[[str, Grants], None]
    create_user: Callable[[NewUser], None]
    now: int
    advance: Callable[[int], None] = lambda count: None
    notes: list[str] = field(default_factory=list)
    """Sentences about parts that were left out, and about what the user has to do."""
    counts: list[Count] = field(default_factory=list)
    scheduler_lives: bool = False
    _unpaused: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Import everything that the user asks for, in the order of `SUBJECTS`."""
        scheduler = self.source.scheduler()
        self.scheduler_lives = lives(None if scheduler is None else scheduler.heartbeat, self.now)
        work = {
            "variables": self._variables,
            "connections": self._connections,
            "pools": self._pools,
            "roles": self._roles,
            "users": self._users,
            "dags": self._dags,
            "runs": self._runs,
            "assets": self._assets,
        }
        for subject in SUBJECTS:
            if subject in self.options.subjects:
                count = Count(subject)
                self.counts.append(count)
                work[subject](count)
        for dag_id in self._unpaused:  # last, when all their runs are imported
            self._write(c.SetPaused(dag_id, False))

    def _write(self, command: c.Command[R]) -> R | None:
        return None if self.options.dry_run else self.call(command)

    def _write_value(self, count: Count, name: str, here: object, there: object, command: c.Command[Any]) -> None:
        """Write a value that does not exist yet. Replace a value that differs only on request."""
        if here == there:
            count.unchanged += 1
        elif here is not None and not self.options.overwrite:
            count.left_out += 1
            self.notes.append(f"{name} exists with another content and was not changed (--overwrite replaces it)")
        else:
            try:
                self._write(command)
            except TradewindError as problem:
                count.left_out += 1
                self.notes.append(f"{name}: {problem}")
                return
            count.done += 1

    def _variables(self, count: Count) -> None:
        for row in self.source.variables():
            count.found += 1
            key = row["key"]
            try:
                value = self.keys.decrypt(row["val"], row["is_encrypted"]) or ""
            except Unreadable as problem:
                count.left_out += 1
                self.notes.append(f"variable {key}: {problem}")
                continue
            there = (value, row["description"])
            self._write_value(count, f"variable {key}", self.existing.variables.get(key), there, c.SetVariable(key, *there))

    def _connections(self, count: Count) -> None:
        seen = set()
        for row in self.source.connections():
            count.found += 1
            conn_id = row["conn_id"]
            try:
                password = self.keys.decrypt(row["password"], row["is_encrypted"])
                extra = self.keys.decrypt(row["extra"], row["is_extra_encrypted"])
            except Unreadable as problem:
                count.left_out += 1
                self.notes.append(f"connection {conn_id}: {problem}")
                continue
            if conn_id in seen:  # possible in Airflow 1.10, which then uses one of them at random
                count.left_out += 1
                self.notes.append(f"connection {conn_id}: Airflow has several of this name; the first one was imported")
                continue
            seen.add(conn_id)
            plain = {name: row[name] for name in ("description", "host", "login", "port", "schema")}
            fields = {**plain, "conn_type": row["conn_type"] or "generic", "password": password, "extra": extra}
            fields = {name: value or None for name, value in fields.items()}
            here = self.existing.connections.get(conn_id)
            known = None if here is None else {name: here.get(name) or None for name in fields}
            self._write_value(count, f"connection {conn_id}", known, fields, c.SetConnection(conn_id, **fields))

    def _pools(self, count: Count) -> None:
        for row in self.source.pools():
            count.found += 1
            name = row["pool"]
            there = (int(row["slots"] or 0), row["description"], bool(row["include_deferred"]))
            here = self.existing.pools.get(name)
            if (
                name == "default_pool" and here is not None
            ):  # the default pool always exists, so its size may be replaced if it was never changed
                there = (there[0], here[1], there[2])
                if here != there and here[0] == self.existing.default_pool_slots:
                    here = None
            self._write_value(count, f"pool {name}", here, there, c.SetPool(name, *there))

    def _roles(self, count: Count) -> None:
        """Custom roles with their grants for DAGs. Built-in roles exist already."""
        for name, permissions in self.source.roles().items():
            if name.lower() in ROLES:
                continue
            count.found += 1
            decision = decide_role(permissions)
            here = self.existing.roles.get(name)
            if here == decision.grants:
                count.unchanged += 1
                continue
            if here is not None and not self.options.overwrite:
                count.left_out += 1
                self.notes.append(f"role {name} exists with other grants and was not changed (--overwrite replaces them)")
                continue
            if not self.options.dry_run:
                self.set_role(name, decision.grants)
            count.done += 1
            if decision.left_out:
                more = f" and {len(decision.left_out) - 3} more" if len(decision.left_out) > 3 else ""
                few = ", ".join(decision.left_out[:3])
                self.notes.append(f"role {name}: custom roles only have permissions for DAGs. Left out: {few}{more}")

    def _users(self, count: Count) -> None:
        custom = {*self.existing.roles, *(name for name in self.source.roles() if name.lower() not in ROLES)}
        is_administered = bool(self.existing.users)
        for user in self.source.users():
            count.found += 1
            role, more = role_of(user.roles), sorted(custom.intersection(user.roles))
            if user.name in self.existing.users:
                count.unchanged += 1
            elif not user.is_active or (role is None and not more):
                count.left_out += 1
                why = (
                    f"none of the roles {', '.join(user.roles) or '(none)'} exists here" if user.is_active else "is not active"
                )
                self.notes.append(f"user {user.name}: {why}")
            else:
                password = user.password if is_airflow_hash(user.password) else None
                new = NewUser(user.name, role or "public", more, user.email, user.full_name, password)
                if not self.options.dry_run:
                    self.create_user(new)
                count.done += 1
                is_administered = is_administered or role == "admin"
                if password is None:
                    self.notes.append(
                        f"user {user.name} has no password yet: tradewind users reset-password -u {user.name}; or let the "
                        "directory of your organisation check it"
                    )
        if count.done and not is_administered:  # `standalone` creates one only if there is no user
            self.notes.append("no user is an administrator: tradewind users create -u NAME -r admin")

    # --- DAGs and runs --------------------------------------------------------------------------------------------------

    def _wanted_dags(self) -> Iterator[SourceDag]:
        for dag in self.source.dags():
            if not self.options.dag_ids or dag.dag_id in self.options.dag_ids:
                yield dag

    def _dags(self, count: Count) -> None:
        for dag in self._wanted_dags():
            plan = self.existing.dags.get(dag.dag_id)
            if plan is None and not dag.is_active:
                continue
            count.found += 1
            if plan is None:
                count.left_out += 1
                self.notes.append(f"DAG {dag.dag_id} is not in the DAG folder here (see: tradewind dags list-import-errors)")
                continue
            decision = decide_pause(
                paused_there=dag.is_paused,
                scheduler_lives=self.scheduler_lives,
                activate=self.options.activate,
                is_named=dag.dag_id in self.options.dag_ids,
                paused_here=plan.is_paused,
            )
            moved = self._move_schedule(dag.dag_id)
            if decision.paused:
                self._write(c.SetPaused(dag.dag_id, True))
            elif decision.paused is False:
                self._unpaused.append(dag.dag_id)
            if decision.reason:
                self.notes.append(f"DAG {dag.dag_id}: {decision.reason}")
            if moved or decision.paused is not None:
                count.done += 1
            else:
                count.unchanged += 1

    def _move_schedule(self, dag_id: str) -> bool:
        """Move the schedule of a DAG after the latest run that Airflow has created. This happens before the DAG is unpaused."""
        row = self.source.latest_by_schedule(dag_id)
        if row is None:
            return False
        date = micros(row["logical_date"] or row["execution_date"])
        start, end = micros(row["data_interval_start"]), micros(row["data_interval_end"])
        after = micros(row["run_after"])
        if date is not None and end is None:
            end = after
        last = self.existing.dags[dag_id].last
        if self.options.dry_run:
            return last is None or end is None or last[3] < end
        return bool(self.call(c.ImportPosition(dag_id, date, start, end, after if date is None else None)).moved)

    def _runs(self, count: Count) -> None:
        batch: list[c.ImportedRun] = []
        rows = size = 0
        for dag in self._wanted_dags():
            if dag.dag_id not in self.existing.dags:
                number = self.source.count_runs(dag.dag_id)
                count.found += number
                count.left_out += number
                if number:
                    self.notes.append(f"{counted(number, 'run')} of DAG {dag.dag_id}: the DAG is not in the DAG folder here")
                continue
            for part in self.source.runs(dag.dag_id, self.options.since, xcoms_of_all=self.options.xcoms_of_all):
                for found in part:
                    count.found += 1
                    prepared = prepare_run(
                        found,
                        self.xcom_rules,
                        is_paused=dag.is_paused,
                        scheduler_lives=self.scheduler_lives,
                    )
                    self.notes += prepared.notes
                    if prepared.run is None:
                        count.left_out += 1
                        self.notes.append(f"run {found.row['run_id']} of DAG {dag.dag_id}: {prepared.reason}")
                        continue
                    batch.append(prepared.run)
                    rows += 1 + len(prepared.run.tasks) + len(prepared.run.xcoms)
                    size += sum(len(xcom.value or b"") for xcom in prepared.run.xcoms)
                    if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                        self._store(count, batch)
                        batch, rows, size = [], 0, 0
        if batch:
            self._store(count, batch)

    def _assets(self, count: Count) -> None:
        """Asset events: those that wait for a DAG, those that runs have consumed, and the other ones of the time of `since`."""
        may_run = {dag.dag_id for dag in self.source.dags() if self.scheduler_lives and not dag.is_paused}
        batch: list[c.ImportedAssetEvent] = []
        for event in self.source.asset_events(self.options.since):
            wanted = {event.source_dag, *(dag_id for dag_id, _ in (*event.waits, *event.consumed))}
            if self.options.dag_ids and not wanted.intersection(self.options.dag_ids):
                continue
            count.found += 1
            try:
                extra = conf_of_run(event.extra)
            except Unreadable as problem:
                self.notes.append(f"extra of an event of asset {event.name}: {problem}")
                extra = {}
            waits = [one for one in event.waits if one[0] in self.existing.dags and one[0] not in may_run]
            plain = event._replace(extra=extra, waits=waits)
            batch.append(msgspec.convert(plain._asdict(), c.ImportedAssetEvent))
            if len(batch) == EVENTS_AT_ONCE:
                self._store_events(count, batch)
                batch = []
        if batch:
            self._store_events(count, batch)

    def _store_events(self, count: Count, events: list[c.ImportedAssetEvent]) -> None:
        if self.options.dry_run:
            count.done += len(events)
            return
        created = self.call(c.ImportAssetEvents(events)).created
        count.done += created
        count.unchanged += len(events) - created

    def _store(self, count: Count, runs: Iterable[c.ImportedRun]) -> None:
        """Store runs, in one transaction."""
        given = list(runs)
        if self.options.dry_run:
            count.done += len(given)
        else:
            result = self.call(c.ImportRuns(given, self.source.release))
            count.done += result.created
            count.unchanged += result.existing
            count.left_out += len(result.refused)
            self.notes += [f"run {run_id} of DAG {dag_id}: {reason}" for dag_id, run_id, reason in result.refused]
        self.advance(len(given))
