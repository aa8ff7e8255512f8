"""The arguments of every command and question: their names and types, checked before anything is carried out.

What does not fit is a mistake of whoever asks (`WrongArgument`). So whatever goes wrong afterwards, besides what a command refuses
with an error of its own, is a fault of ours (`InternalError`). Moments are integer microseconds. What a command looks at itself
(a conf against the params of its DAG, a word among several) is `Any` here, because it has a better sentence for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from tradewind.model.errors import InternalError, WrongArgument
from tradewind.model.states import RunType
from tradewind.observe.log import Log

log = Log("commands")

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer that a database holds."""


class _Arguments(msgspec.Struct):
    pass


class _Nothing(_Arguments):
    pass


class _OfDag(_Arguments):
    dag_id: str


class _SetPaused(_OfDag):
    is_paused: bool


class _Trigger(_OfDag):
    run_id: str | None = None
    logical_date: Whole | None = None
    run_after: Whole | None = None
    interval_start: Whole | None = None
    interval_end: Whole | None = None
    conf: Any = None
    note: str | None = None
    run_type: RunType | None = None
    triggered_by: str | None = None


class _TriggerFromTask(_OfDag):
    run_id: str | None = None
    logical_date: Whole | None = None
    conf: Any = None
    note: str | None = None
    reset: bool | None = None
    fail_when_paused: bool | None = None


class _Retire(_Arguments):
    before: Whole
    dag_id: str | None = None
    keep: Whole | None = None


class _SetPool(_Arguments):
    name: str
    slots: Whole
    description: str | None = None
    include_deferred: bool | None = None


class _Named(_Arguments):
    name: str


class _SetVariable(_Arguments):
    key: str
    value: str
    description: str | None = None


class _Key(_Arguments):
    key: str


class _SetConnection(_Arguments):
    conn_id: str
    conn_type: str
    description: str | None = None
    host: str | None = None
    login: str | None = None
    port: Whole | None = None
    schema: str | None = None
    password: str | None = None
    extra: str | None = None
    replace: bool | None = None


class _ConnId(_Arguments):
    conn_id: str


class _Problem(_Arguments):
    message: str
    stack_trace: str
    line: Whole | None = None


class _RegisterFile(_Arguments):
    bundle: str
    file: str
    file_hash: str
    dags: list[tuple[str, bytes, str]]
    duration: Whole
    at: Whole
    problem: _Problem | None = None
    is_dynamic: bool | None = None


class _RegisterFiles(_Arguments):
    files: list[_RegisterFile]


class _FileProblem(_Problem, kw_only=True):
    file: str


class _RegisterPlugins(_Arguments):
    plugins: list[Any]
    problems: list[_FileProblem]
    at: Whole


class _Bundle(_Arguments):
    bundle: str


class _ForgetFiles(_Bundle):
    files: list[str]


class _Choice(_OfDag):
    """Which task instances: see `choosing`."""

    run_id: str | None = None
    past: bool | None = None
    future: bool | None = None
    start: Whole | None = None
    end: Whole | None = None
    task_ids: list[str] | None = None
    instances: list[tuple[str, Whole]] | None = None
    upstream: bool | None = None
    downstream: bool | None = None
    dry_run: bool | None = None
    reason: str | None = None
    note: str | None = None
    after: tuple[Whole, Whole] | None = None


class _Clear(_Choice):
    only_failed: bool | None = None
    only_running: bool | None = None
    reset_dag_runs: bool | None = None
    not_running: bool | None = None


class _Mark(_Choice, kw_only=True):
    state: Any


class _OfRun(_OfDag):
    run_id: str


class _SetRunState(_OfRun):
    state: Any
    dry_run: bool | None = None
    reason: str | None = None
    note: str | None = None


class _NoteRun(_OfRun):
    note: str | None = None


class _NoteTask(_OfRun):
    task_id: str
    map_index: Whole | None = None
    note: str | None = None


class _RunTask(_OfRun):
    task_id: str
    map_index: Whole | None = None
    ignore: list[str] | None = None
    wait_for_past: bool | None = None
    force: bool | None = None
    dry_run: bool | None = None
    reason: str | None = None
    pool: str | None = None


class _CreateBackfill(_OfDag):
    from_date: Whole
    to_date: Whole
    conf: Any = None
    max_active_runs: Whole | None = None
    run_backwards: bool | None = None
    reprocess_behavior: Any = None
    dry_run: bool | None = None


class _Backfill(_Arguments):
    backfill: Whole


class _PauseBackfill(_Backfill):
    is_paused: bool


class _Asset(_Arguments):
    asset_id: Whole | None = None
    name: str | None = None
    uri: str | None = None


class _CreateAssetEvent(_Asset):
    extra: Any = None


class _MaterializeAsset(_Asset):
    conf: Any = None
    note: str | None = None
    triggered_by: str | None = None


class _DropQueuedEvents(_Arguments):
    dag_id: str | None = None
    asset_id: Whole | None = None
    before: Whole | None = None


class _ListCallbacks(_Arguments):
    parked: bool | None = None


class _SomeCallbacks(_Arguments):
    ids: list[Whole] | None = None


class _ListMisses(_Arguments):
    dag_id: str | None = None


class _Why(_OfDag):
    task_id: str
    run_id: str | None = None
    map_index: Whole | None = None


class _WhyDag(_OfDag):
    run_id: str | None = None
    logical_date: Whole | None = None


class _Upcoming(_Arguments):
    count: Whole = 20
    dag_ids: list[str] | None = None
    timezone: str | None = None


class _Waits(_Arguments):
    dag_id: str | None = None
    impossible: bool = False
    limit: Whole = 100
    offset: Whole = 0


class _LoginRow(_Arguments):
    event: Literal["login", "login failed"]
    name: Annotated[str, msgspec.Meta(max_length=200)]
    address: Annotated[str, msgspec.Meta(max_length=100)]
    count: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    first: Whole
    last: Whole


class _NoteLogins(_Arguments):
    rows: Annotated[list[_LoginRow], msgspec.Meta(max_length=1000)]


class _RevokeToken(_Arguments):
    jti: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    expires_at: Whole
    address: Annotated[str, msgspec.Meta(max_length=100)]


ARGUMENTS: dict[str, type[_Arguments]] = {
    "set_paused": _SetPaused,
    "trigger": _Trigger,
    "trigger_from_task": _TriggerFromTask,
    "delete_dag": _OfDag,
    "retire": _Retire,
    "set_pool": _SetPool,
    "delete_pool": _Named,
    "set_variable": _SetVariable,
    "delete_variable": _Key,
    "set_connection": _SetConnection,
    "delete_connection": _ConnId,
    "register_file": _RegisterFile,
    "register_files": _RegisterFiles,
    "register_plugins": _RegisterPlugins,
    "known_files": _Bundle,
    "forget_files": _ForgetFiles,
    "clear": _Clear,
    "mark": _Mark,
    "set_run_state": _SetRunState,
    "note_run": _NoteRun,
    "note_task": _NoteTask,
    "run_task": _RunTask,
    "create_backfill": _CreateBackfill,
    "pause_backfill": _PauseBackfill,
    "cancel_backfill": _Backfill,
    "create_asset_event": _CreateAssetEvent,
    "materialize_asset": _MaterializeAsset,
    "drop_queued_events": _DropQueuedEvents,
    "list_callbacks": _ListCallbacks,
    "retry_callbacks": _SomeCallbacks,
    "drop_callbacks": _SomeCallbacks,
    "list_misses": _ListMisses,
    "why": _Why,
    "why_dag": _WhyDag,
    "upcoming": _Upcoming,
    "waits": _Waits,
    "note_logins": _NoteLogins,
    "revoke_token": _RevokeToken,
}
"""By the name of the command or question."""


def check_arguments(name: str, args: Mapping[str, Any]) -> None:
    """Do these arguments fit the command? None stands for an optional argument that is not given.

    Raises:
        WrongArgument: one is missing, or has a type or a value that it cannot have.
    """
    given = {key: value for key, value in args.items() if value is not None}
    try:
        msgspec.convert(given, ARGUMENTS.get(name, _Nothing))
    except msgspec.ValidationError as error:
        raise WrongArgument(f"{name}: an argument is missing or wrong: {error}") from None


def as_fault(name: str, error: Exception) -> InternalError:
    """A command or question failed by a fault of ours: it is logged here, with its place, under an id that the sentence names.

    Call it while the exception is being handled.
    """
    fault = secrets.token_hex(4)
    log.exception("a command failed by a fault of Tradewind's own; nothing of it was written", command=name, fault=fault)
    return InternalError(
        f"{name}: this is a fault of Tradewind's own, and nothing was changed ({type(error).__name__}: {error}). "
        f"The scheduler's log has its place under the id {fault}"
    )
