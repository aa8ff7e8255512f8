"""Names of worker hosts.

A worker keeps its name when its process is started again; each process of a worker has a name of its own: `WORKER.PROCESS`.
Only one process of a worker lives at a time, so a process that registers may report about all earlier processes of its worker.

    w1            the first worker of a home folder whose database is a SQLite file
    w1@vm-3f2a    the same on PostgreSQL: several machines may have a scheduler and workers there, and each has a `w1`
    etl@remote    a worker that is connected through a gateway
"""

from __future__ import annotations

FIRST_WORKER = "w1"
"""The only worker of a home folder, unless more workers are configured."""


def process_name(worker: str, random: str) -> str:
    """The name of one process of a worker host."""
    return f"{worker}.{random}"


def worker_of(host: str) -> str:
    """The worker of a process. Processes of older releases have no worker in their name: they belong to the first worker."""
    return host.rpartition(".")[0] or FIRST_WORKER


def worker_at(worker: str, home: str) -> str:
    """The name of a worker beside a scheduler, unique among the home folders that share a database.

    Args:
        home: names the home folder; empty: no other home folder has workers for this database.
    """
    return f"{worker}@{home}" if home else worker


def home_of(worker: str) -> str:
    """The home folder of a worker beside a scheduler, as in `worker_at`; empty: its name has none."""
    return worker.partition("@")[2]


def may_report_for(worker: str, holder: str) -> bool:
    """Whether a process of the first worker may send messages about attempts of the second one.

    A worker without the name of a home folder: it had its attempts before `db move` copied them from a SQLite file.
    """
    return worker == holder or ("@" not in holder and not is_remote(worker) and worker.partition("@")[0] == holder)


REMOTE_SUFFIX = "@remote"
"""End of the name of a worker that is connected through a gateway."""


def remote_worker(name: str) -> str:
    """The name that the scheduler uses for the remote worker with this name."""
    return f"{name}{REMOTE_SUFFIX}"


def is_remote(worker: str) -> bool:
    """Whether this worker is connected through a gateway. This machine cannot check whether the processes of such a worker are
    alive.
    """
    return worker.endswith(REMOTE_SUFFIX)
