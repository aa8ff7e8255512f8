"""Requests of a task to its own state store, and to the state stores of assets.

Only the latest attempt of a task instance may use the store of the task, so that an attempt that was given up does not overwrite
the values of its successor.
"""

from __future__ import annotations

from tradewind.model.errors import nearest
from tradewind.model.rows import AssetStateEntry, TaskStateEntry
from tradewind.scheduler.assets.answers import asset_names
from tradewind.store.port import RowReader, Store
from tradewind.wire.messages import AttemptKey, Failure, GetStateEntry, SetStateEntry, Value

VALUE_MAX = 1024 * 1024
"""Maximum size of a value, bytes. Larger values belong in files; the store keeps the file names."""
KEY_MAX = 512
"""Maximum length of a key, characters."""


def state_answer(store: RowReader, question: GetStateEntry, attempt: AttemptKey) -> Value | Failure:
    """Return the JSON text of a value."""
    entry: TaskStateEntry | AssetStateEntry | None
    if question.name or question.uri:
        asset = store.find_asset(name=question.name, uri=question.uri)
        if asset is None:
            return _no_asset(store, question)
        entry = next(iter(store.asset_state_entries(asset.id, key=question.key)), None)
    else:
        instance = store.instance_of_attempt(*attempt)
        if instance is None:
            return _outdated(question)
        entry = next(iter(store.task_state_entries(attempt[0], *instance, key=question.key)), None)
    return Value(question.op, entry is not None, None if entry is None else entry.value.decode())


def set_state_entry(store: Store, question: SetStateEntry, attempt: AttemptKey, at: int) -> Value | Failure:
    """Write or delete a value. A repeated request has no second effect."""
    problem = problem_of(question.key, question.value)
    if problem:
        return Failure(question.op, problem)
    with store.transaction():
        instance = store.instance_of_attempt(*attempt)
        if instance is None:
            return _outdated(question)
        if question.name or question.uri:
            return _set_asset_entry(store, question, attempt, instance, at)
        if question.key is not None and question.value is not None:
            entry = TaskStateEntry(question.key, question.value.encode(), at, question.expires_at)
            store.set_task_state_entry(attempt[0], *instance, entry)
            return Value(question.op, True)
        return Value(question.op, store.delete_task_state_entries(attempt[0], *instance, question.key) > 0)


def _set_asset_entry(
    store: Store, question: SetStateEntry, attempt: AttemptKey, instance: tuple[str, int], at: int
) -> Value | Failure:
    asset = store.find_asset(name=question.name, uri=question.uri)
    if asset is None:
        return _no_asset(store, question)
    if question.key is None or question.value is None:
        return Value(question.op, store.delete_asset_state_entries(asset.id, question.key) > 0)
    run = store.run(attempt[0])
    assert run is not None  # it has this task instance
    entry = AssetStateEntry(question.key, question.value.encode(), at, "task", run.dag_id, run.run_id, *instance)
    store.set_asset_state_entry(asset.id, entry)
    return Value(question.op, True)


def problem_of(key: str | None, value: str | None) -> str:
    """Why this value cannot be stored; empty: it can be stored."""
    if key is not None and not 0 < len(key) <= KEY_MAX:
        return f"a key of a state store has 1 to {KEY_MAX} characters; this one has {len(key)}"
    if value is not None and len(value.encode()) > VALUE_MAX:
        size = len(value.encode())
        return (
            f"a value of a state store has at most {VALUE_MAX} bytes; the one of {key!r} has {size}: store the name of a file"
        )
    return ""


def _no_asset(store: RowReader, question: GetStateEntry | SetStateEntry) -> Failure:
    asked = question.name or question.uri
    near = nearest(asked, asset_names(store))
    return Failure(question.op, f"there is no asset {asked!r}." + (f" Did you mean {near!r}?" if near else ""))


def _outdated(question: GetStateEntry | SetStateEntry) -> Failure:
    return Failure(question.op, "this attempt is not the latest one of its task instance any more")
