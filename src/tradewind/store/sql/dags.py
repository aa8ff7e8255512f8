"""DAGs, their versions, and the files that define them."""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec

from tradewind.model.assets import encode_asset_schedule
from tradewind.model.definition import DagDefinition, decode_definition, encode_schedule
from tradewind.model.errors import Conflict, NotFound, NotReadYet, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import DagPlan, ImportProblem, ParsedDag, ParsedFile, UnreadFiles
from tradewind.model.states import FINISHED_RUNS, RunState
from tradewind.store.port.dags import DagBundle, DagFacts
from tradewind.store.sql.assets import AssetOperations
from tradewind.store.sql.engine import Engine, Row
from tradewind.store.sql.queries import rows_among

COMPRESS_ABOVE = 4096
_UNFINISHED = ", ".join(str(state.code) for state in RunState if state not in FINISHED_RUNS)
_ZLIB = 0x78
"""First byte of a zlib stream; a msgpack map never begins with it."""


class DagOperations(AssetOperations):
    """See `store.port` for the descriptions of the methods."""

    engine: Engine
    _definitions: OrderedDict[int, DagDefinition]

    DEFINITIONS_KEPT = 64
    """Maximum number of decoded definitions in memory; others are read again when they are needed."""

    def dag_bundles(self, dag_ids: Sequence[str] | None = None) -> list[DagBundle]:
        sql = "SELECT dag_id, bundle, version FROM dag"
        if dag_ids is None:
            rows = self.engine.rows(sql)
        else:
            rows = rows_among(self.engine, f"{sql} WHERE dag_id IN ({{}})", list(dag_ids))
        return [DagBundle(*row) for row in rows]

    def dag_ids_of_file(self, bundle: str, file: str) -> list[str]:
        rows = self.engine.rows("SELECT dag_id FROM dag WHERE bundle = ? AND file = ? ORDER BY dag_id", (bundle, file))
        return [row[0] for row in rows]

    def access_control(self, version: int) -> dict[str, tuple[str, ...]]:
        row = self.engine.row("SELECT definition FROM dag_version WHERE id = ?", (version,))
        return {} if row is None else _access_decoder.decode(unpack_definition(row[0])).access_control

    def definition(self, version: int) -> DagDefinition:
        cached = self._definitions.get(version)
        if cached is not None:
            self._definitions.move_to_end(version)
            return cached
        row = self.engine.row("SELECT definition FROM dag_version WHERE id = ?", (version,))
        if row is None:
            raise NotFound(f"there is no DAG version {version}")
        definition = decode_definition(unpack_definition(row[0]))
        self._definitions[version] = definition
        while len(self._definitions) > self.DEFINITIONS_KEPT:
            self._definitions.popitem(last=False)
        return definition

    def current_definition(self, dag_id: str) -> DagDefinition:
        return self.definition(self.need_dag(dag_id).version)

    def dag_ids(self) -> list[str]:
        return [row[0] for row in self.engine.rows("SELECT dag_id FROM dag ORDER BY dag_id")]

    def need_dag(self, dag_id: str) -> DagPlan:
        found = self.dag(dag_id)
        if found is None:
            unread = self.unread_files()
            if unread is not None:
                raise NotReadYet(
                    english(phrase("no_dag_yet", dag=dag_id, unread=unread.unread, files=unread.files)), kind="DAG"
                )
            raise NotFound(english(phrase("no_dag", dag=dag_id)) + did_you_mean(dag_id, self.dag_ids()), kind="DAG")
        return found

    def unread_files(self) -> UnreadFiles | None:
        found = [UnreadFiles(*one) for one in self._unread_by_bundle().values()]
        return UnreadFiles(sum(one.files for one in found), sum(one.unread for one in found)) if found else None

    def _unread_by_bundle(self) -> dict[str, list[int]]:
        row = self.engine.row("SELECT value FROM meta WHERE key = 'unread_files'")
        return {} if row is None else dict(json.loads(row[0]))

    def note_unread_files(self, bundle: str, unread: UnreadFiles) -> None:
        with self.engine.transaction():
            known = self._unread_by_bundle()
            wanted = {name: one for name, one in known.items() if name != bundle}
            if unread.unread:
                wanted[bundle] = list(unread)
            if wanted == known:
                return
            if wanted:
                self.engine.run(
                    "INSERT INTO meta (key, value) VALUES ('unread_files', ?) "
                    "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (json.dumps(wanted),),
                )
            else:
                self.forget_unread_files()

    def forget_unread_files(self) -> None:
        with self.engine.transaction():
            self.engine.run("DELETE FROM meta WHERE key = 'unread_files'")

    def dag(self, dag_id: str) -> DagPlan | None:
        row = self.engine.row(f"SELECT {_PLAN_COLUMNS} FROM dag WHERE dag_id = ?", (dag_id,))
        return None if row is None else _plan(row)

    def plans(self) -> list[DagPlan]:
        return [_plan(row) for row in self.engine.rows(f"SELECT {_PLAN_COLUMNS} FROM dag ORDER BY dag_id")]

    def dag_facts(self, at_most: int) -> list[DagFacts]:
        rows = self.engine.rows(
            """SELECT dag_id, bundle, file, is_paused, is_active, has_import_error, description, owners, tags, schedule_summary,
               max_active_runs, next_logical_date, next_start, next_end, next_run_after FROM dag ORDER BY dag_id LIMIT ?""",
            (at_most,),
        )
        return [
            DagFacts._make((*row[:3], *map(bool, row[3:6]), *row[6:8], tuple(json.loads(row[8])), *row[9:])) for row in rows
        ]

    def import_problems(self) -> dict[tuple[str, str], ImportProblem]:
        rows = self.engine.rows("SELECT bundle, file, message, stack_trace, line FROM import_error ORDER BY id")
        return {(row[0], row[1]): ImportProblem(*row[2:]) for row in rows}

    # --- parsing ----------------------------------------------------------------------------------------------------

    def register_file(self, parsed: ParsedFile, *, paused_at_creation: bool) -> list[str]:
        with self.engine.transaction():
            changed, refused = [], []
            for dag in parsed.dags:
                owner = self.engine.row("SELECT bundle, file FROM dag WHERE dag_id = ? AND is_active = 1", (dag.dag_id,))
                if owner is not None and (owner[0], owner[1]) != (parsed.bundle, parsed.file):
                    where = owner[1] if owner[0] == parsed.bundle else f"{owner[1]} of the bundle {owner[0]}"
                    refused.append((dag.dag_id, where))
                elif self._register_dag(parsed, dag, paused_at_creation):
                    changed.append(dag.dag_id)
            if parsed.problem is None:
                names = {dag.dag_id for dag in parsed.dags}
                for (dag_id,) in self.engine.rows(
                    "SELECT dag_id FROM dag WHERE bundle = ? AND file = ? AND is_active = 1", (parsed.bundle, parsed.file)
                ):
                    if dag_id not in names:
                        self.engine.change(_INACTIVE, (parsed.at, dag_id), f"DAG {dag_id}")
                        changed.append(dag_id)
            self._note_problem(parsed, _duplicates(parsed, refused) or parsed.problem)
        return changed

    def _register_dag(self, parsed: ParsedFile, dag: ParsedDag, paused_at_creation: bool) -> bool:
        engine = self.engine
        known = engine.row(
            """SELECT d.version, v.hash, d.is_active, d.file, v.number, d.assets, d.bundle, d.bundle_version
               FROM dag d JOIN dag_version v ON v.id = d.version
               WHERE d.dag_id = ?""",
            (dag.dag_id,),
        )
        facts = (parsed.at, parsed.duration, parsed.file_hash, parsed.is_dynamic, parsed.bundle_version)
        if known is not None and (*known[1:4], known[6]) == (dag.hash, 1, parsed.file, parsed.bundle):
            engine.change(
                "UPDATE dag SET last_parsed_at = ?, parse_duration = ?, file_hash = ?, is_dynamic = ?, bundle_version = ?,"
                " has_import_error = 0 WHERE dag_id = ?",
                (*facts, dag.dag_id),
                f"DAG {dag.dag_id}",
            )
            return bool(known[7] != parsed.bundle_version)
        definition = decode_definition(dag.definition)
        if known is not None and known[1] == dag.hash:
            version = known[0]
        else:
            version = self._new_version(parsed, dag, known)
        columns = _dag_columns(definition)
        if known is None:
            paused = paused_at_creation if definition.is_paused_upon_creation is None else definition.is_paused_upon_creation
            names = ", ".join(columns)
            engine.run(
                f"""INSERT INTO dag (dag_id, bundle, file, version, is_paused, last_parsed_at, parse_duration, file_hash,
                    is_dynamic, bundle_version, {names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {", ".join("?" * len(columns))})""",
                (dag.dag_id, parsed.bundle, parsed.file, version, int(paused), *facts, *columns.values()),
            )
        else:
            assignments = ", ".join(f"{name} = ?" for name in columns)
            engine.change(
                f"""UPDATE dag SET bundle = ?, file = ?, version = ?, is_active = 1, missing_since = NULL,
                    has_import_error = 0, last_parsed_at = ?, parse_duration = ?, file_hash = ?, is_dynamic = ?,
                    bundle_version = ?, {assignments} WHERE dag_id = ?""",
                (parsed.bundle, parsed.file, version, *facts, *columns.values(), dag.dag_id),
                f"DAG {dag.dag_id}",
            )
        self._note_assets(definition, parsed.at, None if known is None or known[5] is None else bytes(known[5]))
        return True

    def _new_version(self, parsed: ParsedFile, dag: ParsedDag, known: Row | None) -> int:
        """Return the number of the version with this content. Create the version if it does not exist.

        A version is found by its hash, so that old content gets its old version again. If the current version has no runs, the new
        version replaces it. No number is used twice: schedulers and readers cache definitions by number.
        """
        engine = self.engine
        again = engine.row("SELECT id FROM dag_version WHERE dag_id = ? AND hash = ?", (dag.dag_id, dag.hash))
        if again is not None:
            return int(again[0])
        version, place = self._next_version(dag.dag_id)
        if known is not None and not self._has_runs(dag.dag_id, known[0]):
            engine.change("DELETE FROM dag_version WHERE id = ?", (known[0],), f"DAG {dag.dag_id}")
            self._definitions.pop(known[0], None)
            place = known[4] if known[4] + 1 == place else place
        engine.run(
            "INSERT INTO dag_version (id, dag_id, number, hash, bundle, bundle_version, definition, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(version, dag.dag_id, place, dag.hash, parsed.bundle, parsed.bundle_version),
                *(pack_definition(dag.definition), parsed.at),
            ),
        )
        self._definitions.pop(version, None)  # a transaction that was rolled back may have used this number
        return int(version)

    def _next_version(self, dag_id: str) -> tuple[int, int]:
        """Return the number of a new version among all versions, and its number among the versions of its DAG."""
        row = self.engine.row(
            """SELECT (SELECT coalesce(max(number), 0) + 1 FROM (SELECT max(id) AS number FROM dag_version
                       UNION ALL SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_version') AS known),
                      (SELECT coalesce(max(number), 0) + 1 FROM dag_version WHERE dag_id = ?)""",
            (dag_id,),
        )
        assert row is not None, "the statement gives one row"
        return int(row[0]), int(row[1])

    def _has_runs(self, dag_id: str, version: int) -> bool:
        return self.engine.row("SELECT 1 FROM dag_run WHERE dag_id = ? AND version = ? LIMIT 1", (dag_id, version)) is not None

    def _note_problem(self, parsed: ParsedFile, problem: ImportProblem | None) -> None:
        engine = self.engine
        if problem is None:
            engine.run("DELETE FROM import_error WHERE bundle = ? AND file = ?", (parsed.bundle, parsed.file))
            return
        engine.run(
            """INSERT INTO import_error (bundle, file, message, stack_trace, line, at) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (bundle, file) DO UPDATE SET message = excluded.message, stack_trace = excluded.stack_trace,
               line = excluded.line, at = excluded.at""",
            (parsed.bundle, parsed.file, problem.message, problem.stack_trace, problem.line, parsed.at),
        )
        engine.run("UPDATE dag SET has_import_error = 1 WHERE bundle = ? AND file = ?", (parsed.bundle, parsed.file))

    def known_files(self, bundle: str) -> dict[str, tuple[str, bool]]:
        rows = self.engine.rows(
            """SELECT file, min(coalesce(file_hash, '')), max(coalesce(file_hash, '')), max(is_dynamic) FROM dag
               WHERE bundle = ? AND is_active = 1 GROUP BY file""",
            (bundle,),
        )
        found = {file: (low if low == high else "", bool(dynamic)) for file, low, high, dynamic in rows}
        for (file,) in self.engine.rows("SELECT file FROM import_error WHERE bundle = ?", (bundle,)):
            found[file] = ("", found.get(file, ("", False))[1])
        return found

    def move_to_bundle_version(self, bundle: str, version: str, files: Mapping[str, str]) -> list[str]:
        moved = []
        with self.engine.transaction():
            for file, file_hash in files.items():
                where = "bundle = ? AND file = ? AND file_hash = ? AND is_active = 1 AND coalesce(bundle_version, '') <> ?"
                values = (bundle, file, file_hash, version)
                for (dag_id,) in self.engine.rows(f"SELECT dag_id FROM dag WHERE {where}", values):
                    self.engine.change(
                        f"UPDATE dag SET bundle_version = ? WHERE {where} AND dag_id = ?",
                        (version, *values, dag_id),
                        f"DAG {dag_id}",
                    )
                    moved.append(dag_id)
        return moved

    def used_bundle_versions(self, bundle: str) -> list[str]:
        rows = self.engine.rows(
            f"""SELECT r.bundle_version FROM dag_run r JOIN dag d ON d.dag_id = r.dag_id
                WHERE r.state IN ({_UNFINISHED}) AND d.bundle = ? AND r.bundle_version IS NOT NULL
                UNION SELECT bundle_version FROM dag WHERE bundle = ? AND is_active = 1 AND bundle_version IS NOT NULL""",
            (bundle, bundle),
        )
        return [row[0] for row in rows]

    def forget_files(self, bundle: str, files: list[str], at: int) -> list[str]:
        gone = []
        with self.engine.transaction():
            for file in files:
                for (dag_id,) in self.engine.rows(
                    "SELECT dag_id FROM dag WHERE bundle = ? AND file = ? AND is_active = 1", (bundle, file)
                ):
                    self.engine.change(_INACTIVE, (at, dag_id), f"DAG {dag_id}")
                    gone.append(dag_id)
                self.engine.run("DELETE FROM import_error WHERE bundle = ? AND file = ?", (bundle, file))
        return gone

    def set_plugins(self, listed: str) -> None:
        with self.engine.transaction():
            self.engine.run(
                "INSERT INTO meta (key, value) VALUES ('plugins', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (listed,),
            )

    def plugins(self) -> str:
        row = self.engine.row("SELECT value FROM meta WHERE key = 'plugins'")
        return "[]" if row is None else str(row[0])

    def set_favorite(self, dag_id: str, user: str, is_favorite: bool) -> None:
        with self.engine.transaction():
            self.need_dag(dag_id)
            if is_favorite:
                if not self.engine.run(
                    "INSERT INTO dag_favorite (user_name, dag_id) VALUES (?, ?) ON CONFLICT (user_name, dag_id) DO NOTHING",
                    (user, dag_id),
                ):
                    raise Conflict(f"DAG {dag_id} is already a favorite of {user}")
            elif not self.engine.run("DELETE FROM dag_favorite WHERE user_name = ? AND dag_id = ?", (user, dag_id)):
                raise Conflict(f"DAG {dag_id} is not a favorite of {user}")

    def set_paused(self, dag_id: str, paused: bool, actor: str, at: int) -> bool:
        with self.engine.transaction():
            self.need_dag(dag_id)
            changed = self.engine.run(
                "UPDATE dag SET is_paused = ? WHERE dag_id = ? AND is_paused <> ?", (int(paused), dag_id, int(paused))
            )
            if changed:
                self._audit("pause" if paused else "unpause", actor, at, dag_id=dag_id)
        return bool(changed)

    def write_audit(
        self, event: str, actor: str, at: int, *, dag_id: str | None = None, run_id: str | None = None, detail: object = None
    ) -> None:
        with self.engine.transaction():
            self._audit(event, actor, at, dag_id=dag_id, run_id=run_id, detail=detail)

    def _audit(
        self,
        event: str,
        actor: str,
        at: int,
        *,
        dag_id: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        detail: object = None,
    ) -> None:
        self.engine.run(
            "INSERT INTO audit (at, event, actor, dag_id, run_id, task_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (at, event, actor, dag_id, run_id, task_id, None if detail is None else json.dumps(detail)),
        )


_INACTIVE = "UPDATE dag SET is_active = 0, missing_since = ? WHERE dag_id = ? AND is_active = 1"

_PLAN_COLUMNS = """dag_id, version, file, is_paused, is_active, schedule, start_date, end_date, catchup, max_active_runs,
    schedule_epoch, last_logical_date, last_start, last_end, last_run_after, bundle, parse_duration, assets,
    bundle_version"""


def _plan(row: Row) -> DagPlan:
    last = None if row[14] is None else (row[11], row[12], row[13], row[14])
    return DagPlan(
        dag_id=row[0],
        version=row[1],
        file=row[2],
        is_paused=bool(row[3]),
        is_active=bool(row[4]),
        schedule=row[5],
        start_date=row[6],
        end_date=row[7],
        catchup=bool(row[8]),
        max_active_runs=row[9],
        schedule_epoch=row[10],
        last=last,
        bundle=row[15],
        parse_duration=row[16] or 0,
        assets=row[17],
        bundle_version=row[18],
    )


def _dag_columns(definition: DagDefinition) -> dict[str, object]:
    return {
        "max_active_runs": definition.max_active_runs,
        "schedule": encode_schedule(definition.schedule),
        "assets": encode_asset_schedule(definition.assets),
        "start_date": definition.start_date,
        "end_date": definition.end_date,
        "catchup": int(definition.catchup),
        "schedule_summary": definition.schedule_summary,
        "description": definition.description,
        "owners": ", ".join(definition.owners),
        "tags": json.dumps(list(definition.tags)),
        "task_count": len(definition.tasks),
    }


def _duplicates(parsed: ParsedFile, refused: list[tuple[str, str]]) -> ImportProblem | None:
    if not refused:
        return None
    message = "; ".join(
        f"the DAG id {dag_id!r} is already taken by the file {owner}; give the DAG in {parsed.file} another id"
        for dag_id, owner in refused
    )
    return ImportProblem(message, message, None)


def pack_definition(definition: bytes) -> bytes:
    return zlib.compress(definition, 1) if len(definition) > COMPRESS_ABOVE else definition


class _AccessControl(msgspec.Struct):
    """The field of a definition that says who may use the DAG; the others are not decoded."""

    access_control: dict[str, tuple[str, ...]] = {}


_access_decoder = msgspec.msgpack.Decoder(_AccessControl)


def unpack_definition(data: bytes) -> bytes:
    return zlib.decompress(data) if data[:1] == bytes([_ZLIB]) else data
