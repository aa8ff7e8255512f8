"""Names of worker hosts.

A worker keeps its name when its process is started again; each process of a worker has a name of its own: `WORKER.PROCESS`.
At most one process of a worker lives at a time, so a process that registers speaks for all earlier processes of its worker.
"""

from __future__ import annotations

FIRST_WORKER = "w1"
"""The only worker of a home folder, unless more were asked for."""


def process_name(worker: str, random: str) -> str:
    """The name of one process of a worker host."""
    return f"{worker}.{random}"


def worker_of(host: str) -> str:
    """The worker of a process. Processes of older releases have no worker in their name: they belong to the first worker."""
    return host.rpartition(".")[0] or FIRST_WORKER


REMOTE_SUFFIX = "@remote"
"""End of the name of a worker that is connected through a gateway. Names of other workers have no `@`."""


def remote_worker(name: str) -> str:
    """The name that the scheduler uses for the remote worker with this name."""
    return f"{name}{REMOTE_SUFFIX}"


def is_remote(worker: str) -> bool:
    """Whether this worker is connected through a gateway. This machine cannot check whether the processes of such a worker are
    alive.
    """
    return worker.endswith(REMOTE_SUFFIX)
