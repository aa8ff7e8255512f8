"""Simulates hours of operation in a second: the real scheduler and worker host with a virtual clock and faults drawn from a seed.

    def test_my_dags_survive():
        for seed in range(20):
            simulate(seed, my_dag, other_dag)

The seed decides everything: when the scheduler crashes and between which two steps, which messages are lost, which statements the
database refuses, when clocks jump, which commands users send, and how tasks end. The code of tasks does not run: their results are
drawn. Independent checks run after every commit. At the end the faults stop, and everything must end. Without DAGs, the seed also
draws the DAGs.

For the design and the list of checks, see docs/explanation/simulation.md.
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
from tradewind.simulation.world import Finding, World
from tradewind.testing.dag_test import configured_defaults

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG


class SimulationFailed(AssertionError):
    """A guarantee of Tradewind was violated. The text says which one, when, and how to repeat the simulation."""


@dataclass(frozen=True)
class Simulated:
    """The result of one seed."""

    seed: int
    digest: str
    """Hash over all events in their order. The same seed gives the same digest."""
    hours: float
    """Virtual hours, including the time after the faults."""
    faults: Counter[str] = field(default_factory=Counter)
    """Number of injected faults by kind."""
    sometimes: Counter[str] = field(default_factory=Counter)
    """Number of times that each interesting situation was reached."""
    found: tuple[Finding, ...] = ()
    """The violations of guarantees; empty if there are none."""
    trace: tuple[str, ...] = ()
    """The events, line by line, if `trace` was requested."""


def simulate(
    seed: int,
    *dags: DAG,
    hours: float | None = None,
    faults: bool = True,
    strict: bool = True,
    trace: bool = False,
    machines: bool = False,
) -> Simulated:
    """Simulate one seed.

    Args:
        dags: the DAGs to run by their schedules and manually; the seed draws the results of their tasks. None: DAGs are drawn, too.
        hours: virtual hours with faults; drawn by default.
        faults: False: no faults (tasks can still fail).
        strict: raise an error if a guarantee is violated.
        trace: record all events.
        machines: simulate several machines, with gateways, remote workers, a standby scheduler and, in half of the seeds, Celery.

    Raises:
        SimulationFailed: a guarantee was violated; the text contains one line of code that repeats the simulation.
    """
    plans = [_plan(dag, hours or 1) for dag in dags] if dags else None
    make = _machine_world() if machines else World
    world = make(seed, plans=plans, profile=None if faults else CALM, hours=hours, trace=trace).run()
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
        raise SimulationFailed(explain(done, ", ".join(dag.dag_id for dag in dags), machines=machines))
    return done


def _machine_world() -> type[World]:
    from tradewind.simulation.machine_world import MachineWorld  # lazy import: needs the extra remote

    return MachineWorld


def explain(done: Simulated, dags: str = "", *, machines: bool = False) -> str:
    """Return the violations, and the line of code that repeats the simulation."""
    found = "\n".join(f"  [{one.rule}] after {one.at / HOUR:.3f} h: {one.text}" for one in done.found[:5])
    again = f"tradewind.testing.simulate({done.seed}{', ' + dags if dags else ''}{', machines=True' if machines else ''})"
    return f"seed {done.seed}: {len(done.found)} broken promises\n{found}\nAgain: {again}"


def _plan(dag: DAG, hours: float) -> Plan:
    definition = to_definition(dag, dag.fileloc, configured_defaults())
    end = min(definition.end_date or START + int(hours * HOUR), START + int(hours * HOUR))
    definition = msgspec.structs.replace(
        definition, is_paused_upon_creation=False, end_date=end, fileloc=f"{definition.dag_id}.py"
    )
    return Plan(definition, _habits(definition), 4)


def _habits(definition: DagDefinition) -> dict[str, Habit]:
    """Return how the attempts of the tasks behave: branches by names of operators, lists if other tasks are mapped over them."""
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
