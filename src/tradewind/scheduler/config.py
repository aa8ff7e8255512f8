"""The settings of the scheduler."""

from __future__ import annotations

import msgspec

from tradewind.model.bundles import Scope


class SchedulerConfig(msgspec.Struct, frozen=True):
    """Durations are microseconds."""

    parallelism: int
    """The limit of each executor; 0 is unlimited."""
    executor: str
    """The names of the executors, as in the setting `core.executor` (see `executors.registry`)."""
    requeue_limit: int
    resubmit_interval: int
    """Safety net: a dispatched attempt that has not started for this time is sent again."""
    sweep_interval: int
    """Safety net, interval: running attempts are compared with those that the worker hosts hold."""
    batch_max_rows: int
    kill_grace: int
    paused_at_creation: bool
    retention: int
    """Finished runs older than this are deleted; 0 keeps everything."""
    retention_keep_runs: int
    retention_interval: int
    default_execution_timeout: int | None
    xcom_folder: str
    callback_parallelism: int = 4
    """Maximum number of callbacks and mails that run at the same time outside of task processes."""
    callback_timeout: int = 60 * 1_000_000
    """Time limit of one callback or mail; 0: no limit."""
    callback_retries: int = 3
    callback_retry_delay: int = 10 * 1_000_000
    """Pause before the first retry; each further pause is longer."""
    wait_recheck_interval: int = 60 * 1_000_000
    """Safety net, interval: open waits for tasks of other DAGs are examined again."""
    repeat_lost: bool = False
    """An attempt that had started and was lost is repeated in the same try, unless its task chooses otherwise."""
    tasks_change_connections: bool = True
    """Tasks may change connections and pools. False: only variables."""
    scope: Scope = Scope()
    """The DAGs that this scheduler handles. It creates, starts, dispatches and ends no run of other DAGs."""
