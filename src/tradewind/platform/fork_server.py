"""A process that forks child processes which have all modules imported.

The server is a single-threaded interpreter, started with exec, that has imported the modules of its children. It reads requests
(orders) from a Unix socket, forks, and reports how each child ended. A child starts a few milliseconds after its order. Before the
first fork the heap is collected, frozen and not touched again, so that children share its pages.

An order is a msgpack document with attached file descriptors; the answer is the child's pid. The worker's templates and the DAG
parser use the same loop; the caller gives the function that a child runs.
"""

from __future__ import annotations

# this C module is imported because signal.signal converts numbers to enums, which copies a dozen pages in each fork
import _signal  # type: ignore[import-not-found]
import array
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence

import msgspec

ROOM_FOR_TITLE = " " * 200
"""The last argument of a fork server's command line: its children overwrite the arguments with the title that ps shows."""
INLINE_ORDER = 64 * 1024
"""A larger order is sent in a memory file, because it does not fit into a packet."""


class Forked(msgspec.Struct, frozen=True, tag="forked"):
    """A child was forked for the order with this number; with pid 0 the fork failed (`problem`)."""

    order: int
    pid: int
    problem: str | None = None


class Used(msgspec.Struct, frozen=True, array_like=True):
    """The resources that a process and its ended children have used."""

    cpu: int
    """CPU time, microseconds."""
    memory: int
    """Greatest resident memory of one of them, bytes."""


def used(*measured: resource.struct_rusage) -> Used:
    """Return the sum of the CPU times, and the greatest memory, that getrusage or wait4 has measured."""
    seconds = sum(one.ru_utime + one.ru_stime for one in measured)
    return Used(round(seconds * 1_000_000), max(one.ru_maxrss for one in measured) * 1024)


class Exited(msgspec.Struct, frozen=True, tag="exited"):
    """A child ended. `status` is the status of waitpid."""

    pid: int
    status: int
    used: Used | None = None


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The server has loaded its modules. `facts` is for its creator; `problem` says why it cannot serve."""

    facts: dict[str, object] = {}
    problem: str | None = None


Answer = Forked | Exited | Ready

encode = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


# plain numbers: the constants of the socket module are enums, whose pages would be copied after every fork
_ROOM = socket.CMSG_LEN(16 * 4)
_CLOSE_ON_EXEC, _SOCKET, _RIGHTS = int(socket.MSG_CMSG_CLOEXEC), int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)


def send_order(link: socket.socket, order: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send one order with descriptors over a SOCK_SEQPACKET socket, where one message is one order."""
    if len(order) <= INLINE_ORDER:
        _send(link, b"\0" + order, descriptors)
        return
    memory = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        with open(memory, "wb", closefd=False) as file:
            file.write(order)
        os.lseek(memory, 0, os.SEEK_SET)
        _send(link, b"\1", [*descriptors, memory])
    finally:
        os.close(memory)


def _send(link: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    link.sendmsg([data], ancillary)


def receive_order(link: socket.socket) -> tuple[bytes | None, list[int]]:
    """Receive one order and its descriptors (close-on-exec); None: the other side has closed the socket."""
    data, ancillary, _, _ = link.recvmsg(INLINE_ORDER + 1, _ROOM, _CLOSE_ON_EXEC)
    descriptors: list[int] = []
    for level, kind, payload in ancillary:
        if level == _SOCKET and kind == _RIGHTS:
            for at in range(0, len(payload) - 3, 4):
                descriptors.append(int.from_bytes(payload[at : at + 4], sys.byteorder, signed=True))
    if not data:
        return None, descriptors
    if data[0] == 0:
        return data[1:], descriptors
    with open(descriptors.pop(), "rb") as file:
        return file.read(), descriptors


def freeze_heap() -> None:
    """Freeze the heap once, before the first fork, so that its pages stay shared with the children."""
    gc.collect()
    gc.freeze()
    gc.disable()


def thaw_heap() -> None:
    """Enable garbage collection in a child; frozen objects are not collected."""
    gc.enable()


class ForkServer:
    """The loop of the server: forks one child for each order.

    Args:
        link: SOCK_SEQPACKET socket from which orders come.
        child: called in each child with the order and its descriptors; when it returns, the child exits with status 0.
        before_fork: called in the server before each fork, with the order.
        after_fork: called in the server after each fork.
    """

    def __init__(
        self,
        link: socket.socket,
        child: Callable[[bytes, list[int]], None],
        before_fork: Callable[[bytes], None] = lambda order: None,
        after_fork: Callable[[], None] = lambda: None,
    ) -> None:
        self.link = link
        self.child = child
        self._before_fork = before_fork
        self._after_fork = after_fork
        self.living: set[int] = set()
        self._number = 0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Serve until the other side closes the socket and the last child has ended."""
        signal.signal(signal.SIGCHLD, _ignore)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        open_for_orders = True
        while open_for_orders or self.living:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake_read:
                    self._drain_wakeups()
                elif not self._take_order():
                    open_for_orders = False
                    poll.unregister(self.link)
            self._reap()

    def _take_order(self) -> bool:
        order, descriptors = receive_order(self.link)
        if order is None:
            return False
        self._number += 1
        self._before_fork(order)
        try:
            pid = os.fork()
        except OSError as error:
            self._send_answer(Forked(self._number, 0, f"fork failed: {error.strerror}"))
            for descriptor in descriptors:
                os.close(descriptor)
            return True
        if pid == 0:
            self._become_child(order, descriptors)
        self._after_fork()
        for descriptor in descriptors:
            os.close(descriptor)
        self.living.add(pid)
        self._send_answer(Forked(self._number, pid))
        return True

    def _become_child(self, order: bytes, descriptors: list[int]) -> None:
        status = 1
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            self.link.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            self.child(order, descriptors)
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while self.living:
            try:
                pid, status, measured = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.living:
                self.living.discard(pid)
                self._send_answer(Exited(pid, status, used(measured)))

    def _send_answer(self, answer: Answer) -> None:
        try:
            self.link.send(encode(answer))
        except (BrokenPipeError, ConnectionError):
            pass

    def _drain_wakeups(self) -> None:
        try:
            os.read(self._wake_read, 512)  # remaining bytes end the next poll
        except BlockingIOError:
            pass


def _ignore(number: int, stack: object) -> None:
    """Handle SIGCHLD, which only has to end the poll."""
