"""Starts a worker host."""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.cli.worker_hosts import check_name, home_name, process_kind, spool_folder
from tradewind.model.database_urls import server_addresses
from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import SystemClock
from tradewind.platform.private_file import private_folder
from tradewind.wire.worker_names import FIRST_WORKER

if TYPE_CHECKING:
    from tradewind.settings import Settings
    from tradewind.worker.config import GatewayConfig

from tradewind.cli.compose.bundles import bundle_folders, versioned_bundles
from tradewind.cli.compose.gateway import require_websockets, worker_key
from tradewind.cli.compose.service_process import do_nothing, reporting_progress
from tradewind.cli.compose.user_code import prepare_for_user_code, user_settings


def _host_slots(settings: Settings, names: tuple[str, ...]) -> int:
    """How many attempts a worker host runs at a time: the sum of the limits of its executors; 0: unlimited."""
    from tradewind.executors.registry import ExecutorRegistry

    core = settings.core
    return ExecutorRegistry(",".join(names) or core.executor, core.parallelism).parallelism


def run_host(
    settings: Settings,
    alive: Callable[[], None] = do_nothing,
    worker: str = FIRST_WORKER,
    queues: tuple[str, ...] = (),
    executors: tuple[str, ...] = (),
    gateway: GatewayConfig | None = None,
    slots: int | None = None,
    offers_socket: str = "",
    is_single: bool = False,
) -> None:
    """Run a worker host until SIGTERM.

    Args:
        worker: name of the worker host.
        queues: queues that it serves; empty: all.
        executors: names of the executors whose attempts it takes; empty: all.
        gateway: how it reaches a scheduler on another machine; None: the scheduler of this home folder.
        slots: attempts at a time, 0: unlimited; None: the sum of the limits of its executors.
        offers_socket: the socket through which a Celery worker hands over attempts; empty: there is none.
        is_single: it runs one attempt and ends.
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
        clear_state_store=settings.state_store.clear_on_success,
    )
    spool = spool_folder(settings, worker)
    private_folder(spool)
    config = HostConfig(
        home_mark=home_mark(paths.home, worker),
        dags_folder=paths.dags,
        bundles=bundle_folders(settings),
        versioned=versioned_bundles(settings) if gateway is None else {},
        worker=worker,
        home_name=home_name(settings) if gateway is None and not offers_socket else "",
        database_servers=server_addresses(settings.database.url) if settings.database.url is not None else (),
        queues=queues,
        scheduler_socket=paths.scheduler_socket,
        spool_folder=spool,
        log_folder=paths.logs,
        slots=_host_slots(settings, executors) if slots is None else slots,
        executors=executors,
        task_start=core.task_start if HAVE_LINUX else "fresh",
        malloc=runner.malloc,
        drain_timeout=runner.drain_timeout_us,
        template_max=runner.template_max,
        template_idle=runner.template_idle_us,
        dynamic_template_max_age=runner.dynamic_template_max_age_us,
        start_retry=runner.start_retry_interval_us,
        kill_grace=core.kill_grace_us,
        stop_grace=core.kill_grace_us if is_single else min(core.kill_grace_us, 10 * SECOND),
        overtime=core.task_overtime_us,
        verdict_resend=runner.verdict_resend_interval_us,
        log_max=runner.log_max_bytes,
        log_line_max=runner.log_line_max_bytes,
        limits=limits,
        gateway=gateway,
        is_single=is_single,
        offers_socket=offers_socket,
        offers_key=worker_key(settings) if offers_socket and gateway is None else b"",
        stall_limit=settings.core.stall_limit_us,
        user_settings=user_settings(settings),
    )
    host = WorkerHost(config, SystemClock())
    with reporting_progress(settings, process_kind(worker), host.loop, alive):
        host.run()


def gateway_config(settings: Settings) -> GatewayConfig:
    """How a worker on another machine reaches the scheduler.

    Raises:
        ConfigError: the address of the gateway or the token is missing, or the library for WebSockets is not installed.
    """
    require_websockets("a worker on another machine")
    from tradewind.worker.config import GatewayConfig

    chosen = settings.worker
    if not chosen.gateway:
        raise ConfigError("the address of the gateway is missing; give --gateway URL, or set TRADEWIND__WORKER__GATEWAY")
    if not chosen.token:
        raise ConfigError(NO_TOKEN)
    return GatewayConfig(
        tuple(one.strip() for one in chosen.gateway.split(",") if one.strip()),
        chosen.token,
        chosen.outage_lease_us,
        os.path.join(settings.home, "bundles") if chosen.dag_files == "gateway" else "",
        chosen.ca_file or "",
    )


NO_TOKEN = (
    "the worker token is missing. Make one on the machine of the scheduler (tradewind workers token NAME), then give "
    "--token-file FILE, or set TRADEWIND__WORKER__TOKEN"
)


def name_in_token(token: str | None) -> str:
    """The name of a worker on another machine, which is in its token. The gateway checks the signature.

    Raises:
        ConfigError: there is no token, or it is damaged.
    """
    from tradewind.wire.worker_tokens import TokenRefused, unchecked_grant

    if not token:
        raise ConfigError(NO_TOKEN)
    try:
        return check_name(unchecked_grant(token).worker)
    except TokenRefused as refused:
        raise ConfigError(str(refused)) from None


def home_mark(home: str, worker: str = FIRST_WORKER) -> str:
    """A short id of a home folder and a further worker host, which marks the environment of their processes."""
    mark = hashlib.sha256(home.encode()).hexdigest()[:16]
    return mark if worker == FIRST_WORKER else f"{mark}-{worker}"
