"""On a machine with a standby scheduler, the scheduler's socket forwards to the active scheduler on another machine.

    command, web server, gateway, worker host ─▶ Unix socket ─▶ WebSocket ─▶ gateway beside the active scheduler ─▶ its socket

So after a takeover each web server, command and gateway reaches the new scheduler. Only the relay has to know its address,
which is in the lease. A worker host beside a standby is connected only if it has attempts from the time when its scheduler was
active: it finishes them and takes no new ones, because logs and large XComs are files on the machine of a scheduler. Parsers
beside a standby are not connected: the active scheduler has its own. If the active scheduler cannot be reached for 30 s, the
worker host is told to stop these attempts, because the active scheduler is about to give them up.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from tradewind.model.errors import WireError
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.gateway import LEASE, MESSAGE_MAX, SCHEDULER_PATH
from tradewind.wire.messages import (
    ClientHello,
    GatewayHello,
    HostHello,
    LeaseEnded,
    Relayed,
    ToScheduler,
    decode_to_scheduler,
    encode,
)
from tradewind.wire.worker_tokens import relay_token

log = Log("scheduler")

CONNECTIONS_MAX = 500
FIRST_MESSAGE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
PING_SECONDS = 5.0
"""A lost machine is noticed after two of these intervals."""
STOP_SECONDS = 5.0
READ_SIZE = 256 * 1024
_LEASE_ENDED = (
    f"for {LEASE // SECOND} seconds, the active scheduler could not be reached from the standby scheduler of this machine"
)


def message_to_forward(message: ToScheduler) -> ToScheduler | None:
    """The first message of a connection as the scheduler on another machine gets it; None: the connection is not forwarded."""
    if isinstance(message, ClientHello):
        return None if message.answers_timetables else message
    if isinstance(message, HostHello) and not message.gateway:
        return msgspec.structs.replace(message, draining=True) if message.live else None
    return message if isinstance(message, GatewayHello | HostHello) else None


class Contact:
    """Whether the active scheduler can be reached from this machine. Moments are monotonic microseconds."""

    def __init__(self) -> None:
        self._lost_since: int | None = None

    def made(self) -> None:
        """A connection was made, or another scheduler is the active one."""
        self._lost_since = None

    def failed(self, now: int) -> None:
        """A connection could not be made."""
        if self._lost_since is None:
            self._lost_since = now

    def lease_has_ended(self, now: int) -> bool:
        """Whether the tasks from the time when this machine had the active scheduler must end."""
        return self._lost_since is not None and now - self._lost_since > LEASE


class SchedulerRelay:
    """See the module. It serves from `start` to `stop`, in a separate thread.

    Args:
        path: path of the scheduler's socket on this machine.
        key: signs the token for the other gateway.
        tls: makes the TLS settings for a `wss` address.
    """

    def __init__(self, path: str, key: bytes, tls: Callable[[], ssl.SSLContext]) -> None:
        self._path = path
        self._key = key
        self._make_tls = tls
        self._address = ""
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="scheduler relay", daemon=True)
        self._peers: set[asyncio.Task[None]] = set()
        self._end = asyncio.Event()
        self._warned = False
        self._contact = Contact()

    def start(self) -> None:
        """Listen on the scheduler's socket.

        Raises:
            OSError: the socket cannot be made.
        """
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._listener.bind(self._path)
        finally:
            os.umask(before)
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._thread.start()

    def forward_to(self, address: str) -> None:
        """Forward connections to this gateway from now on. Connections to another gateway are closed."""
        if address != self._address:
            self._address = address
            self._contact.made()
            self._loop.call_soon_threadsafe(self._close_peers)

    def stop(self) -> None:
        """Close the socket and all connections. Then this machine's own scheduler may listen."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_unix_server(self._accept, sock=self._listener)
        await self._end.wait()
        server.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._close_peers()
        await asyncio.gather(*self._peers, return_exceptions=True)

    def _close_peers(self) -> None:
        for peer in self._peers:
            peer.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._peers) >= CONNECTIONS_MAX:
            writer.close()
            return
        peer = asyncio.ensure_future(self._serve(reader, writer))
        self._peers.add(peer)
        peer.add_done_callback(self._peers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to the scheduler's socket until one of its ends closes it."""
        try:
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                message, rest = await _first_message(reader)
            if isinstance(message, Relayed):
                return  # two standby machines must not forward to each other
            passed = message_to_forward(message)
            if passed is not None:
                await self._pass_on(frame(encode(passed)) + rest, reader, writer)
                if isinstance(message, HostHello) and self._contact.lease_has_ended(_now()):
                    writer.write(frame(encode(LeaseEnded(_LEASE_ENDED))))
                    await writer.drain()
            else:
                while await reader.read(READ_SIZE):
                    pass  # the peer waits for the scheduler of this machine, and need not connect again and again
        except (TimeoutError, OSError, EOFError, WireError, msgspec.MsgspecError, ConnectionClosed):
            pass  # the other side tries again
        finally:
            writer.close()

    async def _pass_on(self, begin: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = self._address.rstrip("/")
        try:
            link = await connect(
                address + SCHEDULER_PATH,
                ssl=self._make_tls() if address.startswith("wss:") else None,
                additional_headers={"Authorization": f"Bearer {relay_token(self._key, time.time_ns() // 1000)}"},
                compression=None,
                max_size=MESSAGE_MAX,
                open_timeout=CONNECT_SECONDS,
                close_timeout=1,
                ping_interval=PING_SECONDS,
                ping_timeout=PING_SECONDS,
                proxy=None,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            self._contact.failed(_now())
            if not self._warned:
                self._warned = True
                why = f"{type(error).__name__}: {error}"
                log.warning("the active scheduler cannot be reached through its gateway", address=address, error=why)
            return
        self._warned = False
        self._contact.made()
        async with link:
            await link.send(begin)
            await join(link, reader, writer)


def _now() -> int:
    return time.monotonic_ns() // 1000


async def serve_relay(link: ServerConnection, scheduler_socket: str, peer: str) -> None:
    """Forward a connection of another machine to the scheduler's socket. Runs in the gateway beside the active scheduler.

    Args:
        peer: the address of the other machine, for the log.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(scheduler_socket)
    except OSError:
        await link.close(1013, "no scheduler is connected now")
        return
    try:
        writer.write(frame(encode(Relayed(peer))))
        await join(link, reader, writer)
    except (OSError, ConnectionClosed):
        pass  # one of the ends has disconnected
    finally:
        writer.close()


async def join(link: ClientConnection | ServerConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes in both directions until one side ends."""

    async def upwards() -> None:
        while data := await reader.read(READ_SIZE):
            await link.send(data)

    async def downwards() -> None:
        async for data in link:
            writer.write(data if isinstance(data, bytes) else data.encode())
            await writer.drain()

    await _until_one_ends(upwards(), downwards())


async def _until_one_ends(*both: Awaitable[None]) -> None:
    tasks = [asyncio.ensure_future(one) for one in both]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first_message(reader: asyncio.StreamReader) -> tuple[ToScheduler, bytes]:
    """Return (the first message, the bytes that were read after it)."""
    begin, frames = b"", FrameReader(READ_SIZE)
    while data := await reader.read(READ_SIZE):
        begin += data
        for document in frames.feed(data):
            message: ToScheduler = decode_to_scheduler(document)
            return message, begin[len(frame(document)) :]
    raise EOFError
