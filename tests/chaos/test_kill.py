"""The kill test of the test suite: every kind of process is killed three times. `make chaos` makes hundreds of kills.

A failure prints its seed; `CHAOS_SEED=… pytest tests/chaos/test_kill.py` kills in the same order again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.killer import KINDS, Killer, report

KILLS = 3 * len(KINDS)


@pytest.mark.timeout(300)
def test_no_task_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", "7"))
    print(f"seed {seed}; again: python -m tests.chaos --kills {KILLS} --seed {seed}")
    outcome = Killer(tmp_path / "chaos", KILLS, seed, print).run()
    report(outcome, print)
    assert outcome.verdict.problems == []
    assert all(outcome.counts[kind] >= 3 for kind in KINDS)
    assert outcome.verdict.attempts > 100
