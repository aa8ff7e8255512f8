"""The gauges of the scheduler: pools, executors, and task instances by state. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tradewind.metrics.measurement import Measurement
from tradewind.metrics.names import normalized
from tradewind.model.rows import PoolRow

SCHEDULED, QUEUED, RUNNING, DEFERRED = "scheduled", "queued", "running", "deferred"


class Instance(NamedTuple):
    """A task instance that waits for a slot, has one, or is deferred."""

    state: str
    """`SCHEDULED`, `QUEUED`, `RUNNING` or `DEFERRED`."""
    dag_id: str
    task_id: str
    queue: str
    pool: str
    slots: int
    """Number of slots of its pool that it needs."""
    executor: str


def of_instances(instances: Iterable[Instance], before: set[tuple[str, str, str, str]]) -> list[Measurement]:
    """How many instances each task has in each state.

    Args:
        before: state, queue, DAG and task of the values other than 0 that were sent last; it is updated. Each of them that is
            not there any more is sent once more, as 0.
    """
    counts = Counter((one.state, one.queue, one.dag_id, one.task_id) for one in instances)
    gone = before - counts.keys()
    before.clear()
    before.update(counts)
    return [
        Measurement("gauge", f"ti.{state}", count, {"queue": queue, "dag_id": dag_id, "task_id": task_id})
        for (state, queue, dag_id, task_id), count in [*counts.items(), *((key, 0) for key in gone)]
    ]


def of_pools(instances: Iterable[Instance], pools: Iterable[PoolRow]) -> Iterator[Measurement]:
    """How many slots of each pool are used, and by what."""
    used: Counter[tuple[str, str]] = Counter()
    scheduled: dict[str, list[int]] = {}
    for one in instances:
        used[one.pool, one.state] += one.slots
        if one.state == SCHEDULED:
            scheduled.setdefault(one.pool, []).append(one.slots)
    starving = 0
    for pool in pools:
        tags = {"pool_name": normalized(pool.name)}
        taken = used[pool.name, QUEUED] + used[pool.name, RUNNING]
        taken += used[pool.name, DEFERRED] if pool.include_deferred else 0
        free = pool.slots - taken if pool.slots >= 0 else -1
        yield Measurement("gauge", "pool.open_slots", free, tags)
        for state in (QUEUED, RUNNING, DEFERRED, SCHEDULED):
            yield Measurement("gauge", f"pool.{state}_slots", used[pool.name, state], tags)
        too_many = sum(1 for slots in scheduled.get(pool.name, ()) if slots > free) if pool.slots >= 0 else 0
        yield Measurement("gauge", "pool.starving_tasks", too_many, tags)
        starving += too_many
    yield Measurement("gauge", "scheduler.tasks.starving", starving)


def of_executors(instances: Iterable[Instance], slots: Iterable[tuple[str, int]]) -> Iterator[Measurement]:
    """How many task instances each executor has.

    Args:
        slots: name of each executor, and how many task instances it runs at a time; 0: unlimited.
    """
    counts = Counter((one.executor, one.state) for one in instances)
    for name, limit in slots:
        queued, running = counts[name, QUEUED], counts[name, RUNNING]
        if limit:
            yield _of_executor("open_slots", "open", name, max(0, limit - queued - running))
        yield _of_executor("queued_tasks", "queued", name, queued)
        yield _of_executor("running_tasks", "running", name, running)


def _of_executor(what: str, status: str, name: str, value: int) -> Measurement:
    return Measurement("gauge", f"executor.{what}", value, {"status": status, "executor_class_name": name})
