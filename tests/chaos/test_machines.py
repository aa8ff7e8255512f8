"""Faults between machines, judged by what the tasks wrote themselves. Everything but the loss of a worker ends no attempt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("websockets", reason="tests of gateways need websockets: pip install 'tradewind[remote]'")

from tests.chaos.killer import Outcome
from tests.chaos.machines import WORKER_LOST, Machines
from tests.chaos.namespace import Namespace, namespace
from tests.postgres_server import private_server


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of all machines and workers."""
    return {}


@pytest.fixture
def machines(tmp_path: Path, settings: dict[str, str]) -> Iterator[Machines]:
    seed = int(os.environ.get("CHAOS_SEED", "7"))
    with private_server() as server:
        made = Machines(tmp_path / "machines", server, seed, print, settings)
        try:
            made.start()
            yield made
        finally:
            made.close()


@pytest.fixture
def cable() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


def judged(outcome: Outcome) -> None:
    assert outcome.verdict.problems == []
    assert outcome.verdict.attempts > 20


@pytest.mark.timeout(300)
def test_no_task_is_lost_when_parts_of_the_control_plane_die(machines: Machines) -> None:
    """In turn: the gateway, the web server, the active scheduler with its supervisor, the database, a worker that drains."""
    machines.add_worker("w-a")
    machines.add_worker("w-b")
    machines.fault("gateway", machines.kill_gateway)
    machines.fault("api", machines.restart_api)
    machines.fault("scheduler", machines.lose_active_scheduler)
    machines.fault("database", machines.crash_database)
    machines.fault("drain", lambda: machines.drain_worker("w-b"))
    outcome = machines.verdict()
    judged(outcome)
    assert outcome.verdict.unended == 0, "only the loss of a worker ends an attempt"


@pytest.mark.slow  # the lease of a lost worker lasts 30 s
@pytest.mark.timeout(600)
@pytest.mark.parametrize("settings", [{"TRADEWIND__WORKER__OUTAGE_LEASE": "30"}], ids=["short outage lease"])
def test_no_task_is_lost_when_workers_are_killed_or_cut_off(machines: Machines, cable: Namespace) -> None:
    """Two workers and the scheduler in the same second. The new scheduler cannot know whether a worker that is gone reached another
    gateway, and got a lease for an outage: it waits as long as this lease (`worker.outage_lease`), which is short here.
    """
    machines.add_worker("w-a")
    machines.add_worker("w-b")
    machines.add_worker("w-c", cable.host, cable.prefix)
    machines.fault("host", lambda: machines.kill_worker("w-b"), WORKER_LOST)
    machines.fault("host", cable.cut, WORKER_LOST)
    machines.fault("scheduler", machines.lose_active_scheduler)
    outcome = machines.verdict()
    judged(outcome)
