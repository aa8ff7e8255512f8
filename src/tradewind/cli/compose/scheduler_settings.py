"""The scheduler's config, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.model.definition import REPEAT
from tradewind.model.moments import DAY

if TYPE_CHECKING:
    from tradewind.scheduler.config import SchedulerConfig
    from tradewind.settings import Settings

from tradewind.cli.compose.bundles import watched_scope


def scheduler_config(settings: Settings) -> SchedulerConfig:
    from tradewind.scheduler.config import SchedulerConfig

    core, scheduler = settings.core, settings.scheduler
    return SchedulerConfig(
        parallelism=core.parallelism,
        executor=core.executor,
        requeue_limit=scheduler.requeue_limit,
        repeat_lost=scheduler.lost_attempts == REPEAT,
        resubmit_interval=scheduler.resubmit_interval_us,
        sweep_interval=scheduler.sweep_interval_us,
        wait_recheck_interval=scheduler.wait_recheck_interval_us,
        batch_max_rows=scheduler.batch_max_rows,
        kill_grace=core.kill_grace_us,
        paused_at_creation=core.dags_are_paused_at_creation,
        retention=round(scheduler.retention_days * DAY),
        retention_keep_runs=scheduler.retention_keep_runs,
        retention_interval=scheduler.retention_interval_us,
        default_execution_timeout=core.default_task_execution_timeout_us,
        xcom_folder=settings.paths.xcom,
        callback_parallelism=scheduler.callback_parallelism,
        callback_timeout=scheduler.callback_timeout_us,
        callback_retries=scheduler.callback_retries,
        callback_retry_delay=scheduler.callback_retry_delay_us,
        tasks_change_connections=scheduler.tasks_may_change == "all",
        scope=watched_scope(settings),
    )
