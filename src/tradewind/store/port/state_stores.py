"""Values that tasks keep between their tries, and values that belong to an asset. Both are JSON texts by key."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import AssetStateEntry, TaskStateEntry


class StateStoreReader(Protocol):
    """Reads the values."""

    def instance_of_attempt(self, run: int, slot: int, fence: int) -> tuple[str, int] | None:
        """(task id, map index) of a task instance, if this attempt is its latest one."""

    def task_state_entries(
        self, run: int, task_id: str, map_index: int, *, key: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[TaskStateEntry]:
        """The values of a task instance by key; with `key` only this value."""

    def count_task_state_entries(self, run: int, task_id: str, map_index: int) -> int:
        """Number of values of a task instance."""

    def asset_state_entries(
        self, asset: int, *, key: str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[AssetStateEntry]:
        """The values of an asset by key; with `key` only this value."""

    def count_asset_state_entries(self, asset: int) -> int:
        """Number of values of an asset."""


class StateStoreWriter(Protocol):
    """Writes the values."""

    def set_task_state_entry(self, run: int, task_id: str, map_index: int, entry: TaskStateEntry) -> None:
        """Create or replace a value. Raises NotFound: there is no such task instance."""

    def delete_task_state_entries(self, run: int, task_id: str, map_index: int | None, key: str | None = None) -> int:
        """Delete a value (`key` None: all), `map_index` None: of all task instances of the task. Returns the number of deleted
        values.
        """

    def delete_expired_task_state(self, now: int, at_most: int) -> int:
        """Delete at most `at_most` expired values of tasks. Returns the number of deleted values."""

    def set_asset_state_entry(self, asset: int, entry: AssetStateEntry) -> None:
        """Create or replace a value. Raises NotFound: there is no such asset."""

    def delete_asset_state_entries(self, asset: int, key: str | None = None) -> int:
        """Delete a value (`key` None: all values). Returns the number of deleted values."""
