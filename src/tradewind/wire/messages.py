"""Everything that one Tradewind process says to another.

    runner ──RunnerRequest──▶ worker host ──FromRunner──▶ scheduler          start, report, XComs, variables …
    runner ◀──RunnerAnswer─── worker host ◀──ToRunner──── scheduler
    scheduler ──Submit, Cancel──▶ worker host ──HostHello, AttemptGone──▶ scheduler
    scheduler ──CallbackOrder──▶ worker host ──CallbackDone──▶ scheduler     what is called after the fact
    parser ──FromRunner──▶ scheduler ──ToRunner──▶ parser                    what DAG files ask while they are imported
    command line, API, parser ──CommandRequest──▶ scheduler ──CommandResult, Notice──▶ them

Shapes are msgspec structs with a tag; unknown fields are ignored and new fields have defaults, so that two releases can
talk. Moments are integer microseconds UTC. An attempt is named by (run, slot, fence): the run's number, the task
instance's place in it, and the fence under which it was dispatched.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.branch import Branch
from tradewind.model.states import Outcome, RunType
from tradewind.model.waits import Deferral, Resumption, TriggerEnd, TriggerWait

PROTOCOL = 1
"""Version of the messages between scheduler and worker host. A hello with another one is answered with a sentence and closed."""
CLIENT_PROTOCOL = 2
"""Version of the messages between scheduler and clients: command line, API, parser. 2: commands are structs (`wire.commands`)."""

AttemptKey = tuple[int, int, int]
"""(run number, slot, fence)."""


# --- callbacks: what is called after the fact -----------------------------------------------------------------------


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be called in the place of a task: a callback that its own process could not call, a mail, word of a deadline."""

    argument: str
    """Under which argument it stands: `on_failure_callback`, `email`, `sla_miss_callback`, `deadline` …"""
    index: int = 0
    """Its place there."""
    of_run: bool = False
    """It stands with the DAG, not with the task."""
    state: str = ""
    """State of the task instance then."""
    reason: str | None = None
    """Why it came to that, for people."""
    started: int | None = None
    ended: int | None = None
    to: tuple[str, ...] = ()
    """Addresses of a mail."""
    run_state: str = "running"
    run_ended: int | None = None
    due: int | None = None
    """The moment of a deadline."""
    late: tuple[str, ...] = ()
    """Tasks that missed it."""
    blocking: tuple[tuple[str, str], ...] = ()
    """(task id, state) of what had not succeeded then."""
    word: str = ""
    """Airflow's word for the end of a run: `success`, `task_failure`, `timed_out`, `all_tasks_deadlocked`."""


# --- the workload: what a runner needs to know, and no more ---------------------------------------------------------


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt to be made. Carries no credentials and only its own task."""

    run: int
    slot: int
    fence: int
    dag_id: str
    task_id: str
    run_id: str
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 0
    """Retries allowed: the last permitted try_number is max_tries + 1."""
    bundle: str = ""
    """Name of the bundle that has the DAG file."""
    bundle_version: str | None = None
    """Version of the bundle that the run keeps to; None: the files as they are now."""
    folder: str = ""
    """Absolute path of the bundle's files on the worker. The worker host fills it in; the scheduler does not know it."""
    file: str = ""
    """The DAG file, relative to the bundle."""
    import_cost: int = 0
    """How long parsing the file took, microseconds; 0 is unknown."""
    run_type: RunType = RunType.MANUAL
    logical_date: int | None = None
    interval_start: int | None = None
    interval_end: int | None = None
    run_after: int = 0
    run_started: int | None = None
    queued_at: int | None = None
    first_started: int | None = None
    """When the first start of this try was accepted: a rescheduling sensor's timeout counts from here."""
    reschedules: int = 0
    conf: dict[str, Any] = {}
    triggering_user: str | None = None
    execution_timeout: int | None = None
    pool: str = "default_pool"
    queue: str = "default"
    priority: int = 1
    owner: str = "airflow"
    run_as_user: str | None = None
    log: str = ""
    """Path of the attempt's log, relative to the log folder."""
    resumption: Resumption | None = None
    """Set: it goes on after a wait."""
    call: Call | None = None
    """Call this, and do not carry out the task."""
    previous_host: str = ""
    """The worker host that started the attempt before this one: its process may still be ending there. Empty: there was none."""

    @property
    def key(self) -> AttemptKey:
        return (self.run, self.slot, self.fence)


# --- runner ⇄ scheduler (through the host) --------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, tag="start"):
    """May I run? `nonce` names this process; only one nonce is ever accepted under a fence."""

    op: int
    nonce: str
    pid: int
    hostname: str = ""


class XComValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pushed value: JSON bytes, or the name of a spill file that holds them."""

    key: str
    value: bytes = b""
    spill: str | None = None
    size: int = 0


class AssetUpdate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A success that updated an asset. Name or URI is empty where the author gave a reference."""

    name: str
    uri: str
    group: str = "asset"
    extra: bytes = b""
    """JSON object about this event."""
    about: bytes = b""
    """JSON object about the asset itself, where it was made while the task ran."""
    aliases: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, omit_defaults=True, tag="report"):
    """What the attempt came to. Sent once by the runner, or by the host when the runner died without a word."""

    op: int
    outcome: Outcome
    reason: str | None = None
    """A short sentence for people: the exception's last line, 'killed by signal 9 (SIGKILL)' …"""
    ended: int = 0
    reschedule_at: int | None = None
    retry_delay: int | None = None
    xcoms: tuple[XComValue, ...] = ()
    branch: Branch | None = None
    map_length: int | None = None
    """Elements that the return value offers to mapped tasks; of an instance of a mapped task, 1 for any value. None: none."""
    map_label: str | None = None
    """What people are shown in place of its map index."""
    exit_code: int | None = None
    signal: int | None = None
    rendered: bytes = b""
    """JSON object: what the task's templated fields came to."""
    deferral: Deferral | None = None
    """With outcome DEFERRED: what it waits for."""
    assets: tuple[AssetUpdate, ...] = ()
    """What a success updated."""
    calls_back: bool = False
    """The task's own process says so, and calls the callbacks that follow from it itself."""
    called_back: bool = False
    """It has called them already."""
    nonce: str = ""
    """Of the process that it is about: the one of its `Start`. Empty: none was forked; or an older release wrote this."""
    host: str = ""
    """Name of the life of the worker host that passed it on first. Empty: an older release."""


class CalledBack(msgspec.Struct, frozen=True, omit_defaults=True, tag="called_back"):
    """The process that called its task's callbacks itself is through with them, or (`done` False) has ended before. No answer."""

    op: int = 0
    done: bool = True


class Rendered(msgspec.Struct, frozen=True, omit_defaults=True, tag="rendered"):
    """What the templated fields came to, before the task begins: kept by its worker, in case the process dies. No answer."""

    fields: bytes
    op: int = 0


class MaskSecrets(msgspec.Struct, frozen=True, omit_defaults=True, tag="mask"):
    """Hide these texts in the task's log from now on. Answered by `Value` from the worker, once it does."""

    op: int
    values: tuple[str, ...]


class XComPull(msgspec.Struct, frozen=True, omit_defaults=True, tag="xcom_pull"):
    """Read pushed values. Answered by `XComs`."""

    op: int
    dag_id: str
    run_id: str
    task_ids: tuple[str, ...]
    key: str = "return_value"
    map_indexes: tuple[int, ...] | None = None
    """None: all."""
    include_prior_dates: bool = False


class GetVariable(msgspec.Struct, frozen=True, tag="variable"):
    op: int
    key: str


class SetVariable(msgspec.Struct, frozen=True, omit_defaults=True, tag="set_variable"):
    """`value` None deletes."""

    op: int
    key: str
    value: str | None = None
    description: str | None = None


class GetConnection(msgspec.Struct, frozen=True, tag="connection"):
    op: int
    conn_id: str


Lookup = GetVariable | GetConnection
"""What a DAG file may ask for while it is imported."""


class GetTaskStates(msgspec.Struct, frozen=True, omit_defaults=True, tag="task_states"):
    """States of task instances of some DAG at given logical dates: what sensors on other DAGs ask.

    With empty `task_ids` and `group` None: the states of the runs themselves. Answered by `Value` with a list of
    `[logical_date, task_id | None, state | None]`; a run or task instance that does not exist is absent.
    """

    op: int
    dag_id: str
    logical_dates: tuple[int, ...] = ()
    run_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    group: str | None = None


class GetPreviousRun(msgspec.Struct, frozen=True, omit_defaults=True, tag="previous_run"):
    """The run of this DAG before `logical_date` (in `state`, when given). Answered by `Value`: a mapping or None."""

    op: int
    dag_id: str
    logical_date: int
    state: str | None = None


class TriggerRun(msgspec.Struct, frozen=True, omit_defaults=True, tag="trigger_run"):
    """Make a run of a DAG, or clear the one that exists. Answered by `Value` with a `commands.TriggerFromTaskResult`.

    It has its effect once in each try of the task: `number` counts these questions within an attempt, and a question that is
    repeated under the same number, be it by an attempt that follows a lost one, gets the first answer.
    """

    op: int
    dag_id: str
    number: int = 1
    run_id: str | None = None
    logical_date: int | None = None
    conf: dict[str, Any] = {}
    note: str | None = None
    reset: bool = False
    fail_when_paused: bool = False


class GetAssetEvents(msgspec.Struct, frozen=True, omit_defaults=True, tag="asset_events"):
    """Events of an asset (by name, URI or both) or alias; with neither, those that began the run of the attempt.

    Answered by `Value` with a list of mappings, in the order of the events (see `scheduler.asset_answers.event_as_dict`).
    """

    op: int
    name: str = ""
    uri: str = ""
    alias: str = ""
    after: int | None = None
    before: int | None = None
    ascending: bool = True
    limit: int | None = None


class GetAsset(msgspec.Struct, frozen=True, omit_defaults=True, tag="asset"):
    """An asset by name, URI or both. Answered by `Value` with name, uri, group and extra."""

    op: int
    name: str = ""
    uri: str = ""


RunnerRequest = (
    Start
    | Report
    | CalledBack
    | Rendered
    | MaskSecrets
    | XComPull
    | GetVariable
    | SetVariable
    | GetConnection
    | GetTaskStates
    | GetPreviousRun
    | TriggerRun
    | GetAssetEvents
    | GetAsset
)


SUCCESS_LINE = "Marking task as SUCCESS."
"""The last line of a success. An attempt that wrote nothing else has no file: whoever reads its log is shown this line."""


class LastLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last line of an attempt's log: what was decided, and committed, about the attempt."""

    level: str
    """`info`, `warning` or `error`."""
    text: str
    log: str = ""
    """Path of the log relative to the log folder, for a worker host that does not know the attempt (any more)."""


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True, tag="accepted"):
    """Answer to `Start`: go. Answer to `Report`: it counts, forget it."""

    op: int
    nonce: str = ""
    """Of the process whose start or report is accepted: only that one may go, however late this comes."""
    last: LastLine | None = None
    """Of a report that is accepted."""


class Refused(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    """The attempt is not current any more, or was started by another process: end without a word."""

    op: int
    reason: str = ""
    nonce: str = ""
    """Of the process whose start or report is refused, where one was named."""
    last: LastLine | None = None
    """Of a report that is refused because the scheduler has taken it already."""


class XComs(msgspec.Struct, frozen=True, tag="xcoms"):
    """(task_id, map_index, JSON bytes, spill name) of every value found, by task and map index."""

    op: int
    values: tuple[tuple[str, int, bytes, str | None], ...]


class Value(msgspec.Struct, frozen=True, tag="value"):
    """`found` False: there is no such thing. `secret` True: mask the value's texts in the log."""

    op: int
    found: bool
    value: Any = None
    secret: bool = False


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """The request could not be answered; `reason` is for the person who reads the task's log."""

    op: int
    reason: str


RunnerAnswer = Accepted | Refused | XComs | Value | Failure


class FromRunner(msgspec.Struct, frozen=True, tag="from"):
    attempt: AttemptKey
    body: RunnerRequest


class ToRunner(msgspec.Struct, frozen=True, tag="to"):
    attempt: AttemptKey
    body: RunnerAnswer


# --- scheduler ⇄ worker host ----------------------------------------------------------------------------------------


class HostHello(msgspec.Struct, frozen=True, omit_defaults=True, tag="host_hello"):
    """A worker host registers. It describes only itself: attempts that it does not list are not alive on it."""

    host: str
    """Name of this process of the worker (`wire.worker_names`); another process of the same worker has another name."""
    pid: int
    hostname: str
    slots: int = 0
    """0: unlimited."""
    live: tuple[AttemptKey, ...] = ()
    protocol: int = PROTOCOL
    triggers: tuple[AttemptKey, ...] = ()
    """Waits whose triggers it runs."""
    earlier: str = ""
    """Name of the life before this one in the same home folder."""
    earlier_end: str = ""
    """How that ended, in words for people."""
    log_trouble: str = ""
    """Why task logs cannot be written there; empty: they can."""
    queues: tuple[str, ...] = ()
    """Queues that it serves; empty: all."""
    draining: bool = False
    """It finishes what it runs and takes nothing new."""


class Draining(msgspec.Struct, frozen=True, omit_defaults=True, tag="draining"):
    """The worker host was told to stop: it finishes these attempts and takes nothing new. What it does not list it gives back."""

    live: tuple[AttemptKey, ...] = ()


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    workloads: tuple[Workload, ...]


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop the attempt: TERM (on_kill), after `grace` microseconds KILL. Answered by `AttemptGone`."""

    attempt: AttemptKey
    reason: str
    grace: int


class Withdraw(msgspec.Struct, frozen=True, tag="withdraw"):
    """A newer attempt of this task instance goes to another worker: end what is left of older ones. Answered by `Withdrawn`."""

    attempt: AttemptKey
    """The newer attempt."""
    grace: int


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn"):
    """No process of an older attempt of this task instance is left on the worker."""

    attempt: AttemptKey
    """The newer attempt, as `Withdraw` named it."""


class EndLog(msgspec.Struct, frozen=True, tag="end_log"):
    """Write this line behind the log of an attempt that ended without a report, or while the task waited without a process."""

    line: LastLine


class LogTrouble(msgspec.Struct, frozen=True, omit_defaults=True, tag="log_trouble"):
    """Task logs cannot be written on this host (a sentence says why), or can be again (empty)."""

    trouble: str = ""


class AttemptGone(msgspec.Struct, frozen=True, omit_defaults=True, tag="gone"):
    """No process of this attempt exists on the host (any more). Says nothing about success."""

    attempt: AttemptKey
    reason: str = ""
    nonce: str = ""
    """Of the process that is gone, or that was asked for. Empty: none was forked; or an older release says so."""
    host: str = ""
    """Name of the life of the worker host that says so. Empty: an older release."""


class CallbackOrder(msgspec.Struct, frozen=True, tag="call"):
    """Call what `workload.call` names, in a process of its own. One that is under way, or was done just now, is not done twice."""

    post: int
    """Its number in the outbox."""
    tries: int
    """Tries before this one."""
    workload: Workload
    due: int = 0
    """When this try was due. With `tries` it says which one it is: they begin anew when somebody has it tried again."""


class CallbackDone(msgspec.Struct, frozen=True, omit_defaults=True, tag="called"):
    """What a `CallbackOrder` came to."""

    post: int
    tries: int
    ok: bool
    reason: str = ""
    due: int = 0
    """The order's."""


class Reconcile(msgspec.Struct, frozen=True, omit_defaults=True, tag="reconcile"):
    """Which of these attempts do you hold? For each that is not held, `AttemptGone` is answered, with the nonce given here."""

    attempts: tuple[AttemptKey, ...]
    nonces: tuple[str, ...] = ()
    """Of the process that carries out each attempt, in the same order; empty texts: nobody knows."""
    complete: bool = False
    """These are all attempts that the scheduler believes to run on the worker: `Unlisted` is answered if it runs others."""


class Unlisted(msgspec.Struct, frozen=True, tag="unlisted"):
    """A worker runs these attempts, which a complete `Reconcile` did not list. Those that are not current are cancelled."""

    attempts: tuple[AttemptKey, ...]


class TriggerOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trigger to be run. Its key is that of the attempt that deferred itself."""

    key: AttemptKey
    wait: TriggerWait
    bundle: str = ""
    """Name of the bundle that has the DAG file."""
    name: str = ""
    """Whose trigger it is, for people."""
    log: str = ""
    """Path of the log that its messages go to, relative to the log folder."""
    file: str = ""
    """Its DAG's file, relative to the bundle: modules beside it can be imported, too."""
    folder: str = ""
    """Absolute path of the bundle's files on the worker: its modules can be imported. The worker host fills it in."""


class RunTriggers(msgspec.Struct, frozen=True, tag="run_triggers"):
    """Run these triggers. Those that are known are not begun twice."""

    triggers: tuple[TriggerOrder, ...]


class DropTriggers(msgspec.Struct, frozen=True, tag="drop_triggers"):
    """Nobody waits for these any more: also the answer to `TriggerFired`."""

    keys: tuple[AttemptKey, ...]


class TriggerFired(msgspec.Struct, frozen=True, tag="trigger_fired"):
    """A trigger came to its end. Said again until it is dropped."""

    key: AttemptKey
    end: TriggerEnd


class Welcome(msgspec.Struct, frozen=True, omit_defaults=True, tag="welcome"):
    """Answer to a hello."""

    epoch: int = 0
    protocol: int = PROTOCOL
    refused: str | None = None


# --- command line, API and parser ⇄ scheduler ------------------------------------------------------------------------


class ClientHello(msgspec.Struct, frozen=True, omit_defaults=True, tag="client_hello"):
    """A command line, API or parser process. `follow` True: send `Notice`s of what changes."""

    name: str
    pid: int
    follow: bool = False
    protocol: int = CLIENT_PROTOCOL
    answers_timetables: bool = False
    """It may be sent `TimetableQuestion`."""
    job_type: str = ""
    """Of a service that stays connected: which job it is (`DagProcessorJob`); empty for everybody else."""
    life: str = ""
    """Names this life of the service."""


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye"):
    """This service ends in order; its connection is closed next."""


class CommandRequest(msgspec.Struct, frozen=True, omit_defaults=True, tag="command"):
    """A command. A request that is repeated under its `op` gets the stored result."""

    op: str
    body: msgspec.Raw = msgspec.Raw()
    """One of `wire.commands`, encoded: a command that cannot be read is refused under its `op`."""
    actor: str = ""
    """On whose behalf."""


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True, tag="result"):
    """What became of a command."""

    op: str
    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    """The encoded result, of the type that the command names; None where the command failed."""
    error: str | None = None
    """Class name of a model error."""
    message: str | None = None
    """Its sentence."""


LOOKUP_CHANGED = "lookup"
"""Kind of the notice that tells the parser what was set or deleted: `variable bucket`, `connection db` is its text."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, tag="notice"):
    """Something changed. Only a bell: whoever cares reads the store."""

    kind: str
    dag_id: str = ""
    run_id: str = ""
    state: str = ""
    task_id: str = ""
    at: int = 0
    text: str = ""


# --- scheduler ⇄ parser: timetables that users wrote ------------------------------------------------------------------


class TimetableQuestion(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask_timetable"):
    """Put a question to a custom timetable, in a child process. Answered by `TimetableAnswer` under the same number."""

    number: int
    dag_id: str
    folder: str
    """Absolute path of the DAG folder."""
    file: str
    """The DAG's file in it."""
    schedule: bytes
    """An encoded `CustomSchedule`."""
    last: tuple[int | None, int | None, int | None, int] | None = None
    """(logical date, interval start, interval end, run_after) of the last scheduled run."""
    earliest: int | None = None
    latest: int | None = None
    catchup: bool = False
    manual_at: int | None = None
    """Set: the data interval of a run by hand at this moment is asked for, not the next run."""


class TimetableAnswer(msgspec.Struct, frozen=True, omit_defaults=True, tag="on_timetable_answer"):
    """What a custom timetable answered; `problem` is a sentence where it did not."""

    number: int
    run: tuple[int | None, int | None, int | None, int] | None = None
    interval: tuple[int, int] | None = None
    problem: str | None = None
    stack_trace: str = ""


ToScheduler = (
    HostHello
    | Draining
    | Withdrawn
    | Unlisted
    | LogTrouble
    | ClientHello
    | Goodbye
    | FromRunner
    | AttemptGone
    | CallbackDone
    | TriggerFired
    | CommandRequest
    | TimetableAnswer
)
FromScheduler = (
    Welcome
    | Submit
    | Cancel
    | Withdraw
    | EndLog
    | CallbackOrder
    | Reconcile
    | RunTriggers
    | DropTriggers
    | ToRunner
    | CommandResult
    | Notice
    | TimetableQuestion
)

encode = msgspec.msgpack.Encoder().encode
decode_to_scheduler = msgspec.msgpack.Decoder(ToScheduler).decode
decode_from_scheduler = msgspec.msgpack.Decoder(FromScheduler).decode
decode_request = msgspec.msgpack.Decoder(RunnerRequest).decode
decode_answer = msgspec.msgpack.Decoder(RunnerAnswer).decode
decode_workload = msgspec.msgpack.Decoder(Workload).decode
