"""Lists of DAGs and their versions."""

from __future__ import annotations

import base64
import json
from array import array
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from tradewind.kernel.topology import Topology
from tradewind.model.assets import AssetKey, Condition, decode_asset_schedule, expression, leaves
from tradewind.model.bundles import folder_of
from tradewind.model.definition import (
    CronSchedule,
    CustomSchedule,
    DeltaSchedule,
    EventsSchedule,
    NoSchedule,
    ParamDefinition,
    Schedule,
    decode_definition,
    decode_schedule,
)
from tradewind.model.errors import NotFound, ScheduleError
from tradewind.model.moments import SECOND, iso, iso_duration
from tradewind.model.states import RunState, RunType
from tradewind.store.search_patterns import begins, like
from tradewind.store.sql.dags import unpack_definition
from tradewind.store.sql.engine import Row
from tradewind.store.sql.queries import Where, count, literal, ordering, page, rows_among, run_state_code
from tradewind.store.sql.runs import RunOperations
from tradewind.store.sql.timetable_types import timetable_type
from tradewind.store.views import (
    ANY_DAG,
    NO_CONDITIONS,
    Conditions,
    DagConditions,
    DagDetailsView,
    DagView,
    DagWarningView,
    Listing,
    TagView,
    VersionView,
)
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.describe import describe

PRIORITIES_UP_TO = 5_000
"""Maximum number of tasks of a DAG whose total weights are computed for display."""


DEFINITIONS_PER_STATEMENT = 100
"""Maximum number of definitions that are in memory at once while they are decoded."""


class ShownTask(msgspec.Struct, frozen=True, gc=False):
    """The fields of a task's definition that lists show; the others are not decoded."""

    task_id: str
    operator: str = "BaseOperator"
    pool: str = "default_pool"
    pool_slots: int = 1
    queue: str = "default"
    executor: str | None = None
    display_name: str | None = None
    run_as_user: str | None = None
    group: str | None = None
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    template_fields: tuple[str, ...] = ()
    executor_config: str = ""


class ShownGroup(msgspec.Struct, frozen=True, gc=False):
    """The fields of a task group that lists use."""

    group_id: str
    parent: str | None = None


class ShownDag(msgspec.Struct):
    """The fields of a definition that lists show."""

    dag_id: str
    tasks: tuple[ShownTask, ...] = ()
    groups: tuple[ShownGroup, ...] = ()
    timezone: str = "UTC"
    max_active_tasks: int = 16
    max_consecutive_failed_dag_runs: int = 0
    dagrun_timeout: int | None = None
    doc_md: str | None = None
    owner_links: dict[str, str] = {}
    display_name: str | None = None
    is_paused_upon_creation: bool | None = None
    params: tuple[ParamDefinition, ...] = ()
    default_args: dict[str, Any] = {}
    render_template_as_native_obj: bool = False
    rerun_with_latest_version: bool | None = None
    allowed_run_types: tuple[RunType, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        return self.display_name or self.dag_id


class ShownVersion:
    """A version with the fields that lists need; cached."""

    __slots__ = ("dag", "data", "hash", "priorities", "view")

    def __init__(self, dag: ShownDag, hash_: str, view: VersionView, data: bytes) -> None:
        self.dag = dag
        self.hash = hash_
        self.view = view
        self.priorities: array[int] | None = None
        self.data: bytes | None = data if len(dag.tasks) <= PRIORITIES_UP_TO else None
        """The encoded definition, until the priorities have been computed from it."""

    def task(self, slot: int, task_id: str) -> ShownTask:
        """The task of a slot. The slot of an unmapped task is its index in the definition."""
        tasks = self.dag.tasks
        if slot < len(tasks) and tasks[slot].task_id == task_id:
            return tasks[slot]
        return next((task for task in tasks if task.task_id == task_id), ShownTask(task_id))

    def display_name(self, task_id: str) -> str:
        task = next((task for task in self.dag.tasks if task.task_id == task_id), None)
        return (task.display_name if task is not None else None) or task_id

    def priority(self, slot: int, task_id: str) -> int | None:
        """Total weight of the task in this slot; None in DAGs that are too large for it."""
        tasks = self.dag.tasks
        if (
            slot >= len(tasks) or tasks[slot].task_id != task_id
        ):  # a mapped instance, or the run was created under another version
            slot = next((i for i, task in enumerate(tasks) if task.task_id == task_id), len(tasks))
        if self.priorities is None and self.data is not None:
            self.priorities = Topology(decode_definition(self.data)).priority
            self.data = None
        if self.priorities is None or slot >= len(self.priorities):
            return None
        return self.priorities[slot]


_decode_shown = msgspec.msgpack.Decoder(ShownDag).decode


class DagLists(RunOperations):
    """See `store.port.lists`."""

    dags_folder: str = ""
    bundle_folders: Mapping[str, str] = MappingProxyType({})
    bundle_pages: Mapping[str, str] = MappingProxyType({})

    SHOWN_TASKS_KEPT = 20_000
    """Size of the cache of versions, counted in their tasks."""

    _shown: OrderedDict[int, ShownVersion] | None = None

    def list_dags(
        self,
        *,
        paused: bool | None = None,
        active: bool | None = True,
        tags: Sequence[str] = (),
        all_tags: bool = False,
        owners: Sequence[str] = (),
        dag_id_pattern: str | None = None,
        dag_id_prefix: str | None = None,
        has_import_errors: bool | None = None,
        more: DagConditions = ANY_DAG,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("dag_id",),
        now: int | None = None,
    ) -> Listing[DagView]:
        where = Where()
        for column, wanted in (("is_paused", paused), ("is_active", active), ("has_import_error", has_import_errors)):
            if wanted is not None:
                where.add(f"d.{column} = ?", int(wanted))
        where.pattern(self.engine.dialect, "d.dag_id", dag_id_pattern)
        where.prefix("d.dag_id", dag_id_prefix)
        where.conditions(self.engine.dialect, _DAG_FIELDS, Conditions(among=more.among))
        self._add_dag_conditions(where, more)
        order = ordering(self.engine.dialect, order_by, _DAG_ORDERS, "d.dag_id")
        names = self.engine.rows(
            f"SELECT d.dag_id, d.tags, d.owners, d.version, d.schedule, d.assets FROM dag d{where.sql}{order}",
            where.parameters,
        )
        shown_names = self.shown_versions([row[3] for row in names]) if _filters_names(more) else {}
        chosen = [
            row[0]
            for row in names
            if _tagged(row[1], tags, all_tags)
            and (not owners or set(owners) & set(_owners(row[2])))
            and (not shown_names or _has_name(shown_names[row[3]].dag.shown_name, more))
            and (not more.timetable_types or timetable_type(decode_schedule(row[4]), row[5]) in more.timetable_types)
        ]
        wanted_ids = chosen[offset:] if limit is None else chosen[offset : offset + limit]
        rows = {
            row[0]: row for row in rows_among(self.engine, f"SELECT {_DAG} FROM dag d WHERE d.dag_id IN ({{}})", wanted_ids)
        }
        shown = self.shown_versions([row[20] for row in rows.values()])
        found = [rows[dag_id] for dag_id in wanted_ids if dag_id in rows]
        return Listing([DagView(**self._dag_fields(row, shown[row[20]], now)) for row in found], len(chosen))

    def _add_dag_conditions(self, where: Where, more: DagConditions) -> None:
        if more.has_asset_schedule is not None:
            where.add(f"d.assets IS {'NOT ' if more.has_asset_schedule else ''}NULL")
        if more.asset:
            text = f"%{literal(more.asset)}%"
            contains = self.engine.dialect.contains
            where.add(
                f"""EXISTS (SELECT 1 FROM asset_reference x WHERE x.dag_id = d.dag_id AND x.kind = 'schedule'
                    AND ({contains("x.name")} OR {contains("x.uri")}))""",
                text,
                text,
            )
        if more.favorite_of is not None:
            known = "EXISTS (SELECT 1 FROM dag_favorite f WHERE f.dag_id = d.dag_id AND f.user_name = ?)"
            where.add(known if more.is_favorite else f"NOT {known}", more.favorite_of)
        latest = Where()
        if more.last_run_states:
            latest.one_of("l.state", [run_state_code(state) for state in more.last_run_states])
        latest.ranges({"start_date": "l.started_at", "end_date": "l.ended_at"}, more.last_run_ranges)
        if latest.terms:
            where.add(
                f"""EXISTS (SELECT 1 FROM dag_run l{latest.sql} AND l.id = (SELECT r.id FROM dag_run r
                    WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1))""",
                *latest.parameters,
            )

    def is_favorite(self, dag_id: str, user: str) -> bool:
        return self.engine.row("SELECT 1 FROM dag_favorite WHERE dag_id = ? AND user_name = ?", (dag_id, user)) is not None

    def dag_tags(
        self, *, conditions: Conditions = NO_CONDITIONS, limit: int | None = 50, offset: int = 0, descending: bool = False
    ) -> Listing[str]:
        rows = self.engine.rows("SELECT tags FROM dag WHERE is_active = 1 AND tags <> '[]'")
        found = sorted({tag for (stored,) in rows for tag in json.loads(stored)}, reverse=descending)
        for pattern in conditions.patterns.values():
            found = [tag for tag in found if pattern == "~" or like(pattern).search(tag)]
        for prefix in conditions.prefixes.values():
            found = [tag for tag in found if begins(tag, prefix)]
        return Listing(found[offset:] if limit is None else found[offset : offset + limit], len(found))

    def dag_warnings(self, *, dag_id: str | None = None) -> list[DagWarningView]:
        known = {row[0] for row in self.engine.rows("SELECT name FROM pool")}
        where = Where()
        where.add("d.is_active = 1")
        if dag_id is not None:
            where.add("d.dag_id = ?", dag_id)
        found = []
        rows = self.engine.rows(
            f"SELECT d.dag_id, d.version, d.last_parsed_at FROM dag d{where.sql} ORDER BY d.dag_id", where.parameters
        )
        shown = self.shown_versions([row[1] for row in rows])
        for name, version, parsed in rows:
            dag = shown[version].dag
            missing = sorted({task.pool for task in dag.tasks} - known)
            if missing:
                found.append(
                    DagWarningView(
                        dag_id=name,
                        warning_type="non-existent pool",
                        message=f"DAG {name} uses pools that do not exist: {', '.join(missing)}. Their tasks do not run.",
                        timestamp=iso(parsed) or "",
                        dag_display_name=dag.shown_name,
                    )
                )
        return found

    def definition_warnings(self, dag_id: str) -> tuple[str, ...]:
        return self.shown_version(self.need_dag(dag_id).version).dag.warnings

    def dag_display_names(self, dag_ids: Sequence[str]) -> dict[str, str]:
        ids = sorted(set(dag_ids))
        rows = rows_among(self.engine, "SELECT dag_id, version FROM dag WHERE dag_id IN ({})", ids)
        shown = self.shown_versions([row[1] for row in rows])
        return {dag_id: shown[version].dag.shown_name for dag_id, version in rows}

    def dag_view(self, dag_id: str, now: int | None = None) -> DagView:
        row = self._dag_row(dag_id)
        return DagView(**self._dag_fields(row, self.shown_version(row[20]), now))

    def dag_details(self, dag_id: str, now: int | None = None) -> DagDetailsView:
        row = self._dag_row(dag_id)
        version = self.shown_version(row[20])
        dag = version.dag
        active = self.engine.row(
            f"SELECT count(*) FROM dag_run WHERE dag_id = ? AND state = {RunState.RUNNING.code}", (dag_id,)
        )
        assert active is not None
        timeout = dag.dagrun_timeout
        return DagDetailsView(
            **self._dag_fields(row, version, now),
            catchup=bool(row[21]),
            dag_run_timeout=None if timeout is None else iso_duration(timeout),
            asset_expression=None if row[24] is None else self._asset_expression(decode_asset_schedule(row[24]).condition),
            doc_md=dag.doc_md,
            start_date=iso(row[22]),
            end_date=iso(row[23]),
            is_paused_upon_creation=dag.is_paused_upon_creation,
            params={param.name: _param(param) for param in dag.params},
            render_template_as_native_obj=dag.render_template_as_native_obj,
            template_search_path=None,
            timezone=dag.timezone,
            last_parsed=iso(row[3]),
            default_args=dag.default_args,
            rerun_with_latest_version=dag.rerun_with_latest_version,
            owner_links=dag.owner_links,
            is_favorite=False,
            active_runs_count=active[0],
            concurrency=dag.max_active_tasks,
            latest_dag_version=version.view,
        )

    def _asset_expression(self, condition: Condition) -> dict[str, Any]:
        """Airflow's form of a condition, with the ids of the assets that are known."""
        keys = [leaf for leaf in leaves(condition) if isinstance(leaf, AssetKey)]
        names = sorted({key.name for key in keys if key.name} | {key.uri for key in keys if key.uri})
        marks = ", ".join("?" * len(names))
        rows = self.engine.rows(
            f"SELECT id, name, uri FROM asset WHERE name IN ({marks}) OR uri IN ({marks})", [*names, *names]
        )
        return expression(condition, lambda key: next((number for number, *which in rows if key.fits(*which)), None))

    def dag_versions(
        self,
        dag_id: str,
        *,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("version_number",),
    ) -> Listing[VersionView]:
        where = Where()
        where.conditions(self.engine.dialect, _VERSION_FIELDS, conditions)
        if dag_id != "~":
            self.need_dag(dag_id)
            where.add("v.dag_id = ?", dag_id)
        order = ordering(self.engine.dialect, order_by, _VERSION_ORDERS, "v.id")
        rows = page(self.engine, f"SELECT {_VERSION} FROM dag_version v{where.sql}{order}", where.parameters, limit, offset)
        total = count(self.engine, f"SELECT count(*) FROM dag_version v{where.sql}", where.parameters)
        shown = self.shown_versions([row[0] for row in rows])
        return Listing([shown[row[0]].view for row in rows], total)

    def version_number(self, dag_id: str, number: int) -> VersionView:
        row = self.engine.row("SELECT id FROM dag_version WHERE dag_id = ? AND number = ?", (dag_id, number))
        if row is None:
            self.need_dag(dag_id)
            raise NotFound(f"DAG {dag_id} has no version {number}")
        return self.shown_version(row[0]).view

    def version_file(self, dag_id: str, number: int) -> tuple[str, str | None, str]:
        row = self.engine.row(
            "SELECT id, bundle, bundle_version FROM dag_version WHERE dag_id = ? AND number = ?", (dag_id, number)
        )
        if row is None:
            self.need_dag(dag_id)
            raise NotFound(f"DAG {dag_id} has no version {number}")
        return row[1], row[2], self.definition(row[0]).fileloc

    def shown_version(self, version: int) -> ShownVersion:
        """Return the fields of a version for lists. A version without runs may get other content, so the hash is compared.

        Raises:
            NotFound: there is no such version.
        """
        return self.shown_versions([version])[version]

    def shown_versions(self, versions: Collection[int]) -> dict[int, ShownVersion]:
        """Return the fields of several versions, with one statement for all, and one for each block that is not cached.

        Raises:
            NotFound: one of the versions does not exist.
        """
        if self._shown is None:
            self._shown = OrderedDict()
        wanted = sorted(set(versions))
        found: dict[int, ShownVersion] = {}
        new: dict[int, Row] = {}
        for row in rows_among(self.engine, f"SELECT {_VERSION} FROM dag_version v WHERE v.id IN ({{}})", wanted):
            kept = self._shown.get(row[0])
            if kept is not None and kept.hash == row[2]:
                self._shown.move_to_end(row[0])
                found[row[0]] = kept
            else:
                new[row[0]] = row
        for start in range(0, len(new), DEFINITIONS_PER_STATEMENT):
            block = list(new)[start : start + DEFINITIONS_PER_STATEMENT]
            for version, definition, hash_ in rows_among(
                self.engine, "SELECT id, definition, hash FROM dag_version WHERE id IN ({})", block
            ):
                found[version] = self._keep_shown(new[version], unpack_definition(definition), hash_)
        for version in wanted:
            if version not in found:
                raise NotFound(f"there is no DAG version {version}")
        return found

    def _keep_shown(self, row: Row, data: bytes, hash_: str) -> ShownVersion:
        assert self._shown is not None
        dag = _decode_shown(data)
        fields = dict[tuple[str, ...], tuple[str, ...]]()
        for task in dag.tasks:  # most tasks have equal fields: keep them once
            msgspec.structs.force_setattr(
                task, "template_fields", fields.setdefault(task.template_fields, task.template_fields)
            )
        view = VersionView(
            id=identity(0, row[0]),
            version_number=row[3],
            dag_id=row[1],
            bundle_name=row[4],
            bundle_version=row[5],
            created_at=iso(row[6]) or "",
            dag_display_name=dag.shown_name,
            bundle_url=self._page_of(row[4], row[5]),
        )
        shown = self._shown[row[0]] = ShownVersion(dag, hash_, view, data)
        self._shown.move_to_end(row[0])
        while len(self._shown) > 1 and sum(20 + len(one.dag.tasks) for one in self._shown.values()) > self.SHOWN_TASKS_KEPT:
            self._shown.popitem(last=False)
        return shown

    def _page_of(self, bundle: str, version: str | None) -> str | None:
        """The address of the page that shows this version of a bundle."""
        template = self.bundle_pages.get(bundle, "")
        if not template or (version is None and "{version}" in template):
            return None
        return template.replace("{version}", version or "")

    def _dag_row(self, dag_id: str) -> Row:
        row = self.engine.row(f"SELECT {_DAG} FROM dag d WHERE d.dag_id = ?", (dag_id,))
        if row is None:
            self.need_dag(dag_id)
            raise NotFound(f"There is no DAG {dag_id!r}.")
        return row

    def _dag_fields(self, row: Row, version: ShownVersion, now: int | None) -> dict[str, Any]:
        dag = version.dag
        schedule = decode_schedule(row[10])
        periodic = isinstance(schedule, CronSchedule | DeltaSchedule | EventsSchedule)
        if isinstance(schedule, CustomSchedule):
            periodic = schedule.periodic and not schedule.manual_only
        following = _next_run(row, schedule, now)
        try:
            sentence: str | None = describe(schedule)
        except ScheduleError:
            sentence = None
        if row[24] is not None:
            besides = (
                "" if isinstance(schedule, NoSchedule) or sentence is None else f" or {sentence[:1].lower()}{sentence[1:]}"
            )
            sentence = f"Triggered by assets{besides}"
        name = dag.shown_name
        folder = folder_of(row[6], self.bundle_folders, self.dags_folder)
        return {
            "dag_id": row[0],
            "dag_display_name": name,
            "is_paused": bool(row[1]),
            "is_stale": not row[2],
            "last_parsed_time": iso(row[3]),
            "last_parse_duration": None if row[4] is None else row[4] / SECOND,
            "last_expired": iso(row[5]),
            "bundle_name": row[6],
            "bundle_version": row[25],
            "relative_fileloc": row[7],
            "fileloc": f"{folder}/{row[7]}" if folder else row[7],
            "description": row[8],
            "timetable_summary": _summary(row, schedule),
            "timetable_description": sentence,
            "timetable_partitioned": _is_partitioned(schedule, row[24]),
            "timetable_periodic": periodic,
            "tags": [TagView(name=tag, dag_id=row[0], dag_display_name=name) for tag in json.loads(row[11])],
            "max_active_tasks": dag.max_active_tasks,
            "max_active_runs": row[12],
            "max_consecutive_failed_dag_runs": dag.max_consecutive_failed_dag_runs,
            "has_task_concurrency_limits": any(
                task.max_active_tis_per_dag is not None or task.max_active_tis_per_dagrun is not None for task in dag.tasks
            ),
            "has_import_errors": bool(row[13]),
            "next_dagrun_logical_date": iso(following[0]),
            "next_dagrun_data_interval_start": iso(following[1]),
            "next_dagrun_data_interval_end": iso(following[2]),
            "next_dagrun_run_after": iso(following[3]),
            "allowed_run_types": list(dag.allowed_run_types) or None,
            "owners": _owners(row[18]),
            "is_backfillable": periodic and (not dag.allowed_run_types or RunType.BACKFILL in dag.allowed_run_types),
            "file_token": base64.urlsafe_b64encode(msgspec.json.encode([row[6], row[7]])).decode().rstrip("="),
        }


def _filters_names(more: DagConditions) -> bool:
    return bool(more.display_name_pattern or more.display_name_prefix)


def _has_name(name: str, more: DagConditions) -> bool:
    pattern = more.display_name_pattern
    return begins(name, more.display_name_prefix) and (
        pattern is None or pattern == "~" or like(pattern).search(name) is not None
    )


_DAG = """d.dag_id, d.is_paused, d.is_active, d.last_parsed_at, d.parse_duration, d.missing_since, d.bundle, d.file,
    d.description, d.schedule_summary, d.schedule, d.tags, d.max_active_runs, d.has_import_error, d.next_logical_date,
    d.next_start, d.next_end, d.next_run_after, d.owners, d.task_count, d.version, d.catchup, d.start_date, d.end_date, d.assets,
    d.bundle_version, d.last_logical_date, d.last_start, d.last_end, d.last_run_after"""


def _next_run(row: Row, schedule: Schedule, now: int | None) -> Sequence[int | None]:
    """The dates of the next scheduled run: those of the scheduler, or for a DAG without them (a paused one) the ones that it would
    have now. `now`: microseconds; None: only those of the scheduler.
    """
    stored: Sequence[int | None] = row[14:18]
    if now is None or row[17] is not None or not row[2] or isinstance(schedule, NoSchedule | CustomSchedule):
        return stored
    last = None if row[29] is None else RunTimes(*row[26:30])
    try:
        found = next_run(schedule, last, Bounds(row[22], row[23], bool(row[21])), now)
    except (ScheduleError, ValueError, OverflowError):
        return stored
    return stored if found is None else (found.logical_date, found.start, found.end, found.run_after)


def _summary(row: Row, schedule: Schedule) -> str | None:
    """The schedule in short, as Airflow shows it: the expression of a preset such as `@daily`."""
    written: str | None = row[9]
    if isinstance(schedule, CronSchedule) and written is not None and written.startswith("@"):
        return ", ".join(schedule.expressions)
    return "Partitioned Asset" if written == "Asset" and _is_partitioned(schedule, row[24]) else written


_DAG_FIELDS = {"bundle_name": "d.bundle"}

_LATEST = "(SELECT {} FROM dag_run r WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1)"

_DAG_ORDERS = {
    "next_dagrun": "d.next_logical_date",
    "last_run_state": _LATEST.format("r.state"),
    "last_run_start_date": _LATEST.format("r.started_at"),
    "state": _LATEST.format("r.state"),
    "start_date": _LATEST.format("r.started_at"),
    "dag_id": "d.dag_id",
    "dag_display_name": "d.dag_id",
    "is_paused": "d.is_paused",
    "next_dagrun_run_after": "d.next_run_after",
    "next_dagrun_logical_date": "d.next_logical_date",
    "last_parsed_time": "d.last_parsed_at",
    "fileloc": "d.file",
    "description": "d.description",
}

_VERSION = "v.id, v.dag_id, v.hash, v.number, v.bundle, v.bundle_version, v.created_at"
_VERSION_FIELDS = {"version_number": "v.number", "bundle_name": "v.bundle", "bundle_version": "v.bundle_version"}
_VERSION_ORDERS = {
    "bundle_name": "v.bundle",
    "bundle_version": "v.bundle_version",
    "id": "v.id",
    "version_number": "v.number",
    "dag_id": "v.dag_id",
    "created_at": "v.created_at",
}


def identity(kind: int, number: int, place: int = 0) -> str:
    """Make a UUID (version 8) from a number, for objects that have a UUID in Airflow. A number always gives the same UUID."""
    return f"{number >> 16:08x}-{number & 0xFFFF:04x}-8{kind:03x}-8000-{place:012x}"


def _param(param: ParamDefinition) -> dict[str, Any]:
    value = param.default if param.has_default else None
    return {"value": value, "schema": param.schema, "description": param.description, "source": None}


def _owners(text: str) -> list[str]:
    return [owner.strip() for owner in text.split(",") if owner.strip()]


def _tagged(stored: str, tags: Sequence[str], all_tags: bool) -> bool:
    if not tags:
        return True
    have = set(json.loads(stored))
    return have.issuperset(tags) if all_tags else bool(have & set(tags))


def _is_partitioned(schedule: Schedule, assets: bytes | None) -> bool:
    """Whether runs of a DAG have partition keys."""
    if isinstance(schedule, CronSchedule) and schedule.partition is not None:
        return True
    return assets is not None and decode_asset_schedule(bytes(assets)).partitions is not None
