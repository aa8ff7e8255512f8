"""A DAG is edited while its runs are active: they follow the newest definition."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.bench import NOW, Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.events import AttemptVanished
from tradewind.model.definition import MapLiteral, MapXCom
from tradewind.model.moments import SECOND
from tradewind.model.rows import Batch
from tradewind.model.states import Outcome, RunState
from tradewind.model.waits import Deferral, TriggerWait
from tradewind.scheduler.inbox import Item, RunEvent
from tradewind.wire.messages import Accepted


def names(bench: Bench, run_id: str) -> list[str]:
    """Return the task ids of the rows, by slot."""
    return [row.task_id for row in bench.snapshot(run_id).rows]


@pytest.mark.spec("S254")
def test_an_added_task_appears_in_a_running_run_and_runs(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.dag("d", task("new"), task("a", "new"), task("between", "a"), task("b", "between"))
    assert bench.states("r") == {"a": "running", "b": "none", "new": "queued", "between": "none"}
    assert names(bench, "r") == ["a", "b", "new", "between"], "rows keep their slots"
    bench.finish("r.a")
    assert bench.states("r")["between"] == "queued"
    bench.restart()
    bench.work()
    assert set(bench.states("r").values()) == {"success"}
    assert bench.run("r").state is RunState.SUCCESS


@pytest.mark.spec("S148", "S160")
@pytest.mark.parametrize("before", ["none", "scheduled", "queued", "up_for_retry", "deferred", "success", "failed"])
def test_a_removed_task_is_removed_from_every_state_and_fails_nothing(bench: Bench, before: str) -> None:
    bench.pool("tight", 0 if before == "scheduled" else 5)
    above = ("hold",) if before == "none" else ()
    retries = 1 if before == "up_for_retry" else 0
    gone = task("gone", *above, pool="tight", retries=retries)
    bench.dag("d", task("hold"), gone, task("end", "hold", "gone", trigger_rule="all_done"))
    bench.trigger("d", "r")
    if before == "up_for_retry":
        bench.fail("r.gone")
    elif before == "deferred":
        bench.finish("r.gone", outcome=Outcome.DEFERRED, deferral=Deferral(TriggerWait("pkg.T"), "go_on"))
    elif before in ("success", "failed"):
        bench.finish("r.gone", outcome=Outcome(before))
    assert bench.states("r")["gone"] == before
    ended = bench.snapshot("r").rows[1].ended_at
    bench.clock.advance(SECOND)
    bench.dag("d", task("hold"), task("end", "hold"))
    assert bench.states("r")["gone"] == "removed"
    if before in ("success", "failed"):
        assert bench.snapshot("r").rows[1].ended_at == ended, "when it ended stays"
    if before == "queued":
        assert [key[1] for key in bench.executor.cancelled] == [1], "its process is not let in"
    bench.work()
    assert bench.states("r") == {"hold": "success", "gone": "removed", "end": "success"}
    assert bench.run("r").state is RunState.SUCCESS


def test_a_run_that_times_out_skips_its_tasks_and_removes_what_the_dag_does_not_have(bench: Bench) -> None:
    """The simulation found a running instance of a removed task that was `skipped`."""
    bench.dag("d", task("gone"), task("kept"), dagrun_timeout=60 * SECOND)
    bench.trigger("d", "r")
    bench.start("r.gone", "r.kept")
    bench.dag("d", task("kept"), dagrun_timeout=60 * SECOND)
    assert bench.states("r") == {"gone": "running", "kept": "running"}, "an attempt may end by itself"
    bench.pass_time(61 * SECOND)
    assert bench.states("r") == {"gone": "removed", "kept": "skipped"}


@pytest.mark.spec("S160")
@pytest.mark.parametrize("end", ["success", "failed", "vanished"])
def test_a_running_instance_of_a_removed_task_runs_to_its_end(bench: Bench, end: str) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("gone", pool="p", retries=3), task("b"))
    bench.dag("other", task("x", pool="p"))
    bench.trigger("d", "r")
    bench.start("r.gone")
    bench.trigger("other", "o")
    bench.dag("d", task("b"))
    bench.restart()
    bench.finish("r.b")
    assert bench.states("r")["gone"] == "running"
    assert bench.run("r").state is RunState.RUNNING, "it waits for what still runs"
    assert bench.states("o")["x"] == "scheduled", "its slot of the pool is taken"
    if end == "vanished":
        run, slot, fence = bench.attempt("r.gone").key
        bench.scheduler.push(RunEvent(run, AttemptVanished(slot, fence, 0, "it died")))
        bench.process()
    else:
        assert isinstance(bench.report("r.gone", Outcome(end), xcoms={"k": b"1"}), Accepted)
        assert [value for _, _, value, _ in bench.store.xcoms(bench.run("r").id, ["gone"], "k")] == []
    assert bench.states("r") == {"gone": "removed", "b": "success"}
    assert bench.run("r").state is RunState.SUCCESS
    assert bench.states("o")["x"] == "queued"


def test_the_limit_of_a_task_in_a_run_holds_when_a_mapped_task_becomes_a_plain_one(bench: Bench) -> None:
    """The simulation found two attempts of a task with one slot: an edit gave it another number, which the limit contained."""
    bench.dag("d", task("t", mapped=True, expand=(MapLiteral(1),), max_active_tis_per_dagrun=1))
    bench.trigger("d", "r")
    bench.start("r.t[0]")
    bench.dag("d", task("t", max_active_tis_per_dagrun=1))
    assert bench.instances("r", "t") == {0: "running", -1: "scheduled"}
    assert "max_active_tis_per_dagrun" in bench.why("r.t")
    bench.finish("r.t[0]")
    assert bench.instances("r", "t") == {0: "removed", -1: "queued"}


def test_a_queued_attempt_of_a_removed_task_counts_until_its_removal_is_written(make_bench: MakeBench) -> None:
    """The simulation found two attempts in a pool of one slot: the removal was in the batch after the one that used its slot."""
    bench = make_bench(batch_max_rows=4)
    bench.pool("p", 1)
    others = [task(f"other{i}") for i in range(4)]
    bench.dag("d", *others, task("gone", pool="p", priority_weight=9))
    bench.dag("waiting", task("x", pool="p"))
    bench.trigger("d", "first")
    bench.trigger("d", "r")
    bench.finish("first.gone")
    bench.trigger("waiting", "w")
    assert (bench.states("r")["gone"], bench.states("w")["x"]) == ("queued", "scheduled")
    held: list[set[str]] = []

    def look(batch: Batch) -> None:
        states = {"gone": bench.states("r")["gone"], "x": bench.states("w")["x"]}
        held.append({name for name, state in states.items() if state == "queued"})

    with failing(bench.watched, look):
        bench.dag("d", task("kept"))
    assert (bench.states("r")["gone"], bench.states("w")["x"]) == ("removed", "queued")
    assert len(held) > 2
    assert {"gone", "x"} not in held


@pytest.mark.spec("S161")
def test_a_task_that_is_restored_runs_again_with_all_its_tries(bench: Bench) -> None:
    def write(*tasks: str) -> None:
        bench.dag("d", *(task(name, retries=1) for name in tasks))

    write("a", "b")
    bench.trigger("d", "r")
    bench.fail("r.b")
    write("a")
    assert bench.states("r") == {"a": "queued", "b": "removed"}
    bench.restart()
    write("a", "b")
    assert bench.states("r") == {"a": "queued", "b": "queued"}
    assert names(bench, "r") == ["a", "b"]
    bench.fail("r.b")
    assert bench.states("r")["b"] == "up_for_retry"
    bench.next_timer()
    bench.finish("r.a", "r.b")
    assert bench.run("r").state is RunState.SUCCESS


@pytest.mark.spec("S254")
def test_a_finished_run_stays_as_it_is_until_it_is_cleared(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    bench.dag("d", task("a"), task("c", "a"))
    assert bench.states("r") == {"a": "success", "b": "success"}
    bench.clear("d", "r", "a")
    assert bench.states("r") == {"a": "queued", "b": "removed", "c": "none"}
    bench.work()
    assert bench.states("r") == {"a": "success", "b": "removed", "c": "success"}
    assert bench.run("r").state is RunState.SUCCESS


def test_a_queued_run_begins_under_the_newest_definition(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), max_active_runs=1)
    bench.trigger("d", "one")
    bench.trigger("d", "two")
    bench.dag("d", task("c"), task("a", "c"), max_active_runs=1)
    bench.work()
    assert bench.states("two") == {"a": "success", "b": "removed", "c": "success"}
    assert bench.run("two").version == bench.store.need_dag("d").version


def test_a_run_of_a_versioned_bundle_keeps_its_version(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    version = bench.run("r").version
    active_run = next(iter(bench.scheduler.active_runs_by_id.values()))
    active_run.row = active_run.row._replace(bundle_version="abc")
    bench.dag("d", task("a"), task("c", "a"))
    bench.work()
    assert (bench.run("r").version, bench.states("r")) == (version, {"a": "success", "b": "success"})


def test_a_clear_may_move_a_run_to_the_newest_version_of_its_bundle(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), bundle_version="one")
    bench.trigger("d", "r")
    bench.work()
    bench.dag("d", task("a"), task("c", "a"), bundle_version="two")
    bench.clear("d", "r")
    bench.work()
    assert (bench.run("r").bundle_version, bench.states("r")) == ("one", {"a": "success", "b": "success"})
    bench.clear("d", "r", latest_version=True)
    bench.work()
    assert bench.states("r") == {"a": "success", "b": "removed", "c": "success"}
    assert [bench.attempt(f"r.{name}").bundle_version for name in "abc"] == ["two", "one", "two"]
    assert (bench.run("r").bundle_version, bench.run("r").version) == ("two", bench.store.need_dag("d").version)
    bench.dag("d", task("a"), bundle_version="three")
    bench.clear("d", "r")
    bench.restart()
    bench.work()
    assert (bench.run("r").bundle_version, bench.attempt("r.c").bundle_version) == ("two", "two"), "it keeps to that version"


def test_a_running_run_moves_too_and_a_dag_may_say_so(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), bundle_version="one")
    bench.trigger("d", "r")
    bench.finish("r.a")
    bench.dag("d", task("a"), task("b", "a"), bundle_version="two", rerun_with_latest_version=True)
    bench.clear("d", "r", "a", latest_version=False)
    assert bench.run("r").bundle_version == "one"
    bench.finish("r.a")
    bench.clear("d", "r", "a", "b")
    bench.work()
    assert (bench.run("r").state, bench.run("r").bundle_version) == (RunState.SUCCESS, "two")
    assert [bench.attempt(f"r.{name}").bundle_version for name in "ab"] == ["two", "two"]


def test_a_run_moves_where_only_a_module_of_its_bundle_has_changed(bench: Bench) -> None:
    bench.dag("d", task("a"), bundle_version="one")
    bench.trigger("d", "r")
    bench.work()
    version = bench.run("r").version
    bench.dag("d", task("a"), bundle_version="two")
    bench.clear("d", "r", latest_version=True)
    bench.work()
    assert (bench.run("r").bundle_version, bench.run("r").version) == ("two", version)
    assert bench.attempt("r.a").bundle_version == "two"


def test_a_run_that_follows_its_bundle_keeps_to_no_version_after_a_clear(bench: Bench) -> None:
    bench.dag("d", task("a"), bundle_version="one", disable_bundle_versioning=True)
    bench.trigger("d", "r")
    bench.work()
    bench.clear("d", "r", latest_version=True)
    bench.work()
    assert bench.run("r").bundle_version is None


def test_new_edges_rules_and_retries_apply_to_tasks_that_have_not_begun(bench: Bench) -> None:
    bench.pool("shut", 0)
    bench.dag("d", task("a"), task("early", pool="shut"), task("late", "a", retries=0))
    bench.trigger("d", "r")
    assert bench.states("r")["early"] == "scheduled"
    bench.dag("d", task("a"), task("early", "a"), task("late", "a", retries=2, trigger_rule="all_failed"))
    assert bench.states("r") == {"a": "queued", "early": "none", "late": "none"}
    bench.fail("r.a")
    assert bench.states("r") == {"a": "failed", "early": "upstream_failed", "late": "queued"}
    assert bench.attempt("r.late").max_tries == 2
    bench.fail("r.late")
    assert bench.states("r")["late"] == "up_for_retry"


def test_a_scheduled_task_that_becomes_empty_needs_no_slot(bench: Bench) -> None:
    bench.pool("shut", 0)
    bench.dag("d", task("a", pool="shut"))
    bench.trigger("d", "r")
    assert bench.states("r") == {"a": "scheduled"}
    bench.dag("d", task("a", pool="shut", empty=True))
    assert bench.states("r") == {"a": "success"}


def test_a_new_pool_applies_to_tasks_that_are_not_admitted_yet(bench: Bench) -> None:
    bench.pool("shut", 0)
    bench.dag("d", task("a", pool="shut"))
    bench.trigger("d", "r")
    bench.dag("d", task("a"))
    assert bench.states("r") == {"a": "queued"}
    assert bench.attempt("r.a").pool == "default_pool"


def test_a_mapped_task_becomes_a_plain_one_and_is_mapped_again(bench: Bench) -> None:
    mapped = task("m", "a", mapped=True, expand=(MapXCom("a"),))
    bench.dag("d", task("a"), mapped, task("z", "m"))
    bench.trigger("d", "r")
    bench.finish("r.a", map_length=3)
    bench.finish("r.m[0]")
    bench.start("r.m[1]")
    bench.dag("d", task("a"), task("m", "a"), task("z", "m"))
    assert bench.instances("r", "m") == {0: "removed", 1: "running", 2: "removed", -1: "queued"}
    bench.restart()
    bench.dag("d", task("a"), mapped, task("z", "m"))
    assert bench.instances("r", "m") == {0: "queued", 1: "running", 2: "queued", -1: "removed"}
    bench.finish("r.m[0]", "r.m[1]", "r.m[2]", "r.z")
    assert bench.run("r").state is RunState.SUCCESS


def test_a_cleared_instance_of_a_removed_task_is_removed_again(bench: Bench) -> None:
    mapped = task("m", mapped=True, expand=(MapLiteral(2),))
    bench.dag("d", mapped, task("end"))
    bench.trigger("d", "r")
    bench.dag("d", task("m"), task("end"))
    assert bench.instances("r", "m") == {0: "removed", 1: "removed", -1: "queued"}
    bench.clear("d", "r", "m")
    assert {bench.instances("r", "m")[index] for index in (0, 1)} == {"removed"}
    bench.vanish("r.m")
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS


def test_a_plain_task_that_becomes_mapped_is_expanded(bench: Bench) -> None:
    bench.dag("d", task("a"), task("m", "a"), task("z", "m"))
    bench.trigger("d", "r")
    bench.dag("d", task("a"), task("m", "a", mapped=True, expand=(MapLiteral(2),)), task("z", "m"))
    bench.work()
    found = sorted((row.task_id, row.map_index) for row in bench.snapshot("r").rows)
    assert found == [("a", -1), ("m", 0), ("m", 1), ("z", -1)]
    assert bench.run("r").state is RunState.SUCCESS


@pytest.mark.parametrize("batch_max_rows", [4, 12])
def test_a_large_change_is_written_in_bounded_parts_and_survives_restarts(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch, batch_max_rows: int
) -> None:
    bench = make_bench(batch_max_rows=batch_max_rows)
    bench.dag("d", task("first"), *(task(f"old{n}", "first") for n in range(15)))
    bench.trigger("d", "r")
    first = bench.run("r").version
    batches_before = len(bench.watched.commits)
    commit = bench.scheduler._commit

    def commit_three(items: list[Item]) -> None:
        commit(items)
        bench.scheduler.superseded = len(bench.watched.commits) - batches_before >= 3

    monkeypatch.setattr(bench.scheduler, "_commit", commit_three)
    bench.dag("d", task("first"), *(task(f"new{n}", "first") for n in range(15)))
    assert bench.run("r").version == first, "it belongs to its earlier version until all rows are right"
    bench.restart()
    states = bench.states("r")
    assert {states[f"old{n}"] for n in range(15)} == {"removed"}
    assert {states[f"new{n}"] for n in range(15)} == {"none"}
    assert bench.run("r").version == bench.store.need_dag("d").version
    assert max(bench.watched.rows_of(batch) for batch in bench.watched.commits) <= batch_max_rows + 20
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS


def test_a_run_whose_tasks_are_all_gone_ends(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.dag("d", task("c"))
    assert bench.states("r") == {"a": "removed", "b": "removed", "c": "queued"}
    bench.dag("d")
    assert bench.run("r").state is RunState.SUCCESS


def test_the_next_attempt_uses_the_new_name_of_a_renamed_file(bench: Bench) -> None:
    tasks = (task("a", retries=1, retry_delay=0), task("b", "a"))
    bench.dag("d", *tasks)
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.store.forget_files("dags", ["d.py"], NOW)
    bench.dag("d", *tasks, file="moved/d.py")
    bench.fail("r.a")
    assert (bench.attempt("r.a").try_number, bench.attempt("r.a").file) == (2, "moved/d.py")
    bench.finish("r.a")
    assert bench.attempt("r.b").file == "moved/d.py"


def test_an_edit_that_the_scheduler_does_not_know_yet_costs_no_try(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.MISSING, reason="the file has no task 'a'.")
    bench.report("r.b", Outcome.MISSING, reason="d.py is not there.")
    assert bench.states("r") == {"a": "up_for_reschedule", "b": "up_for_reschedule"}
    bench.dag("d", task("b"))
    assert bench.states("r") == {"a": "removed", "b": "up_for_reschedule"}
    bench.next_timer()
    assert bench.attempt("r.b").try_number == 1
    bench.finish("r.b")
    assert bench.run("r").state is RunState.SUCCESS


def test_a_task_that_stays_missing_in_its_file_fails(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    for _ in range(5):
        bench.finish("r.a", outcome=Outcome.MISSING, reason="the file has no task 'a'.")
        assert bench.states("r") == {"a": "up_for_reschedule"}
        bench.next_timer()
    bench.finish("r.a", outcome=Outcome.MISSING, reason="the file has no task 'a'.")
    assert bench.states("r") == {"a": "failed"}


def test_why_knows_a_removed_task_that_still_runs(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"))
    bench.trigger("d", "r")
    bench.start("r.a")
    bench.dag("d", task("b"))
    assert list(bench.why("r.a")) == ["running"]
    bench.report("r.a")
    answer = bench.why_answer("r.a", live=False)
    assert answer["state"] == "removed"
    assert not [one for one in answer["blockers"] if "clear" in (one.get("command") or "")], "a clear would not bring it back"
