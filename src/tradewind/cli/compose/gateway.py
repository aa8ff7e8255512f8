"""Starts a gateway, and makes the key of its tokens."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.model.errors import ConfigError
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import Stamp, stamp_interval

if TYPE_CHECKING:
    from tradewind.settings import Settings

from tradewind.cli.compose.bundles import bundle_folders, versioned_bundles
from tradewind.cli.compose.service_process import do_nothing, log_stream


def run_gateway(settings: Settings, ready: Callable[[str], None], alive: Callable[[], None] = do_nothing) -> None:
    """Run a gateway until SIGTERM.

    Args:
        ready: called with the address when the gateway accepts workers.

    Raises:
        ConfigError: the address or the certificate cannot be used, or the library for WebSockets is not installed.
    """
    require_websockets("a gateway")
    from tradewind.gateway.config import Config
    from tradewind.gateway.server import run_gateway as run

    gateway, paths = settings.gateway, settings.paths
    faulthandler.register(signal.SIGQUIT, log_stream())
    stamp = Stamp(paths.progress("gateway"), SystemClock(), alive)
    config = Config(
        name=gateway.name or f"{socket.gethostname()}:{gateway.port}",
        host=gateway.host,
        port=gateway.port,
        scheduler_socket=paths.scheduler_socket,
        key=worker_key(settings),
        log_folder=paths.logs,
        xcom_folder=paths.xcom,
        outage_lease=settings.worker.outage_lease_us,
        dags_folder=paths.dags,
        bundles=bundle_folders(settings),
        versioned=versioned_bundles(settings),
        bundle_store=os.path.join(paths.home, "bundles", "snapshots"),
        certificate=gateway.certificate or "",
        private_key=gateway.private_key or "",
    )
    try:
        run(config, ready, stamp.stamp, stamp_interval(settings.core.stall_limit_us))
    finally:
        stamp.end()


def gateway_address(settings: Settings) -> str:
    """Address under which other machines reach the gateway of this machine. Empty: there is no gateway, or its port is chosen
    at its start.
    """
    gateway = settings.gateway
    if not gateway.enabled or not (gateway.url or gateway.port):
        return ""
    if gateway.url:
        return str(gateway.url)
    host = socket.gethostname() if gateway.host in ("0.0.0.0", "::") else gateway.host
    shown = f"[{host}]" if ":" in host else host
    return f"{'wss' if gateway.certificate else 'ws'}://{shown}:{gateway.port}"


def require_websockets(what: str) -> None:
    """Check that the library for WebSockets is installed.

    Raises:
        ConfigError: the library is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("websockets") is None:
        raise ConfigError(f"{what} needs the package websockets. Install it: pip install 'tradewind[remote]'")


def worker_key(settings: Settings) -> bytes:
    """The key that signs tokens of workers. It is created at the first use."""
    from tradewind.platform.private_file import create_private_file
    from tradewind.wire.worker_tokens import KEY_BYTES

    path = settings.paths.worker_key
    create_private_file(path, os.urandom(KEY_BYTES))
    with open(path, "rb") as file:
        return file.read()
