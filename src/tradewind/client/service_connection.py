"""A permanent connection of a service to the scheduler, in its own thread. It tells the scheduler that the service is alive.

For services that otherwise connect only now and then. The thread waits until the scheduler closes the connection, and uses no CPU
time until then.
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


class ServiceConnection:
    """See the module.

    Args:
        path: socket of the scheduler.
        name: name of the service, for the log of the scheduler.
        job_type: job type of the service.
    """

    def __init__(self, path: str, name: str, job_type: str) -> None:
        self._path = path
        self._hello = frame(encode(ClientHello(name, os.getpid(), job_type=job_type, service_id=os.urandom(8).hex())))
        self._ends = threading.Event()
        self._link: socket.socket | None = None
        self._thread = threading.Thread(target=self._keep, name="service connection", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Tell the scheduler that the service ends normally, and close the connection."""
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
