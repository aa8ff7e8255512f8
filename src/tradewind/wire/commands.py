"""Every command: its arguments, and its result.

A command is a change that a person or a program requests from the scheduler, or a question about its state. The command line, the
API and the parser send it as a `CommandRequest` and get a `CommandResult`:

    client: Trigger(dag_id="d")  ── request_for ─▶ CommandRequest ─▶ scheduler: receive ─▶ IncomingCommand ─▶ its handler
    client: TriggerResult ◀── result_of ── CommandResult ◀── result_for ── scheduler: the result of the handler

`receive` checks the names, types and bounds of all arguments once, before the command is executed. So if a handler fails with
any other exception than an error of the model, it is a bug in Tradewind (`InternalError`). Times are integer microseconds UTC. An
argument of type `Any`, or a `str` that allows only some words, is checked by its handler, which can explain an error better.

A separate module from `wire.messages`, because task processes send no commands and need not load it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec

from tradewind.model import errors
from tradewind.model.errors import TradewindError, WireError, WrongArgument, did_you_mean
from tradewind.model.states import FINISHED, RunState, RunType, TaskState
from tradewind.wire.explanations import Explanation, OpenWaitList, UpcomingList
from tradewind.wire.messages import CommandRequest, CommandResult

R = TypeVar("R")

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer that a database can hold."""


class Command(msgspec.Struct, Generic[R], frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="command"):
    """Base of all commands. `R` is the type of the result; the tag is the name of the command."""


class _Result(msgspec.Struct, frozen=True):
    """Base of the results."""


# --- DAGs and DAG runs ------------------------------------------------------------------------------------------------


class SetPausedResult(_Result, frozen=True):
    dag_id: str
    is_paused: bool
    changed: bool


class SetPaused(Command[SetPausedResult], frozen=True, tag="set_paused"):
    """Pause or unpause a DAG."""

    dag_id: str
    is_paused: bool


class SetFavorite(Command[None], frozen=True, tag="set_favorite"):
    """Add a DAG to the favorites of the user who sends the command, or remove it from them."""

    dag_id: str
    is_favorite: bool


class ReadDagFile(Command[None], frozen=True, tag="read_dag_file"):
    """Let the parser read a DAG file again, even if the file has not changed."""

    bundle: str
    file: str


class TriggerResult(_Result, frozen=True):
    """The new DAG run."""

    id: int
    dag_id: str
    run_id: str
    run_type: str
    state: str
    version: int
    logical_date: int | None
    interval_start: int | None
    interval_end: int | None
    run_after: int
    conf: dict[str, Any]
    triggered_by: str
    triggering_user: str | None
    note: str | None


class Trigger(Command[TriggerResult], frozen=True, tag="trigger"):
    """Create a DAG run."""

    dag_id: str
    run_id: str | None = None
    """None: derived from the logical date, or from the current time."""
    logical_date: Whole | None = None
    run_after: Whole | None = None
    interval_start: Whole | None = None
    interval_end: Whole | None = None
    conf: Any = None
    """A mapping. It is checked against the params of the DAG."""
    note: str | None = None
    run_type: RunType = RunType.MANUAL
    triggered_by: str = "cli"
    partition_key: str | None = None
    """Allowed only for a DAG with partitions."""


class TriggerFromTaskResult(_Result, frozen=True):
    done: Literal["created", "cleared", "exists", "paused"]
    """`cleared`: the run existed, and `reset` was given. `paused`: the DAG is paused, and `fail_when_paused` was given."""
    run_id: str | None
    logical_date: int | None


class TriggerFromTask(Command[TriggerFromTaskResult], frozen=True, tag="trigger_from_task"):
    """Create a DAG run for a task, or find or clear the one that exists."""

    dag_id: str
    run_id: str | None = None
    logical_date: Whole | None = None
    conf: Any = None
    note: str | None = None
    reset: bool = False
    fail_when_paused: bool = False


class DeleteDagResult(_Result, frozen=True):
    runs: int
    """How many DAG runs this step deleted."""
    spills: list[str]
    """Names of spill files that nothing refers to any more."""
    gone: bool
    """The DAG itself is deleted: this was the last step."""


class DeleteDag(Command[DeleteDagResult], frozen=True, tag="delete_dag"):
    """Delete a DAG with all that is stored about it, in bounded steps: repeat the command until `gone`."""

    dag_id: str


class DeleteRunResult(_Result, frozen=True):
    spills: list[str]
    """Names of spill files that nothing refers to any more."""


class DeleteRun(Command[DeleteRunResult], frozen=True, tag="delete_run"):
    """Delete a DAG run that has ended, with all that belongs to it."""

    dag_id: str
    run_id: str


class DeleteTaskInstance(Command[None], frozen=True, tag="delete_task_instance"):
    """Remove a task instance from a run that has ended: its state becomes `removed`, and its XComs are deleted."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: Whole = -1


class RetireResult(_Result, frozen=True):
    runs: int
    spills: list[str]


class Retire(Command[RetireResult], frozen=True, tag="retire"):
    """Delete finished DAG runs that are older than a moment, in bounded steps: repeat the command until `runs` is 0."""

    before: Whole
    dag_id: str | None = None
    keep: Whole = 0
    """How many of the newest runs of each DAG are kept."""


# --- clear, mark, notes -----------------------------------------------------------------------------------------------


class EditedTask(_Result, frozen=True):
    """A task instance that a command changes: its state before, and the state that the command gives it."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    to: str


class AnswerInputResult(_Result, frozen=True):
    """The stored answer."""

    chosen: list[str]
    params: dict[str, Any]
    at: int


class AnswerInput(Command[AnswerInputResult], frozen=True, tag="answer_input"):
    """Answer the question of a task in state `awaiting_input`. Who may answer is decided by the client."""

    dag_id: str
    run_id: str
    task_id: str
    chosen: list[str]
    user_id: str
    user_name: str
    map_index: Whole = -1
    params: dict[str, Any] = {}
    """The values of the form fields: all of them, or none."""


class EditTasksResult(_Result, frozen=True):
    task_instances: list[EditedTask]
    dry_run: bool
    next: tuple[int, int] | None
    """The command must be sent again with this value as `after` for the next step. None: this was the last step."""
    ended: list[str] = []
    """Only of `MarkTasks`: ids of finished runs whose state does not change, because none of their tasks has to run."""


class EditTasks(Command[EditTasksResult], frozen=True):
    """Selects task instances. One command is a bounded step of whole runs, the oldest first.

    With `run_id` that run, with `past` and `future` also the runs before and after it; else all runs from `start` to `end` (logical
    dates, both included). `task_ids` and `instances` (task id, map index) select in each run; neither: every task.
    """

    dag_id: str
    run_id: str | None = None
    past: bool = False
    future: bool = False
    start: Whole | None = None
    end: Whole | None = None
    task_ids: list[str] = []
    instances: list[tuple[str, Whole]] = []
    upstream: bool = False
    downstream: bool = False
    dry_run: bool = False
    reason: str | None = None
    note: str | None = None
    after: tuple[Whole, Whole] | None = None
    """`next` of the previous step."""
    expected: str | None = None
    """`fingerprint` of the same step of a dry run: if the step would change other task instances now, it is refused and writes
    nothing."""


class ClearTasks(EditTasks, frozen=True, tag="clear"):
    """Clear task instances so that they run again, with the setups and teardowns that they need, and with the tasks that external
    task markers of the cleared tasks name."""

    only_failed: bool = False
    only_running: bool = False
    reset_dag_runs: bool = True
    """False: a finished run does not change, and its cleared task instances do not run before the run is queued by hand."""
    not_running: bool = False
    """Refuse the command if a selected task instance is running."""
    latest_version: bool | None = None
    """Move the runs to the newest version of their bundle. None: as the DAG says with `rerun_with_latest_version`."""


class MarkTasks(EditTasks, frozen=True, kw_only=True, tag="mark"):
    """Set the state of task instances. Below tasks that are marked success or skipped, failed task instances are cleared."""

    state: str
    """`success`, `failed` or `skipped`."""


class UnfinishedTeardown(_Result, frozen=True):
    task_id: str
    map_index: int


class SetRunStateResult(_Result, frozen=True):
    dag_id: str
    run_id: str
    before: str
    now: str
    task_instances: list[EditedTask]
    teardowns: list[UnfinishedTeardown]
    """Teardowns that run before the run ends."""
    dry_run: bool


class SetRunState(Command[SetRunStateResult], frozen=True, tag="set_run_state"):
    """Set the state of a DAG run."""

    dag_id: str
    run_id: str
    state: str
    """`success`, `failed` or `queued`."""
    dry_run: bool = False
    reason: str | None = None
    note: str | None = None


class NoteRunResult(_Result, frozen=True):
    dag_id: str
    run_id: str
    note: str | None


class NoteRun(Command[NoteRunResult], frozen=True, tag="note_run"):
    """Write a note on a DAG run; an empty one deletes it."""

    dag_id: str
    run_id: str
    note: str | None = None


class NoteTaskResult(_Result, frozen=True):
    dag_id: str
    run_id: str
    task_id: str
    task_instances: int
    """How many task instances have the note now."""
    note: str | None


class NoteTask(Command[NoteTaskResult], frozen=True, tag="note_task"):
    """Write a note on a task instance, or on all of a mapped task (`map_index` None); an empty one deletes it."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: Whole | None = None
    note: str | None = None


class RunTaskResult(_Result, frozen=True):
    done: Literal["scheduled", "success", "waits"]
    """`success`: the task has nothing to execute. `waits`: with `wait_for_past`, the task waits until its past run has ended."""
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    before: str | None
    """The state of the task instance before; None: it had none."""
    ignored: list[str]
    """Rules of dependencies that were not met and are ignored."""
    waits_for: list[str]
    """Sentences."""
    is_paused: bool
    pool: str | None
    try_number: int
    run_state: str


class RunTask(Command[RunTaskResult], frozen=True, tag="run_task"):
    """Run one task instance now."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: Whole | None = None
    ignore: list[str] = []
    """Dependencies that are ignored: `all`, `task`, `past`."""
    wait_for_past: bool = False
    force: bool = False
    """Run the task instance even if it has ended."""
    dry_run: bool = False
    reason: str | None = None
    pool: str | None = None
    """The pool until the task instance is cleared. None: the pool stays, by default the pool that the DAG names."""


# --- XComs ------------------------------------------------------------------------------------------------------------


class SetXCom(Command[None], frozen=True, tag="set_xcom"):
    """Write an XCom of a task instance. `value` is its JSON text."""

    dag_id: str
    run_id: str
    task_id: str
    key: str
    value: str
    map_index: Whole = -1
    replace: bool = True
    """False: the command is refused if the XCom exists."""


class DeleteXCom(Command[None], frozen=True, tag="delete_xcom"):
    dag_id: str
    run_id: str
    task_id: str
    key: str
    map_index: Whole = -1


# --- state stores -----------------------------------------------------------------------------------------------------


class SetTaskState(Command[None], frozen=True, tag="set_task_state"):
    """Write a value into the state store of a task instance. `value` is JSON text."""

    dag_id: str
    run_id: str
    task_id: str
    key: str
    value: str
    map_index: Whole = -1
    expires_at: Whole | None = None
    """When the value expires, microseconds. None: never."""
    only_existing: bool = False
    """Only change the value of an existing key; the time when it expires stays the same."""


class DeleteTaskState(Command[None], frozen=True, tag="delete_task_state"):
    """Delete a value from the state store of a task instance, or all of them. No effect if there is none."""

    dag_id: str
    run_id: str
    task_id: str
    key: str | None = None
    map_index: Whole | None = -1
    """None: of all task instances of the task."""


class SetAssetState(Command[None], frozen=True, tag="set_asset_state"):
    """Write a value into the state store of an asset. `value` is JSON text."""

    asset_id: Whole
    key: str
    value: str


class DeleteAssetState(Command[None], frozen=True, tag="delete_asset_state"):
    """Delete a value from the state store of an asset, or all of them. No effect if there is none."""

    asset_id: Whole
    key: str | None = None


# --- backfills --------------------------------------------------------------------------------------------------------


class BackfillInfo(_Result, frozen=True):
    """A backfill under Airflow's names. Moments are ISO 8601."""

    id: int
    dag_id: str
    from_date: str | None
    to_date: str | None
    dag_run_conf: dict[str, Any]
    is_paused: bool
    reprocess_behavior: str
    max_active_runs: int
    run_backwards: bool
    created_by: str | None
    created_at: str | None
    completed_at: str | None
    runs: int
    """Number of all its runs."""
    handled: int
    """Number of runs that were created, run again or skipped so far."""


class PlannedRun(_Result, frozen=True):
    logical_date: str | None
    """ISO 8601."""
    outcome: str
    """`new`, `rerun`, or why the date is skipped."""
    run_id: str | None
    """The id of the existing run."""
    partition_key: str | None = None
    partition_date: str | None = None
    """ISO 8601."""


class CreateBackfillResult(_Result, frozen=True):
    backfill: BackfillInfo | None
    """None: a dry run."""
    plan: list[PlannedRun]
    """Only of a dry run."""
    runs: int
    to_do: int
    """Number of planned runs that are not skipped."""


class CreateBackfill(Command[CreateBackfillResult], frozen=True, tag="create_backfill"):
    """Create runs for dates of the past, a few at a time."""

    dag_id: str
    from_date: Whole
    to_date: Whole
    conf: Any = None
    max_active_runs: Whole = 10
    run_backwards: bool = False
    reprocess_behavior: str = "none"
    dry_run: bool = False
    run_on_latest_version: bool | None = None
    """Whether repeated runs move to the newest version of their bundle; None: as the DAG says."""
    accepts_depends_on_past: bool = False
    """Whether a DAG with tasks that depend on the past is accepted without a reprocess behavior, as by Airflow 2's command."""


class PauseBackfillResult(_Result, frozen=True):
    changed: bool
    backfill: BackfillInfo


class PauseBackfill(Command[PauseBackfillResult], frozen=True, tag="pause_backfill"):
    """Pause or unpause a backfill."""

    backfill: Whole
    is_paused: bool


class CancelBackfillResult(_Result, frozen=True):
    backfill: BackfillInfo


class CancelBackfill(Command[CancelBackfillResult], frozen=True, tag="cancel_backfill"):
    """Create no more runs of a backfill. Runs that exist continue."""

    backfill: Whole


# --- assets -----------------------------------------------------------------------------------------------------------


class CreateAssetEventResult(_Result, frozen=True):
    id: int
    asset_id: int
    name: str
    uri: str
    group: str
    extra: dict[str, Any]
    at: int


class CreateAssetEvent(Command[CreateAssetEventResult], frozen=True, tag="create_asset_event"):
    """Record that an asset was updated. The asset is named by its id, or by its name, its URI or both."""

    asset_id: Whole | None = None
    name: str | None = None
    uri: str | None = None
    extra: Any = None
    """A mapping."""
    partition_key: str | None = None


class MaterializeAsset(Command[TriggerResult], frozen=True, tag="materialize_asset"):
    """Trigger the DAG that produces an asset. `dag_id` None: exactly one DAG must produce the asset."""

    asset_id: Whole | None = None
    name: str | None = None
    uri: str | None = None
    dag_id: str | None = None
    conf: Any = None
    note: str | None = None
    triggered_by: str = "cli"
    partition_key: str | None = None


class DropQueuedEventsResult(_Result, frozen=True):
    dags: list[str]


class DropQueuedEvents(Command[DropQueuedEventsResult], frozen=True, tag="drop_queued_events"):
    """Delete the asset events that DAGs wait with: of one DAG, of one asset, or of one asset for one DAG."""

    dag_id: str | None = None
    asset_id: Whole | None = None
    before: Whole | None = None


# --- callbacks --------------------------------------------------------------------------------------------------------


class CallbackIds(_Result, frozen=True):
    ids: list[int]


class RetryCallbacks(Command[CallbackIds], frozen=True, tag="retry_callbacks"):
    """Retry failed callbacks now. `ids` None: all that are parked or wait for their next try."""

    ids: list[Whole] | None = None


class DropCallbacks(Command[CallbackIds], frozen=True, tag="drop_callbacks"):
    """Delete callbacks, so that they are never called. `ids` None: all parked callbacks."""

    ids: list[Whole] | None = None


# --- pools, variables, connections ------------------------------------------------------------------------------------


class SetPool(Command[None], frozen=True, tag="set_pool"):
    """Create or change a pool."""

    name: str
    slots: Whole
    description: str | None = None
    include_deferred: bool = False


class DeletePool(Command[None], frozen=True, tag="delete_pool"):
    name: str


class SetVariable(Command[None], frozen=True, tag="set_variable"):
    """Create or change a variable. The value is stored encrypted. None: the value that the variable has stays."""

    key: str
    value: str | None
    description: str | None = None


class DeleteVariable(Command[None], frozen=True, tag="delete_variable"):
    key: str


class SetConnection(Command[None], frozen=True, tag="set_connection"):
    """Create or change a connection. Password and extra are stored encrypted."""

    conn_id: str
    conn_type: str
    description: str | None = None
    host: str | None = None
    login: str | None = None
    port: Whole | None = None
    schema: str | None = None
    password: str | None = None
    extra: str | None = None
    replace: bool = True
    """False: refuse the command if the connection exists."""


class DeleteConnection(Command[None], frozen=True, tag="delete_connection"):
    conn_id: str


# --- import from Airflow ----------------------------------------------------------------------------------------------


class ImportedTry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An earlier try of an imported task instance. Moments are microseconds."""

    try_number: Whole
    outcome: Literal["success", "failed", "skipped"]
    queued_at: Whole | None = None
    started_at: Whole | None = None
    ended_at: Whole | None = None
    hostname: str | None = None


class ImportedTask(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A task instance of an imported run. Moments are microseconds."""

    task_id: str
    state: TaskState
    map_index: Whole = -1
    try_number: Whole = 0
    """Number of tries that have begun."""
    max_tries: Whole | None = None
    """Maximum number of retries; None: as the DAG says."""
    queued_at: Whole | None = None
    started_at: Whole | None = None
    ended_at: Whole | None = None
    hostname: str | None = None
    operator: str | None = None
    length: Whole | None = None
    """Number of elements for tasks that are mapped over the result."""
    reason: str | None = None
    note: str | None = None
    tries: list[ImportedTry] = []
    """Its earlier tries, the oldest first."""


class ImportedXCom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An XCom of an imported run: its encoded value, or the name of its spill file."""

    task_id: str
    map_index: Whole
    key: str
    value: bytes | None
    spill: str | None
    size: Whole
    at: Whole


class ImportedRun(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A DAG run of another orchestrator. Moments are microseconds."""

    dag_id: str
    run_id: str
    run_type: RunType
    state: RunState
    """`queued`: Tradewind continues the run."""
    logical_date: Whole | None
    interval_start: Whole | None
    interval_end: Whole | None
    """None for a run with a logical date: the end of the interval is computed from the schedule of the DAG here."""
    run_after: Whole
    queued_at: Whole
    started_at: Whole | None = None
    ended_at: Whole | None = None
    conf: dict[str, Any] = {}
    note: str | None = None
    triggering_user: str | None = None
    tasks: list[ImportedTask] = []
    xcoms: list[ImportedXCom] = []
    partition_key: str | None = None
    partition_date: Whole | None = None


class RefusedRun(NamedTuple):
    dag_id: str
    run_id: str
    reason: str


class ImportRunsResult(_Result, frozen=True):
    created: int
    existing: int
    """Number of runs that had been imported before, or that have the logical date of an existing run."""
    refused: list[RefusedRun]


class ImportRuns(Command[ImportRunsResult], frozen=True, tag="import_runs"):
    """Store DAG runs of Airflow with their task instances. A run that exists stays as it is."""

    runs: Annotated[list[ImportedRun], msgspec.Meta(max_length=1000)]
    origin: str
    """The source of the runs, for the history of task instances: `Airflow 2.11`."""


class ImportedAssetEvent(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An event of an asset in another orchestrator, and what became of it. Moments are microseconds."""

    name: str
    uri: str
    group: str
    extra: dict[str, Any]
    at: Whole
    source_dag: str | None
    source_run: str | None
    source_task: str | None
    source_index: Whole
    aliases: list[str]
    partition_key: str | None
    waits: list[tuple[str, str]]
    """(DAG id, partition key of its run or an empty text) of the DAGs for which the event waits."""
    consumed: list[tuple[str, str]]
    """(DAG id, run id) of the runs that consumed it."""


class ImportAssetEventsResult(_Result, frozen=True):
    created: int


class ImportAssetEvents(Command[ImportAssetEventsResult], frozen=True, tag="import_asset_events"):
    """Store events of assets of Airflow. An event that exists only learns which runs have consumed it."""

    events: Annotated[list[ImportedAssetEvent], msgspec.Meta(max_length=1000)]


class ImportPositionResult(_Result, frozen=True):
    moved: bool
    """False: the schedule had this position, or a later one."""


class ImportPosition(Command[ImportPositionResult], frozen=True, tag="import_position"):
    """Move the schedule of a DAG after the latest run that Airflow has created from it, so that no run is repeated."""

    dag_id: str
    logical_date: Whole | None
    interval_start: Whole | None = None
    interval_end: Whole | None = None
    """None: the end of the interval is computed from the schedule of the DAG here (Airflow 1.10 does not store it)."""
    run_after: Whole | None = None
    """Start of a run without a logical date: its schedule has partitions."""


# --- DAG files and plugins: sent by the parser ------------------------------------------------------------------------


class FileProblem(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a file cannot be imported."""

    message: str
    stack_trace: str
    line: Whole | None = None


class RegisteredDag(NamedTuple):
    """One DAG of a file: its encoded definition and the definition's hash."""

    dag_id: str
    definition: bytes
    hash: str


class RegisterFileResult(_Result, frozen=True):
    changed: list[str]
    """Ids of DAGs that have a new version, or are new."""


class RegisterFile(Command[RegisterFileResult], frozen=True, tag="register_file"):
    """Store the result of parsing one file. If there is a `problem` and no DAGs, the last good versions stay."""

    bundle: str
    file: str
    file_hash: str
    dags: list[RegisteredDag]
    duration: Whole
    """Duration of the import, microseconds."""
    at: Whole
    problem: FileProblem | None = None
    is_dynamic: bool = False
    bundle_version: str | None = None
    """Version of the bundle that was read; None: it has no versions."""


class RegisterFiles(Command[RegisterFileResult], frozen=True, tag="register_files"):
    """Store the results of several files in one transaction."""

    files: list[RegisterFile]


class PluginProblem(FileProblem, frozen=True, kw_only=True):
    file: str


class RegisterPlugins(Command[None], frozen=True, tag="register_plugins"):
    """Store all plugins that exist now, and all problems with plugins."""

    plugins: list[Any]
    problems: list[PluginProblem]
    at: Whole


class KnownFile(NamedTuple):
    file_hash: str
    is_dynamic: bool


class KnownFiles(Command[dict[str, KnownFile]], frozen=True, tag="known_files"):
    """List the files of a bundle that the scheduler knows, by name."""

    bundle: str


class NoteUnreadFiles(Command[None], frozen=True, tag="note_unread_files"):
    """Note how many files of a bundle the parser has not read yet, so that errors about unknown DAGs can say so."""

    bundle: str
    files: Whole
    """Number of all files of the bundle."""
    unread: Whole


class MoveToBundleVersionResult(_Result, frozen=True):
    moved: list[str]
    """Ids of DAGs whose next runs use the version."""
    used: list[str]
    """Versions of the bundle that are still needed: by unfinished runs, and by the next runs of its DAGs."""


class MoveToBundleVersion(Command[MoveToBundleVersionResult], frozen=True, tag="move_to_bundle_version"):
    """Record that files are the same in a newer version of their bundle. Files that were read again meanwhile stay unchanged."""

    bundle: str
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    files: dict[str, str]
    """File → the hash that is stored for it."""


class ForgetFilesResult(_Result, frozen=True):
    gone: list[str]
    """Ids of DAGs that are no longer active."""


class ForgetFiles(Command[ForgetFilesResult], frozen=True, tag="forget_files"):
    """Record that files of a bundle do not exist any more."""

    bundle: str
    files: list[str]


# --- logins: sent by the API ------------------------------------------------------------------------------------------


class LoginRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of logins, or of failed logins, of a user. If the name is empty, several names were counted together."""

    event: Literal["login", "login failed"]
    name: Annotated[str, msgspec.Meta(max_length=200)]
    address: Annotated[str, msgspec.Meta(max_length=100)]
    count: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    first: Whole
    last: Whole


class NoteLogins(Command[None], frozen=True, tag="note_logins"):
    """Write logins to the audit log."""

    rows: Annotated[list[LoginRow], msgspec.Meta(max_length=1000)]


class NoteAccountEvent(Command[None], frozen=True, tag="note_account_event"):
    """Write a change of an account to the audit log. The actor of the command is the person who changed the account."""

    event: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    at: Whole
    detail: Annotated[str, msgspec.Meta(max_length=200_000)]
    """JSON object."""


class RevokeTokenResult(_Result, frozen=True):
    revoked: bool
    """Whether the token was valid until now."""


class RevokeToken(Command[RevokeTokenResult], frozen=True, tag="revoke_token"):
    """Revoke a login token: its owner has logged out."""

    jti: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    expires_at: Whole
    address: Annotated[str, msgspec.Meta(max_length=100)]


# --- questions, which change nothing -----------------------------------------------------------------------------------


class WorkerState(_Result, frozen=True):
    """One connected worker host."""

    worker: str
    host: str
    """The name of its process."""
    hostname: str
    pid: int
    queues: tuple[str, ...]
    """Queues that it serves; empty: all."""
    slots: int
    """Maximum number of attempts at a time; 0: unlimited."""
    attempts: int
    """Number of attempts that it has and that have not ended."""
    draining: bool


class PingResult(_Result, frozen=True):
    """The state of the scheduler."""

    epoch: int
    pid: int
    now: int
    live_runs: int
    live_attempts: int
    waiting: int
    """Scheduled task instances that wait for a pool slot or another limit."""
    workers: tuple[WorkerState, ...]
    """All connected worker hosts."""
    waits: int
    """Deferred task instances."""
    triggers: int
    executor: str
    trouble: str | None
    """Why the scheduler cannot write to the database now."""
    log_trouble: str
    """Why the worker host cannot write task logs; empty: it can."""


class Ping(Command[PingResult], frozen=True, tag="ping"):
    """Ask for the state of the scheduler."""


class Why(Command[Explanation], frozen=True, tag="why"):
    """Explain why a task instance does not run. `run_id` None: of the newest run. `map_index` None: the first unfinished one."""

    dag_id: str
    task_id: str
    run_id: str | None = None
    map_index: Whole | None = None


class WhyDag(Command[Explanation], frozen=True, tag="why_dag"):
    """Explain why a run does not start or end. The run is named by its id or its logical date; without both: the next run."""

    dag_id: str
    run_id: str | None = None
    logical_date: Whole | None = None


class Upcoming(Command[UpcomingList], frozen=True, tag="upcoming"):
    """List the next starts. `dag_ids` empty: of all DAGs. `timezone` None: UTC."""

    count: Whole = 20
    dag_ids: list[str] = []
    timezone: str | None = None


class Activity(Command[dict[str, Any]], frozen=True, tag="activity"):
    """List the running task instances, and the limits for which others wait."""


class PoolActivity(Command[dict[str, Any]], frozen=True, tag="pool_activity"):
    """List the task instances that hold slots of a pool, and those that wait for them."""

    pool: str


class OpenWaits(Command[OpenWaitList], frozen=True, tag="waits"):
    """List deferred task instances. With `impossible` only those whose wait can never end."""

    dag_id: str | None = None
    impossible: bool = False
    limit: Whole = 100
    offset: Whole = 0


AnyCommand = (
    SetPaused
    | SetFavorite
    | ReadDagFile
    | DeleteRun
    | DeleteTaskInstance
    | SetXCom
    | DeleteXCom
    | SetTaskState
    | DeleteTaskState
    | SetAssetState
    | DeleteAssetState
    | Trigger
    | TriggerFromTask
    | DeleteDag
    | Retire
    | ClearTasks
    | MarkTasks
    | SetRunState
    | NoteRun
    | NoteTask
    | RunTask
    | AnswerInput
    | CreateBackfill
    | PauseBackfill
    | CancelBackfill
    | CreateAssetEvent
    | MaterializeAsset
    | DropQueuedEvents
    | RetryCallbacks
    | DropCallbacks
    | SetPool
    | DeletePool
    | SetVariable
    | DeleteVariable
    | SetConnection
    | DeleteConnection
    | ImportRuns
    | ImportPosition
    | ImportAssetEvents
    | RegisterFile
    | RegisterFiles
    | RegisterPlugins
    | KnownFiles
    | NoteUnreadFiles
    | ForgetFiles
    | MoveToBundleVersion
    | NoteLogins
    | NoteAccountEvent
    | RevokeToken
    | Ping
    | Why
    | WhyDag
    | Upcoming
    | OpenWaits
    | Activity
    | PoolActivity
)

COMMANDS: dict[str, type[Command[Any]]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyCommand)}
"""All commands by name."""


class IncomingCommand(NamedTuple):
    """A command whose arguments are checked. `actor`: the person or program that requests it, for the audit log."""

    op: str
    command: Command[Any]
    actor: str = "unknown"


_encode = msgspec.msgpack.Encoder().encode


@functools.cache
def _decoder() -> msgspec.msgpack.Decoder[Any]:
    """Created at first use: only the scheduler decodes commands, and creating it takes some milliseconds."""
    return msgspec.msgpack.Decoder(AnyCommand)


class _Name(msgspec.Struct):
    command: str = ""


def name_of(command: Command[Any]) -> str:
    """`trigger`, `set_paused` …"""
    return str(command.__struct_config__.tag)


def build(name: str, args: Mapping[str, Any]) -> Command[Any]:
    """Create a command from its name and plain values.

    Raises:
        WrongArgument: as `receive`.
    """
    try:
        found: Command[Any] = msgspec.convert({**args, "command": name}, AnyCommand)
    except msgspec.ValidationError as error:
        raise _refused(name, error) from None
    return found


def request_for(op: str, command: Command[Any], actor: str) -> CommandRequest:
    """Return the message with a command.

    Raises:
        WrongArgument: an argument cannot be encoded, for example an integer with more than 64 bits.
    """
    try:
        return CommandRequest(op, msgspec.Raw(_encode(command)), actor)
    except (OverflowError, TypeError, ValueError) as error:
        raise WrongArgument(f"{name_of(command)}: an argument cannot be sent to the scheduler: {error}") from None


def receive(request: CommandRequest) -> IncomingCommand:
    """Return the checked command of a message.

    Raises:
        WrongArgument: the command is unknown, or an argument is missing, unknown, or has a type or a value that it cannot have.
    """
    try:
        command: Command[Any] = _decoder().decode(request.body)
    except msgspec.DecodeError as error:
        try:
            name = msgspec.msgpack.decode(request.body, type=_Name).command
        except msgspec.DecodeError:
            name = ""
        raise _refused(name, error) from None
    return IncomingCommand(request.op, command, request.actor or "unknown")


def _refused(name: str, error: msgspec.DecodeError) -> WrongArgument:
    if name in COMMANDS:
        return WrongArgument(f"{name}: an argument is missing or wrong: {error}")
    return WrongArgument(
        f"there is no command {name!r}.{did_you_mean(name, COMMANDS)} If it was sent by Tradewind itself, its process and the "
        "scheduler are of different releases: restart both with the same release"
    )


def edit_in_steps(command: EditTasks, call: Callable[[Command[EditTasksResult]], EditTasksResult]) -> Iterator[EditTasksResult]:
    """Send a clear or a mark repeatedly until its last step. Yields the result of each step.

    Args:
        call: executes the command.
    """
    after: tuple[int, int] | None = command.after
    while True:
        step = call(msgspec.structs.replace(command, after=after))
        yield step
        after = step.next
        if after is None:
            return


def fingerprint(touched: Iterable[EditedTask]) -> str:
    """A short text that is the same for the same task instances in the same order, with the same new states.

    Only one property of the old state counts: whether it is finished. An attempt may start or retry between a preview and the edit.
    """
    digest = hashlib.blake2b(digest_size=8)
    for one in touched:
        before = one.state if one.state in _FINISHED_STATES else "unfinished"
        to = "unfinished" if one.to in _RESET else one.to
        digest.update(_encode((one.dag_id, one.run_id, one.task_id, one.map_index, before, to)))
    return digest.hexdigest()


_FINISHED_STATES = frozenset(state.value for state in FINISHED)
_RESET = frozenset({TaskState.NONE.value, TaskState.RESTARTING.value})


def result_for(op: str, result: object) -> CommandResult:
    """Return the message with the result of a command."""
    return CommandResult(op, msgspec.Raw(_encode(result)))


def result_of(answer: CommandResult, command: Command[R]) -> R:
    """Return the result of a command with its own type. If the command failed, raise its error.

    Raises:
        WireError: the result cannot be read; it comes from another release.
        TradewindError: the error of the command, with its own class.
    """
    if answer.error is not None:
        raise _model_error(answer)
    try:
        found: R = msgspec.msgpack.decode(answer.value, type=result_type(type(command)))
    except msgspec.DecodeError as error:
        raise WireError(f"the result of the command {name_of(command)} cannot be read: {error}") from None
    return found


def result_type(kind: type[Command[R]]) -> type[R]:
    """Return `R` of a command, as its class statement or the class statement of a base gives it."""
    for base in kind.__mro__:
        for written in getattr(base, "__orig_bases__", ()):
            arguments = get_args(written)
            if arguments and not isinstance(arguments[0], TypeVar):
                found: type[R] = arguments[0]
                return found
    raise TypeError(f"{kind.__name__} names no result type")


def _model_error(answer: CommandResult) -> TradewindError:
    kind = getattr(errors, answer.error or "", None)
    message = answer.message or answer.error or "the scheduler refused"
    if isinstance(kind, type) and issubclass(kind, TradewindError):
        return kind(message)
    return TradewindError(f"{answer.error}: {message}")
