"""The process of a task: what it says of itself when it reports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.unit.execution.world import workload
from tradewind import DAG, task
from tradewind.client.channel import Channel
from tradewind.wire.messages import Report
from tradewind.worker import task_process
from tradewind.worker.config import TaskLimits


class Line:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.said: list[Report] = []

    def report(self, report: Report) -> None:
        self.said.append(report)

    def rendered(self, fields: bytes) -> None:
        """Not looked at here."""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    yield
    task_process.reset()


def reported(fails: bool, **callbacks: Any) -> Report:
    with DAG("d", schedule=None) as dag:

        @task(**callbacks)
        def t() -> None:
            if fails:
                raise RuntimeError("boom")

        t()
    line = Line()
    limits = TaskLimits(
        xcom_folder="", xcom_inline_max=1 << 10, xcom_max=1 << 20, memory_max=0, descriptors=64, descriptors_hard=64
    )
    task_process.run_and_report(workload("t"), {workload("t").dag_id: dag}, cast("Channel", line), limits)
    return line.said[0]


@pytest.mark.parametrize(
    ("fails", "callbacks", "calls"),
    [
        (False, {}, False),
        (True, {}, False),
        (False, {"on_failure_callback": print}, False),
        (True, {"on_failure_callback": print}, True),
        (False, {"on_success_callback": print}, True),
    ],
)
def test_only_who_has_something_to_call_says_that_it_calls(fails: bool, callbacks: dict[str, Any], calls: bool) -> None:
    """The worker tells the scheduler how such a process ended: every other task would pay for that with a message and a commit."""
    assert reported(fails, **callbacks).calls_back is calls
