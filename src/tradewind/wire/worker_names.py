"""Names of worker hosts.

A worker keeps its name when its process is started again; each process of a worker has a name of its own: `WORKER.PROCESS`.
Only one process of a worker lives at a time, so a process that registers may report about all earlier processes of its worker.

    w1            the first worker of a home folder whose database is a SQLite file
    w1@vm-3f2a    the same on PostgreSQL: several machines may have a scheduler and workers there, and each has a `w1`
    etl@remote    a worker that is connected through a gateway
    pod-7-0-2@remote    the same in a pod of the KubernetesExecutor, which runs the attempt (7, 0, 2)
"""

from __future__ import annotations

import re

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


_POD = re.compile(rf"pod-(\d+)-(\d+)-(\d+){REMOTE_SUFFIX}")


def pod_name(attempt: tuple[int, int, int]) -> str:
    """The name of the worker in the pod of an attempt, as it is in its token.

    Args:
        attempt: (run number, slot, fence).
    """
    return "pod-{}-{}-{}".format(*attempt)


def pod_worker(attempt: tuple[int, int, int]) -> str:
    """The name that the scheduler uses for the worker in the pod of an attempt. See `pod_name`."""
    return remote_worker(pod_name(attempt))


def attempt_of_pod(worker: str) -> tuple[int, int, int] | None:
    """The attempt of a worker that is in a pod of the KubernetesExecutor, and so runs only this attempt; None: any other worker."""
    found = _POD.fullmatch(worker)
    return (int(found[1]), int(found[2]), int(found[3])) if found is not None else None
