"""Two rules of the design: no timer delays a task, and every wake-up message has a safety net.

The first test would detect a poll loop. The second one would detect a safety net that does not work.
"""

from __future__ import annotations

import itertools
import statistics
import time

import pytest
from benchmarks import dagfiles
from benchmarks.deployment import Deployment

from tradewind.platform import HAVE_LINUX
from tradewind.settings import load

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="needs the Linux process tree")

TASKS = 20
SLOW = {"TRADEWIND__CORE__SAFETY_NET_SCALE": "100"}


def _chain(deployment: Deployment, tasks: int) -> list[float]:
    """Run the chain once; milliseconds from the trigger to the first task's code, then of each hop."""
    began = time.monotonic_ns()
    assert deployment.wait(deployment.trigger("chain"), timeout=60) == 2
    marks = sorted(deployment.marks.take(), key=lambda mark: mark.started)
    assert dagfiles.problem_of(marks, tasks) is None
    hops = [(after.started - before.ended) / 1e6 for before, after in itertools.pairwise(marks)]
    return [(marks[0].started - began) / 1e6, *hops]


def _deployment(tasks: int, extra: dict[str, str]) -> Deployment:
    deployment = Deployment(standalone=False, extra=extra)
    deployment.add_file("chain.py", dagfiles.chain("chain", deployment.marks.path, tasks, 0))
    return deployment


def test_the_scale_factor_applies_to_every_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = load()
    monkeypatch.setenv("TRADEWIND__CORE__SAFETY_NET_SCALE", "100")
    scaled = load()
    for section, name in (
        ("scheduler", "resubmit_interval_us"),
        ("scheduler", "sweep_interval_us"),
        ("scheduler", "retention_interval_us"),
        ("runner", "start_retry_interval_us"),
        ("runner", "verdict_resend_interval_us"),
    ):
        assert getattr(getattr(scaled, section), name) == 100 * getattr(getattr(stock, section), name)


def test_slow_safety_nets_do_not_slow_a_chain_of_tasks() -> None:
    with _deployment(TASKS, {}) as stock, _deployment(TASKS, SLOW) as slow:
        _chain(stock, TASKS)
        _chain(slow, TASKS)
        hops: dict[str, list[float]] = {"stock": [], "slow": []}
        for _ in range(3):  # on a busy machine: more rounds instead of a wider margin
            for _ in range(4):
                hops["stock"] += _chain(stock, TASKS)[1:]
                hops["slow"] += _chain(slow, TASKS)[1:]
            ratio = statistics.median(hops["slow"]) / statistics.median(hops["stock"])
            if ratio <= 1.5:
                return
    pytest.fail(f"with safety nets 100 × slower, a hop takes {ratio:.2f} × as long: a timer delays the tasks")


NET_SECONDS = 0.4
"""Interval of the safety net under test: far above the time of a hop (some 10 ms), and short for those who wait."""
LONGEST_SECONDS = 8.0
NETS = {
    "submit": "TRADEWIND__SCHEDULER__RESUBMIT_INTERVAL",
    "start": "TRADEWIND__RUNNER__START_RETRY_INTERVAL",
    "accept": "TRADEWIND__RUNNER__START_RETRY_INTERVAL",
    "report": "TRADEWIND__RUNNER__VERDICT_RESEND_INTERVAL",
    "command": "TRADEWIND__SCHEDULER__SWEEP_INTERVAL",
}
"""Wake-up message → the setting with the interval of its safety net."""


@pytest.mark.parametrize("wake_up", NETS)
def test_without_a_wake_up_tasks_wait_for_its_safety_net(wake_up: str) -> None:
    tasks = 3
    with _deployment(tasks, {"TRADEWIND_DROP_WAKEUPS": wake_up, NETS[wake_up]: str(NET_SECONDS)}) as deployment:
        steps = _chain(deployment, tasks)
        # the first trigger came at any time between two sweeps, the second one just after a sweep
        again = _chain(deployment, tasks)
    paced = [again[0]] if wake_up == "command" else [*steps[1:], *again[1:]]
    assert statistics.median(paced) > NET_SECONDS * 1000 * 0.4, (
        f"{wake_up} was dropped, yet tasks did not wait: {steps} {again} ms"
    )
    assert max(*steps, *again) < LONGEST_SECONDS * 1000, f"the safety net of {wake_up} is slow: {steps} {again} ms"
