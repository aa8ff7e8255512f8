"""Tasks that name an executor: which limit they count against, what is recorded, and what `why` says."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import Bench, StubExecutor, task
from tests.unit.scheduler.conftest import MakeBench

BOTH = "LocalExecutor,one_by_one:SequentialExecutor"


class OneQueue(StubExecutor):
    """Workers that take only what they are told to take."""

    taken: tuple[tuple[str, str], ...] = ()

    def serves(self, executor: str, queue: str) -> bool:
        return (executor, queue) in self.taken


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    """Three tasks of the second executor, by its names, and one of the default executor."""
    bench = make_bench(executor=OneQueue(), executors=BOTH)
    bench.dag(
        "d",
        task("a", executor="SequentialExecutor"),
        task("b", executor="one_by_one"),
        task("c", executor="CeleryExecutor"),
        task("e"),
    )
    bench.trigger("d", "r")
    return bench


def test_an_attempt_carries_the_name_of_its_executor(bench: Bench) -> None:
    found = {work.task_id: work.executor for work in bench.executor.submitted}
    assert found == {"a": "SequentialExecutor", "c": "LocalExecutor", "e": "LocalExecutor"}


def test_each_executor_has_its_own_limit(bench: Bench) -> None:
    assert bench.why("r.b") == {"parallelism": "The SequentialExecutor has no free slot: 1 of 1 attempts are live."}
    bench.finish("r.a")
    assert "b" in {work.task_id for work in bench.executor.submitted}


def test_the_limit_holds_after_a_restart(bench: Bench) -> None:
    bench.restart()
    assert "parallelism" in bench.why("r.b")


def test_why_names_the_executor_that_is_missing(bench: Bench) -> None:
    note = bench.why_answer("d/r.c")["workers"]["note"]
    assert note == (
        "The task names the executor CeleryExecutor. This deployment does not have it (core.executor: LocalExecutor, "
        "SequentialExecutor), so the task runs on the LocalExecutor."
    )
    assert bench.why_answer("d/r.a")["workers"]["note"] is None


def test_why_says_that_no_worker_host_takes_the_queue_of_the_executor(bench: Bench) -> None:
    assert isinstance(bench.executor, OneQueue)
    bench.executor.taken = (("LocalExecutor", "default"),)
    assert "no_worker" not in bench.why("r.e")
    assert bench.why("r.a")["no_worker"].startswith(
        "No connected worker host takes new attempts of the SequentialExecutor in queue 'default'"
    )
    assert not bench.why_answer("d/r.a")["workers"]["attached"]
