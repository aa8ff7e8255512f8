"""`die_with_writer`: a process dies with the writer of a pipe, whatever its parent is."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

import pytest

from tradewind.platform import HAVE_LINUX, linux

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="Linux only")

TIMEOUT_MS = 10_000


def forked(work: Callable[[], None]) -> int:
    """Fork a child that runs `work` and then waits for a signal."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.write(tell, b"!")
            os.close(ready)
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(ready, 1) == b"!"
    os.close(ready)
    return pid


def end_of(pid: int) -> int:
    """The exit status of a child."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    ended = poll.poll(TIMEOUT_MS)
    os.close(handle)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    assert ended, f"process {pid} lives on"
    return os.waitpid(pid, 0)[1]


def test_each_reader_dies_with_the_writer() -> None:
    read, write = os.pipe2(os.O_CLOEXEC)

    def arm() -> None:
        os.close(write)
        linux.die_with_writer(read)

    first, second = forked(arm), forked(arm)
    os.kill(first, signal.SIGTERM)
    assert os.WTERMSIG(end_of(first)) == signal.SIGTERM
    assert os.waitpid(second, os.WNOHANG) == (0, 0), "another reader's end is nothing to it"
    os.close(write)
    assert os.WTERMSIG(end_of(second)) == signal.SIGKILL
    os.close(read)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_reader_that_changed_its_user_dies_too() -> None:
    read, write = os.pipe2(os.O_CLOEXEC)

    def arm() -> None:
        os.close(write)
        linux.die_with_writer(read)
        os.setuid(65534)
        linux.changed_user()

    child = forked(arm)
    os.close(write)
    assert os.WTERMSIG(end_of(child)) == signal.SIGKILL
    os.close(read)
