"""The worker hosts of one home folder: their names, and where each has its own files.

The first worker host is called w1 and uses the plain names. Each further one has a suffix: the process kind `host-w2`, the spool
folder `spool-w2`.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Sequence

from tradewind.model.errors import ConfigError
from tradewind.settings import Settings
from tradewind.wire.worker_names import FIRST_WORKER

LOCK = "host.lock"
"""In the spool folder: the living process of a worker holds it, and so do the processes below it."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def worker_names(count: int) -> list[str]:
    """The names of so many worker hosts."""
    return [f"w{number + 1}" for number in range(count)]


def process_kind(worker: str) -> str:
    """What the process of a worker is called beside scheduler, parser and api."""
    return "host" if worker == FIRST_WORKER else f"host-{worker}"


def with_worker_hosts(kinds: Sequence[str], count: int) -> list[str]:
    """These process kinds, with so many worker hosts in the place of `host`."""
    hosts = [process_kind(worker) for worker in worker_names(count)]
    return [name for kind in kinds for name in (hosts if kind == "host" else [kind])]


def worker_of_kind(kind: str) -> str:
    """The worker of a process kind."""
    return kind.partition("-")[2] or FIRST_WORKER


def is_host(kind: str) -> bool:
    """Is this the process of a worker host?"""
    return kind.partition("-")[0] == "host"


def check_name(worker: str) -> str:
    """A worker's name that can be part of a file name.

    Raises:
        ConfigError: it cannot.
    """
    if not _NAME.fullmatch(worker):
        raise ConfigError(f"A worker host cannot be called {worker!r}: up to 40 letters, digits, '-' and '_' are allowed.")
    return worker


def spool_folder(settings: Settings, worker: str) -> str:
    """The folder of what this worker keeps on the disk."""
    return settings.paths.spool if worker == FIRST_WORKER else f"{settings.paths.spool}-{worker}"


def may_live(settings: Settings, worker: str) -> bool:
    """Does a process of this worker live on this machine? It holds the lock of its folder until all below it have ended."""
    path = os.path.join(spool_folder(settings, worker), LOCK)
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
