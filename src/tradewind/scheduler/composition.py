"""Creates a scheduler from its parts: in the product (`cli.compose`), in the simulation, and in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tradewind.executors.local import LocalExecutor
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.attempts.task_requests import Cipher, answer
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.duties import Duty
from tradewind.scheduler.duties.callbacks import ResendCallbacks
from tradewind.scheduler.duties.check_waits import CheckWaits
from tradewind.scheduler.duties.compare_with_store import CompareWithStore
from tradewind.scheduler.duties.lost_workers import LostWorkers
from tradewind.scheduler.duties.reconcile import ReconcileHosts
from tradewind.scheduler.duties.release_memory import ReleaseMemory, return_free_memory
from tradewind.scheduler.duties.resubmit import Resubmit
from tradewind.scheduler.duties.retention import Retention
from tradewind.scheduler.jobs import JobRegistry
from tradewind.scheduler.server import SchedulerServer
from tradewind.store.port import FullStore, Store
from tradewind.wire.messages import Notice


class MakeScheduler(Protocol):
    """`Scheduler`, or a subclass of it."""

    def __call__(
        self,
        store: Store,
        clock: Clock,
        config: SchedulerConfig,
        executor: LocalExecutor,
        epoch: int,
        notify: Callable[[Notice], None],
        /,
    ) -> Scheduler: ...


MakeCommands = Callable[[Store, Clock, SchedulerConfig, Callable[[str], bytes]], Commands]
"""`Commands`, or a subclass of it."""


def compose_server(
    store: FullStore,
    clock: Clock,
    config: SchedulerConfig,
    executor: LocalExecutor,
    epoch: int,
    cipher: Cipher,
    socket_path: str,
    duties: Callable[[Scheduler], list[Duty]],
    *,
    loop: Loop | None = None,
    jobs: JobRegistry | None = None,
    remote_workers: RemoteWorkers | None = None,
    make_scheduler: MakeScheduler = Scheduler,
    make_commands: MakeCommands = Commands,
) -> SchedulerServer:
    """Create a server with its scheduler and its commands.

    Args:
        epoch: from `Store.begin_epoch`.
        cipher: encrypts and decrypts variables and connections.
        socket_path: path of the socket on which the server listens.
        duties: creates the background duties.
        loop: default: a new event loop.
        jobs: records the services that connect; None: they are not recorded.
        remote_workers: knows until when processes of remote workers may run; None: there are no remote workers.
    """
    scheduler = make_scheduler(store, clock, config, executor, epoch, lambda notice: None)
    commands = make_commands(store, clock, config, lambda text: cipher.encrypt(text).encode())
    return SchedulerServer(
        store,
        clock,
        scheduler,
        executor,
        commands,
        lambda question, attempt: answer(
            store, cipher, question, attempt, clock.wall(), only_variables=not config.tasks_change_connections
        ),
        duties(scheduler),
        socket_path,
        loop,
        jobs,
        remote_workers,
    )


def scheduling_duties(
    scheduler: Scheduler, config: SchedulerConfig, free_memory: Callable[[], None] = return_free_memory
) -> list[Duty]:
    """Return the duties that need only the store and the worker hosts, no files."""
    return [
        Resubmit(scheduler, config.resubmit_interval),
        ReconcileHosts(scheduler, config.sweep_interval),
        CompareWithStore(scheduler, config.sweep_interval),
        LostWorkers(scheduler, config.sweep_interval),
        ResendCallbacks(scheduler, config.sweep_interval),
        ReleaseMemory(scheduler, config.sweep_interval, free_memory),
        Retention(scheduler, config.retention, config.retention_keep_runs, config.retention_interval),
        CheckWaits(scheduler, config.wait_recheck_interval),
    ]
