"""Starts the scheduler: at once, or as a standby scheduler that waits for a takeover."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from tradewind.cli.lost_database import recovery_hint
from tradewind.cli.worker_hosts import home_name, may_live
from tradewind.model.errors import ConfigError, StoreBusy, StoreLost
from tradewind.model.executor_names import CELERY, KUBERNETES, entries
from tradewind.model.moments import DAY, SECOND
from tradewind.observe import log as observe_log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import Clock, SystemClock

if TYPE_CHECKING:
    from tradewind.executors.celery_publisher import CeleryPublisher
    from tradewind.executors.local import LocalExecutor
    from tradewind.executors.pod_launcher import PodLauncher
    from tradewind.gateway.scheduler_relay import SchedulerRelay
    from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
    from tradewind.scheduler.config import SchedulerConfig
    from tradewind.scheduler.core import Scheduler
    from tradewind.scheduler.duties import Duty
    from tradewind.settings import Settings
    from tradewind.store.port import Store
    from tradewind.store.port.lease import Lease

from tradewind.cli.compose.bundles import EXAMPLES_BUNDLE
from tradewind.cli.compose.database import open_prepared
from tradewind.cli.compose.gateway import gateway_address, worker_key
from tradewind.cli.compose.kubernetes import following_pods
from tradewind.cli.compose.metrics import add_scheduler_metrics, service_meter
from tradewind.cli.compose.scheduler_settings import scheduler_config
from tradewind.cli.compose.service_process import do_nothing, reporting_progress

WRITER_LOCK_TIMEOUT_SECONDS = 10.0


STANDBY_STEP_SECONDS = 0.25
"""How often a standby scheduler checks whether it can take over."""


def run_scheduler(
    settings: Settings,
    alive: Callable[[], None] = do_nothing,
    dispatched: Callable[[], None] = do_nothing,
) -> None:
    """Run the scheduler until SIGTERM.

    After SIGUSR1 it calls `dispatched` as soon as the worker hosts have started all tasks that were due.
    On SIGQUIT it writes the stacks of all its threads to its log and continues.
    """
    from tradewind.cli.locks import writer_lock
    from tradewind.model.rows import NewJob
    from tradewind.platform.boot import boot_id
    from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
    from tradewind.scheduler.attempts.worker_liveness import LOST_AFTER
    from tradewind.scheduler.composition import compose_server
    from tradewind.scheduler.duties.watch_database import WatchDatabase
    from tradewind.scheduler.jobs import SCHEDULER, Heartbeat, JobRegistry
    from tradewind.scheduler.lease_renewal import LeaseRenewal
    from tradewind.store import factory

    clock, config, paths = SystemClock(), scheduler_config(settings), settings.paths
    lock = writer_lock(settings)
    lock.acquire(WRITER_LOCK_TIMEOUT_SECONDS)
    holder = os.urandom(8).hex()
    store, vault = open_prepared(settings, holder=holder)
    address = gateway_address(settings)
    lease = factory.open_lease(settings.store, store, holder, socket.gethostname(), os.getpid(), address)
    if lease is not None:
        _stand_by(settings, lease, alive)
    if not settings.core.load_examples:
        store.forget_files(EXAMPLES_BUNDLE, list(store.known_files(EXAMPLES_BUNDLE)), clock.wall())
    note_writer(settings, store)
    given = None if lease is None else lease.epoch
    epoch = store.begin_epoch(socket.gethostname(), os.getpid(), boot_id(), clock.wall(), given)
    store.forget_unread_files()  # a parser that reads files tells how many are left when it connects
    remote_workers = RemoteWorkers(clock, settings.worker.outage_lease_us)
    lives = _make_liveness_check(settings, clock, remote_workers, lambda: executor.workers)
    executor, pods = _make_executor(settings, clock, lives, epoch)

    def stop() -> None:
        server.loop.stop()

    database_watch = WatchDatabase(store.replaced, stop)
    own = NewJob(os.urandom(8).hex(), SCHEDULER, socket.gethostname(), getpass.getuser(), os.getpid(), config.executor)
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
        remote_workers=remote_workers,
    )
    if HAVE_LINUX:
        from tradewind.platform import linux

        linux.set_name("tw-scheduler")
    server.loop.on_signal(signal.SIGUSR1, lambda: server.when_dispatched(dispatched))
    renewal = None
    if lease is not None:
        renewal = LeaseRenewal(lease, server.loop, lambda: store.is_current, server.end_epoch, executor.standby_is_ready)
        renewal.start()
        # for the workers of a machine that does not come back
        server.loop.call_later(LOST_AFTER + SECOND, server.scheduler.hosts.lease_ended)
    with (
        service_meter(settings) as meter,
        reporting_progress(settings, "scheduler", server.loop, alive),
        following_pods(pods, executor, server),
    ):
        server.duties += add_scheduler_metrics(settings, server.scheduler, meter)
        server.run()
    if renewal is not None and (renewal.lost is not None or server.scheduler.superseded):
        raise StoreBusy(renewal.lost or "another scheduler has taken over")
    if database_watch.problem is not None:
        raise StoreLost(f"{database_watch.problem} {recovery_hint(settings)}")


def _stand_by(settings: Settings, lease: Lease, alive: Callable[[], None]) -> None:
    """Wait until this scheduler is the active scheduler. Until then its socket forwards to the active scheduler."""
    log, known = observe_log.Log("scheduler"), None
    relay: SchedulerRelay | None = None
    try:
        while True:
            try:
                holder = lease.try_acquire()
            except StoreBusy:  # a transaction of the former scheduler still runs
                holder = known
            else:
                if holder is None:
                    log.info("this scheduler is the active one", epoch=lease.epoch)
                    return
                if holder != known:
                    log.warning("another scheduler is active; this one stands by", hostname=holder.hostname, pid=holder.pid)
                    relay = _forward_to(settings, relay, holder.address)
            known = holder
            alive()
            time.sleep(STANDBY_STEP_SECONDS)
    finally:
        if relay is not None:
            relay.stop()


def _forward_to(settings: Settings, relay: SchedulerRelay | None, address: str) -> SchedulerRelay | None:
    """Forward the scheduler's socket to the gateway at this address. Return the relay, or None if nothing is forwarded, because
    there is no gateway or the library for WebSockets is not installed.
    """
    import importlib.util

    if not address or address == gateway_address(settings) or importlib.util.find_spec("websockets") is None:
        if relay is not None:
            relay.stop()
        return None
    if relay is None:
        import ssl  # lazy import: takes a megabyte, and only workers on other machines need it

        from tradewind.gateway.scheduler_relay import SchedulerRelay  # lazy import: an extra

        tls = partial(ssl.create_default_context, cafile=settings.worker.ca_file or None)
        relay = SchedulerRelay(settings.paths.scheduler_socket, worker_key(settings), tls)
        relay.start()
    relay.forward_to(address)
    return relay


def _make_liveness_check(
    settings: Settings, clock: Clock, remote_workers: RemoteWorkers, connected: Callable[[], Collection[str]]
) -> Callable[[str], bool]:
    """Return a function that says whether processes of a worker that is not connected may still run.

    Args:
        connected: returns the names of the connected workers.
    """
    from tradewind.scheduler.attempts.worker_liveness import WorkerLiveness

    return WorkerLiveness(clock, home_name(settings), remote_workers, connected, partial(may_live, settings)).may_live


def _make_executor(
    settings: Settings, clock: Clock, lives: Callable[[str], bool], epoch: int
) -> tuple[LocalExecutor, PodLauncher | None]:
    """The executor of the scheduler, and what creates the pods of a KubernetesExecutor. The modules of Celery and Kubernetes are
    loaded only if the deployment has their executors.
    """
    from tradewind.executors.celery import CeleryExecutor
    from tradewind.executors.local import LocalExecutor

    names, kill_grace = {name for name, _ in entries(settings.core.executor)}, settings.core.kill_grace_us
    publisher = _make_publisher(settings) if CELERY in names else None
    if KUBERNETES not in names:
        local = LocalExecutor(lives, kill_grace)
        return (local if publisher is None else CeleryExecutor(publisher, clock, lives, kill_grace)), None
    from tradewind.cli.compose.kubernetes import make_launcher
    from tradewind.executors.kubernetes import KubernetesExecutor, KubernetesExecutorBesideCelery

    pods = make_launcher(settings, clock, epoch)
    if publisher is None:
        return KubernetesExecutor(pods, lives, kill_grace), pods
    return KubernetesExecutorBesideCelery(pods, publisher, clock, lives, kill_grace), pods


def _make_publisher(settings: Settings) -> CeleryPublisher:
    """What publishes the attempts of a CeleryExecutor.

    Raises:
        ConfigError: Celery is not installed, or the broker is not set.
    """
    from tradewind.executors.celery_publisher import CeleryPublisher

    require_celery()
    if not settings.celery.broker_url:
        raise ConfigError(
            "core.executor has the CeleryExecutor, and the broker is missing; set TRADEWIND__CELERY__BROKER_URL, "
            "for example redis://localhost:6379/0"
        )
    return CeleryPublisher(settings.celery.broker_url, worker_key(settings))


def require_celery() -> None:
    """Check that Celery is installed.

    Raises:
        ConfigError: Celery is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("celery") is None:
        raise ConfigError("the CeleryExecutor needs the package celery. Install it: pip install 'tradewind[celery]'")


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
