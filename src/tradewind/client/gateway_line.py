"""The connection of a remote worker host to a gateway: a WebSocket in the worker host's event loop.

The library `websockets` handles the protocol (without its IO); this module handles the socket, TLS and the timeouts. Nothing
blocks: the worker host has one thread, and its timers have to run while a network hangs. A separate thread resolves a name.
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.gateway import MESSAGE_MAX, PATH

CONNECT_WITHIN = 10 * SECOND
"""Timeout for name resolution, connection, TLS and handshake together."""
OUT_MAX = 2 * MESSAGE_MAX
"""Maximum number of bytes that wait for the network. With more, the connection is closed."""
READ_SIZE = 64 * 1024


class Closed(NamedTuple):
    """Why there is no connection."""

    reason: str
    """The reason, for people."""
    reached: bool
    """Whether the machine of the gateway has just answered: it refused or ended the connection. So the network works, and only the
    gateway is unavailable. Silence is no answer, even if the machine had answered before.
    """
    refused: bool
    """Whether the gateway refused the token. It will refuse the token again."""


class GatewayAddress(NamedTuple):
    """A parsed address."""

    url: str
    host: str
    port: int
    tls: bool


def parse_address(text: str) -> GatewayAddress:
    """Read `ws://HOST[:PORT]` or `wss://HOST[:PORT]`; `http` and `https` mean the same.

    Raises:
        ConfigError: it is no such address.
    """
    try:
        parts = urlsplit(text.strip())
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        port = parts.port or (443 if scheme == "wss" else 80)
    except ValueError as error:
        raise ConfigError(f"worker.gateway = {text!r} is not an address: {error}") from None
    if scheme not in ("ws", "wss") or not parts.hostname:
        raise ConfigError(
            f"worker.gateway = {text!r} is not the address of a gateway; write for example wss://gateway.example.com:8974"
        )
    shown = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/") + PATH
    return GatewayAddress(f"{scheme}://{shown}:{port}{path}", parts.hostname, port, scheme == "wss")


class GatewayLine:
    """One connection, from `connect` to `on_close`. For the next connection, create another object.

    Args:
        token: the worker token.
        tls: for a `wss` address.
        on_open: called once, when the gateway has accepted the connection.
        on_message: called for each binary message.
        on_close: called once, also if `on_open` was never called.
    """

    def __init__(
        self,
        address: GatewayAddress,
        token: str,
        loop: Loop,
        tls: ssl.SSLContext | None,
        on_open: Callable[[], None],
        on_message: Callable[[bytes], None],
        on_close: Callable[[Closed], None],
    ) -> None:
        self._address = address
        self._token = token
        self._loop = loop
        self._tls = tls
        self._on_open = on_open
        self._on_message = on_message
        self._on_close = on_close
        self._protocol = ClientProtocol(parse_uri(address.url), max_size=MESSAGE_MAX)
        self._socket: socket.socket | None = None
        self._addresses: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        self._reached = False
        self._out = bytearray()
        self._parts: list[bytes] = []
        """The parts of a message in several frames."""
        self._is_open = False
        self._closed = False
        self._handshake_of_tls = False
        self._deadline: TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._is_open and not self._closed

    @property
    def waiting(self) -> int:
        """Bytes that wait for the network."""
        return len(self._out)

    # --- connecting -------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Begin to connect. The event loop calls `on_open` or `on_close` later."""
        self._deadline = self._loop.call_later(CONNECT_WITHIN, self._on_connect_timeout)
        try:
            socket.inet_pton(socket.AF_INET, self._address.host)
            family = socket.AF_INET
        except OSError:
            try:
                socket.inet_pton(socket.AF_INET6, self._address.host)
                family = socket.AF_INET6
            except OSError:
                self._resolve()
                return
        self._addresses = [(family, (self._address.host, self._address.port))]
        self._try_next("")

    def _resolve(self) -> None:
        """Resolve the name in a thread, because the resolver may take long and cannot be stopped."""
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        found: list[tuple[socket.AddressFamily, tuple[object, ...]]] = []
        problem: list[str] = []

        def ask() -> None:
            try:
                for family, _, _, _, address in socket.getaddrinfo(
                    self._address.host, self._address.port, type=socket.SOCK_STREAM
                ):
                    found.append((family, tuple(address)))
            except OSError as error:
                problem.append(f"the name {self._address.host} cannot be resolved: {error.strerror or error}")
            os.close(write)  # wakes the loop

        def answered(events: int) -> None:
            self._loop.unwatch(read)
            os.close(read)
            if not self._closed:
                self._addresses = found
                self._try_next(problem[0] if problem else f"the name {self._address.host} has no address")

        self._loop.watch(read, selectors.EVENT_READ, answered)
        threading.Thread(target=ask, name="resolver", daemon=True).start()

    def _try_next(self, problem: str) -> None:
        if not self._addresses:
            self._close(problem)
            return
        family, address = self._addresses.pop(0)
        link = self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            link.connect(address)
        except BlockingIOError:
            pass
        except OSError as error:
            self._failed(error)
            return
        self._loop.watch(link, selectors.EVENT_WRITE, self._connected)

    def _failed(self, error: OSError) -> None:
        """Try the next address: this address cannot be reached."""
        if isinstance(error, ConnectionRefusedError):
            self._reached = True
        self._drop_socket()
        self._try_next(f"{self._address.host} port {self._address.port}: {error.strerror or error}")

    def _connected(self, events: int) -> None:
        link = self._socket
        assert link is not None
        code = link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            error = OSError(code, os.strerror(code))
            self._failed(error)
            return
        self._reached = True
        if self._address.tls:
            context = self._tls if self._tls is not None else ssl.create_default_context()
            self._loop.unwatch(link)
            try:
                self._socket = context.wrap_socket(link, do_handshake_on_connect=False, server_hostname=self._address.host)
            except (OSError, ValueError) as error:
                self._close(tls_problem(error))
                return
            self._handshake_of_tls = True
            self._loop.watch(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self._continue_handshake)
        else:
            self._request()

    def _continue_handshake(self, events: int) -> None:
        link = self._socket
        assert isinstance(link, ssl.SSLSocket)
        try:
            link.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.watch(link, selectors.EVENT_READ, self._continue_handshake)
        except ssl.SSLWantWriteError:
            self._loop.watch(link, selectors.EVENT_WRITE, self._continue_handshake)
        except OSError as error:
            self._close(tls_problem(error))
        else:
            self._handshake_of_tls = False
            self._request()

    def _request(self) -> None:
        request = self._protocol.connect()
        request.headers["Authorization"] = f"Bearer {self._token}"
        self._protocol.send_request(request)
        self._flush()

    def _on_connect_timeout(self) -> None:
        if not self._is_open:
            self._reached = False  # it may have accepted the connection before the network was cut
            self._close(f"no answer of the gateway {self._address.url} within {CONNECT_WITHIN // SECOND} s")

    # --- messages ---------------------------------------------------------------------------------------------------

    def send(self, message: bytes) -> None:
        """Send one binary message, or keep it until the network takes it. It is dropped when there is no connection."""
        if not self.is_open:
            return
        if len(self._out) > OUT_MAX:
            self._reached = False
            self._close(f"the gateway does not read: {len(self._out)} bytes wait")
            return
        self._protocol.send_binary(message)
        self._flush()

    def close(self, reason: str) -> None:
        """Close the connection; `on_close` is called."""
        if self.is_open:
            try:
                self._protocol.send_close(1001)
                self._flush()
            except WebSocketException:
                pass
        self._reached = False
        self._close(reason)

    def _broke(self, error: OSError) -> None:
        """Handle an error of the socket. A reset comes from the machine; after other errors the network may be cut."""
        self._reached = isinstance(error, ConnectionResetError | BrokenPipeError)
        self._close(f"the connection broke: {error.strerror or error}")

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self._out += data
        link = self._socket
        if link is None or self._closed:
            return
        while self._out:
            try:
                sent = link.send(memoryview(self._out)[: 1 << 20])
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                break
            except OSError as error:
                self._broke(error)
                return
            del self._out[:sent]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
        self._loop.watch(link, wanted, self._ready)

    def _ready(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if events & selectors.EVENT_READ and not self._closed:
            self._receive()

    def _receive(self) -> None:
        link = self._socket
        assert link is not None
        while not self._closed:
            try:
                data = link.recv(READ_SIZE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                self._broke(error)
                return
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._handle_events()
            if not data:
                self._close("the gateway closed the connection")
                return
            if len(data) < READ_SIZE and not isinstance(link, ssl.SSLSocket):
                return

    def _handle_events(self) -> None:
        for event in self._protocol.events_received():
            if self._closed:
                return
            if isinstance(event, Response):
                self._on_response(event)
            elif isinstance(event, Frame):
                self._on_frame(event)
        if not self._closed:
            self._flush()
        if not self._closed and self._protocol.state is State.CLOSED and self._protocol.close_exc is not None:
            self._close(f"the gateway closed the connection: {self._protocol.close_exc}")

    def _on_response(self, response: Response) -> None:
        if self._protocol.handshake_exc is not None:
            refused = response.status_code in (401, 403)
            text = bytes(response.body or b"").decode("utf-8", "replace").strip()
            self._close(f"the gateway answered {response.status_code}: {text or response.reason_phrase}", refused=refused)
            return
        self._is_open = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._on_open()

    def _on_frame(self, frame: Frame) -> None:
        if frame.opcode not in (Opcode.BINARY, Opcode.CONT):
            return
        if frame.opcode is Opcode.BINARY and frame.fin:
            self._on_message(bytes(frame.data))
            return
        self._parts.append(bytes(frame.data))
        if frame.fin:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._on_message(whole)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._loop.unwatch(self._socket)
            self._socket.close()
            self._socket = None

    def _close(self, reason: str, *, refused: bool = False) -> None:
        if self._closed:
            return
        self._closed = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._drop_socket()
        self._on_close(Closed(reason, self._reached, refused))


def tls_problem(error: Exception) -> str:
    """Why there is no TLS connection, with the setting that helps if the reason is the certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"TLS: the certificate of the gateway is not accepted: {error.verify_message}. If your own authority has signed it, or "
            "nobody, set TRADEWIND__WORKER__CA_FILE to the file of that certificate"
        )
    return f"TLS: {error}"
