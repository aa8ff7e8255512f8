"""Names of workers in pods."""

from __future__ import annotations

import pytest

from tradewind.wire.worker_names import attempt_of_pod, is_remote, pod_name, pod_worker, process_name, worker_of


def test_the_worker_in_a_pod_is_named_after_its_attempt() -> None:
    assert pod_name((7, 0, 2)) == "pod-7-0-2"
    worker = pod_worker((7, 0, 2))
    assert (attempt_of_pod(worker), is_remote(worker)) == ((7, 0, 2), True)
    assert attempt_of_pod(worker_of(process_name(worker, "ab12"))) == (7, 0, 2)


@pytest.mark.parametrize(
    "worker", ["w1", "etl@remote", "pod-1-2-3", "pod-1-2@remote", "pod-1-2-3@vm-3f2a", "pod-1-2-x@remote", ""]
)
def test_other_workers_have_no_attempt_of_their_own(worker: str) -> None:
    assert attempt_of_pod(worker) is None
