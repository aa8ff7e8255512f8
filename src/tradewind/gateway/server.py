"""A gateway: the server through which workers on other machines reach the scheduler.

It is a separate process, so that a slow page of the web server never delays a start. It keeps no state that must survive:
any worker may use any gateway, and workers connect again after a restart. It has no access to the database.
"""

from __future__ import annotations

import asyncio
import http
import signal
import ssl
import time
from collections.abc import Callable

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from tradewind.gateway.bundle_files import BundleFiles
from tradewind.gateway.config import Config
from tradewind.gateway.log_store import LogStore
from tradewind.gateway.scheduler_relay import serve_relay
from tradewind.gateway.session import RETRY_SECONDS, Session
from tradewind.gateway.worker_state import DisconnectedWorkers, WorkerState
from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.wire.frames import frame
from tradewind.wire.gateway import FILES_QUERY, MESSAGE_MAX, PATH, SCHEDULER_PATH
from tradewind.wire.messages import GatewayHello, encode
from tradewind.wire.worker_names import remote_worker
from tradewind.wire.worker_tokens import TokenRefused, WorkerGrant, check_relay_token, read_grant

log = Log("gateway")

WORKERS_MAX = 2_000
RELAYS_MAX = 2_000


class Gateway:
    """See the module.

    Args:
        ready: called with the address when the gateway accepts workers.
    """

    def __init__(self, config: Config, ready: Callable[[str], None]) -> None:
        self._config = config
        self._ready = ready
        self._logs = LogStore(config.log_folder)
        self._files = (
            BundleFiles(config.dags_folder, config.bundles, config.bundle_store, config.versioned)
            if config.dags_folder
            else None
        )
        self._sessions: dict[str, Session] = {}
        """Worker → its connection."""
        self._grants: dict[ServerConnection, WorkerGrant] = {}
        self._relays = 0
        """Connections that standby schedulers forward to this gateway."""
        self._away = DisconnectedWorkers()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            ConfigError: the address cannot be used, or the certificate cannot be read.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        server = await self._listen()
        control = asyncio.create_task(self._report_workers())
        port = next(iter(server.sockets)).getsockname()[1]
        scheme = "wss" if self._config.certificate else "ws"
        shown = f"[{self._config.host}]" if ":" in self._config.host else self._config.host
        self._ready(f"{scheme}://{shown}:{port}")
        await stop.wait()
        control.cancel()
        server.close(close_connections=True)
        await server.wait_closed()

    async def _listen(self) -> Server:
        try:
            return await serve(
                self._serve,
                self._config.host,
                self._config.port,
                ssl=self._tls(),
                process_request=self._check_request,
                max_size=MESSAGE_MAX,
                max_queue=16,
                compression=None,
                ping_interval=None,  # leases are renewed every few seconds
                server_header=None,
                open_timeout=10,
                close_timeout=2,
            )
        except OSError as error:
            raise ConfigError(
                f"the gateway cannot use {self._config.host} port {self._config.port}: {error.strerror}. "
                "Choose another port: setting gateway.port"
            ) from None

    def _tls(self) -> ssl.SSLContext | None:
        if not self._config.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._config.certificate, self._config.private_key or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"gateway.certificate = {self._config.certificate} cannot be used: {error}") from None
        return context

    # --- workers ----------------------------------------------------------------------------------------------------

    def _check_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Accept or refuse a connection before it becomes a WebSocket."""
        path = request.path.partition("?")[0]
        if path == "/health":
            return connection.respond(http.HTTPStatus.OK, "healthy\n")
        if not path.endswith((PATH, SCHEDULER_PATH)):
            return connection.respond(http.HTTPStatus.NOT_FOUND, f"workers connect to {PATH}\n")
        if len(self._sessions) >= WORKERS_MAX or self._relays >= RELAYS_MAX:
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "this gateway has too many connections already\n")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise TokenRefused("a worker token is needed (make one: tradewind workers token)")
            if path.endswith(SCHEDULER_PATH):
                check_relay_token(token, self._config.key, time.time_ns() // 1000)
            else:
                self._grants[connection] = read_grant(token, self._config.key, time.time_ns() // 1000)
        except TokenRefused as refused:
            log.warning("a connection is refused", why=str(refused), address=str(connection.remote_address))
            return connection.respond(http.HTTPStatus.UNAUTHORIZED, f"{refused}\n")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        grant = self._grants.pop(connection, None)
        if grant is not None:
            await self._serve_worker(connection, grant)
            return
        self._relays += 1
        try:
            await serve_relay(connection, self._config.scheduler_socket, str(connection.remote_address))
        finally:
            self._relays -= 1

    async def _serve_worker(self, connection: ServerConnection, grant: WorkerGrant) -> None:
        files, limit = self._files if _wants_files(connection) else None, self._away.limit(remote_worker(grant.worker))
        session = Session(connection, grant, self._config, self._logs, files, limit)
        before = self._sessions.get(session.worker)
        self._sessions[session.worker] = session
        if before is not None:  # a worker has one process at a time; the old connection is probably dead
            before.abort()
        log.info("a worker has connected", worker=session.worker, address=str(connection.remote_address))
        try:
            await session.run()
        finally:
            if self._sessions.get(session.worker) is session:
                del self._sessions[session.worker]
                self._away.disconnected(session.state, time.monotonic_ns() // 1000)
                self._changed.set()
            log.info("a worker has disconnected", worker=session.worker)

    def _states(self) -> dict[str, WorkerState]:
        return {worker: session.state for worker, session in self._sessions.items()}

    # --- the scheduler ----------------------------------------------------------------------------------------------

    async def _report_workers(self) -> None:
        """Tell each new scheduler which workers have disconnected, and until when these may run tasks."""
        failures = 0
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(self._config.scheduler_socket)
            except OSError:
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                continue
            failures = 0
            ended = asyncio.create_task(_wait_for_end(reader))
            try:
                writer.write(frame(encode(GatewayHello(self._config.name))))
                announced: dict[str, object] = {}
                while not ended.done():
                    self._changed.clear()
                    for news in self._away.news(announced, self._states(), time.monotonic_ns() // 1000):
                        writer.write(frame(encode(news)))
                    await writer.drain()
                    changed = asyncio.create_task(self._changed.wait())
                    await asyncio.wait((changed, ended), return_when=asyncio.FIRST_COMPLETED)
                    changed.cancel()
            except OSError:
                pass  # the scheduler has ended
            finally:
                ended.cancel()
                writer.close()


def _wants_files(connection: ServerConnection) -> bool:
    """Whether the worker host requests DAG files."""
    return connection.request is not None and FILES_QUERY in connection.request.path.partition("?")[2].split("&")


async def _wait_for_end(reader: asyncio.StreamReader) -> None:
    while await reader.read(4096):
        pass


def run_gateway(config: Config, ready: Callable[[str], None], alive: Callable[[], None], every: int) -> None:
    """Run a gateway until SIGTERM.

    Args:
        alive: called every `every` microseconds while the event loop makes progress.
    """

    async def report_progress() -> None:
        while True:
            alive()
            await asyncio.sleep(every / SECOND)

    async def main() -> None:
        gateway = Gateway(config, ready)
        progress = asyncio.create_task(report_progress())
        try:
            await gateway.run()
        finally:
            progress.cancel()

    asyncio.run(main())
