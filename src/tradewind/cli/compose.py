"""The composition root: makes the configs of all parts from the settings, and connects the parts.

Only the command line reads settings. Heavy modules are imported inside the function that starts their process, so that each process
loads only its own parts.
"""

from __future__ import annotations

import faulthandler
import getpass
import hashlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tradewind.cli.lost_database import record_database_path, recovery_hint, refuse_lost
from tradewind.cli.worker_hosts import may_live, process_kind, spool_folder, with_worker_hosts
from tradewind.model.bundles import OTHER_FOLDER, Scope
from tradewind.model.definition import REPEAT
from tradewind.model.errors import StoreLost
from tradewind.model.moments import DAY, SECOND
from tradewind.observe import log as observe_log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.platform.private_file import private_folder
from tradewind.platform.progress import Stamp, stamp_interval, unhealthy_after
from tradewind.wire.worker_names import FIRST_WORKER

if TYPE_CHECKING:
    from tradewind.parser.config import ParserConfig
    from tradewind.parser.parse_result import FileOutcome
    from tradewind.scheduler.commands.handler import Commands
    from tradewind.scheduler.config import SchedulerConfig
    from tradewind.scheduler.core import Scheduler
    from tradewind.scheduler.duties import Duty
    from tradewind.settings import Settings
    from tradewind.store.crypto import Vault
    from tradewind.store.port import FullStore, Reader, Store
    from tradewind.wire.messages import Lookup, RunnerAnswer, TimetableAnswer, TimetableQuestion

LOCK_PATIENCE_SECONDS = 10.0

DAGS_BUNDLE, EXAMPLES_BUNDLE = "dags-folder", "example_dags"
"""Bundle names of the two folders with DAG files, as in Airflow."""


SUBDIR = "TRADEWIND_SUBDIR"
"""Environment variable with the absolute path of `--subdir`, for a service and its child processes."""
DAG_ID = "TRADEWIND_DAG_ID"
"""Environment variable with the only DAG that a scheduler schedules."""
LOG_FILE = "TRADEWIND_LOG_FILE"
"""Environment variable with the file of `--log-file`, for the log of a service and its child processes."""


def watched_bundle(settings: Settings) -> tuple[str, str, str]:
    """The DAG files that `--subdir` or the setting names: (bundle, its folder, the only file or subfolder to read; "": all).

    A part of the configured DAG folder belongs to the bundle of that folder. Any other folder is its own bundle, so that DAGs of
    the two are never mixed up.
    """
    folder = settings.paths.dags
    given = os.environ.get(SUBDIR)
    if given is None or os.path.realpath(given) == os.path.realpath(folder):
        return DAGS_BUNDLE, folder, ""
    path = os.path.realpath(given)
    inside = os.path.relpath(path, os.path.realpath(folder))
    if not inside.startswith(".."):
        return DAGS_BUNDLE, folder, inside
    if os.path.isfile(path):
        return f"{OTHER_FOLDER}{os.path.dirname(path)}", os.path.dirname(path), os.path.basename(path)
    return f"{OTHER_FOLDER}{path}", path, ""


def _scope(settings: Settings) -> Scope:
    """The DAGs that the scheduler schedules: those of its folder, and the shipped examples if they are shown."""
    bundle, _, only = watched_bundle(settings)
    bundles = (bundle,) if only or not settings.core.load_examples else (bundle, EXAMPLES_BUNDLE)
    return Scope(bundles, only, os.environ.get(DAG_ID))


def examples_folder() -> str | None:
    """The folder of the shipped examples: inside the installed package, otherwise in the source checkout; None: there is none."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_examples", package.parents[1] / "examples"):
        if folder.is_dir():
            return str(folder)
    return None


def bundle_folders() -> dict[str, str]:
    """The folders of bundles other than the DAG folder, by name."""
    examples = examples_folder()
    return {EXAMPLES_BUNDLE: examples} if examples is not None else {}


def scheduler_config(settings: Settings) -> SchedulerConfig:
    from tradewind.scheduler.config import SchedulerConfig

    core, scheduler = settings.core, settings.scheduler
    return SchedulerConfig(
        dags_folder=settings.paths.dags,
        parallelism=core.parallelism,
        executor=core.executor,
        requeue_limit=scheduler.requeue_limit,
        repeat_lost=scheduler.lost_attempts == REPEAT,
        resubmit_interval=scheduler.resubmit_interval_us,
        sweep_interval=scheduler.sweep_interval_us,
        wait_recheck_interval=scheduler.wait_recheck_interval_us,
        batch_max_rows=scheduler.batch_max_rows,
        kill_grace=core.kill_grace_us,
        paused_at_creation=core.dags_are_paused_at_creation,
        retention=round(scheduler.retention_days * DAY),
        retention_keep_runs=scheduler.retention_keep_runs,
        retention_interval=scheduler.retention_interval_us,
        default_execution_timeout=core.default_task_execution_timeout_us,
        xcom_folder=settings.paths.xcom,
        callback_parallelism=scheduler.callback_parallelism,
        callback_timeout=scheduler.callback_timeout_us,
        callback_retries=scheduler.callback_retries,
        callback_retry_delay=scheduler.callback_retry_delay_us,
        bundles=bundle_folders(),
        scope=_scope(settings),
    )


SCHEDULER_PATIENCE_SECONDS = 1.0
"""How long a statement of the scheduler waits for a lock on the database. The scheduler retries by itself, and answers status
requests in between."""


def open_store(settings: Settings, patience: float | None = None) -> FullStore:
    """Open the store for writing. The caller holds the writer lock.

    Args:
        patience: seconds that a statement waits for a lock, if less than `database.busy_timeout`.
    """
    from tradewind.store import factory

    database = settings.database
    return factory.open_store(
        settings.paths.database,
        busy_timeout_ms=round(min(database.busy_timeout, patience or database.busy_timeout) * 1000),
        synchronous=database.synchronous,
        max_page_count=database.max_page_count,
    )


def open_reader(settings: Settings) -> Reader:
    """Open the store for reading only.

    Raises:
        NotFound: there is no database yet.
        StoreLost: the database was deleted or moved.
    """
    from tradewind.model.errors import NotFound
    from tradewind.store import factory

    use_secret_names(settings)
    paths = settings.paths
    if not os.path.exists(paths.database):
        refuse_lost(settings)
        raise NotFound(f"there is no database yet ({paths.database}). Start: tradewind standalone (or: tradewind db migrate)")
    paths.close_to_others()
    store = factory.open_reader(paths.database, busy_timeout_ms=round(settings.database.busy_timeout * 1000))
    store.dags_folder, store.bundle_folders = paths.dags, bundle_folders()
    return store


def open_prepared(settings: Settings, *, create_new: bool = False) -> tuple[FullStore, Vault]:
    """Open the store for writing, migrate it, and open the vault that encrypts its secrets. The caller holds the writer lock.

    Args:
        create_new: create a new database even if there are signs of an older one.

    Raises:
        StoreLost: the database is missing or empty, but there are signs of an older one.
    """
    from tradewind.store.crypto import open_vault

    paths = settings.paths
    if not create_new:
        refuse_lost(settings)
    fresh = not os.path.exists(paths.database)
    store = open_store(settings, SCHEDULER_PATIENCE_SECONDS)
    record_database_path(settings)
    if fresh:
        set_default_pool(store, settings)
    create = fresh or not (os.path.exists(paths.fernet_key) or store.variables() or store.connections())
    return store, open_vault(settings.secrets.fernet_key, paths.fernet_key, create=create)


def open_commands(settings: Settings) -> tuple[FullStore, Commands]:
    """Open the store and the command handlers without a scheduler. The caller holds the writer lock and closes the store."""
    from tradewind.scheduler.commands.handler import Commands

    def ask(question: TimetableQuestion) -> TimetableAnswer:
        from tradewind.cli.lookups import from_database
        from tradewind.parser.parse_once import ask_once

        config = parser_config(settings, settings.paths.dags, DAGS_BUNDLE)
        return ask_once(config, question, lambda asked: from_database(settings, asked))

    store, vault = open_prepared(settings)
    return store, Commands(store, SystemClock(), scheduler_config(settings), lambda text: vault.encrypt(text).encode(), ask)


def _do_nothing() -> None:
    """The callback of a process without a supervisor."""


@contextmanager
def reporting_progress(settings: Settings, kind: str, loop: Loop, alive: Callable[[], None]) -> Iterator[None]:
    """While the context is open, the loop of this process reports progress to a file and to its supervisor (`alive`).

    On SIGQUIT the process writes the stacks of all its threads to its log and continues.
    """
    faulthandler.register(signal.SIGQUIT, _log_stream or sys.stderr)
    stamp = Stamp(settings.paths.progress(kind), SystemClock(), alive)
    stamp.keep(loop, stamp_interval(settings.core.stall_limit_us))
    try:
        yield
    finally:
        stamp.end()


def run_scheduler(
    settings: Settings,
    executor_name: str | None = None,
    alive: Callable[[], None] = _do_nothing,
    dispatched: Callable[[], None] = _do_nothing,
) -> None:
    """Run the scheduler until SIGTERM.

    After SIGUSR1 it calls `dispatched` as soon as the worker hosts have started all tasks that were due.
    On SIGQUIT it writes the stacks of all its threads to its log and continues.
    """
    from tradewind.cli.locks import writer_lock
    from tradewind.executors.local import LocalExecutor
    from tradewind.executors.sequential import SequentialExecutor
    from tradewind.model.rows import NewJob
    from tradewind.platform.boot import boot_id
    from tradewind.scheduler.composition import compose_server
    from tradewind.scheduler.duties.watch_database import WatchDatabase
    from tradewind.scheduler.jobs import SCHEDULER, Heartbeat, JobRegistry

    clock, config, paths = SystemClock(), scheduler_config(settings), settings.paths
    lock = writer_lock(settings)
    lock.acquire(LOCK_PATIENCE_SECONDS)
    store, vault = open_prepared(settings)
    if not settings.core.load_examples:
        store.forget_files(EXAMPLES_BUNDLE, list(store.known_files(EXAMPLES_BUNDLE)), clock.wall())
    note_writer(settings, store)
    epoch = store.begin_epoch(socket.gethostname(), os.getpid(), boot_id(), clock.wall())
    name = executor_name or config.executor
    kind = SequentialExecutor if name == "SequentialExecutor" else LocalExecutor
    executor = kind(config.parallelism, lambda worker: may_live(settings, worker), config.kill_grace)
    if executor.parallelism != config.parallelism:
        import msgspec

        config = msgspec.structs.replace(config, parallelism=executor.parallelism)

    def stop() -> None:
        server.loop.stop()

    database_watch = WatchDatabase(store.replaced, stop)
    own = NewJob(os.urandom(8).hex(), SCHEDULER, socket.gethostname(), getpass.getuser(), os.getpid(), name)
    jobs = JobRegistry(store, clock, own)
    server = compose_server(
        store,
        clock,
        config,
        executor,
        epoch,
        vault,
        paths.scheduler_socket,
        lambda scheduler: [*scheduler_duties(settings, config, scheduler), database_watch, Heartbeat(jobs)],
        jobs=jobs,
    )
    if HAVE_LINUX:
        from tradewind.platform import linux

        linux.set_name("tw-scheduler")
    server.loop.on_signal(signal.SIGUSR1, lambda: server.when_dispatched(dispatched))
    with reporting_progress(settings, "scheduler", server.loop, alive):
        server.run()
    if database_watch.problem is not None:
        raise StoreLost(f"{database_watch.problem} {recovery_hint(settings)}")


def scheduler_duties(settings: Settings, config: SchedulerConfig, scheduler: Scheduler) -> list[Duty]:
    """The background duties of the scheduler."""
    from tradewind.scheduler.composition import scheduling_duties
    from tradewind.scheduler.duties.log_retention import LogSweep
    from tradewind.scheduler.duties.run_logs import RunLogs
    from tradewind.scheduler.duties.spills import Spills
    from tradewind.storage.local_logs import LocalLogs
    from tradewind.storage.local_spills import LocalSpills

    logs = LocalLogs(settings.paths.logs)
    return [
        *scheduling_duties(scheduler, config),
        Spills(scheduler, config.retention_interval, LocalSpills(config.xcom_folder)),
        RunLogs(scheduler, config.sweep_interval, logs),
        LogSweep(
            scheduler,
            config.retention_interval,
            logs,
            round(settings.logging.retention_days * DAY),
            settings.logging.max_total_mb * 1024 * 1024,
        ),
    ]


def set_default_pool(store: Store, settings: Settings) -> None:
    """Give the default pool of a new database its configured size."""
    from tradewind.model.rows import PoolRow

    pool = PoolRow("default_pool", settings.core.default_pool_slots, "Default pool", False)
    store.set_pool(pool, "setup", SystemClock().wall())


def writer_note(settings: Settings) -> str:
    """Path of the file in which the scheduler writes the pragmas of its database connection."""
    return os.path.join(settings.paths.run, "writer.json")


def note_writer(settings: Settings, store: Store) -> None:
    """Write the pragmas of the writing connection to a file: another process cannot query them."""
    import json

    draft = f"{writer_note(settings)}.{os.getpid()}"
    with open(draft, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        json.dump({"pid": os.getpid(), "pragmas": store.settings()}, file)
    os.replace(draft, writer_note(settings))


def run_host(
    settings: Settings, alive: Callable[[], None] = _do_nothing, worker: str = FIRST_WORKER, queues: tuple[str, ...] = ()
) -> None:
    """Run a worker host until SIGTERM.

    Args:
        worker: name of the worker host.
        queues: queues that it serves; empty: all.
    """
    from tradewind.worker.config import HostConfig, TaskLimits
    from tradewind.worker.host import WorkerHost

    prepare_for_user_code(settings)
    core, runner, paths = settings.core, settings.runner, settings.paths
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = TaskLimits(
        xcom_folder=paths.xcom,
        xcom_inline_max=core.xcom_inline_max_bytes,
        xcom_max=core.xcom_max_bytes,
        memory_max=runner.memory_limit_mb * 1024 * 1024,
        descriptors=soft,
        descriptors_hard=hard,
        max_map_length=core.max_map_length,
    )
    spool = spool_folder(settings, worker)
    private_folder(spool)
    config = HostConfig(
        home_mark=home_mark(paths.home, worker),
        dags_folder=paths.dags,
        bundles=bundle_folders(),
        worker=worker,
        queues=queues,
        scheduler_socket=paths.scheduler_socket,
        spool_folder=spool,
        log_folder=paths.logs,
        slots=1 if core.executor == "SequentialExecutor" else core.parallelism,
        task_start=core.task_start if HAVE_LINUX else "fresh",
        malloc=runner.malloc,
        drain_timeout=runner.drain_timeout_us,
        template_max=runner.template_max,
        template_idle=runner.template_idle_us,
        dynamic_template_max_age=runner.dynamic_template_max_age_us,
        start_retry=runner.start_retry_interval_us,
        kill_grace=core.kill_grace_us,
        stop_grace=min(core.kill_grace_us, 10 * SECOND),
        overtime=core.task_overtime_us,
        verdict_resend=runner.verdict_resend_interval_us,
        log_max=runner.log_max_bytes,
        log_line_max=runner.log_line_max_bytes,
        limits=limits,
        stall_limit=settings.core.stall_limit_us,
    )
    host = WorkerHost(config, SystemClock())
    with reporting_progress(settings, process_kind(worker), host.loop, alive):
        host.run()


def run_api(settings: Settings, ready: Callable[[str], None] | None = None, alive: Callable[[], None] = _do_nothing) -> None:
    """Run the web server until SIGTERM.

    Args:
        ready: called with the address when the server accepts requests.
    """
    from tradewind.api.config import ApiConfig
    from tradewind.api.serve import main
    from tradewind.client.service_connection import ServiceConnection

    api, paths = settings.api, settings.paths
    config = ApiConfig(
        database=paths.database,
        scheduler_socket=paths.scheduler_socket,
        logs=paths.logs,
        passwords=paths.passwords,
        jwt_key=paths.jwt_key,
        dags_folder=paths.dags,
        fernet_key_file=paths.fernet_key,
        fernet_key=settings.secrets.fernet_key,
        host=api.host,
        port=api.port,
        trusted_proxies=tuple(one.strip() for one in (api.trusted_proxies or "").split(",") if one.strip()),
        token_seconds=round(api.token_hours * 3600),
        page_limit_max=api.page_limit_max,
        progress={kind: paths.progress(kind) for kind in with_worker_hosts(("host", "parser"), settings.runner.worker_hosts)},
        unhealthy_after=unhealthy_after(settings.core.stall_limit_us),
    )
    if HAVE_LINUX:
        from tradewind.platform import linux

        linux.set_name("tw-api")
    faulthandler.register(signal.SIGQUIT, _log_stream or sys.stderr)
    stamp = Stamp(paths.progress("api"), SystemClock(), alive)
    connection = ServiceConnection(paths.scheduler_socket, "api", "ApiServerJob")
    connection.start()
    try:
        main(config, ready, heartbeat=(stamp.stamp, stamp_interval(settings.core.stall_limit_us) / SECOND))
    finally:
        connection.stop()
        stamp.end()


def parser_config(settings: Settings, folder: str, bundle: str, only: str = "") -> ParserConfig:
    from tradewind.parser.config import ParserConfig

    core, parser = settings.core, settings.parser
    return ParserConfig(
        folder=folder,
        bundle=bundle,
        only=only,
        plugins_folder=settings.paths.plugins if bundle != EXAMPLES_BUNDLE else "",
        scheduler_socket=settings.paths.scheduler_socket,
        processes=parser.processes,
        timeout=parser.timeout_us,
        memory_limit=parser.memory_limit_mb * 1024 * 1024,
        rescan_interval=parser.rescan_interval_us,
        dynamic_interval=parser.dynamic_interval_us,
        max_tasks_per_dag=parser.max_tasks_per_dag,
        defaults=core.definition_defaults(),
        user_settings=user_settings(settings),
    )


def run_parser(
    settings: Settings, alive: Callable[[], None] = _do_nothing, passes: int = 0, passes_done: Callable[[], None] = _do_nothing
) -> None:
    """Run the parser until SIGTERM. It calls `passes_done` when it has read every file `passes` times (0: never)."""
    from tradewind.parser.main import main

    prepare_for_user_code(settings)
    loop = Loop(SystemClock())
    with reporting_progress(settings, "parser", loop, alive):
        bundle, folder, only = watched_bundle(settings)
        main(parser_config(settings, folder, bundle, only), loop, passes, passes_done)


def parse_bundle(settings: Settings, folder: str, bundle: str) -> list[FileOutcome]:
    """Parse all DAG files of a folder, in child processes without credentials."""
    from tradewind.parser.parse_once import parse_folder

    def look_up(question: Lookup) -> RunnerAnswer:
        from tradewind.cli.lookups import from_database  # lazy import: few DAG files look anything up

        return from_database(settings, question)

    prepare_for_user_code(settings)
    return parse_folder(parser_config(settings, folder, bundle), answer=look_up)


def register_examples(settings: Settings) -> None:
    """Parse the shipped examples and register them with the running scheduler, once: they change only with a release.

    Raises:
        Unreachable: no scheduler is running.
    """
    from tradewind.client.control import ControlClient
    from tradewind.parser.registration import register_command
    from tradewind.wire import commands as c

    folder = examples_folder()
    if folder is None:
        return
    outcomes = parse_bundle(settings, folder, EXAMPLES_BUNDLE)
    with ControlClient(settings.paths.scheduler_socket, "examples") as control:
        known = control.call(c.KnownFiles(EXAMPLES_BUNDLE))
        gone = sorted(set(known) - {outcome.file for outcome in outcomes})
        if gone:
            control.call(c.ForgetFiles(EXAMPLES_BUNDLE, gone))
        control.call(register_command(outcomes))


def prepare_for_user_code(settings: Settings) -> None:
    """Prepare the environment of a process that starts user code: remove secrets, and set the plugins folder and other settings."""
    from tradewind.model.secret_names import HIDE_VARIABLE, NAMES_VARIABLE
    from tradewind.sdk.load import PLUGINS_FOLDER
    from tradewind.settings import SECRET_ENVIRONMENT

    os.environ[PLUGINS_FOLDER] = settings.paths.plugins
    os.environ["TRADEWIND__OPERATORS__DEFAULT_DEFERRABLE"] = str(settings.operators.default_deferrable).lower()

    os.environ[HIDE_VARIABLE] = str(settings.core.hide_sensitive_var_conn_fields).lower()
    os.environ[NAMES_VARIABLE] = settings.core.sensitive_var_conn_names or ""
    for name in SECRET_ENVIRONMENT:
        os.environ.pop(name, None)


def use_secret_names(settings: Settings) -> None:
    """Set which names mark a secret value in this process, from the settings."""
    from tradewind.model.secret_names import configure

    configure(settings.core.sensitive_var_conn_names or "", settings.core.hide_sensitive_var_conn_fields)


def user_settings(settings: Settings) -> dict[str, str]:
    """The settings that user code may read: all that are not secret, under Tradewind's and Airflow's names."""
    from tradewind.settings import OPTIONS

    found = {}
    for option in OPTIONS:
        if not option.secret:
            for name in (*option.airflow, option.name):
                found[name] = settings.explanations[option.name].value
    return found


def home_mark(home: str, worker: str = FIRST_WORKER) -> str:
    """A short id of a home folder and a further worker host, which marks the environment of their processes."""
    mark = hashlib.sha256(home.encode()).hexdigest()[:16]
    return mark if worker == FIRST_WORKER else f"{mark}-{worker}"


_log_stream: TextIO | None = None
"""The opened file of `--log-file`; None: the log goes to stderr."""


def start_log(settings: Settings, component: str) -> None:
    from tradewind.model.secret_mask import SecretMask, secrets_of_environment

    use_secret_names(settings)
    mask = SecretMask(secrets_of_environment(os.environ))
    global _log_stream
    path = os.environ.get(LOG_FILE)
    _log_stream = open(path, "a", encoding="utf-8", buffering=1, opener=_private) if path else None  # noqa: SIM115 (open until the process ends)
    observe_log.configure(component, settings.logging.level, _log_stream, mask=mask.text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
