"""`airflow.sdk.state`, `airflow.triggers.shared_stream`: base classes for provider packages. Tradewind does not call them yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["AdvanceItem", "AssetScope", "BaseStoreBackend", "SharedStreamProducer", "StoreScope", "TaskScope"]


@dataclass(frozen=True)
class TaskScope:
    """The state of one task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


@dataclass(frozen=True)
class AssetScope:
    """The state of one asset."""

    asset_id: int | None = None
    name: str | None = None
    uri: str | None = None

    def __post_init__(self) -> None:
        if self.asset_id is None and self.name is None and self.uri is None:
            raise ValueError("AssetScope requires at least one of: asset_id, name, or uri")


StoreScope = TaskScope | AssetScope


class BaseStoreBackend(ABC):
    """Base of stores of state: texts by key, of a task instance or an asset."""

    @abstractmethod
    def get(self, scope: StoreScope, key: str, *, session: Any = None) -> str | None:
        """The value of a key, or None."""

    @abstractmethod
    def set(self, scope: StoreScope, key: str, value: str, *, expires_at: Any = None, session: Any = None) -> None:
        """Store the value of a key."""

    @abstractmethod
    def delete(self, scope: StoreScope, key: str, *, session: Any = None) -> None:
        """Remove a key."""

    @abstractmethod
    def clear(self, scope: StoreScope, *, session: Any = None) -> None:
        """Remove all keys."""


class AdvanceItem(NamedTuple):
    """An event of a shared stream that its subscribers have handled."""

    broker_payload: Any
    outcome: Any


class SharedStreamProducer(ABC):
    """Base of producers that several triggers share."""

    @abstractmethod
    def open_stream(self) -> AsyncIterator[tuple[Any, Any]]:
        """Connect, and yield (event, the value that the broker needs to advance)."""

    @abstractmethod
    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Tell the broker that these events were handled."""
