"""The configuration of a worker host."""

from __future__ import annotations

import msgspec

from tradewind.model.bundles import folder_of
from tradewind.wire.worker_names import FIRST_WORKER


class TaskLimits(msgspec.Struct, frozen=True):
    """The limits of a task process. Durations are microseconds, sizes bytes."""

    xcom_folder: str
    xcom_inline_max: int
    xcom_max: int
    memory_max: int
    """Limit of the address space (RLIMIT_AS); 0 is none."""
    descriptors: int
    """Soft RLIMIT_NOFILE of a task: the limit of the host before the host raised its own."""
    descriptors_hard: int
    max_map_length: int = 1024
    """Elements that a task may return to those that are mapped over its result."""


class HostConfig(msgspec.Struct, frozen=True):
    """Everything a `WorkerHost` needs. Durations are microseconds, sizes bytes, folders absolute."""

    home_mark: str
    """Identifies the home folder and the worker, in the environment of every process below the host."""
    scheduler_socket: str
    spool_folder: str
    log_folder: str
    slots: int
    """Attempts at a time; 0 is unlimited."""
    task_start: str
    """`template` (fork from a warm template) or `fresh` (a new interpreter for each attempt)."""
    malloc: str
    """`default` or `malloc_hugetlb`: how the templates' allocator is set."""
    drain_timeout: int
    """How long running tasks may go on when the host is told to stop; 0: they are stopped at once."""
    template_max: int
    template_idle: int
    dynamic_template_max_age: int
    start_retry: int
    """After this time without an answer the host asks again for a start: a safety net."""
    kill_grace: int
    stop_grace: int
    """Between TERM and KILL when the host itself is stopped."""
    overtime: int
    """How long a task process may go on after its report."""
    verdict_resend: int
    log_max: int
    log_line_max: int
    limits: TaskLimits
    dags_folder: str = ""
    """The DAG folder: the files of every bundle that `bundles` does not name."""
    bundles: dict[str, str] = {}
    """Folders of bundles other than the DAG folder, by name."""
    worker: str = FIRST_WORKER
    """The worker's name, which its processes keep from one start to the next. One process of a worker lives at a time."""
    queues: tuple[str, ...] = ()
    """Queues that the worker serves; empty: all."""
    stall_limit: int = 0
    """A base image or template that has not executed an order for so long is ended; 0: never."""

    def folder(self, bundle: str) -> str:
        """Absolute path of a bundle's files on this machine."""
        return folder_of(bundle, self.bundles, self.dags_folder)
