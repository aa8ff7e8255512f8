"""A scheduler that handles a part of the DAGs does not change others."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.scheduler.bench import Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.bundles import Scope
from tradewind.scheduler.core import Scheduler


def limited(bench: Bench, scope: Scope) -> None:
    """Restart the scheduler with this scope only."""
    scheduler: Scheduler = bench.scheduler
    bench.config = msgspec.structs.replace(scheduler.config, scope=scope)
    bench.restart()


@pytest.mark.spec("S201")
def test_runs_of_dags_out_of_scope_are_not_changed(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("theirs", task("a"), task("b", "a"))
    bench.dag("ours", task("a"))
    bench.trigger("theirs", "running")
    bench.start("running.a")
    limited(bench, Scope(dag_id="ours"))
    bench.trigger("theirs", "queued")
    bench.trigger("ours", "r")
    bench.scheduler.compare_with_store()
    bench.process()
    assert bench.states("running") == {"a": "running", "b": "none"}
    assert bench.states("queued") == {"a": "none", "b": "none"}
    assert bench.states("r") == {"a": "queued"}
    assert set(bench.why("queued.a")) == {"other_scheduler"}
    assert not bench.executor.cancelled


def test_attempts_of_dags_out_of_scope_are_not_stopped(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("theirs", task("a"))
    bench.dag("ours", task("a"))
    bench.trigger("theirs", "r")
    bench.start("r.a")
    work = bench.attempt("r.a")
    limited(bench, Scope(dag_id="ours"))
    bench.scheduler.hosts.register("host", frozenset({(work.run, work.slot, work.fence)}))
    assert not bench.executor.cancelled
    assert bench.report("r.a") is None
    assert bench.states("r") == {"a": "running"}  # the worker host keeps the verdict for the scheduler that wants it


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        (Scope(), [True, True, True]),
        (Scope(("x",)), [True, True, False]),
        (Scope(("x",), only="a/b"), [True, False, False]),
        (Scope(("x",), only="a/b/f.py"), [True, False, False]),
        (Scope(("x",), dag_id="e"), [False, True, False]),
    ],
)
def test_a_scope_is_bundles_a_path_in_them_and_a_dag(scope: Scope, covered: list[bool]) -> None:
    dags = [("d", "x", "a/b/f.py"), ("e", "x", "a/bc/f.py"), ("d", "y", "a/b/f.py")]
    assert [scope.covers(*dag) for dag in dags] == covered
