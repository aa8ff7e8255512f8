"""DAGs drawn from a seed: small, but with every feature, and with limits that are really reached."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tradewind.model.definition import (
    CronSchedule,
    DagDefinition,
    Delta,
    DeltaSchedule,
    MapLiteral,
    MapXCom,
    NoSchedule,
    TaskDefinition,
)
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.states import TriggerRule, WeightRule
from tradewind.simulation.timeline import START

R = TriggerRule
_RULES = [R.ALL_SUCCESS] * 8 + [rule for rule in R if rule is not R.ALL_DONE_SETUP_SUCCESS]
_EVERY = (5, 10, 15, 20, 30, 60)
POOLS = ("default_pool", "small", "wide")


class Habit(NamedTuple):
    """How the attempts of a task behave."""

    kind: str
    """`plain`, `sensor`, `brancher`, `provider` or `triggerer`."""
    duration: int
    fails: float
    skips: float
    final: float
    targets: tuple[str, ...] = ()
    """For a brancher: the tasks from which it chooses. For a triggerer: the DAGs whose runs it may trigger."""
    longest: int = 0
    """For a provider: the maximum length of its list."""
    pokes: int = 0
    """For a sensor: approximate number of reschedules."""
    wait: int = 0
    waits: tuple[str, ...] = ()
    """The kinds of waits of its attempts, see `triggers.KINDS`."""


class Plan(NamedTuple):
    """One DAG."""

    definition: DagDefinition
    habits: dict[str, Habit]
    runs_by_hand: float
    """Manual triggers per hour."""


def habit_of(rng: random.Random, kind: str = "plain") -> Habit:
    duration = int(rng.choice((0.05, 1, 5, 30, 120)) * SECOND)
    return Habit(
        kind,
        duration,
        rng.choice((0, 0, 0.05, 0.2, 0.5)),
        rng.choice((0, 0, 0, 0.1, 0.3)),
        rng.choice((0, 0, 0, 0.1)),
        pokes=rng.randrange(1, 6),
        wait=rng.choice((5, 30, 120)) * SECOND,
        longest=rng.randrange(0, 6),
    )


def draw_dag(rng: random.Random, dag_id: str, horizon: int, others: Iterable[str] = (), *, version: int = 0) -> Plan:
    """Draw one DAG. Its schedule ends when the faults stop.

    Args:
        horizon: microseconds for which its schedule creates runs.
        others: DAGs that its tasks may trigger.
        version: a number in its description, so that each draw is a new version.
    """
    count = rng.choice((1, 2, 3, 4, 5, 6, 8))
    past = rng.random() < 0.25
    tasks: list[TaskDefinition] = []
    habits: dict[str, Habit] = {}
    names: list[str] = []
    others = list(others)
    for number in range(count):
        name = f"t{number}"
        ups = tuple(sorted(one for one in names if rng.random() < 0.4))
        kind = rng.choices(
            ("plain", "sensor", "brancher", "provider", "triggerer", "empty"), (10, 2, 2, 2, 1 if others else 0, 1)
        )[0]
        habits[name] = habit_of(rng, kind)
        if kind == "triggerer":
            habits[name] = habits[name]._replace(targets=(rng.choice(others),))
        tasks.append(
            TaskDefinition(
                name,
                upstream=ups,
                trigger_rule=rng.choice(_RULES) if ups else R.ALL_SUCCESS,
                retries=rng.choice((0, 0, 1, 2, 3)),
                retry_delay=rng.choice((1, 10, 60, 300)) * SECOND,
                retry_exponential_backoff=rng.choice((0.0, 0.0, 2.0)),
                max_retry_delay=rng.choice((None, 600 * SECOND)),
                execution_timeout=rng.choice((None, None, None, 60 * SECOND)),
                depends_on_past=past and rng.random() < 0.5,
                wait_for_downstream=past and rng.random() < 0.2,
                pool=rng.choice(POOLS),
                pool_slots=rng.choice((1, 1, 1, 2)),
                priority_weight=rng.randrange(1, 5),
                weight_rule=rng.choice(list(WeightRule)),
                max_active_tis_per_dag=rng.choice((None, None, None, 1, 2)),
                max_active_tis_per_dagrun=rng.choice((None, None, None, 1, 2)),
                empty=kind == "empty",
            )
        )
        names.append(name)
    tasks = _map_some(rng, tasks, habits)
    tasks = _branch_some(tasks, habits)
    if rng.random() < 0.25:
        tasks = _between_setup_and_teardown(rng, tasks, habits)
    every = rng.choice(_EVERY)
    kind = rng.choice(("none", "cron", "every"))
    schedule = (
        NoSchedule()
        if kind == "none"
        else CronSchedule((f"*/{every} * * * *" if every < 60 else "0 * * * *",))
        if kind == "cron"
        else DeltaSchedule(Delta(every * MINUTE))
    )
    back = rng.choice((0, 0, 2, 6)) * every * MINUTE
    definition = DagDefinition(
        dag_id,
        tasks=tuple(tasks),
        schedule=schedule,
        start_date=START - back,
        end_date=START + horizon,
        catchup=rng.random() < 0.5,
        max_active_tasks=rng.choice((1, 2, 4, 16)),
        max_active_runs=rng.choice((1, 1, 2, 4)),
        dagrun_timeout=rng.choice((None, None, None, 20 * MINUTE, 60 * MINUTE)),
        fail_fast=rng.random() < 0.15,
        is_paused_upon_creation=False,
        description=f"version {version}" if version else None,
        fileloc=f"{dag_id}.py",
    )
    return Plan(definition, habits, rng.choice((0, 1, 4, 12)) if kind != "none" else rng.choice((2, 6, 20)))


def _map_some(rng: random.Random, tasks: list[TaskDefinition], habits: dict[str, Habit]) -> list[TaskDefinition]:
    """Map a task over the list of a provider, and another task over a list in the DAG file."""
    found = []
    for task in tasks:
        providers = [name for name in task.upstream if habits[name].kind == "provider"]
        plain = habits[task.task_id].kind == "plain"
        if plain and providers and rng.random() < 0.7:
            task = msgspec.structs.replace(task, mapped=True, expand=(MapXCom(providers[0]),))
        elif plain and rng.random() < 0.05:
            task = msgspec.structs.replace(task, mapped=True, expand=(MapLiteral(rng.randrange(0, 5)),))
        found.append(task)
    mapped = {task.task_id for task in found if task.mapped}
    for name in mapped:
        habits[name] = habits[name]._replace(kind="plain")
    return found


def _branch_some(tasks: list[TaskDefinition], habits: dict[str, Habit]) -> list[TaskDefinition]:
    for task in tasks:
        if habits[task.task_id].kind == "brancher":
            below = tuple(other.task_id for other in tasks if task.task_id in other.upstream)
            habits[task.task_id] = habits[task.task_id]._replace(targets=below, kind="brancher" if below else "plain")
    return tasks


def _between_setup_and_teardown(
    rng: random.Random, tasks: list[TaskDefinition], habits: dict[str, Habit]
) -> list[TaskDefinition]:
    """Put all tasks between a setup and its teardown."""
    leaves = {task.task_id for task in tasks} - {up for task in tasks for up in task.upstream}
    habits["setup"], habits["teardown"] = habit_of(rng), habit_of(rng)
    setup = TaskDefinition("setup", is_setup=True, retries=rng.randrange(3), retry_delay=10 * SECOND)
    teardown = TaskDefinition(
        "teardown",
        is_teardown=True,
        upstream=tuple(sorted({"setup", *leaves})),
        trigger_rule=R.ALL_DONE_SETUP_SUCCESS,
        retries=rng.randrange(2),
        retry_delay=10 * SECOND,
        on_failure_fail_dagrun=rng.random() < 0.3,
    )
    work = [msgspec.structs.replace(task, upstream=("setup",)) if not task.upstream else task for task in tasks]
    return [setup, *work, teardown]
