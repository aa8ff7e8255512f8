"""The messages between the processes of Tradewind. Commands are in `wire.commands`.

    runner ──RunnerRequest──▶ worker host ──FromRunner──▶ scheduler          start, report, XComs, variables …
    runner ◀──RunnerAnswer─── worker host ◀──ToRunner──── scheduler
    scheduler ──Submit, Cancel──▶ worker host ──HostHello, AttemptGone──▶ scheduler
    scheduler ──CallbackOrder──▶ worker host ──CallbackDone──▶ scheduler     callbacks and mails that the scheduler sends
    parser ──FromRunner──▶ scheduler ──ToRunner──▶ parser                    variables and connections for the import of DAG files
    command line, API, parser ──CommandRequest──▶ scheduler ──CommandResult, Notice──▶ them

Messages are msgspec structs with a tag. Unknown fields are ignored and new fields have defaults, so that two releases can
communicate. Times are integer microseconds UTC. An attempt is named by (run, slot, fence): the number of the run, the slot of the
task instance in the run, and the fence under which the attempt was dispatched.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tradewind.model.assets import AliasKey, AssetKey
from tradewind.model.branch import Branch
from tradewind.model.partitions import MappedKey
from tradewind.model.states import Outcome, RunType
from tradewind.model.waits import Deferral, Resumption, TriggerEnd, TriggerWait

PROTOCOL = 1
"""Version of the messages between scheduler and worker host. A hello with another version is refused with a sentence."""
CLIENT_PROTOCOL = 2
"""Version of the messages between scheduler and clients: command line, API, parser. 2: commands are structs (`wire.commands`)."""

AttemptKey = tuple[int, int, int]
"""(run number, slot, fence)."""


# --- callbacks and mails that the scheduler sends -----------------------------------------------------------------------


class Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that the scheduler orders: a callback that the task process could not call, a mail, or the callback of a deadline."""

    argument: str
    """The argument of the DAG or task that holds it: `on_failure_callback`, `email`, `sla_miss_callback`, `deadline` …"""
    index: int = 0
    """The index of the callback in that argument."""
    of_run: bool = False
    """True: it is an argument of the DAG; False: of the task."""
    state: str = ""
    """State of the task instance at that time."""
    reason: str | None = None
    """Why the task instance has this state, for people."""
    started: int | None = None
    ended: int | None = None
    to: tuple[str, ...] = ()
    """Addresses of a mail."""
    run_state: str = "running"
    run_ended: int | None = None
    due: int | None = None
    """When the deadline was due."""
    late: tuple[str, ...] = ()
    """Tasks that missed the deadline."""
    blocking: tuple[tuple[str, str], ...] = ()
    """(task id, state) of the tasks that had not succeeded at that time."""
    end_reason: str = msgspec.field(default="", name="word")
    """Airflow's reason for the end of a run: `success`, `task_failure`, `timed_out`, `all_tasks_deadlocked`."""
    by_hand: bool = False
    """A person has set the state. Only for listeners."""


# --- the workload of a task process ---------------------------------------------------------


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt to run. It holds no credentials, and only data of its own task."""

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
    """Version of the bundle with the files that the attempt uses; None: the files as they are now."""
    folder: str = ""
    """Absolute path of the bundle's files on the worker. The worker host fills it in; the scheduler does not know it."""
    file: str = ""
    """The DAG file, relative to the bundle."""
    import_cost: int = 0
    """Duration of the import of the file, microseconds; 0: unknown."""
    run_type: RunType = RunType.MANUAL
    logical_date: int | None = None
    interval_start: int | None = None
    interval_end: int | None = None
    run_after: int = 0
    partition_key: str | None = None
    partition_date: int | None = None
    run_started: int | None = None
    queued_at: int | None = None
    first_started: int | None = None
    """When the first start of this try was accepted: the timeout of a rescheduling sensor counts from this moment."""
    reschedules: int = 0
    conf: dict[str, Any] = {}
    triggering_user: str | None = None
    execution_timeout: int | None = None
    pool: str = "default_pool"
    queue: str = "default"
    executor: str = ""
    """Name of the executor that runs the attempt; empty: any."""
    priority: int = 1
    owner: str = "airflow"
    run_as_user: str | None = None
    log: str = ""
    """Path of the attempt's log, relative to the log folder."""
    resumption: Resumption | None = None
    """Set: the task continues after a deferral."""
    call: Call | None = None
    """Set: make this call, and do not run the task."""
    previous_host: str = ""
    """The worker host that started the previous attempt: its process may still be ending there. Empty: there was none."""
    pod_override: str = ""
    """With the KubernetesExecutor: what the task changes in its pod (`TaskDefinition.pod_override`)."""

    @property
    def key(self) -> AttemptKey:
        return (self.run, self.slot, self.fence)


# --- runner ⇄ scheduler (through the host) --------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Ask whether this process may run the attempt. `nonce` names the process; only one nonce is accepted under a fence."""

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
    """An asset that a successful attempt updated. If the author gave a reference by name or by URI, the other one is empty."""

    name: str
    uri: str
    group: str = "asset"
    extra: bytes = b""
    """JSON object: extra of this event."""
    about: bytes = b""
    """JSON object: extra of the asset itself, if the task created the asset while it ran."""
    aliases: tuple[str, ...] = ()
    partition_key: str | None = None
    """None: the partition key of the run."""


class Report(msgspec.Struct, frozen=True, omit_defaults=True, tag="report"):
    """The result of an attempt. The task process sends it once; the worker host sends it if the process died without a report."""

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
    """Length of the return value, for mapped tasks; 1 for an instance of a mapped task. None: there is no value."""
    map_label: str | None = None
    """The text that is shown in place of its map index."""
    exit_code: int | None = None
    signal: int | None = None
    rendered: bytes = b""
    """JSON object: the rendered values of the templated fields."""
    deferral: Deferral | None = None
    """With outcome DEFERRED: what the task waits for."""
    assets: tuple[AssetUpdate, ...] = ()
    """The assets that a successful attempt updated."""
    calls_back: bool = False
    """The task process calls the callbacks of this outcome itself."""
    called_back: bool = False
    """The task process has called them already."""
    nonce: str = ""
    """The nonce of the `Start` of this process. Empty: no process was forked, or an older release wrote the report."""
    host: str = ""
    """Name of the worker host process that first forwarded the report. Empty: an older release."""
    cpu: int | None = None
    """CPU time of the process and its ended children, microseconds. None: unknown."""
    peak_memory: int | None = None
    """Greatest resident memory of the process, or of one of its ended children, bytes. None: unknown."""


class CalledBack(msgspec.Struct, frozen=True, omit_defaults=True, tag="called_back"):
    """The task process has called its callbacks, or (`done` False) ended before it could. There is no answer."""

    op: int = 0
    done: bool = True


class Rendered(msgspec.Struct, frozen=True, omit_defaults=True, tag="rendered"):
    """The rendered templated fields, sent before the task begins. The worker host keeps them in case the process dies."""

    fields: bytes
    op: int = 0


class MaskSecrets(msgspec.Struct, frozen=True, omit_defaults=True, tag="mask"):
    """Mask these texts in the log of the task from now on. The worker host answers with `Value` when it masks them."""

    op: int
    values: tuple[str, ...]


class XComPull(msgspec.Struct, frozen=True, omit_defaults=True, tag="xcom_pull"):
    """Read pushed values. Answered by `XComs`."""

    op: int
    dag_id: str
    run_id: str
    task_ids: tuple[str, ...]
    key: str = "return_value"
    """`ANY_KEY`: the returned value if there is one, otherwise any other value."""
    map_indexes: tuple[int, ...] | None = None
    """None: all."""
    include_prior_dates: bool = False


class GetVariable(msgspec.Struct, frozen=True, tag="variable"):
    op: int
    key: str


class SetVariable(msgspec.Struct, frozen=True, omit_defaults=True, tag="set_variable"):
    """Write a variable. `value` None deletes it."""

    op: int
    key: str
    value: str | None = None
    description: str | None = None


class GetConnection(msgspec.Struct, frozen=True, tag="connection"):
    op: int
    conn_id: str


class RowChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of a connection, a variable, a pool or a DAG.

    Attributes:
        table: `connection`, `variable`, `pool` or `dag`. Of a DAG, only `change` of `is_paused` is possible.
        key: connection id, key of the variable, name of the pool, id of the DAG.
        verb: `add`: there must be no row with this key; `change`: there must be one; `put`: add or change; `delete`: no row stays.
        values: column → value. `change` and `put` leave the other columns of an existing row as they are.
    """

    table: str
    key: str
    verb: Literal["add", "change", "put", "delete"]
    values: dict[str, Any] = {}


class ChangeRows(msgspec.Struct, frozen=True, tag="change_rows"):
    """Change rows in one transaction, as `session.commit()` of Airflow does.

    Answered by `Value`. `found` False: nothing was changed, because the row `value["key"]` of `value["table"]` exists already
    (`value["verb"]` is `add`) or does not exist (`change`).
    """

    op: int
    changes: tuple[RowChange, ...]


class GetTaskStates(msgspec.Struct, frozen=True, omit_defaults=True, tag="task_states"):
    """Read states of task instances of a DAG at given logical dates. Sensors for tasks of other DAGs send this.

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
    """Read the run of this DAG before `logical_date` (in `state`, if given). Answered by `Value`: a mapping or None."""

    op: int
    dag_id: str
    logical_date: int
    state: str | None = None


class FindRuns(msgspec.Struct, frozen=True, omit_defaults=True, tag="find_runs"):
    """Read runs of a DAG, the latest ones if there are too many. Answered by `Value` with a list of mappings, the oldest first.

    A filter that is None or empty matches all runs. Moments are microseconds and refer to the logical date, or `run_after` of
    runs without one; both bounds are included.
    """

    op: int
    dag_id: str
    run_id: str | None = None
    state: str | None = None
    run_types: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    at_most: int = 1_000


class ListRows(msgspec.Struct, frozen=True, omit_defaults=True, tag="list_rows"):
    """Read rows as `settings.Session()` of Airflow shows them. Answered by `Value` with a list of mappings.

    `variable` and `connection` answer only names; each value is requested separately. `dag` answers all DAGs, `pool` all pools,
    `task_instance` those of `run_ids` of the DAG `dag_id`, `xcom_key` the keys of the XComs of these runs.

    Attributes:
        task_ids, group: only the task instances of these tasks, and of the tasks in this group; without both of all tasks.
    """

    op: int
    table: str
    dag_id: str = ""
    run_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    group: str | None = None


class TriggerRun(msgspec.Struct, frozen=True, omit_defaults=True, tag="trigger_run"):
    """Create a run of a DAG, or clear the run that exists. Answered by `Value` with a `commands.TriggerFromTaskResult`.

    It has an effect once in each try of the task: `number` counts these requests within an attempt. A request that is repeated
    under the same number gets the first answer, also if another attempt of the same try repeats it after a lost attempt.
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
    """Read events of an asset (by name, URI or both) or of an alias; with neither, the events that started the run of the attempt.

    Answered by `Value` with a list of mappings, in the order of the events (see `scheduler.assets.answers.event_as_dict`).
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
    """Read an asset by name, URI or both. Answered by `Value` with name, uri, group and extra."""

    op: int
    name: str = ""
    uri: str = ""


class GetStateEntry(msgspec.Struct, frozen=True, omit_defaults=True, tag="get_state"):
    """Read a value from the state store of the task instance that asks, or of an asset that is named by name, URI or both.

    Answered by `Value` with its JSON text.
    """

    op: int
    key: str
    name: str = ""
    uri: str = ""


class SetStateEntry(msgspec.Struct, frozen=True, omit_defaults=True, tag="set_state"):
    """Write a value into the state store of the task instance that asks, or of an asset. Answered by `Value`."""

    op: int
    key: str | None
    """None: all keys; only with `value` None."""
    value: str | None = None
    """JSON text. None: delete."""
    name: str = ""
    uri: str = ""
    expires_at: int | None = None
    """When a value of a task expires. None: never."""


Lookup = GetVariable | GetConnection | ListRows | FindRuns
"""The requests that a DAG file may send while it is imported."""

RunnerRequest = (
    Start
    | Report
    | CalledBack
    | Rendered
    | MaskSecrets
    | XComPull
    | GetVariable
    | SetVariable
    | ChangeRows
    | GetConnection
    | GetTaskStates
    | GetPreviousRun
    | FindRuns
    | ListRows
    | TriggerRun
    | GetAssetEvents
    | GetAsset
    | GetStateEntry
    | SetStateEntry
)


SUCCESS_LINE = "Marking task as SUCCESS."
"""The last line of a successful attempt. If the attempt wrote nothing else it has no log file, and readers see this line."""


class LastLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last line of the log of an attempt: what the scheduler has decided and committed about it."""

    level: str
    """`info`, `warning` or `error`."""
    text: str
    log: str = ""
    """Path of the log relative to the log folder, for a worker host that does not know the attempt."""


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True, tag="accepted"):
    """Answer to `Start`: the process may run. Answer to `Report`: it is committed, and the worker host may delete it."""

    op: int
    nonce: str = ""
    """Nonce of the process whose start or report is accepted: only that process may run, even if the answer arrives late."""
    last: LastLine | None = None
    """The last line of the log; only for an accepted report."""


class Refused(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    """The attempt is not current any more, or another process was started for it: the process ends without a report."""

    op: int
    reason: str = ""
    nonce: str = ""
    """Nonce of the process whose start or report is refused, if it was given."""
    last: LastLine | None = None
    """True: the report is refused because the scheduler has already accepted it."""


class XComs(msgspec.Struct, frozen=True, tag="xcoms"):
    """(task_id, map_index, JSON bytes, spill name) of each value that was found, by task and map index."""

    op: int
    values: tuple[tuple[str, int, bytes, str | None], ...]


class Value(msgspec.Struct, frozen=True, tag="value"):
    """`found` False: it does not exist. `secret` True: mask the texts of the value in the log."""

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
    """Number of triggers that it runs."""
    previous_process: str = ""
    """Name of the previous process of this worker host in the same home folder."""
    previous_end: str = ""
    """How the previous process ended, in a sentence."""
    log_trouble: str = ""
    """Why the worker host cannot write task logs; empty: it can."""
    queues: tuple[str, ...] = ()
    """Queues that it serves; empty: all."""
    executors: tuple[str, ...] = ()
    """Names of the executors whose attempts it takes; empty: all."""
    draining: bool = False
    """The worker host finishes its running attempts and takes no new ones."""
    gateway: str = ""
    """Name of the gateway through which it is connected. The gateway fills it in."""


class GatewayHello(msgspec.Struct, frozen=True, tag="gateway_hello"):
    """A gateway registers."""

    name: str


class Relayed(msgspec.Struct, frozen=True, tag="relayed"):
    """The first message of a connection that the standby scheduler of another machine forwards."""

    address: str
    """Name of that machine, for the log."""


class WorkerAway(msgspec.Struct, frozen=True, omit_defaults=True, tag="worker_away"):
    """A gateway has lost the connection of a worker."""

    worker: str
    host: str
    """Name of the process of the worker."""
    lease: int = 0
    """Microseconds from now in which the worker may still run tasks; 0: it ended normally."""
    ago: int = 0
    """Microseconds since it has disconnected."""


class Draining(msgspec.Struct, frozen=True, omit_defaults=True, tag="draining"):
    """The worker host was told to stop: it finishes these attempts and takes no new ones. It gives back all other attempts."""

    live: tuple[AttemptKey, ...] = ()


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    workloads: tuple[Workload, ...]


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop the attempt: TERM (on_kill), after `grace` microseconds KILL. Answered by `AttemptGone`."""

    attempt: AttemptKey
    reason: str
    grace: int


class Withdraw(msgspec.Struct, frozen=True, tag="withdraw"):
    """A newer attempt of this task instance goes to another worker: end older attempts here. Answered by `Withdrawn`."""

    attempt: AttemptKey
    """The newer attempt."""
    grace: int


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn"):
    """No process of an older attempt of this task instance is left on the worker."""

    attempt: AttemptKey
    """The newer attempt, as `Withdraw` named it."""


class EndLog(msgspec.Struct, frozen=True, tag="end_log"):
    """Append this line to the log of an attempt that ended without a report, or while the task waited without a process."""

    line: LastLine


class StandbyReady(msgspec.Struct, frozen=True, tag="standby_ready"):
    """Another scheduler stands by. From now on the tasks of this worker host may run only as long as its lease lasts."""


class LeaseEnded(msgspec.Struct, frozen=True, tag="lease_ended"):
    """Sent by the standby scheduler on this machine: the active scheduler on another machine cannot be reached. It is about to let
    the attempts of this worker host be tried again there. The worker host stops its tasks.
    """

    reason: str


class LogTrouble(msgspec.Struct, frozen=True, omit_defaults=True, tag="log_trouble"):
    """This worker host cannot write task logs (a sentence says why), or can write them again (empty)."""

    trouble: str = ""


class AttemptGone(msgspec.Struct, frozen=True, omit_defaults=True, tag="gone"):
    """No process of this attempt is alive on the worker host. The message says nothing about success."""

    attempt: AttemptKey
    reason: str = ""
    nonce: str = ""
    """Nonce of the process that has ended, or that the question named. Empty: no process was forked, or the sender is older."""
    host: str = ""
    """Name of the worker host process that sends this. Empty: an older release."""


class CallbackOrder(msgspec.Struct, frozen=True, tag="call"):
    """Make the call of `workload.call` in a new process. A repeated order has no effect if the call runs or has just succeeded."""

    callback_id: int
    """Its number in the outbox."""
    tries: int
    """Number of tries before this one."""
    workload: Workload
    due: int = 0
    """When this try was due. Together with `tries` it names the try: a retry by a person resets `tries`."""


class CallbackDone(msgspec.Struct, frozen=True, omit_defaults=True, tag="called"):
    """The result of a `CallbackOrder`."""

    callback_id: int
    tries: int
    ok: bool
    reason: str = ""
    due: int = 0
    """`due` of the order."""


class Reconcile(msgspec.Struct, frozen=True, omit_defaults=True, tag="reconcile"):
    """Ask which of these attempts are alive. The worker host answers `AttemptGone`, with the nonce, for each that is not."""

    attempts: tuple[AttemptKey, ...]
    nonces: tuple[str, ...] = ()
    """The nonce of the process of each attempt, in the same order; empty: unknown."""
    complete: bool = False
    """These are all attempts that the scheduler believes to run on the worker: `Unlisted` is answered if it runs others."""


class Unlisted(msgspec.Struct, frozen=True, tag="unlisted"):
    """A worker runs these attempts, which a complete `Reconcile` did not list. Those that are not current are cancelled.

    It proves that the worker host has received a message through this connection. A remote worker host sends an empty one when the
    answer to its registration has arrived.
    """

    attempts: tuple[AttemptKey, ...]


WATCHER_RUN = -1
"""The run number in keys of asset watchers; no run has it. The slot is the watcher's number, the fence counts its starts."""


class TriggerOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trigger that is to run. Its key is the key of the attempt that deferred itself; for an asset watcher see `WATCHER_RUN`."""

    key: AttemptKey
    wait: TriggerWait
    bundle: str = ""
    """Name of the bundle that has the DAG file."""
    name: str = ""
    """The task instance of the trigger, for people."""
    log: str = ""
    """Path of the log for its messages, relative to the log folder."""
    file: str = ""
    """The DAG file, relative to the bundle: modules in the same folder can be imported, too."""
    folder: str = ""
    """Absolute path of the bundle's files on the worker: its modules can be imported. The worker host fills it in."""
    watches: bool = False
    """True: the trigger watches assets. It continues after an event, and each event is sent as a `WatcherEvent`."""
    bundle_version: str | None = None
    """Version of the bundle; None: the files as they are now."""


class RunTriggers(msgspec.Struct, frozen=True, tag="run_triggers"):
    """Run these triggers. Known triggers are not started twice."""

    triggers: tuple[TriggerOrder, ...]


class DropTriggers(msgspec.Struct, frozen=True, tag="drop_triggers"):
    """Stop these triggers, because no task waits for them any more. Also the answer to `TriggerFired`."""

    keys: tuple[AttemptKey, ...]


class TriggerFired(msgspec.Struct, frozen=True, tag="trigger_fired"):
    """A trigger has ended. Sent again until `DropTriggers` names it."""

    key: AttemptKey
    end: TriggerEnd


class WatcherEvent(msgspec.Struct, frozen=True, tag="watcher_event"):
    """The trigger of an asset watcher fired, and continues. Sent again until `WatcherEventTaken` names it."""

    key: AttemptKey
    token: str
    """A random text: an event that arrives twice counts once."""
    payload: bytes
    """JSON."""


class WatcherEventTaken(msgspec.Struct, frozen=True, tag="watcher_event_taken"):
    """The event of an asset watcher is committed, so its trigger may continue."""

    key: AttemptKey
    token: str


class Welcome(msgspec.Struct, frozen=True, omit_defaults=True, tag="welcome"):
    """Answer to a hello."""

    epoch: int = 0
    protocol: int = PROTOCOL
    refused: str | None = None


# --- command line, API and parser ⇄ scheduler ------------------------------------------------------------------------


class ClientHello(msgspec.Struct, frozen=True, omit_defaults=True, tag="client_hello"):
    """A command line, API or parser process registers. `follow` True: it gets a `Notice` for each change."""

    name: str
    pid: int
    follow: bool = False
    protocol: int = CLIENT_PROTOCOL
    answers_timetables: bool = False
    """The client accepts `TimetableQuestion`."""
    job_type: str = ""
    """The job type of a service that stays connected (`DagProcessorJob`); empty for other clients."""
    service_id: str = ""
    """Identifies this process of the service."""
    watch: bool = False
    """The client gets `Changed`."""


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye"):
    """This service ends normally, and closes its connection."""


class CommandRequest(msgspec.Struct, frozen=True, omit_defaults=True, tag="command"):
    """A command. If a request is repeated with the same `op`, the stored result is sent."""

    op: str
    body: msgspec.Raw = msgspec.Raw()
    """One of `wire.commands`, encoded: a command that cannot be read is refused under its `op`."""
    actor: str = ""
    """The person or program that requests the command, for the audit log."""


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True, tag="result"):
    """The result of a command, or its error."""

    op: str
    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    """The encoded result; the command defines its type. None: the command failed."""
    error: str | None = None
    """Class name of the error, an error of the model."""
    message: str | None = None
    """Message of the error."""


LOOKUP_CHANGED = "lookup"
"""Kind of the notice to the parser that a variable or connection was changed. Example texts: `variable bucket`, `connection db`."""

READ_FILE = "read_file"
"""Kind of the notice to the parser that a person wants a DAG file to be read again; its text is the name of the file."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, tag="notice"):
    """Something changed. The client reads the details from the database."""

    kind: str
    dag_id: str = ""
    run_id: str = ""
    state: str = ""
    task_id: str = ""
    at: int = 0
    text: str = ""


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """The names of objects that have changed since the last message of this kind, for open pages."""

    names: list[str]
    """See `scheduler.changes`."""


# --- scheduler ⇄ parser: custom timetables ------------------------------------------------------------------


class OutsideAssetEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of an asset that no task has emitted."""

    asset: AssetKey
    extra: dict[str, Any] = {}
    partition_key: str | None = None


class AssetsChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="assets_changed"):
    """Assets or aliases are new, or a person has created events. A child process of the parser calls the listeners of plugins."""

    created: tuple[AssetKey | AliasKey, ...] = ()
    events: tuple[OutsideAssetEvent, ...] = ()


RunFields = tuple[int | None, int | None, int | None, int, str | None, int | None, str | None]
"""The fields of `timetables.RunTimes`."""


class TimetableQuestion(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask_timetable"):
    """Ask a custom timetable or partition mapper, in a child process. Answered by `TimetableAnswer` under the same number."""

    number: int
    dag_id: str
    bundle: str
    """Name of the bundle that has the DAG file. The parser knows its folder."""
    file: str
    """The DAG file, relative to the bundle."""
    schedule: bytes
    """An encoded `CustomSchedule`."""
    last: tuple[int | None, int | None, int | None, int] | None = None
    """(logical date, interval start, interval end, run_after) of the last scheduled run."""
    earliest: int | None = None
    latest: int | None = None
    catchup: bool = False
    manual_at: int | None = None
    """Set: ask for the data interval of a manual run at this time, not for the next run."""
    dated: bool = True
    """False: the manual run has no logical date, so its id is asked for without a data interval."""
    interval: tuple[int, int] | None = None
    """Data interval of the manual run; None: the timetable is asked for it."""
    run_type: str = "manual"
    """Type of the manual run, for its id."""
    run_after: int | None = None
    """When the manual run may start, for its id; None: `manual_at`."""
    partition_key: str | None = None
    """Partition key of the manual run, for its id."""
    between: tuple[int, int] | None = None
    """Set: ask for the runs of a backfill between these two moments, both included."""
    mapper: bytes = b""
    """Set: ask this partition mapper (`model.partitions.Custom.spec`) for the downstream keys of `keys`. `schedule` is empty."""
    keys: tuple[tuple[str, int | None], ...] = ()
    """(partition key, partition date) of events."""
    bundle_version: str | None = None
    """Version of the bundle; None: the files as they are now."""


class TimetableAnswer(msgspec.Struct, frozen=True, omit_defaults=True, tag="on_timetable_answer"):
    """The answer of a custom timetable. `problem`: why there is none, in a sentence."""

    number: int
    run: RunFields | None = None
    interval: tuple[int, int] | None = None
    run_id: str | None = None
    """Id of the manual run; None: the timetable gives no ids."""
    runs: tuple[RunFields, ...] = ()
    """The runs of a backfill, in order."""
    mapped: tuple[MappedKey, ...] = ()
    """The answer to each of `keys`."""
    problem: str | None = None
    stack_trace: str = ""


ToScheduler = (
    HostHello
    | Draining
    | Withdrawn
    | Unlisted
    | LogTrouble
    | ClientHello
    | GatewayHello
    | Relayed
    | WorkerAway
    | Goodbye
    | FromRunner
    | AttemptGone
    | CallbackDone
    | TriggerFired
    | WatcherEvent
    | CommandRequest
    | TimetableAnswer
)
FromScheduler = (
    Welcome
    | Submit
    | Cancel
    | Withdraw
    | EndLog
    | StandbyReady
    | LeaseEnded
    | CallbackOrder
    | Reconcile
    | RunTriggers
    | DropTriggers
    | WatcherEventTaken
    | ToRunner
    | CommandResult
    | Notice
    | Changed
    | TimetableQuestion
    | AssetsChanged
)

encode = msgspec.msgpack.Encoder().encode
decode_to_scheduler = msgspec.msgpack.Decoder(ToScheduler).decode
decode_from_scheduler = msgspec.msgpack.Decoder(FromScheduler).decode
decode_request = msgspec.msgpack.Decoder(RunnerRequest).decode
decode_answer = msgspec.msgpack.Decoder(RunnerAnswer).decode
decode_workload = msgspec.msgpack.Decoder(Workload).decode
