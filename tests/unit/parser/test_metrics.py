"""The metrics of the parser."""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.metrics.sender import Sender
from tradewind.model.moments import SECOND
from tradewind.parser.metrics import ParserMetrics
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop


class Kept(Meter):
    """A meter that keeps the measurements."""

    def __init__(self) -> None:
        super().__init__(MetricsConfig("127.0.0.1", 8125), Sender(None))
        self.found: list[tuple[str, float, dict[str, object]]] = []

    def add(self, measurements: Iterable[Measurement]) -> None:
        self.found += [(one.name, one.value, dict(one.tags)) for one in measurements]


def test_readings_and_heartbeats() -> None:
    meter, loop = Kept(), Loop(ManualClock(0))
    metrics = ParserMetrics(meter, loop, 5 * SECOND, lambda: 2, lambda: 1)
    try:
        metrics.began("team a/load.py")
        metrics.ended("team a/load.py", timed_out=False)
        metrics.read("dags-folder", "team a/load.py", SECOND // 2)
        metrics.ended("slow.py", timed_out=True)
        metrics.read("dags-folder", "slow.py", 3 * SECOND)
        assert meter.found == [
            ("dag_processing.processes", 1, {"file_path": "team_a/load.py", "action": "start"}),
            ("dag_processing.processes", -1, {"file_path": "team_a/load.py", "action": "stop"}),
            ("dag_processing.last_duration", 500, {"bundle_name": "dags-folder", "file_name": "load"}),
            ("dag_processing.processes", -1, {"file_path": "slow.py", "action": "timeout"}),
            ("dag_processing.processor_timeouts", 1, {"file_path": "slow.py"}),
            ("dag_processing.last_duration", 3000, {"bundle_name": "dags-folder", "file_name": "slow"}),
        ]
        meter.found.clear()
        metrics.gone("dags-folder", "slow.py")
        metrics.beat()
        assert meter.found == [
            ("dag_processor_heartbeat", 1, {}),
            ("dag_processing.file_path_queue_size", 2, {}),
            ("dag_processing.import_errors", 1, {}),
            ("dag_processing.total_parse_time", 0.5, {}),
        ]
    finally:
        loop.close()
