"""Creates the meter of a service process, if metrics are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradewind.metrics.meter import Meter
    from tradewind.scheduler.core import Scheduler
    from tradewind.scheduler.duties import Duty
    from tradewind.settings import Settings


def metrics_are_on(settings: Settings) -> bool:
    """Whether metrics are sent anywhere. It loads nothing."""
    return settings.metrics.statsd_on or settings.metrics.statsd_datadog_enabled


def open_meter(settings: Settings) -> Meter | None:
    """The meter of this process; None: metrics are off.

    Raises:
        ConfigError: a regular expression of the settings is wrong.
    """
    if not metrics_are_on(settings):
        return None
    from tradewind.metrics.config import read_config
    from tradewind.metrics.meter import Meter

    config = read_config(lambda key: getattr(settings.metrics, key))
    return None if config is None else Meter(config)


def add_scheduler_metrics(settings: Settings, scheduler: Scheduler) -> list[Duty]:
    """Let the scheduler send metrics, if metrics are on. Returns the duties for this."""
    meter = open_meter(settings)
    if meter is None:
        return []
    from tradewind.scheduler.duties.metrics import SendMetrics
    from tradewind.scheduler.metrics.scheduler_metrics import SchedulerMetrics

    scheduler.metrics = SchedulerMetrics(meter)
    chosen = settings.scheduler
    return [SendMetrics(scheduler, chosen.pool_metrics_interval_us, chosen.ti_metrics_interval_us)]
