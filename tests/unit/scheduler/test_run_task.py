"""One task that a person runs now: what is refused, what may be ignored, what is written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, journal, task
from tradewind.model.definition import MapLiteral
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.moments import DAY, HOUR, MINUTE
from tradewind.model.states import Outcome


def run_task(bench: Bench, attempt: str, **more: Any) -> Any:
    run_id, _, task_id = attempt.partition(".")
    return bench.command("run_task", dag_id="d", run_id=run_id, task_id=task_id, **more)


@pytest.mark.spec("S443")
def test_a_refusal_lists_every_dependency_that_is_not_met(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a", depends_on_past=True))
    bench.trigger("d", "before", day=1)
    bench.trigger("d", "r", day=2)
    with pytest.raises(Conflict, match=r"dependencies not met: .*past: .*") as refused:
        run_task(bench, "r.b")
    assert "trigger_rule: Its trigger rule all_success" in str(refused.value)
    assert bench.states("r") == {"a": "queued", "b": "none"}
    bench.check()


@pytest.mark.spec("S442")
@pytest.mark.parametrize(
    ("ignore", "met"), [([], False), (["past"], False), (["task"], True), (["all"], True), (["past", "task"], True)]
)
def test_each_ignore_option_covers_its_dependencies(bench: Bench, ignore: list[str], met: bool) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    if met:
        assert run_task(bench, "r.b", ignore=ignore)["ignored"] == ["trigger_rule"]
    else:
        with pytest.raises(Conflict, match="trigger_rule: "):
            run_task(bench, "r.b", ignore=ignore)


@pytest.mark.spec("S282", "S286")
@pytest.mark.parametrize("word", ["all", "task"])
def test_unmet_dependencies_are_listed_unless_ignored(bench: Bench, word: str) -> None:
    bench.dag("d", task("a"), task("b", "a", depends_on_past=True), task("c", "b"))
    bench.trigger("d", "before", day=1)
    bench.trigger("d", "r", day=2)
    for ignore in ([], ["past"]):
        with pytest.raises(Conflict, match=r"dependencies not met: trigger_rule: .*Not ended: a \(queued\)") as refused:
            run_task(bench, "r.b", ignore=ignore)
        assert ("past: " in str(refused.value)) is (ignore == [])
    assert bench.states("r") == {"a": "queued", "b": "none", "c": "none"}
    answer = run_task(bench, "r.b", ignore=[word])
    assert (answer["done"], answer["ignored"], answer["try_number"]) == ("scheduled", ["past", "trigger_rule"], 1)
    assert bench.states("r") == {"a": "queued", "b": "queued", "c": "none"}
    bench.finish("r.b")
    assert bench.states("r")["c"] == "queued", "its success is one like any other"
    bench.check()


@pytest.mark.spec("S283")
def test_the_previous_run_is_ignored_or_waited_for(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True))
    bench.trigger("d", "before", day=1)
    for number, run_id in enumerate(("r", "s"), 2):
        bench.trigger("d", run_id, day=number)
    with pytest.raises(Conflict, match="--depends-on-past wait"):
        run_task(bench, "r.a")
    waits = run_task(bench, "s.a", wait_for_past=True)
    assert (waits["done"], len(waits["waits_for"]), bench.states("s")) == ("waits", 1, {"a": "none"})
    with pytest.raises(Conflict, match="exclude each other"):
        run_task(bench, "s.a", wait_for_past=True, ignore=["past"])
    assert run_task(bench, "r.a", ignore=["past"])["done"] == "scheduled"
    bench.finish("r.a", "s.a")
    bench.check()


@pytest.mark.spec("S284", "S285")
@pytest.mark.parametrize(("outcome", "tries"), [(Outcome.FAILED, 2), (Outcome.RESCHEDULE, 1)])
def test_a_retry_or_a_reschedule_is_run_before_it_is_due(bench: Bench, outcome: Outcome, tries: int) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=HOUR))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=outcome, reschedule_at=NOW + HOUR)
    with pytest.raises(Conflict, match="due: It waits for"):
        run_task(bench, "r.a")
    assert run_task(bench, "r.a", ignore=["task"])["try_number"] == tries
    bench.finish("r.a")
    assert bench.run_states("d") == {"r": "success"}
    bench.pass_time(2 * HOUR)
    bench.check()


@pytest.mark.spec("S70", "S287")
def test_a_finished_task_is_run_again_only_with_force(bench: Bench) -> None:
    """It gets a new try, as after a clear; downstream tasks keep their states, and a finished run continues."""
    bench.dag("d", task("a", retries=1), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    with pytest.raises(Conflict, match=r"it is success\. To run it again all the same: --force"):
        run_task(bench, "r.a")
    answer = run_task(bench, "r.a", force=True, dry_run=True)
    assert (answer["done"], bench.run_states("d")) == ("scheduled", {"r": "success"})
    answer = run_task(bench, "r.a", force=True, reason="the data came late")
    assert (answer["before"], answer["try_number"], answer["run_state"]) == ("success", 2, "queued")
    assert bench.states("r") == {"a": "queued", "b": "success"}
    assert bench.run_states("d") == {"r": "running"}
    row = bench.snapshot("r").rows[0]
    assert (row.try_number, row.max_tries) == (2, 2)
    assert any(entry.cause == "run by ann: the data came late" for _, entry in journal(bench.watched.inner, bench.run("r").id))
    bench.finish("r.a")
    assert bench.run_states("d") == {"r": "success"}
    assert bench.attempt("r.b").try_number == 1
    bench.check()


@pytest.mark.spec("S173")
def test_an_active_task_is_refused(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", pool="small"))
    bench.pool("small", 0)
    bench.trigger("d", "r")
    for state in ("queued", "running"):
        with pytest.raises(Conflict, match=rf"is {state} already.*tradewind tasks clear d -t '\^a\$' --run-id r"):
            run_task(bench, "r.a", ignore=["all"], force=True)
        bench.start("r.a")
    with pytest.raises(Conflict, match="is scheduled already and starts when there is room"):
        run_task(bench, "r.b", ignore=["all"], force=True)


def test_limits_apply_also_after_restarts(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a", pool="small"))
    bench.pool("small", 0)
    bench.trigger("d", "r")
    bench.start("r.a")
    run_task(bench, "r.b", ignore=["task"])
    assert set(bench.why("r.b")) == {"pool"}
    bench.restart()
    bench.fail("r.a")
    assert bench.states("r") == {"a": "failed", "b": "scheduled"}, "it is not failed with its upstream"
    bench.pool("small", 1)
    bench.finish("r.b")
    assert bench.run_states("d") == {"r": "success"}
    bench.check()


@pytest.mark.spec("S71")
def test_a_chosen_pool_lasts_until_a_clear(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=MINUTE), task("b"), max_active_tasks=16)
    bench.pool("other", 0)
    bench.trigger("d", "r")
    bench.work()
    assert run_task(bench, "r.a", force=True, pool="other")["pool"] == "other"
    assert "pool other" in bench.why("r.a")["pool"]
    assert "pool other" in bench.why("r.a", live=False)["pool"]
    bench.restart()
    assert bench.states("r")["a"] == "scheduled"
    bench.pool("other", 1)
    assert bench.attempt("r.a").pool == "other"
    bench.fail("r.a")
    bench.pool("other", 0)
    bench.pass_time(2 * MINUTE)
    assert (bench.states("r")["a"], set(bench.why("r.a"))) == ("scheduled", {"pool"})
    bench.clear("d", "r", "a")
    assert bench.states("r")["a"] == "queued", "in the pool that its DAG names"
    assert bench.attempt("r.a").pool == "default_pool"
    bench.work()
    assert bench.run_states("d") == {"r": "success"}
    bench.check()


@pytest.mark.spec("S71")
def test_a_cleared_attempt_holds_its_chosen_pool_until_it_has_stopped(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", pool="other"))
    bench.pool("other", 0)
    bench.trigger("d", "r")
    bench.finish("r.a")
    run_task(bench, "r.a", force=True, pool="other")
    bench.pool("other", 1)
    assert bench.states("r") == {"a": "queued", "b": "scheduled"}
    bench.start("r.a")
    bench.clear("d", "r", "a", "b")
    assert bench.states("r") == {"a": "restarting", "b": "scheduled"}
    old = bench.attempt("r.a")
    bench.report("r.a", outcome=Outcome.FAILED)
    assert bench.states("r") == {"a": "queued", "b": "queued"}
    assert (old.pool, bench.attempt("r.a").pool) == ("other", "default_pool")
    bench.restart()
    bench.work()
    assert bench.states("r") == {"a": "success", "b": "success"}
    bench.check()


@pytest.mark.spec("S71")
def test_a_task_that_waits_for_the_previous_run_keeps_its_chosen_pool(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True))
    bench.pool("other", 0)
    bench.trigger("d", "before", day=1)
    bench.trigger("d", "r", day=2)
    run_task(bench, "r.a", wait_for_past=True, pool="other")
    bench.finish("before.a")
    assert (bench.states("r"), set(bench.why("r.a"))) == ({"a": "scheduled"}, {"pool"})
    bench.check()


@pytest.mark.spec("S71")
def test_an_unknown_pool_is_refused_with_the_nearest_name(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True))
    bench.pool("loading", 1)
    bench.trigger("d", "r")
    before = bench.snapshot("r")
    with pytest.raises(NotFound, match=r"no pool 'loadin'.*'loading'.*tradewind pools set loadin SLOTS"):
        run_task(bench, "r.a", pool="loadin")
    assert bench.snapshot("r") == before


def test_a_queued_run_starts_with_the_task(bench: Bench) -> None:
    """Its row is written before the run starts, and kept by the start."""
    bench.dag("d", task("a"), task("b", "a"), paused=True)
    bench.trigger("d", "r")
    answer = run_task(bench, "r.b", ignore=["task"])
    assert (answer["is_paused"], answer["run_state"], bench.states("r")["b"]) == (True, "queued", "scheduled")
    bench.command("set_paused", dag_id="d", is_paused=False)
    assert bench.states("r") == {"a": "queued", "b": "queued"}
    bench.work()
    assert bench.run_states("d") == {"r": "success"}
    bench.check()


def test_a_task_outside_of_its_dates(bench: Bench) -> None:
    bench.dag("d", task("a"), task("old", end_date=NOW - 200 * DAY))
    bench.trigger("d", "r", day=1)
    assert bench.states("r") == {"a": "queued", "old": "removed"}
    with pytest.raises(Conflict, match="dates: It does not belong to this run"):
        run_task(bench, "r.old", force=True)
    run_task(bench, "r.old", force=True, ignore=["task"])
    bench.restart()
    assert bench.states("r") == {"a": "queued", "old": "queued"}
    bench.work()
    assert bench.states("r") == {"a": "success", "old": "success"}
    bench.check()


def test_instances_of_a_mapped_task_are_run_one_by_one(bench: Bench) -> None:
    bench.dag("d", task("a"), task("m", "a", mapped=True, expand=(MapLiteral(2),)), paused=True)
    bench.trigger("d", "r")
    with pytest.raises(Conflict, match="has no task instances in r yet"):
        run_task(bench, "r.m", ignore=["task"])
    bench.command("set_paused", dag_id="d", is_paused=False)
    with pytest.raises(Conflict, match="--map-index, from 0 to 1"):
        run_task(bench, "r.m", ignore=["task"])
    with pytest.raises(NotFound, match="it has 0 to 1"):
        run_task(bench, "r.m", map_index=2)
    run_task(bench, "r.m", map_index=1, ignore=["task"])
    assert bench.states("r") == {"a": "queued", "m[0]": "none", "m[1]": "queued"}
    bench.work()
    assert bench.run_states("d") == {"r": "success"}
    bench.check()


def test_impossible_arguments_are_refused(bench: Bench) -> None:
    bench.dag("d", task("alpha"))
    bench.trigger("d", "r")
    for error, words, args in (
        (NotFound, "'alpha'", {"task_id": "alhpa"}),
        (NotFound, "is not mapped", {"task_id": "alpha", "map_index": 0}),
        (Conflict, "'past'", {"task_id": "alpha", "ignore": ["pasts"]}),
    ):
        with pytest.raises(error, match=words):
            bench.command("run_task", dag_id="d", run_id="r", **args)


def test_an_empty_task_succeeds_and_its_downstream_tasks_follow(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a", empty=True), task("c", "b"))
    bench.trigger("d", "r")
    assert run_task(bench, "r.b", ignore=["task"])["done"] == "success"
    assert bench.states("r") == {"a": "queued", "b": "success", "c": "queued"}
    bench.check()
