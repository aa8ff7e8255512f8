"""Commands on XComs: values that people write in place of a task."""

from __future__ import annotations

from tradewind.model.errors import Conflict, NotFound
from tradewind.model.rows import XComWrite
from tradewind.scheduler.commands.context import CommandContext
from tradewind.scheduler.commands.task_instances import run_with_instance
from tradewind.wire import commands as c

VALUE_MAX = 1024 * 1024
"""Maximum size of a value, bytes. Larger values belong in files, which only tasks can write."""


def set_xcom(context: CommandContext, command: c.SetXCom) -> None:
    """Raises NotFound: there is no such task instance. Conflict: the XCom exists, or its value is too large."""
    store, now = context.store, context.clock.wall()
    value = command.value.encode()
    if len(value) > VALUE_MAX:
        raise Conflict(f"the value of an XCom that is written by hand has at most {VALUE_MAX} bytes; this one has {len(value)}")
    row = run_with_instance(store, command.dag_id, command.run_id, command.task_id, command.map_index)
    exists = bool(store.xcoms(row.id, [command.task_id], command.key, [command.map_index]))
    if exists and not command.replace:
        raise Conflict(f"{command.task_id} in {row.run_id} has an XCom {command.key!r} already; change it with PATCH")
    store.push_xcoms(row.id, [XComWrite(command.task_id, command.map_index, command.key, value, None, len(value), now)])
    detail = {"task_id": command.task_id, "map_index": command.map_index, "key": command.key}
    store.write_audit("set xcom", context.actor, now, dag_id=row.dag_id, run_id=row.run_id, detail=detail)


def delete_xcom(context: CommandContext, command: c.DeleteXCom) -> None:
    """Raises NotFound: there is no such XCom."""
    store, now = context.store, context.clock.wall()
    row = run_with_instance(store, command.dag_id, command.run_id, command.task_id, command.map_index)
    if not store.delete_xcoms(row.id, command.task_id, command.map_index, command.key):
        raise NotFound(f"{command.task_id} in {row.run_id} has no XCom {command.key!r}")
    detail = {"task_id": command.task_id, "map_index": command.map_index, "key": command.key}
    store.write_audit("delete xcom", context.actor, now, dag_id=row.dag_id, run_id=row.run_id, detail=detail)
