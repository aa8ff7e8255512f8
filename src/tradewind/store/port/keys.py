"""Pools, variables and connections. Their values are stored unchanged: the caller encrypts them (see `store.crypto`)."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import ConnectionRow, PoolRow, VariableRow


class KeyReader(Protocol):
    """Reads pools, variables and connections."""

    def pools(self) -> list[PoolRow]:
        """All pools, by name."""

    def variables(self) -> list[VariableRow]:
        """All variables, by key."""

    def variable(self, key: str) -> VariableRow | None:
        """The variable with this key."""

    def connections(self) -> list[ConnectionRow]:
        """All connections, by id."""

    def connection(self, conn_id: str) -> ConnectionRow | None:
        """The connection with this id."""


class KeyStore(Protocol):
    """Writes pools, variables and connections."""

    def set_pool(self, pool: PoolRow, actor: str, at: int) -> PoolRow:
        """Create or change a pool. Raises Conflict if it has no name or fewer than -1 slots (-1: unlimited)."""

    def delete_pool(self, name: str, actor: str, at: int) -> None:
        """Delete a pool. Raises NotFound, and Conflict for the default pool."""

    def set_variable(self, variable: VariableRow, actor: str, at: int) -> None:
        """Create or change a variable. Without a description it keeps the one it has."""

    def delete_variable(self, key: str, actor: str, at: int) -> None:
        """Delete a variable. Raises NotFound, naming the nearest key."""

    def set_connection(self, connection: ConnectionRow, actor: str, at: int, *, replace: bool = True) -> None:
        """Create or replace a connection. Raises Conflict if it exists and `replace` is False."""

    def delete_connection(self, conn_id: str, actor: str, at: int) -> None:
        """Delete a connection. Raises NotFound, naming the nearest id."""
