"""State stores in a running task: JSON values by key that outlive the attempt.

    context["task_state_store"].set("job_id", job_id)     a value of this task instance: its next try reads it
    context["asset_state_store"][orders].set("seen", 7)   a value of an asset: every task with this inlet or outlet reads it

A value of a task expires (`retention`, or `state_store.default_retention_days`); a value of an asset stays until it is deleted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from tradewind.model.errors import did_you_mean
from tradewind.model.moments import to_micros
from tradewind.sdk.assets import Asset, AssetRef
from tradewind.sdk.conf import conf
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import GetStateEntry, SetStateEntry

__all__ = ["NEVER_EXPIRE", "AssetStateStore", "AssetStateStores", "TaskStateStore"]


class _NeverExpire:
    """Type of `NEVER_EXPIRE`."""

    def __repr__(self) -> str:
        return "NEVER_EXPIRE"


NEVER_EXPIRE = _NeverExpire()
"""Retention of a value that does not expire."""

DEFAULT_RETENTION_DAYS = 30


class _Store:
    """The common part of the stores of tasks and assets. Empty name and URI: the store of the running task instance."""

    def __init__(self, name: str = "", uri: str = "") -> None:
        self._name = name
        self._uri = uri

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` if the key has no value."""
        answer = request_value(GetStateEntry(0, key, self._name, self._uri), f"cannot read {key!r} of {self}")
        return json.loads(answer.value) if answer.found else default

    def delete(self, key: str) -> None:
        """Delete a key. No effect if it does not exist."""
        request_value(SetStateEntry(0, key, None, self._name, self._uri), f"cannot delete {key!r} of {self}")

    def clear(self) -> None:
        """Delete all keys."""
        request_value(SetStateEntry(0, None, None, self._name, self._uri), f"cannot clear {self}")

    async def aget(self, key: str, default: Any = None) -> Any:
        """`get` for coroutines."""
        return await asyncio.to_thread(self.get, key, default)

    async def adelete(self, key: str) -> None:
        """`delete` for coroutines."""
        await asyncio.to_thread(self.delete, key)

    async def aclear(self) -> None:
        """`clear` for coroutines."""
        await asyncio.to_thread(self.clear)

    def _write(self, key: str, value: Any, expires_at: int | None) -> None:
        question = SetStateEntry(0, key, _json(key, value), self._name, self._uri, expires_at)
        request_value(question, f"cannot write {key!r} of {self}")


class TaskStateStore(_Store):
    """The values of the task instance that runs. Each map index has its own."""

    def __str__(self) -> str:
        return "the task state store"

    def set(self, key: str, value: Any, *, retention: timedelta | _NeverExpire | None = None) -> None:
        """Write a value.

        Args:
            value: a JSON value other than None.
            retention: how long the value is kept; `NEVER_EXPIRE`: until it is deleted, or its run is deleted. None: the setting
                `state_store.default_retention_days` decides.

        Raises:
            TypeError: `value` is None or not a JSON value; `retention` is not a timedelta.
        """
        self._write(key, value, _expiry(retention))

    async def aset(self, key: str, value: Any, *, retention: timedelta | _NeverExpire | None = None) -> None:
        """`set` for coroutines."""
        await asyncio.to_thread(self.set, key, value, retention=retention)


class AssetStateStore(_Store):
    """The values of one asset."""

    def __str__(self) -> str:
        return f"the state store of asset {self._name or self._uri!r}"

    def set(self, key: str, value: Any) -> None:
        """Write a value: a JSON value other than None. It stays until it is deleted."""
        self._write(key, value, None)

    async def aset(self, key: str, value: Any) -> None:
        """`set` for coroutines."""
        await asyncio.to_thread(self.set, key, value)


class AssetStateStores:
    """The stores of the assets among the inlets and outlets of a task: `stores[asset]`.

    If there is only one asset, its methods can be called directly: `stores.get(key)`.
    """

    def __init__(self, inlets: Iterable[Any], outlets: Iterable[Any]) -> None:
        self._stores: dict[Asset | AssetRef, AssetStateStore] = {}
        for asset in (*inlets, *outlets):
            if isinstance(asset, Asset | AssetRef):
                self._stores[asset] = AssetStateStore(asset.name, asset.uri)

    def __getitem__(self, asset: Asset | AssetRef) -> AssetStateStore:
        found = self._stores.get(asset)
        if found is None:
            asked = getattr(asset, "name", "") or getattr(asset, "uri", "") or str(asset)
            known = [one.name or one.uri for one in self._stores]
            raise KeyError(f"{asked!r} is no inlet or outlet of this task.{did_you_mean(asked, known)}")
        return found

    def __len__(self) -> int:
        return len(self._stores)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"{type(self).__name__!r} has no {name!r}")
        if not self._stores:
            raise KeyError("this task has no asset among its inlets and outlets, so there is no asset state store")
        if len(self._stores) > 1:
            raise ValueError(f"this task has {len(self._stores)} assets: write asset_state_store[asset].{name}(…)")
        return getattr(next(iter(self._stores.values())), name)


_METHODS = frozenset({"get", "set", "delete", "clear", "aget", "aset", "adelete", "aclear"})


def _json(key: str, value: Any) -> str:
    if value is None:
        raise TypeError(f"a state store cannot keep None under {key!r}; delete the key instead")
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the value of {key!r} is no JSON value: {error}") from None


def _expiry(retention: timedelta | _NeverExpire | None) -> int | None:
    if retention is NEVER_EXPIRE:
        return None
    if retention is None:
        days = conf.getint("state_store", "default_retention_days", fallback=DEFAULT_RETENTION_DAYS)
        if days <= 0:
            return None
        retention = timedelta(days=days)
    if not isinstance(retention, timedelta):
        raise TypeError(f"retention is {retention!r}; it must be a timedelta or NEVER_EXPIRE")
    return to_micros(datetime.now(UTC) + retention)
