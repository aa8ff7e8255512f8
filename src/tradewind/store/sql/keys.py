"""Pools, variables and connections."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound, Protected, did_you_mean
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import ConnectionRow, PoolRow, VariableRow
from tradewind.store.sql.dags import DagOperations


class KeyOperations(DagOperations):
    """See `store.port` for the descriptions of the methods."""

    # --- pools ----------------------------------------------------------------------------------------------------

    def pools(self) -> list[PoolRow]:
        return [
            PoolRow(row[0], row[1], row[2], bool(row[3]))
            for row in self.engine.rows("SELECT name, slots, description, include_deferred FROM pool ORDER BY name")
        ]

    def set_pool(self, pool: PoolRow, actor: str, at: int) -> PoolRow:
        if pool.slots < -1:
            raise Conflict(f"pool {pool.name!r}: {pool.slots} slots are not possible; give -1 (unlimited), 0 or more")
        if not pool.name.strip():
            raise Conflict("a pool needs a name")
        with self.engine.transaction():
            self.engine.run(
                """INSERT INTO pool (name, slots, description, include_deferred) VALUES (?, ?, ?, ?)
                   ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, description = excluded.description,
                   include_deferred = excluded.include_deferred""",
                (pool.name, pool.slots, pool.description, int(pool.include_deferred)),
            )
            self._audit("set pool", actor, at, detail={"pool": pool.name, "slots": pool.slots})
        return pool

    def delete_pool(self, name: str, actor: str, at: int) -> None:
        if name == "default_pool":
            raise Protected(english(phrase("error_default_pool")))
        with self.engine.transaction():
            if not self.engine.run("DELETE FROM pool WHERE name = ?", (name,)):
                raise NotFound(
                    english(phrase("error_no_pool", pool=name)) + did_you_mean(name, [pool.name for pool in self.pools()])
                )
            self._audit("delete pool", actor, at, detail={"pool": name})

    # --- variables ------------------------------------------------------------------------------------------------

    def variables(self) -> list[VariableRow]:
        return [_variable(row) for row in self.engine.rows(f"SELECT {_VARIABLE} FROM variable ORDER BY key")]

    def variable(self, key: str) -> VariableRow | None:
        row = self.engine.row(f"SELECT {_VARIABLE} FROM variable WHERE key = ?", (key,))
        return None if row is None else _variable(row)

    def set_variable(self, variable: VariableRow, actor: str, at: int) -> None:
        with self.engine.transaction():
            self.engine.run(
                """INSERT INTO variable (key, value, description, is_encrypted) VALUES (?, ?, ?, ?)
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value, is_encrypted = excluded.is_encrypted,
                   description = coalesce(excluded.description, variable.description)""",
                (variable.key, variable.value, variable.description, int(variable.is_encrypted)),
            )
            self._audit("set variable", actor, at, detail={"key": variable.key})

    def delete_variable(self, key: str, actor: str, at: int) -> None:
        with self.engine.transaction():
            if not self.engine.run("DELETE FROM variable WHERE key = ?", (key,)):
                keys = [row[0] for row in self.engine.rows("SELECT key FROM variable")]
                raise NotFound(english(phrase("error_no_variable", key=key)) + did_you_mean(key, keys))
            self._audit("delete variable", actor, at, detail={"key": key})

    # --- connections ----------------------------------------------------------------------------------------------

    def connections(self) -> list[ConnectionRow]:
        return [ConnectionRow(*row) for row in self.engine.rows(f"SELECT {_CONNECTION} FROM connection ORDER BY conn_id")]

    def connection(self, conn_id: str) -> ConnectionRow | None:
        row = self.engine.row(f"SELECT {_CONNECTION} FROM connection WHERE conn_id = ?", (conn_id,))
        return None if row is None else ConnectionRow(*row)

    def set_connection(self, connection: ConnectionRow, actor: str, at: int, *, replace: bool = True) -> None:
        with self.engine.transaction():
            if not replace and self.connection(connection.conn_id) is not None:
                raise Conflict(f"the connection {connection.conn_id!r} exists already; delete it first or choose another id")
            self.engine.run(
                f"""INSERT INTO connection ({_CONNECTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (conn_id) DO UPDATE SET conn_type = excluded.conn_type,
                    description = excluded.description, host = excluded.host, login = excluded.login,
                    port = excluded.port, schema_name = excluded.schema_name, password = excluded.password,
                    extra = excluded.extra""",
                connection,
            )
            self._audit("set connection", actor, at, detail={"conn_id": connection.conn_id})

    def delete_connection(self, conn_id: str, actor: str, at: int) -> None:
        with self.engine.transaction():
            if not self.engine.run("DELETE FROM connection WHERE conn_id = ?", (conn_id,)):
                ids = [row[0] for row in self.engine.rows("SELECT conn_id FROM connection")]
                raise NotFound(english(phrase("error_no_connection", connection=conn_id)) + did_you_mean(conn_id, ids))
            self._audit("delete connection", actor, at, detail={"conn_id": conn_id})


_VARIABLE = "key, value, description, is_encrypted"
_CONNECTION = "conn_id, conn_type, description, host, login, port, schema_name, password, extra"


def _variable(row: tuple[str, bytes, str | None, int]) -> VariableRow:
    return VariableRow(row[0], bytes(row[1]), row[2], bool(row[3]))
