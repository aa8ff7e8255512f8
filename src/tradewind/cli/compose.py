"""The composition root: settings become the small configs of the parts, and the parts are put together.

Nothing else in the house reads settings. Heavy parts are imported inside the function that starts their process: each process
loads only what it is.
"""

from __future__ import annotations

import faulthandler
import hashlib
import os
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.model.moments import DAY, SECOND
from tradewind.observe import log as observe_log
from tradewind.processes import HAVE_LINUX
from tradewind.service.clock import SystemClock

if TYPE_CHECKING:
    from tradewind.parser.config import ParserConfig
    from tradewind.parser.outcome import FileOutcome
    from tradewind.scheduler.commands import Commands
    from tradewind.scheduler.config import SchedulerConfig
    from tradewind.settings import Settings
    from tradewind.store.crypto import Vault
    from tradewind.store.sqlite.store import SqliteStore
    from tradewind.wire.messages import AskTimetable, Lookup, RunnerAnswer, TimetableTold

LOCK_PATIENCE_SECONDS = 10.0

DAGS_BUNDLE, EXAMPLES_BUNDLE = "dags-folder", "example_dags"
"""Names of the folders with DAG files, as Airflow names them."""


def examples_folder() -> str | None:
    """Where the shipped examples lie: inside the installed package, else in the checkout it runs from."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_examples", package.parents[1] / "examples"):
        if folder.is_dir():
            return str(folder)
    return None


def scheduler_config(settings: Settings) -> SchedulerConfig:
    from tradewind.scheduler.config import SchedulerConfig

    core, scheduler = settings.core, settings.scheduler
    examples = examples_folder()
    return SchedulerConfig(
        dags_folder=settings.paths.dags,
        parallelism=core.parallelism,
        executor=core.executor,
        requeue_limit=scheduler.requeue_limit,
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
        bundles={EXAMPLES_BUNDLE: examples} if examples is not None else {},
    )


SCHEDULER_PATIENCE_SECONDS = 1.0
"""How long the scheduler's loop waits for another process's lock on the database: it tries again by itself, and whoever asks how
it is gets an answer meanwhile."""


def open_store(settings: Settings, patience: float | None = None) -> SqliteStore:
    """The store for writing. The caller holds the writer's lock.

    Args:
        patience: seconds a statement waits for a lock, if less than `database.busy_timeout`.
    """
    from tradewind.store.sqlite.store import SqliteStore

    database = settings.database
    return SqliteStore.open(
        settings.paths.database,
        busy_timeout_ms=round(min(database.busy_timeout, patience or database.busy_timeout) * 1000),
        synchronous=database.synchronous,
        max_page_count=database.max_page_count,
    )


def open_reader(settings: Settings) -> SqliteStore:
    """The store for reading only.

    Raises:
        NotFound: there is no database yet.
    """
    from tradewind.model.errors import NotFound
    from tradewind.store.sqlite.store import SqliteStore

    paths = settings.paths
    if not os.path.exists(paths.database):
        raise NotFound(f"there is no database yet ({paths.database}). Start: tradewind standalone (or: tradewind db migrate)")
    store = SqliteStore.open_reader(paths.database, busy_timeout_ms=round(settings.database.busy_timeout * 1000))
    examples = examples_folder()
    store.dags_folder, store.bundle_folders = paths.dags, {EXAMPLES_BUNDLE: examples} if examples is not None else {}
    return store


def open_prepared(settings: Settings) -> tuple[SqliteStore, Vault]:
    """The store for writing, brought up to date, and what encrypts its secrets. The caller holds the writer's lock."""
    from tradewind.store.crypto import open_vault

    paths = settings.paths
    fresh = not os.path.exists(paths.database)
    store = open_store(settings, SCHEDULER_PATIENCE_SECONDS)
    if fresh:
        set_default_pool(store, settings)
    create = fresh or not (os.path.exists(paths.fernet_key) or store.variables() or store.connections())
    return store, open_vault(settings.secrets.fernet_key, paths.fernet_key, create=create)


def open_commands(settings: Settings) -> tuple[SqliteStore, Commands]:
    """The scheduler's commands without a scheduler. The caller holds the writer's lock and closes the store."""
    from tradewind.scheduler.commands import Commands

    def ask(question: AskTimetable) -> TimetableTold:
        from tradewind.cli.lookups import from_database
        from tradewind.parser.once import ask_once

        config = parser_config(settings, settings.paths.dags, DAGS_BUNDLE)
        return ask_once(config, question, lambda asked: from_database(settings, asked))

    store, vault = open_prepared(settings)
    return store, Commands(store, SystemClock(), scheduler_config(settings), lambda text: vault.encrypt(text).encode(), ask)


def run_scheduler(settings: Settings, executor_name: str | None = None, turns: int | None = None) -> None:
    """The scheduler's process, until TERM or for so many turns.

    QUIT makes it write the frames of all its threads into its log and go on.
    """
    from tradewind.cli.lock import WriterLock
    from tradewind.executors.local import LocalExecutor
    from tradewind.executors.sequential import SequentialExecutor
    from tradewind.scheduler.commands import Commands
    from tradewind.scheduler.core import Scheduler
    from tradewind.scheduler.duties import Duty
    from tradewind.scheduler.duties.callbacks import LookAfterCallbacks
    from tradewind.scheduler.duties.give_back import GiveBackMemory
    from tradewind.scheduler.duties.look_again import LookAgain
    from tradewind.scheduler.duties.look_at_waits import LookAtWaits
    from tradewind.scheduler.duties.reconcile import ReconcileHosts
    from tradewind.scheduler.duties.resubmit import Resubmit
    from tradewind.scheduler.duties.retention import Retention
    from tradewind.scheduler.duties.spills import Spills
    from tradewind.scheduler.questions import answer
    from tradewind.scheduler.server import SchedulerServer
    from tradewind.service.boot import boot_id

    faulthandler.register(signal.SIGQUIT)
    clock, config, paths = SystemClock(), scheduler_config(settings), settings.paths
    lock = WriterLock(paths.lock)
    lock.take(LOCK_PATIENCE_SECONDS)
    store, vault = open_prepared(settings)
    if not settings.core.load_examples:
        store.forget_files(EXAMPLES_BUNDLE, list(store.known_files(EXAMPLES_BUNDLE)), clock.wall())
    note_writer(settings, store)
    epoch = store.begin_epoch(socket.gethostname(), os.getpid(), boot_id(), clock.wall())
    name = executor_name or config.executor
    executor = SequentialExecutor() if name == "SequentialExecutor" else LocalExecutor(config.parallelism)
    if executor.parallelism != config.parallelism:
        import msgspec

        config = msgspec.structs.replace(config, parallelism=executor.parallelism)
    scheduler = Scheduler(store, clock, config, executor, epoch, lambda notice: None)
    scheduler.turns_left = turns
    duties: list[Duty] = [
        Resubmit(scheduler, config.resubmit_interval),
        ReconcileHosts(scheduler, config.sweep_interval),
        LookAgain(scheduler, config.sweep_interval),
        LookAtWaits(scheduler, config.wait_recheck_interval),
        LookAfterCallbacks(scheduler, config.sweep_interval),
        GiveBackMemory(scheduler, config.sweep_interval),
        Retention(scheduler, config.retention, config.retention_keep_runs, config.retention_interval),
        Spills(scheduler, config.retention_interval, config.xcom_folder),
    ]
    commands = Commands(store, clock, config, lambda text: vault.encrypt(text).encode())
    server = SchedulerServer(
        store,
        clock,
        scheduler,
        executor,
        commands,
        lambda question, attempt: answer(store, vault, question, attempt, clock.wall()),
        duties,
        paths.scheduler_socket,
    )
    if HAVE_LINUX:
        from tradewind.processes import linux

        linux.set_name("tw-scheduler")
    server.run()


def set_default_pool(store: SqliteStore, settings: Settings) -> None:
    """A new database: the default pool gets its configured size."""
    from tradewind.store.nouns import PoolRow

    pool = PoolRow("default_pool", settings.core.default_pool_slots, "Default pool", False)
    store.set_pool(pool, "setup", SystemClock().wall())


def writer_note(settings: Settings) -> str:
    """The file in which the living writer says what is in force on its connection."""
    return os.path.join(settings.paths.run, "writer.json")


def note_writer(settings: Settings, store: SqliteStore) -> None:
    """Pragmas belong to a connection: only whoever holds the writing one can tell them."""
    import json

    draft = f"{writer_note(settings)}.{os.getpid()}"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump({"pid": os.getpid(), "pragmas": store.engine.pragmas()}, file)
    os.replace(draft, writer_note(settings))


def run_host(settings: Settings) -> None:
    """The worker host's process, until TERM."""
    from tradewind.runner.config import HostConfig, TaskLimits
    from tradewind.runner.host import WorkerHost

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
    config = HostConfig(
        home_mark=home_mark(paths.home),
        scheduler_socket=paths.scheduler_socket,
        spool_folder=paths.spool,
        log_folder=paths.logs,
        slots=1 if core.executor == "SequentialExecutor" else core.parallelism,
        task_start=core.task_start if HAVE_LINUX else "fresh",
        malloc=runner.malloc,
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
    )
    WorkerHost(config, SystemClock()).run()


def run_api(settings: Settings, ready: Callable[[str], None] | None = None) -> None:
    """The web server's process, until TERM.

    Args:
        ready: called with the address once requests are taken.
    """
    from tradewind.api.config import ApiConfig
    from tradewind.api.serve import main

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
        token_seconds=round(api.token_hours * 3600),
        page_limit_max=api.page_limit_max,
    )
    if HAVE_LINUX:
        from tradewind.processes import linux

        linux.set_name("tw-api")
    main(config, ready)


def parser_config(settings: Settings, folder: str, bundle: str) -> ParserConfig:
    from tradewind.model.definition import DefinitionDefaults
    from tradewind.parser.config import ParserConfig

    core, parser = settings.core, settings.parser
    return ParserConfig(
        folder=folder,
        bundle=bundle,
        plugins_folder=settings.paths.plugins if bundle == DAGS_BUNDLE else "",
        scheduler_socket=settings.paths.scheduler_socket,
        processes=parser.processes,
        timeout=parser.timeout_us,
        memory_limit=parser.memory_limit_mb * 1024 * 1024,
        rescan_interval=parser.rescan_interval_us,
        dynamic_interval=parser.dynamic_interval_us,
        max_tasks_per_dag=parser.max_tasks_per_dag,
        defaults=DefinitionDefaults(
            retries=core.default_task_retries,
            retry_delay=core.default_task_retry_delay_us,
            max_active_tasks=core.max_active_tasks_per_dag,
            max_active_runs=core.max_active_runs_per_dag,
            catchup=core.catchup_by_default,
            schedule_meaning="airflow2" if core.schedule_meaning == "airflow2" else "airflow3",
            timezone=core.default_timezone,
            meanings=core.meanings,
        ),
        user_settings=user_settings(settings),
    )


def run_parser(settings: Settings) -> None:
    """The parser's process, until TERM."""
    from tradewind.parser.main import main

    prepare_for_user_code(settings)
    main(parser_config(settings, settings.paths.dags, DAGS_BUNDLE))


def read_folder(settings: Settings, folder: str, bundle: str) -> list[FileOutcome]:
    """What all DAG files of a folder come to, read in children without credentials."""
    from tradewind.parser.once import parse_folder

    def look_up(question: Lookup) -> RunnerAnswer:
        from tradewind.cli.lookups import from_database  # lazy door: few files ask

        return from_database(settings, question)

    prepare_for_user_code(settings)
    return parse_folder(parser_config(settings, folder, bundle), answer=look_up)


def register_examples(settings: Settings) -> None:
    """Make the shipped examples known to the live scheduler, once: they change only with a release.

    Raises:
        Unreachable: there is no live scheduler.
    """
    from tradewind.client.control import ControlClient

    folder = examples_folder()
    if folder is None:
        return
    outcomes = read_folder(settings, folder, EXAMPLES_BUNDLE)
    with ControlClient(settings.paths.scheduler_socket, "examples") as control:
        known = control.call("known_files", bundle=EXAMPLES_BUNDLE)
        gone = sorted(set(known) - {outcome.file for outcome in outcomes})
        if gone:
            control.call("forget_files", bundle=EXAMPLES_BUNDLE, files=gone)
        control.call("register_files", files=[outcome.as_arguments() for outcome in outcomes])


def prepare_for_user_code(settings: Settings) -> None:
    """Users' code is near: nothing secret stays in the environment, and it says where plugins are."""
    from tradewind.authoring.load import PLUGINS_FOLDER
    from tradewind.settings import SECRET_ENVIRONMENT

    os.environ[PLUGINS_FOLDER] = settings.paths.plugins
    os.environ["TRADEWIND__OPERATORS__DEFAULT_DEFERRABLE"] = str(settings.operators.default_deferrable).lower()

    for name in SECRET_ENVIRONMENT:
        os.environ.pop(name, None)


def user_settings(settings: Settings) -> dict[str, str]:
    """What user code may know: every setting that is no secret, under our name and under Airflow's."""
    from tradewind.settings import OPTIONS

    found = {}
    for option in OPTIONS:
        if not option.secret:
            for name in (*option.airflow, option.name):
                found[name] = settings.explanations[option.name].value
    return found


def home_mark(home: str) -> str:
    """Names a home folder in environments: short, and no path."""
    return hashlib.sha256(home.encode()).hexdigest()[:16]


def start_log(settings: Settings, component: str) -> None:
    observe_log.configure(component, settings.logging.level)
