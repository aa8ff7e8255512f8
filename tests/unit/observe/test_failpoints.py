"""Failpoints."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.observe import failpoints
from tradewind.observe.failpoints import FailpointHit, arm, drop, fp, passes


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    arm({})
    yield
    arm({})


def child(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from tradewind.observe.failpoints import *\n" + code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def passing(name: str, times: int) -> list[bool]:
    """For each pass: whether it raised."""
    hits = []
    for _ in range(times):
        try:
            fp(name)
        except FailpointHit:
            hits.append(True)
        else:
            hits.append(False)
    return hits


def test_an_unarmed_failpoint_does_nothing() -> None:
    fp("anything")
    assert not drop("anything", 1)
    assert passes("anything") == 0


def test_an_unarmed_failpoint_costs_one_comparison() -> None:
    """The name is not used."""
    fp([])  # type: ignore[arg-type]  # unhashable: a dict look-up would raise
    arm({"TRADEWIND_FAILPOINTS": "x=raise"})
    with pytest.raises(TypeError):
        fp([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "hits"),
    [
        ("raise", [True, True, True, True]),
        ("raise@3", [False, False, True, False]),
        ("raise@3+", [False, False, True, True]),
    ],
)
def test_the_pass_that_acts(action: str, hits: list[bool]) -> None:
    arm({"TRADEWIND_FAILPOINTS": f"other=hang; here={action};"})
    assert passing("here", 4) == hits
    assert passes("here") == 4


def test_the_message_names_the_failpoint() -> None:
    arm({"TRADEWIND_FAILPOINTS": "here=raise"})
    with pytest.raises(FailpointHit, match="'here', pass 1"):
        fp("here")


def test_sleep_continues_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    arm({"TRADEWIND_FAILPOINTS": "here=sleep:250"})
    fp("here")
    assert slept == [0.25]


@pytest.mark.parametrize(("action", "status"), [("kill9@2", -9), ("exit@2", 70), ("exit:3@2", 3)])
def test_a_process_ends_at_once(action: str, status: int) -> None:
    """The environment is read at import; there is no clean-up."""
    code = "import atexit; atexit.register(print, 'cleaned up')\nfp('here'); print('once', flush=True); fp('here')"
    done = child(code, TRADEWIND_FAILPOINTS=f"here={action}")
    assert (done.returncode, done.stdout) == (status, "once\n")


def test_hang_sleeps_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    arm({"TRADEWIND_FAILPOINTS": "here=hang"})
    with pytest.raises(KeyboardInterrupt):
        fp("here")


def test_once_for_all_processes_that_share_a_folder(tmp_path: Path) -> None:
    armed = {"TRADEWIND_FAILPOINTS": "here=exit", "TRADEWIND_FAILPOINTS_ONCE": str(tmp_path)}
    assert [child("fp('here')", **armed).returncode for _ in range(3)] == [70, 0, 0]


def test_drop_drops_only_the_named_wake_ups() -> None:
    arm({"TRADEWIND_DROP_WAKEUPS": "submit, report"})
    assert [drop(name, 1) for name in ("submit", "report", "start")] == [True, True, False]


def test_drop_drops_only_the_first_wake_up_of_each_object() -> None:
    arm({"TRADEWIND_DROP_WAKEUPS": "submit"})
    assert [drop("submit", what) for what in (1, 1, 2, 1, 2)] == [True, False, True, False, False]


@pytest.mark.parametrize(
    "spec",
    ["here", "=raise", "here=", "here=explode", "here=raise:1", "here=sleep", "here=sleep:x", "here=kill9@0", "here=kill9@"],
)
def test_an_invalid_spec_is_an_error(spec: str) -> None:
    with pytest.raises(ValueError, match="TRADEWIND_FAILPOINTS: cannot read"):
        arm({"TRADEWIND_FAILPOINTS": f"ok=raise;{spec}"})


def test_passes_are_counted_over_all_processes_that_share_a_folder(tmp_path: Path) -> None:
    env = {"TRADEWIND_FAILPOINTS": "here=exit:3#4", "TRADEWIND_FAILPOINTS_ONCE": str(tmp_path)}
    codes = [child("fp('here'); fp('here')", **env).returncode for _ in range(3)]
    assert codes == [0, 3, 0]


def test_a_listener_is_called_at_every_failpoint_instead_of_armed_actions() -> None:
    arm({"TRADEWIND_FAILPOINTS": "here=raise"})
    received: list[str] = []
    failpoints.listen(received.append)
    try:
        fp("here")
        fp("there")
    finally:
        failpoints.listen(None)
    fp("here")
    assert received == ["here", "there"]
