"""The metrics of the parser. An object exists only if metrics are on."""

from __future__ import annotations

import os
from collections.abc import Callable

from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.metrics.names import normalized
from tradewind.model.moments import SECOND
from tradewind.platform.loop import Loop

_MS = 1000
"""Microseconds in a millisecond."""


class ParserMetrics:
    """See the module.

    Args:
        interval: between two heartbeats with their gauges, microseconds.
        queued: returns how many files wait to be read or are being read.
        broken: returns how many files have an import error.
    """

    def __init__(self, meter: Meter, loop: Loop, interval: int, queued: Callable[[], int], broken: Callable[[], int]) -> None:
        self._meter = meter
        self._loop = loop
        self._interval = interval
        self._queued = queued
        self._broken = broken
        self._durations: dict[tuple[str, str], int] = {}
        """(bundle, file) → duration of its last reading, microseconds."""

    def beat(self) -> None:
        """Send a heartbeat and the gauges, now and after each interval."""
        self._meter.add(
            [
                Measurement("count", "dag_processor_heartbeat", 1),
                Measurement("gauge", "dag_processing.file_path_queue_size", self._queued()),
                Measurement("gauge", "dag_processing.import_errors", self._broken()),
                Measurement("gauge", "dag_processing.total_parse_time", sum(self._durations.values()) / SECOND),
            ]
        )
        self._meter.flush()
        self._loop.call_later(self._interval, self.beat)

    def scanned(self) -> None:
        """A scan of a folder has ended."""
        self._send(Measurement("count", "dag_processing.file_path_queue_update_count", 1))

    def began(self, file: str) -> None:
        """A process has begun to read a file."""
        self._send(Measurement("count", "dag_processing.processes", 1, {"file_path": normalized_path(file), "action": "start"}))

    def ended(self, file: str, *, timed_out: bool) -> None:
        """The process that read a file has ended, by itself or because it took too long."""
        path = normalized_path(file)
        action = "timeout" if timed_out else "stop"
        self._send(Measurement("count", "dag_processing.processes", -1, {"file_path": path, "action": action}))
        if timed_out:
            self._send(Measurement("count", "dag_processing.processor_timeouts", 1, {"file_path": path}))

    def read(self, bundle: str, file: str, duration: int) -> None:
        """A file was read.

        Args:
            duration: microseconds.
        """
        self._durations[bundle, file] = duration
        name = os.path.splitext(os.path.basename(file))[0]
        tags = {"bundle_name": normalized(bundle), "file_name": normalized(name)}
        self._send(Measurement("timing", "dag_processing.last_duration", duration / _MS, tags))

    def gone(self, bundle: str, file: str) -> None:
        """A file does not exist any more."""
        self._durations.pop((bundle, file), None)

    def _send(self, measurement: Measurement) -> None:
        self._meter.add((measurement,))
        self._meter.flush()


def normalized_path(path: str) -> str:
    """A path for a tag: it keeps its slashes."""
    return "/".join(normalized(part) for part in path.split("/"))
