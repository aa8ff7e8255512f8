"""The worker hosts of one home folder: their names and folders.

The first worker host is called w1 and uses the names without a suffix. Other names have a suffix: the process kind `host-w2`,
the spool folder `spool-w2`.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
import socket
from collections.abc import Sequence

from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.model.executor_names import class_name, entries
from tradewind.platform.private_file import create_private_file
from tradewind.settings import Settings
from tradewind.wire.worker_names import FIRST_WORKER

LOCK = "host.lock"
"""Lock file in the spool folder, held by the process of a worker host and by its descendants."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,40}")


def worker_names(count: int) -> list[str]:
    """The names of this many worker hosts."""
    return [f"w{number + 1}" for number in range(count)]


def process_kind(worker: str) -> str:
    """The process kind of a worker host; the other kinds are scheduler, parser and api."""
    return "host" if worker == FIRST_WORKER else f"host-{worker}"


def with_worker_hosts(kinds: Sequence[str], count: int) -> list[str]:
    """These process kinds, with `host` replaced by the kinds of this many worker hosts."""
    hosts = [process_kind(worker) for worker in worker_names(count)]
    return [name for kind in kinds for name in (hosts if kind == "host" else [kind])]


def worker_of_kind(kind: str) -> str:
    """The name of the worker host with this process kind."""
    return kind.partition("-")[2] or FIRST_WORKER


def is_host(kind: str) -> bool:
    """Whether this is the process kind of a worker host."""
    return kind.partition("-")[0] == "host"


def check_name(worker: str) -> str:
    """Check that the name of a worker host can be part of a file name, and return it.

    Raises:
        ConfigError: the name is not valid.
    """
    if not _NAME.fullmatch(worker):
        raise ConfigError(f"{worker!r} is not a valid name of a worker host; use up to 40 letters, digits, '-' and '_'")
    return worker


def chosen_executors(given: str | None, setting: str) -> tuple[str, ...]:
    """The executors whose attempts a worker host takes; empty: all.

    Args:
        given: names or aliases, separated by commas, as the user writes them.
        setting: the value of `core.executor`.

    Raises:
        ConfigError: the deployment has no such executor.
    """
    known = {one: name for name, alias in entries(setting) for one in (name, alias) if one}
    chosen = []
    for written in filter(None, (one.strip() for one in (given or "").split(","))):
        name = known.get(class_name(written))
        if name is None:
            raise ConfigError(
                f"--executor: {written} is not an executor of this deployment; core.executor has {', '.join(known)}."
                f"{did_you_mean(written, known)}"
            )
        chosen.append(name)
    return tuple(dict.fromkeys(chosen))


def spool_folder(settings: Settings, worker: str) -> str:
    """The folder in which this worker host stores reports for the scheduler."""
    return settings.paths.spool if worker == FIRST_WORKER else f"{settings.paths.spool}-{worker}"


def delete_spools(settings: Settings) -> None:
    """Delete the spool folders of all worker hosts: their reports belong to runs of a database that is being replaced."""
    spool = settings.paths.spool
    for folder in (spool, *glob.glob(f"{glob.escape(spool)}-*")):
        if os.path.isdir(folder):
            shutil.rmtree(folder)


def home_name(settings: Settings) -> str:
    """A name for this home folder in the names of its worker hosts, such as `vm-3f2a`. Empty: the database is a SQLite file, so
    no other home folder has worker hosts for it.

    The number is random and is kept in the home folder: containers made of one image may have the same host name and path.
    """
    if settings.database.url is None:
        return ""
    create_private_file(settings.paths.home_id, os.urandom(2).hex().encode())
    with open(settings.paths.home_id, encoding="ascii") as file:
        return f"{socket.gethostname()}-{file.read().strip()}"


def may_live(settings: Settings, worker: str) -> bool:
    """Whether a process of this worker host of this home folder runs. The lock is held until all its descendants have ended.

    Args:
        worker: name of the worker host, with or without the name of the home folder.
    """
    path = os.path.join(spool_folder(settings, worker.partition("@")[0]), LOCK)
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
