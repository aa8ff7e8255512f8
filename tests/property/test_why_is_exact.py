"""`why` agrees with what the scheduler does: random worlds go through random histories, and `check_why` looks at quiet moments.

See `why_check` for what is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_kernel_agrees import DATE, dags
from tests.property.why_check import NotExact, check_next_runs, check_why
from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.world import HOURLY, Host, World
from tradewind.kernel import explain
from tradewind.kernel.admission import PARALLELISM
from tradewind.kernel.explain import Blocker
from tradewind.model.definition import CronSchedule, DagDefinition
from tradewind.model.moments import DAY, HOUR, SECOND
from tradewind.model.phrases import phrase
from tradewind.store.memory import MemoryStore

RARE = ("branch", "setup", "teardown", "list", "past", "dates", "due")
"""Rules whose blockers are removed first."""
SEEDS = 24
STEPS = 60


@pytest.mark.spec("S290")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_why_agrees_with_the_scheduler(seed: int) -> None:
    """Every kind of limit, runs that wait, clears, pauses, backfills, mapped tasks, restarts, a failing store."""
    world = World(MemoryStore(), seed)
    looked = 0
    for _ in range(STEPS):
        world.step()
        world.bench.process()
        if world.chance.random() < 0.4:
            looked += check_why(world.bench.scheduler, world.chance).instances
            check_next_runs(world.bench.scheduler, world.chance)
    assert looked


@pytest.mark.parametrize("seed", range(4))
def test_why_there_is_no_next_run(seed: int) -> None:
    """Paused DAGs, DAGs at max_active_runs, and runs that are not due."""
    chance, bench, made, done = Random(seed), Bench(MemoryStore()), dict[str, int](), 0
    for number in range(4):
        schedule = chance.choice([HOURLY, CronSchedule(("0 0 * * *",), interval_kind="data")])
        start, catchup = NOW - chance.choice([0, 6]) * HOUR, chance.random() < 0.5
        bench.dag(
            f"d{number}", task("a"), schedule=schedule, start_date=start, catchup=catchup, max_active_runs=chance.choice([1, 3])
        )
    for _ in range(15):
        bench.pass_time(chance.choice([1, 60, 3600, 9000]) * SECOND)
        roll = chance.random()
        if roll < 0.3:
            bench.command("set_paused", dag_id=f"d{chance.randrange(4)}", is_paused=chance.random() < 0.5)
        elif roll < 0.7:
            for work in bench.executor.submitted[done:]:
                bench.ask(work)
                bench.report(work)
                done += 1
        for rule, count in check_next_runs(bench.scheduler, chance, 2).items():
            made[rule] = made.get(rule, 0) + count
    assert {"not_due", "max_active_runs"} <= made.keys()


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(dags(), st.integers(0, 2**32), st.sampled_from([1, 3, 16]))
def test_why_agrees_with_the_scheduler_for_every_kind_of_dag(dag: DagDefinition, seed: int, places: int) -> None:
    """Every trigger rule, branches, setups and teardowns, mapped groups, task dates, previous runs."""
    chance = Random(seed)
    host = Host(chance)
    host.fails = 0.4
    bench = Bench(MemoryStore(), executor=host, wall=DATE + DAY)
    bench.dag("d", *dag.tasks, groups=dag.groups, start_date=dag.start_date, fail_fast=dag.fail_fast, max_active_tasks=places)
    for number in range(3):
        bench.command("trigger", dag_id="d", run_id=f"r{number}", logical_date=DATE + number * HOUR)
        for _ in range(chance.randint(1, 12)):
            host.step(bench.clock.wall())
            out, host.out = host.out, []
            for item in out:
                bench.scheduler.push(item)
            bench.process()
            if chance.random() < 0.2:
                bench.clock.advance(chance.choice([1, 10]) * SECOND)
                bench.process()
            check_why(bench.scheduler, chance, 1, wanted=RARE)


# --- the check is no decoration: what would be wrong is noticed -------------------------------------------------------------


def _histories() -> None:
    for seed in range(40):
        world = World(MemoryStore(), seed)
        for _ in range(STEPS):
            world.step()
            world.bench.process()
            check_why(world.bench.scheduler, world.chance, 3)


def _without(rule: str) -> Callable[..., list[Blocker]]:
    """`explain.limits` that leaves out one blocker."""
    honest = explain.limits

    def limits(*args: Any) -> list[Blocker]:
        return [one for one in honest(*args) if one.rule != rule]

    return limits


def _with(wrong: Blocker) -> Callable[..., list[Blocker]]:
    """`explain.limits` that names something that does not block."""
    honest = explain.limits

    def limits(*args: Any) -> list[Blocker]:
        return [*honest(*args), wrong]

    return limits


NOTHING = "why names no blocker of|has no blocker, but is not dispatched"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (_without("pool"), NOTHING),
        (_without("parallelism"), NOTHING),
        (_without("max_active_tasks"), NOTHING),
        (_without("paused"), NOTHING),
        (_with(Blocker("paused", phrase("words", text="It is paused, they say."))), "is dispatched, although why says"),
        (
            _with(Blocker("parallelism", phrase("words", text="Too many run."), resource=PARALLELISM)),
            "is dispatched, although why says",
        ),
    ],
    ids=["pool", "parallelism", "max_active_tasks", "paused", "not paused", "no parallelism"],
)
def test_a_wrong_explanation_is_found(
    monkeypatch: pytest.MonkeyPatch, lie: Callable[..., list[Blocker]], sentence: str
) -> None:
    monkeypatch.setattr(explain, "limits", lie)
    with pytest.raises(NotExact, match=sentence):
        _histories()


def test_a_superfluous_blocker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """`setups` that block tasks which do not wait for them."""
    monkeypatch.setattr(explain, "dependencies", lambda *args: [Blocker("past", phrase("words", text="The past, they say."))])
    with pytest.raises(NotExact, match="though"):
        _histories()
