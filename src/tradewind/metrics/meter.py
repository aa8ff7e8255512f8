"""Takes the measurements of a process, and sends them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.lines import lines_of
from tradewind.metrics.measurement import NO_TAGS, Kind, Measurement
from tradewind.metrics.names import Names
from tradewind.metrics.sender import Sender, sender_for
from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log

if TYPE_CHECKING:
    from tradewind.metrics.otel import OtelExport

log = Log("metrics")


class Meter:
    """See the module. It never raises an error and never blocks; a measurement that cannot be sent is dropped.

    Raises:
        ConfigError: a regular expression of the settings is wrong, or a package is missing.
    """

    def __init__(self, config: MetricsConfig, sender: Sender | None = None) -> None:
        self._config = config
        try:
            self._names = Names(config)
        except re.error as error:
            raise ConfigError(
                "metrics.metrics_allow_list, metrics.metrics_block_list or metrics.statsd_disabled_tags has a wrong regular "
                f"expression {error.pattern!r}: {error}"
            ) from error
        self._otel: OtelExport | None = None
        self._sender = sender
        if config.otel is not None:
            from tradewind.metrics.otel import OtelExport  # lazy import: optional, the extra otel

            self._otel = OtelExport(config.otel, config.prefix)
        elif sender is None:
            self._sender = sender_for(config.host, config.port, config.ipv6)
        self._invalid_logged = False

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Take measurements. They are sent by `flush`."""
        for one in measurements:
            if self._otel is not None:
                for name, tags in self._names.of(one):
                    self._otel.record(one.kind, name, one.value / one.rate if one.kind == "count" else one.value, tags)
            elif self._sender is not None:
                self._sender.add(lines_of(one, self._names, self._config))
        if self._names.invalid and not self._invalid_logged:
            self._invalid_logged = True
            log.warning("metrics are not sent because their names have characters that StatsD servers do not accept")

    def send(self, kind: Kind, name: str, value: float, tags: Mapping[str, object] = NO_TAGS, rate: float = 1) -> None:
        """Send one measurement at once."""
        self.add((Measurement(kind, name, value, tags, rate),))
        self.flush()

    def flush(self) -> None:
        """Send what was taken. (OpenTelemetry exports at its own interval.)"""
        if self._sender is not None:
            self._sender.flush()

    def close(self) -> None:
        """Send what was taken, and release the resources. With OpenTelemetry this waits for an export, at most some seconds."""
        if self._sender is not None:
            self._sender.close()
        if self._otel is not None:
            self._otel.close()
