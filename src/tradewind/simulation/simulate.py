"""Hours of operation in a second: the real scheduler and worker host under a virtual clock, with faults drawn from a seed.

    def test_my_dags_survive():
        for seed in range(20):
            simulate(seed, my_dag, other_dag)

Everything follows from the seed: when the scheduler crashes and between which two steps, which messages get lost, what the database
refuses, when clocks jump, what people command meanwhile, and how tasks end. Code of tasks is not carried out: what they come to is
drawn. After every commit independent checkers look whether all that Tradewind promises holds; then faults stop, and everything has
to come to its end. Without DAGs, the seed draws these, too.

How it works, and the list of what is checked: docs/explanation/simulation.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.definition import DagDefinition, map_providers
from tradewind.model.moments import HOUR, SECOND
from tradewind.sdk.definition import to_definition
from tradewind.simulation.faults import CALM
from tradewind.simulation.timeline import START
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import Found, World
from tradewind.testing.dag_test import configured_defaults

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG


class SimulationFailed(AssertionError):
    """Something that Tradewind promises did not hold; the text says what, when, and how to see it again."""


@dataclass(frozen=True)
class Simulated:
    """What one seed came to."""

    seed: int
    digest: str
    """Hash over everything that happened, in order. The same seed gives the same one."""
    hours: float
    """Virtual ones, healing included."""
    faults: Counter[str] = field(default_factory=Counter)
    """Injected, by kind."""
    sometimes: Counter[str] = field(default_factory=Counter)
    """Situations that were reached."""
    found: tuple[Found, ...] = ()
    """What did not hold; empty when all is well."""
    trace: tuple[str, ...] = ()
    """What happened, line by line, when that was asked for."""


def simulate(
    seed: int,
    *dags: DAG,
    hours: float | None = None,
    faults: bool = True,
    strict: bool = True,
    trace: bool = False,
) -> Simulated:
    """Live through one seed.

    Args:
        dags: run by their schedules and by hand, each task coming to what the seed draws. None: DAGs are drawn, too.
        hours: virtual hours with faults, before the healing; drawn unless given.
        faults: False for a world in which nothing breaks (tasks fail all the same).
        strict: raise when something does not hold.
        trace: keep what happened.

    Raises:
        SimulationFailed: with one line that shows it again.
    """
    plans = [_plan(dag, hours or 1) for dag in dags] if dags else None
    world = World(seed, plans=plans, profile=None if faults else CALM, hours=hours, trace=trace).run()
    line = world.timeline
    done = Simulated(
        seed,
        line.digest,
        line.now / HOUR,
        line.faults,
        line.sometimes,
        tuple(world.violations),
        tuple(line.trace or ()),
    )
    if strict and done.found:
        raise SimulationFailed(explain(done, ", ".join(dag.dag_id for dag in dags)))
    return done


def explain(done: Simulated, dags: str = "") -> str:
    """What did not hold, and the line that shows it again."""
    found = "\n".join(f"  [{one.rule}] after {one.at / HOUR:.3f} h: {one.text}" for one in done.found[:5])
    again = f"tradewind.testing.simulate({done.seed}{', ' + dags if dags else ''})"
    return f"seed {done.seed}: {len(done.found)} broken promises\n{found}\nAgain: {again}"


def _plan(dag: DAG, hours: float) -> Plan:
    definition = to_definition(dag, dag.fileloc, configured_defaults())
    end = min(definition.end_date or START + int(hours * HOUR), START + int(hours * HOUR))
    definition = msgspec.structs.replace(
        definition, is_paused_upon_creation=False, end_date=end, fileloc=f"{definition.dag_id}.py"
    )
    return Plan(definition, _habits(definition), 4)


def _habits(definition: DagDefinition) -> dict[str, Habit]:
    """What the attempts of its tasks are like: branches by their operators' names, lists where somebody is mapped over them."""
    sources = [task.expand for task in definition.tasks] + [group.expand for group in definition.groups]
    providers = {name for expand in sources for name in map_providers(expand)}
    found = {}
    for task in definition.tasks:
        below = tuple(other.task_id for other in definition.tasks if task.task_id in other.upstream)
        kind = (
            "provider"
            if task.task_id in providers
            else "brancher"
            if "Branch" in task.operator and below
            else "sensor"
            if "Sensor" in task.operator
            else "plain"
        )
        found[task.task_id] = Habit(kind, 5 * SECOND, 0.1, 0.02, 0.1, below, longest=5, pokes=3, wait=30 * SECOND)
    return found
