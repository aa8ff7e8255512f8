"""The database itself: its schema, its state, and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class DatabaseReader(Protocol):
    """Facts about the open database."""

    dags_folder: str
    """The folder with which absolute file names in lists begin. The process that shows the lists sets it."""
    bundle_folders: Mapping[str, str]
    """Name of another bundle → its folder, for the same purpose."""
    bundle_pages: Mapping[str, str]
    """Name of a bundle → address of the page that shows a version of it, with `{version}`; set like `dags_folder`."""

    def show_only(self, dag_ids: frozenset[str]) -> None:
        """From now on, read only rows of these DAGs, as if there were no other DAGs. May be called again with other ids."""

    def schema_number(self) -> int:
        """Number of the newest migration in the database."""

    def settings(self) -> dict[str, Any]:
        """The active settings of this connection, by the database's own names."""

    def size(self) -> int:
        """Size of the database in bytes."""

    def kind(self) -> dict[str, Any]:
        """The kind of the database, and some of its settings."""

    def problems(self, at_most: int) -> list[str]:
        """Damage that the database finds in itself; empty: none. Reads the whole database."""

    def back_up(self, file: str) -> None:
        """Write a consistent copy of the database into a new or empty file."""

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return column names and rows of a statement that a person wrote. Raises StoreError."""

    @property
    def is_current(self) -> bool:
        """Whether a new connection would open the same database: the file was not deleted or replaced."""

    def replaced(self) -> str | None:
        """Return a message if the database was deleted or replaced, else None. Saves the content of the open one first."""

    def release_memory(self) -> None:
        """Free all caches."""

    def close(self) -> None:
        """Close the connection."""


class DatabaseStore(Protocol):
    """Transactions."""

    def transaction(self) -> AbstractContextManager[None]:
        """Several writes as one: any exception rolls all of them back. Inside another transaction: only this part."""
