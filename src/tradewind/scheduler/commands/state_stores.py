"""Commands on the state stores of tasks and assets, from people and programs."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.rows import AssetStateEntry, TaskStateEntry
from tradewind.scheduler.attempts.state_requests import problem_of
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.task_instances import run_with_instance
from tradewind.wire import commands as c


def set_task_state(context: CommandContext, command: c.SetTaskState) -> None:
    """Raises NotFound: there is no such task instance, or no such key. Conflict: the key or the value is too long."""
    store, now = context.store, context.clock.wall()
    _check(command.key, command.value)
    row = run_with_instance(store, command.dag_id, command.run_id, command.task_id, command.map_index)
    expires_at = command.expires_at
    if command.only_existing:
        found = store.task_state_entries(row.id, command.task_id, command.map_index, key=command.key)
        if not found:
            keys = [one.key for one in store.task_state_entries(row.id, command.task_id, command.map_index, limit=1_000)]
            raise NotFound(f"Task state store key {command.key!r} not found.{did_you_mean(command.key, keys)}")
        expires_at = found[0].expires_at
    entry = TaskStateEntry(command.key, command.value.encode(), now, expires_at)
    store.set_task_state_entry(row.id, command.task_id, command.map_index, entry)
    detail = {"task_id": command.task_id, "map_index": command.map_index, "key": command.key}
    store.write_audit("set task state", context.actor, now, dag_id=row.dag_id, run_id=row.run_id, detail=detail)


def delete_task_state(context: CommandContext, command: c.DeleteTaskState) -> None:
    """Raises NotFound: there is no such task instance."""
    store, now = context.store, context.clock.wall()
    row = run_with_instance(store, command.dag_id, command.run_id, command.task_id, command.map_index)
    count = store.delete_task_state_entries(row.id, command.task_id, command.map_index, command.key)
    if count:
        detail = {"task_id": command.task_id, "map_index": command.map_index, "key": command.key, "count": count}
        store.write_audit("delete task state", context.actor, now, dag_id=row.dag_id, run_id=row.run_id, detail=detail)


def set_asset_state(context: CommandContext, command: c.SetAssetState) -> None:
    """Raises NotFound: there is no such asset. Conflict: the key or the value is too long."""
    now = context.clock.wall()
    _check(command.key, command.value)
    context.store.set_asset_state_entry(command.asset_id, AssetStateEntry(command.key, command.value.encode(), now, "api"))
    detail = {"asset_id": command.asset_id, "key": command.key}
    context.store.write_audit("set asset state", context.actor, now, detail=detail)


def delete_asset_state(context: CommandContext, command: c.DeleteAssetState) -> None:
    """Raises NotFound: there is no such asset."""
    store, now = context.store, context.clock.wall()
    if store.find_asset(number=command.asset_id) is None:
        raise NotFound(f"There is no asset with id {command.asset_id}.")
    count = store.delete_asset_state_entries(command.asset_id, command.key)
    if count:
        detail = {"asset_id": command.asset_id, "key": command.key, "count": count}
        store.write_audit("delete asset state", context.actor, now, detail=detail)


def _check(key: str, value: str) -> None:
    problem = problem_of(key, value)
    if problem:
        raise Conflict(problem)
