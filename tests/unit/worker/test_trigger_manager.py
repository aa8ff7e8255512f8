"""The host's look at a triggerer that does not turn any more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tradewind.model.moments import SECOND
from tradewind.model.waits import TriggerWait
from tradewind.platform.clock import ManualClock
from tradewind.wire.messages import TriggerOrder
from tradewind.worker.trigger_heartbeat import Page, make_page
from tradewind.worker.trigger_manager import TriggerManager

KEY = (1, 2, 3)


class Deployment:
    """A manager whose triggerer is this test."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.clock.advance(1000 * SECOND)
        config = SimpleNamespace(
            limits=SimpleNamespace(xcom_max=1000), log_max=100_000, log_line_max=1000, log_folder=str(folder)
        )
        host = SimpleNamespace(config=config, clock=self.clock, send=lambda message: None, stopping=False)
        self.manager = TriggerManager(cast("Any", host))
        self.manager.wanted[KEY] = TriggerOrder(KEY, TriggerWait("pkg.T"), "", "t", "t.log", "")
        self.manager._page = make_page()
        self.manager._state = "up"
        self.page = Page(os.dup(self.manager._page))
        self.turn()

    def turn(self) -> None:
        self.page.loop_ran(self.clock.monotonic() / SECOND)

    def failed(self) -> str:
        end = self.manager.fired.get(KEY)
        return "" if end is None else end.error or ""


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    found = Deployment(tmp_path)
    yield found
    os.close(found.manager._page)


def test_it_is_the_one_whose_code_runs_that_fails(deployment: Deployment) -> None:
    deployment.page.code_started(KEY)
    for seconds in (10, 30, 30):
        deployment.clock.advance(seconds * SECOND)
        deployment.manager.resend()
        assert deployment.failed() == ""
    for _ in range(2):
        deployment.clock.advance(10 * SECOND)
        deployment.manager.resend()
    assert "blocked the event loop of all triggers for 90 s" in deployment.failed()


def test_nobody_fails_when_both_were_stopped_and_the_host_comes_first(deployment: Deployment) -> None:
    deployment.page.code_started(KEY)
    deployment.clock.advance(3600 * SECOND)
    deployment.manager.resend()
    deployment.turn()
    deployment.clock.advance(SECOND)
    deployment.manager.resend()
    deployment.clock.advance(3600 * SECOND)
    deployment.manager.resend()
    deployment.turn()
    assert deployment.failed() == ""


def test_before_its_first_turn_nothing_is_known(deployment: Deployment) -> None:
    deployment.page.loop_ran(0.0)
    for _ in range(3):
        deployment.clock.advance(3600 * SECOND)
        deployment.manager.resend()
    assert deployment.failed() == ""
