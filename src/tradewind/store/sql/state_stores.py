"""The state stores of tasks and assets."""

from __future__ import annotations

from tradewind.model.errors import NotFound
from tradewind.model.rows import AssetStateEntry, TaskStateEntry
from tradewind.store.sql.engine import Engine, Row
from tradewind.store.sql.queries import page


class StateStoreOperations:
    """See `store.port.state_stores`."""

    engine: Engine

    # --- tasks --------------------------------------------------------------------------------------------------------

    def instance_of_attempt(self, run: int, slot: int, fence: int) -> tuple[str, int] | None:
        row = self.engine.row(
            "SELECT task_id, map_index FROM task_instance WHERE run = ? AND slot = ? AND fence = ?", (run, slot, fence)
        )
        return None if row is None else (row[0], row[1])

    def task_state_entries(
        self, run: int, task_id: str, map_index: int, *, key: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[TaskStateEntry]:
        only, parameters = _only(key)
        sql = f"""SELECT key, value, at, expires_at FROM task_state_store
                  WHERE run = ? AND task_id = ? AND map_index = ?{only} ORDER BY key"""
        return [_task_entry(row) for row in page(self.engine, sql, (run, task_id, map_index, *parameters), limit, offset)]

    def count_task_state_entries(self, run: int, task_id: str, map_index: int) -> int:
        row = self.engine.row(
            "SELECT count(*) FROM task_state_store WHERE run = ? AND task_id = ? AND map_index = ?", (run, task_id, map_index)
        )
        return int(row[0]) if row else 0

    def set_task_state_entry(self, run: int, task_id: str, map_index: int, entry: TaskStateEntry) -> None:
        with self.engine.transaction():
            written = self.engine.run(
                """INSERT INTO task_state_store (run, task_id, map_index, key, value, at, expires_at)
                   SELECT run, task_id, map_index, ?, ?, ?, ? FROM task_instance
                   WHERE run = ? AND task_id = ? AND map_index = ?
                   ON CONFLICT (run, task_id, map_index, key) DO UPDATE SET value = excluded.value, at = excluded.at,
                   expires_at = excluded.expires_at""",
                (*entry, run, task_id, map_index),
            )
            if written != 1:
                raise NotFound(f"run number {run} has no task instance of {task_id!r} with map index {map_index}")

    def delete_task_state_entries(self, run: int, task_id: str, map_index: int | None, key: str | None = None) -> int:
        only, parameters = _only(key)
        index, which = ("", ()) if map_index is None else (" AND map_index = ?", (map_index,))
        with self.engine.transaction():
            return self.engine.run(
                f"DELETE FROM task_state_store WHERE run = ? AND task_id = ?{index}{only}", (run, task_id, *which, *parameters)
            )

    def delete_expired_task_state(self, now: int, at_most: int) -> int:
        with self.engine.transaction():
            return self.engine.run(
                """DELETE FROM task_state_store WHERE (run, task_id, map_index, key) IN (
                   SELECT run, task_id, map_index, key FROM task_state_store WHERE expires_at < ? LIMIT ?)""",
                (now, at_most),
            )

    # --- assets -------------------------------------------------------------------------------------------------------

    def asset_state_entries(
        self, asset: int, *, key: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[AssetStateEntry]:
        only, parameters = _only(key)
        sql = f"SELECT {_ASSET_ENTRY} FROM asset_state_store WHERE asset = ?{only} ORDER BY key"
        return [_asset_entry(row) for row in page(self.engine, sql, (asset, *parameters), limit, offset)]

    def count_asset_state_entries(self, asset: int) -> int:
        row = self.engine.row("SELECT count(*) FROM asset_state_store WHERE asset = ?", (asset,))
        return int(row[0]) if row else 0

    def set_asset_state_entry(self, asset: int, entry: AssetStateEntry) -> None:
        with self.engine.transaction():
            written = self.engine.run(
                f"""INSERT INTO asset_state_store (asset, {_ASSET_ENTRY})
                    SELECT id, ?, ?, ?, ?, ?, ?, ?, ? FROM asset WHERE id = ?
                    ON CONFLICT (asset, key) DO UPDATE SET value = excluded.value, at = excluded.at,
                    writer = excluded.writer, source_dag = excluded.source_dag, source_run = excluded.source_run,
                    source_task = excluded.source_task, source_index = excluded.source_index""",
                (*entry, asset),
            )
            if written != 1:
                raise NotFound(f"There is no asset with id {asset}.")

    def delete_asset_state_entries(self, asset: int, key: str | None = None) -> int:
        only, parameters = _only(key)
        with self.engine.transaction():
            return self.engine.run(f"DELETE FROM asset_state_store WHERE asset = ?{only}", (asset, *parameters))


_ASSET_ENTRY = "key, value, at, writer, source_dag, source_run, source_task, source_index"


def _only(key: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if key is None else (" AND key = ?", (key,))


def _task_entry(row: Row) -> TaskStateEntry:
    return TaskStateEntry(row[0], bytes(row[1]), row[2], row[3])


def _asset_entry(row: Row) -> AssetStateEntry:
    return AssetStateEntry(row[0], bytes(row[1]), *row[2:])
