"""The cost of an event does not depend on the load: executed lines of code are counted, not time.

Each piece of work is done beside a small crowd of DAGs, runs, waits and attempts, and beside one ten times as large. Both times
the same lines must be executed equally often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from benchmarks.steps import lines_of

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.moments import SECOND
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral, TasksWait, TriggerEnd, TriggerWait, Wait
from tradewind.scheduler.duties.retention import Retention
from tradewind.scheduler.server import SchedulerServer
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.store.memory import MemoryStore

FEW, MANY = 4, 40
CROWD_BEGINS = 50
"""Day of the first run of the crowd. Those of the DAG under test are earlier."""
WAITING = ("w0", "w1", "w2")
"""Tasks of the crowd that are deferred: to a trigger, until a run ends, until a task ends."""

Work = Callable[[Bench], Callable[[], object]]


def crowd(bench: Bench, size: int) -> None:
    """Create DAGs, and runs of one of them: running ones that depend on previous runs, wait for triggers and for runs, and
    queued ones.
    """
    bench.pool("default_pool", 1000)
    bench.dag("wide", task("a"), max_active_runs=size)
    for number in range(size):
        bench.trigger("wide", f"r{number}", number)
        bench.dag(f"other{number}", task("a"))
        bench.trigger(f"other{number}", "r")
    bench.dag("queue", task("a"), max_active_runs=1)
    looking_back = [task("p", depends_on_past=True), task("q", "p")]
    bench.dag("crowd", task("a"), *looking_back, *map(task, WAITING), max_active_runs=size, max_active_tasks=1000)
    for number in range(size):
        bench.trigger("queue", f"q{number}", number)
        bench.trigger("crowd", f"r{number}", CROWD_BEGINS + number)
        of_queue, of_watched = TasksWait("queue", run_ids=(f"q{number}",)), TasksWait("watched", (NOW,), task_ids=("x",))
        waits: list[Wait] = [TriggerWait("pkg.T"), of_queue, of_watched]
        for name, wait in zip(WAITING, waits, strict=True):
            bench.finish(f"crowd/r{number}.{name}", outcome=Outcome.DEFERRED, deferral=Deferral(wait, "go_on"))
    assert len(bench.scheduler.waits.open) == len(WAITING) * size
    assert len(bench.scheduler.active_runs_by_id) == 3 * size + 1


def subject(bench: Bench) -> None:
    """Create the DAG under test: two running runs, the later of which depends on the earlier one, and an ended one."""
    tasks = [task("a"), task("b", "a", depends_on_past=True), task("c", depends_on_past=True, wait_for_downstream=True)]
    bench.dag("d", *tasks, max_active_runs=3)
    bench.trigger("d", "ended", 1)
    bench.finish("d/ended.a", "d/ended.b", "d/ended.c")
    bench.trigger("d", "one", 2)
    bench.trigger("d", "two", 3)


def end(bench: Bench, attempt: str) -> None:
    """Let a task succeed, without a query to the store."""
    bench.ask(attempt)
    bench.report(attempt)


def a_run_begins(bench: Bench) -> Callable[[], object]:
    return lambda: bench.trigger("d", "three", 4)


def a_run_of_the_past_begins(bench: Bench) -> Callable[[], object]:
    return lambda: bench.trigger("d", "zero", 0)


def a_run_of_a_long_queue_is_made(bench: Bench) -> Callable[[], object]:
    return lambda: bench.trigger("queue", "more", 90)


def a_run_of_a_dag_with_many_running_runs_is_made(bench: Bench) -> Callable[[], object]:
    return lambda: bench.trigger("wide", "more", 90)


def a_run_of_a_dag_with_many_running_runs_ends(bench: Bench) -> Callable[[], object]:
    bench.trigger("wide", "more", 90)
    return lambda: end(bench, "wide/r0.a")


def a_task_that_others_look_back_at_ends(bench: Bench) -> Callable[[], object]:
    return lambda: end(bench, "d/one.c")


def a_run_ends(bench: Bench) -> Callable[[], object]:
    bench.finish("d/one.a", "d/one.b")
    return lambda: end(bench, "d/one.c")


def a_run_of_the_crowd_goes_on(bench: Bench) -> Callable[[], object]:
    return lambda: end(bench, "crowd/r0.p")


def a_run_is_cleared(bench: Bench) -> Callable[[], object]:
    bench.finish("d/one.a")
    return lambda: bench.clear("d", "one", "a")


def an_ended_run_is_cleared(bench: Bench) -> Callable[[], object]:
    return lambda: bench.clear("d", "ended", "a")


def a_note_is_written(bench: Bench) -> Callable[[], object]:
    return lambda: bench.command("note_run", dag_id="d", run_id="one", note="so")


def a_run_is_deleted(bench: Bench) -> Callable[[], object]:
    return lambda: bench.command("retire", before=bench.clock.wall() + 1, dag_id="d")


def retention_deletes_a_run(bench: Bench) -> Callable[[], object]:
    duty = Retention(bench.scheduler, SECOND, 0, 60 * SECOND)
    bench.clock.advance(2 * SECOND)

    def turn() -> None:
        duty.run_once()
        bench.process()
        assert "ended" not in bench.run_states("d")

    return turn


def a_wait_for_a_trigger_ends(bench: Bench) -> Callable[[], object]:
    run = bench.run("r0", "crowd").id
    waiting = next(one for one in bench.scheduler.waits.triggers() if one.key[0] == run)

    def comes() -> None:
        bench.scheduler.push(WaitResult(*waiting.key, TriggerEnd(event=b"1")))
        bench.process()

    return comes


def a_task_that_nobody_waits_for_moves_in_a_run_that_many_watch(bench: Bench) -> Callable[[], object]:
    bench.dag("watched", task("x"), task("y"))
    bench.command("trigger", dag_id="watched", run_id="w", logical_date=NOW)
    return lambda: end(bench, "watched/w.y")


def a_dag_is_deleted(bench: Bench) -> Callable[[], object]:
    bench.dag("gone", task("a"))
    return lambda: bench.command("delete_dag", dag_id="gone")


def a_ping(bench: Bench) -> Callable[[], object]:
    server: Any = SimpleNamespace(scheduler=bench.scheduler, clock=bench.clock, workers={}, executor=bench.executor)
    return lambda: SchedulerServer._ping_result(cast("SchedulerServer", server))


WORK: list[Work] = [
    a_run_begins,
    a_run_of_the_past_begins,
    a_run_of_a_long_queue_is_made,
    a_run_of_a_dag_with_many_running_runs_is_made,
    a_run_of_a_dag_with_many_running_runs_ends,
    a_task_that_others_look_back_at_ends,
    a_run_ends,
    a_run_of_the_crowd_goes_on,
    a_run_is_cleared,
    an_ended_run_is_cleared,
    a_note_is_written,
    a_run_is_deleted,
    retention_deletes_a_run,
    a_wait_for_a_trigger_ends,
    a_task_that_nobody_waits_for_moves_in_a_run_that_many_watch,
    a_dag_is_deleted,
    a_ping,
]


def counted(work: Work, size: int) -> Counter[str]:
    """Return the executed lines beside a crowd of this size."""
    store = MemoryStore()
    bench = Bench(store)
    crowd(bench, size)
    subject(bench)
    found = lines_of(work(bench))
    bench.check()
    store.close()
    return found


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_the_work_per_event_does_not_grow_with_the_load(work: Work) -> None:
    counted(work, FEW)  # fills caches and imports modules
    few, many = counted(work, FEW), counted(work, MANY)
    grown = {name: (few[name], lines) for name, lines in many.items() if few[name] != lines}
    assert not grown, "lines at so much, and at ten times as much"
