"""Creates the meter of a service process, if metrics are on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tradewind.model.errors import ConfigError

if TYPE_CHECKING:
    from tradewind.metrics.meter import Meter
    from tradewind.scheduler.core import Scheduler
    from tradewind.scheduler.duties import Duty
    from tradewind.settings import Settings


def metrics_are_on(settings: Settings) -> bool:
    """Whether metrics are sent anywhere. It loads nothing."""
    return settings.metrics.statsd_on or settings.metrics.statsd_datadog_enabled or settings.metrics.otel_on


@contextmanager
def service_meter(settings: Settings) -> Iterator[Meter | None]:
    """The meter of this service while it runs; None: metrics are off. The start and the end of the service are counted.

    Raises:
        ConfigError: a setting is wrong, or a package is missing.
    """
    if not metrics_are_on(settings):
        yield None
        return
    from tradewind.metrics.config import read_config
    from tradewind.metrics.meter import Meter

    try:
        config = read_config(lambda key: getattr(settings.metrics, key), os.environ)
    except ValueError as error:
        raise ConfigError(f"the settings of metrics are wrong: {error}") from error
    if config is None:
        yield None
        return
    meter = Meter(config)
    meter.send("count", "job_start", 1)
    try:
        yield meter
    finally:
        meter.send("count", "job_end", 1)
        meter.close()


def add_scheduler_metrics(settings: Settings, scheduler: Scheduler, meter: Meter | None) -> list[Duty]:
    """Let the scheduler send metrics, if metrics are on. Returns the duties for this."""
    if meter is None:
        return []
    from tradewind.scheduler.duties.metrics import SendMetrics
    from tradewind.scheduler.metrics.scheduler_metrics import SchedulerMetrics

    scheduler.metrics = SchedulerMetrics(meter, socket.gethostname())
    scheduler.watchers.on_events = scheduler.metrics.assets_updated
    scheduler.callbacks.on_deadline_missed = scheduler.metrics.deadline_missed
    chosen = settings.scheduler
    return [SendMetrics(scheduler, chosen.pool_metrics_interval_us, chosen.ti_metrics_interval_us)]
