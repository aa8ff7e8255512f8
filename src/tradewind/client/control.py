"""The client of the scheduler: sends commands, returns committed results, and follows notices of changes.

The command line and the API use it (one client per thread). A command has an op-id. If the connection breaks before the answer, the
command is sent again under the same op-id, and the scheduler returns the stored result: no command is executed twice.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from tradewind.model.errors import Unreachable, WireError
from tradewind.model.phrases import english, phrase
from tradewind.observe.failpoints import fp
from tradewind.platform.backoff import Backoff
from tradewind.wire.commands import Command, name_of, request_for, result_of
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    CLIENT_PROTOCOL,
    ClientHello,
    CommandRequest,
    CommandResult,
    FromScheduler,
    Notice,
    Welcome,
    decode_from_scheduler,
    encode,
)

R = TypeVar("R")

_READ_SIZE = 256 * 1024
_FIRST_RETRY_US, _LONGEST_RETRY_US = 20_000, 1_000_000


class _Disconnected(Exception):
    """The connection broke."""


class ControlClient:
    """A connection to the scheduler, opened when it is needed. Threads can share it: their calls are serialized.

    Args:
        socket_path: the scheduler's socket.
        name: "cli", "api" … It is shown in the log of the scheduler.
        timeout: seconds one call may take, reconnections included.
    """

    def __init__(self, socket_path: str, name: str, timeout: float = 30.0) -> None:
        self.socket_path = socket_path
        self.name = name
        self.timeout = timeout
        self._lock = threading.Lock()
        self._connection: _Connection | None = None

    def call(
        self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None, op: str | None = None
    ) -> R:
        """Let the scheduler execute one command. Returns its committed result.

        Args:
            command: one of `wire.commands`.
            actor: the person or program that requests the command, for the audit log; None: `name`.
            timeout: seconds; None: the timeout of the client.
            op: the operation id, for a caller that may send the same command again later; None: a new one. The scheduler executes
                an operation once, and keeps its result for a day.

        Raises:
            Unreachable: there is no live scheduler, or it did not answer in time. In the second case the command may
                still be executed.
            WrongArgument: an argument is missing, or has a type or value that it cannot have.
            InternalError: a bug in Tradewind; the sentence has the id under which the scheduler's log has the traceback.
            NotFound, Conflict, …: the error of the scheduler, with its sentence.
        """
        request = request_for(op or os.urandom(16).hex(), command, self.name if actor is None else actor)
        seconds = self.timeout if timeout is None else timeout
        with self._lock:
            answer = self._exchange(request, name_of(command), time.monotonic() + seconds, seconds)
        return result_of(answer, command)

    def follow(self) -> Iterator[Notice]:
        """Yield a notice for each change, over a separate connection. Ends when the scheduler closes the connection.

        Notices are lost while there is no connection, and hold no details: read the details from the database.

        Raises:
            Unreachable: there is no live scheduler.
        """
        connection = _Connection(self.socket_path, self.name, time.monotonic() + self.timeout, follow=True)
        try:
            while True:
                message = connection.receive(None)
                if isinstance(message, Notice):
                    yield message
        except _Disconnected:
            return
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _exchange(self, request: CommandRequest, name: str, deadline: float, seconds: float) -> CommandResult:
        document = frame(encode(request))
        waits = Backoff(_FIRST_RETRY_US, _LONGEST_RETRY_US, random.random)
        sent = False
        while True:
            try:
                if self._connection is None or self._connection.broken():
                    self._drop()
                    self._connection = _Connection(self.socket_path, self.name, deadline)
                sent = True
                fp("client.before_command")
                self._connection.send(document, deadline)
                while True:
                    message = self._connection.receive(deadline)
                    if isinstance(message, CommandResult) and message.op == request.op:
                        fp("client.after_command")
                        return message
            except TimeoutError:
                self._drop()
                late = phrase("error_no_answer", path=self.socket_path, command=name, seconds=f"{seconds:g}")
                raise Unreachable(english(late)) from None
            except (_Disconnected, Unreachable) as error:
                self._drop()
                if not sent:  # nothing was sent yet: the caller can decide at once
                    raise (
                        error if isinstance(error, Unreachable) else _no_scheduler(self.socket_path, "it closed the connection")
                    ) from None
                wait = waits.failed() / 1e6
                if time.monotonic() + wait > deadline:
                    raise Unreachable(
                        f"the scheduler at {self.socket_path} went away during the command {name!r} and did not come back "
                        f"within {seconds:g} s; it may have been executed"
                    ) from None
                time.sleep(wait)
            except BaseException:
                self._drop()  # the rest of an interrupted answer would be read as the next answer
                raise

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Connection:
    """A connection that the scheduler has accepted."""

    __slots__ = ("_documents", "_reader", "_socket")

    def __init__(self, path: str, name: str, deadline: float, *, follow: bool = False) -> None:
        self._reader = FrameReader()
        self._documents: deque[bytes] = deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_seconds_left(deadline))
            self._socket.connect(path)
            self.send(frame(encode(ClientHello(name, os.getpid(), follow))), deadline)
            welcome = self.receive(deadline)
        except (OSError, _Disconnected) as error:
            self._socket.close()
            if isinstance(error, TimeoutError):
                raise Unreachable(english(phrase("error_scheduler_silent", path=path))) from None
            reason = error.strerror if isinstance(error, OSError) else None
            raise _no_scheduler(path, reason or "it closed the connection") from None
        except BaseException:
            self._socket.close()
            raise
        refused = welcome.refused if isinstance(welcome, Welcome) else f"it answered {type(welcome).__name__}"
        if refused is not None:
            self._socket.close()
            raise WireError(f"the scheduler at {path} refused this client (it speaks protocol {CLIENT_PROTOCOL}): {refused}")

    def send(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(_seconds_left(deadline))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError:
            raise _Disconnected from None

    def receive(self, deadline: float | None) -> FromScheduler:
        """The next message. Raises TimeoutError, or _Disconnected if the connection broke."""
        while not self._documents:
            self._socket.settimeout(None if deadline is None else _seconds_left(deadline))
            try:
                data = self._socket.recv(_READ_SIZE)
            except TimeoutError:
                raise
            except OSError:
                raise _Disconnected from None
            if not data:
                raise _Disconnected
            self._documents.extend(self._reader.feed(data))
        try:
            message: FromScheduler = decode_from_scheduler(self._documents.popleft())
        except msgspec.DecodeError as error:
            raise WireError(f"a message of the scheduler cannot be read: {error}") from error
        return message

    def broken(self) -> bool:
        """Whether the scheduler has closed the connection since the last answer."""
        self._socket.settimeout(0.0)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        self._socket.close()


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _no_scheduler(path: str, reason: str) -> Unreachable:
    return Unreachable(english(phrase("error_no_scheduler", path=path, reason=reason)))
