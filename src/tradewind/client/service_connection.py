"""A service's standing connection to the scheduler, in a thread of its own, so that the scheduler knows the service as alive.

For services that otherwise only ask now and then. The thread waits for the scheduler to hang up and costs nothing meanwhile.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from contextlib import suppress

from tradewind.platform.backoff import Backoff
from tradewind.wire.frames import frame
from tradewind.wire.messages import ClientHello, Goodbye, encode

_FIRST_RETRY_US, _LONGEST_RETRY_US = 50_000, 5_000_000
_READ_SIZE = 4096


class ServiceLine:
    """Args:
    path: the scheduler's socket.
    name: who we are.
    job_type: which job this service is.
    """

    def __init__(self, path: str, name: str, job_type: str) -> None:
        self._path = path
        self._hello = frame(encode(ClientHello(name, os.getpid(), job_type=job_type, life=os.urandom(8).hex())))
        self._ends = threading.Event()
        self._link: socket.socket | None = None
        self._thread = threading.Thread(target=self._keep, name="service line", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Say goodbye: the service ends in order."""
        self._ends.set()
        link = self._link
        if link is not None:
            with suppress(OSError):
                link.sendall(frame(encode(Goodbye())))
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def _keep(self) -> None:
        waits = Backoff(_FIRST_RETRY_US, _LONGEST_RETRY_US, random.random)
        while not self._ends.is_set():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link, suppress(OSError):
                link.connect(self._path)
                link.sendall(self._hello)
                self._link = link
                waits.succeeded()
                while link.recv(_READ_SIZE):
                    pass
            self._link = None
            self._ends.wait(waits.failed() / 1e6)
