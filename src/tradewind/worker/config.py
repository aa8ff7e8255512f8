"""The configuration of a worker host."""

from __future__ import annotations

import json
import os

import msgspec

from tradewind.bundles.specs import VersionedBundle
from tradewind.model.bundles import folder_of
from tradewind.wire.worker_names import FIRST_WORKER

TASKS_MARK = "TRADEWIND_TASKS_OF"
"""Environment variable of every process below a host. Its value identifies the home folder and the worker."""
USER_SETTINGS = "TRADEWIND_USER_SETTINGS"
"""Environment variable with the settings for user code as JSON. The process that reads it removes it."""


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
    """Maximum number of elements in a result over which other tasks are mapped."""
    clear_state_store: bool = False
    """Delete the values of a task in its state store after its success."""


class GatewayConfig(msgspec.Struct, frozen=True):
    """How a remote worker host reaches the scheduler. Durations are microseconds."""

    addresses: tuple[str, ...]
    """Addresses of gateways, at least one. After each failure, the next gateway is tried."""
    token: str
    """The worker token."""
    outage_lease: int
    """How long tasks continue while the machine of the gateway answers and the gateway or the scheduler is unavailable."""
    bundle_folder: str = ""
    """Folder for the DAG files that the gateway sends, absolute. Empty: the DAG folder of this machine is used."""
    ca_file: str = ""
    """File with the certificates of the authorities that signed the gateway's certificate. Empty: the certificates of the
    system.
    """


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
    versioned: dict[str, VersionedBundle] = {}
    """Bundles that have versions, by name, with their folders on this machine."""
    worker: str = FIRST_WORKER
    """The worker's name, which its processes keep from one start to the next. One process of a worker lives at a time."""
    home_name: str = ""
    """Names this home folder among those that share the database (`wire.worker_names.worker_at`); empty: there is one."""
    database_servers: tuple[tuple[str, int], ...] = ()
    """Host and port of the database servers. Empty: the database is on this machine."""
    queues: tuple[str, ...] = ()
    """Queues that the worker serves; empty: all."""
    executors: tuple[str, ...] = ()
    """Names of the executors whose attempts the worker host takes; empty: all."""
    offers_socket: str = ""
    """If set, a Celery worker beside this worker host hands over attempts through this socket."""
    offers_key: bytes = b""
    """The key that checks the signature of these attempts. Empty on another machine than the scheduler's: there a gateway
    checks the signature.
    """
    is_single: bool = False
    """The worker host runs one attempt and ends, as in a pod of the KubernetesExecutor."""
    gateway: GatewayConfig | None = None
    """If set, this is a remote worker host, which reaches the scheduler through a gateway and not through `scheduler_socket`."""
    stall_limit: int = 0
    """A base image or template that has not executed an order for this time is ended; 0: never."""

    user_settings: dict[str, str] = {}
    """The settings that user code may read with `conf.get`: `section.key` → value."""

    def environment(self) -> dict[str, str]:
        """The environment of a process that starts user code."""
        return {**os.environ, TASKS_MARK: self.home_mark, USER_SETTINGS: json.dumps(self.user_settings)}

    def folder(self, bundle: str) -> str:
        """Absolute path of a bundle's files on this machine."""
        return folder_of(bundle, self.bundles, self.dags_folder)
