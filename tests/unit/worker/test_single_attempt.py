"""A worker host in a pod: it runs one attempt, delivers the result, and ends."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.unit.worker.configs import host_config, workload
from tradewind.model.states import Outcome
from tradewind.platform.clock import ManualClock
from tradewind.wire.messages import Report
from tradewind.worker.host import ATTEMPT_WITHIN, WorkerHost


def make_host(folder: Path) -> WorkerHost:
    return WorkerHost(msgspec.structs.replace(host_config(folder), slots=1, is_single=True), ManualClock())


def test_it_takes_no_second_attempt(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    host._end_after_attempt()
    host._submit(workload())
    assert (host.draining, list(host.pending)) == (True, [])


def test_it_stays_until_its_result_is_delivered(tmp_path: Path) -> None:
    """Its disk is lost when the pod ends."""
    host = make_host(tmp_path)
    host._must_deliver = lambda: bool(host.unacknowledged)  # type: ignore[method-assign]  # as with a gateway
    host.unacknowledged[1, 1, 1] = Report(1, Outcome.SUCCESS)
    host._end_after_attempt()
    host._stop_if_done()
    assert not host.stopping
    host.unacknowledged.clear()
    host._stop_if_done()
    assert host.stopping


def test_it_ends_if_no_attempt_comes(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    host.pending.append(workload())
    host._end_without_attempt()
    assert not host.stopping
    host.pending.clear()
    host._end_without_attempt()
    assert host.stopping
    assert ATTEMPT_WITHIN > 0
