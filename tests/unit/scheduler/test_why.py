"""Everything that blocks a task has its sentence; where nothing blocks it, the next step starts it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, failing, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.kernel.causes import pattern
from tradewind.model.definition import CronSchedule, NoSchedule, OnceSchedule
from tradewind.model.errors import NotFound, StoreBusy
from tradewind.model.moments import DAY, HOUR, MINUTE
from tradewind.model.rows import ImportProblem, ParsedFile
from tradewind.model.states import Outcome, RunState, RunType
from tradewind.model.waits import Deferral, MomentWait, TasksWait, TriggerWait
from tradewind.scheduler.explain.why import why, why_no_run, why_run_of
from tradewind.scheduler.explain.why_run import of_run

DAILY = CronSchedule(("0 0 * * *",), interval_kind="data")


def first_run(dag_id: str, run_id: str) -> dict[str, Any]:
    """Return the first run of a queue, as the answer shows it."""
    return {"dag_id": dag_id, "run_id": run_id, "task_id": None, "map_index": -1, "priority_weight": None}


def test_a_task_that_waits_for_others(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b"), task("c", "a", "b"))
    bench.trigger("d", "r")
    bench.finish("r.a")
    assert bench.why("r.c") == {
        "trigger_rule": "Its trigger rule all_success requires all of its upstream tasks to succeed; of 2, 1 succeeded. "
        "Not ended: b (queued)."
    }


@pytest.mark.spec("S290", "S292")
def test_each_state_has_its_sentence(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=MINUTE), task("b", "a"))
    bench.trigger("d", "r")
    assert set(bench.why("r.a")) == {"queued"}
    bench.executor.ready = False
    assert set(bench.why("r.a")) == {"queued", "no_worker"}
    bench.executor.ready = True
    bench.start("r.a")
    assert bench.why("r.a") == {"running": "It has been running since 2026-01-01T00:00:00Z."}
    bench.report("r.a", Outcome.FAILED, reason="ValueError: no")
    due = {"due": "It waits for its next try at 2026-01-01T00:01:00Z (ValueError: no)."}
    assert bench.why("r.a") == due
    bench.restart()
    assert bench.why("r.a") == due, "the reason is in the row"
    bench.pass_time(MINUTE)
    bench.start("r.a")
    bench.clear("d", "r", "a")
    assert set(bench.why("r.a")) == {"restarting"}
    bench.vanish("r.a")
    bench.finish("r.a", "r.b")
    assert set(bench.why("r.b")) == {"run_finished", "finished"}


def test_a_reschedule_has_its_moment(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.finish("r.a", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + HOUR)
    assert bench.why("r.a") == {"due": "It waits for being called again at 2026-01-01T01:00:00Z."}


def test_setups_and_teardowns(bench: Bench) -> None:
    bench.dag(
        "d",
        task("s", is_setup=True),
        task("x", "s"),
        task("w", "x", trigger_rule="all_done"),
        task("t", "w", "s", is_teardown=True, trigger_rule="all_done_setup_success"),
    )
    bench.trigger("d", "r")
    assert "It waits for the setup s" in bench.why("r.w")["setup"]
    bench.finish("r.s")
    assert "still uses" in bench.why("r.t").get("teardown", "") or "trigger_rule" in bench.why("r.t")


def test_a_store_that_cannot_be_written(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    with failing(bench.watched, lambda batch: StoreBusy("another process holds it")):
        bench.ask("r.a")
    assert "another process holds it" in bench.why("r.a")["store"]
    assert bench.scheduler.recover()
    bench.process()
    assert "store" not in bench.why("r.a")


def test_a_huge_run_whose_rows_are_being_written(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", *(task(f"t{i}", empty=True) for i in range(2500)))
    bench.commands.run(bench.ask_for("trigger", dag_id="d", run_id="r"))
    bench.scheduler.schedules.refresh("d")
    assert bench.why("r.t1")["rows"] == "2000 of its run's 2500 task instances are created so far."


def test_a_dag_that_is_not_in_the_dag_folder(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=1)
    bench.trigger("d", "r1")
    bench.trigger("d", "r2")
    bench.command("forget_files", bundle="dags", files=["d.py"])
    bench.work()
    assert "not in the DAG folder any more (it was in d.py)" in bench.why("r2.a")["inactive"]


def test_a_misspelt_name_gets_the_nearest_one(bench: Bench) -> None:
    bench.dag("daily", task("extract"))
    bench.trigger("daily", "r")
    with pytest.raises(NotFound, match="'extract'"):
        bench.why("daily/r.extrct")
    with pytest.raises(NotFound, match="'daily'"):
        bench.why("dialy/r.extract")
    with pytest.raises(NotFound, match="Its latest runs: r"):
        bench.why("daily/other.extract")


# --- with no scheduler there -----------------------------------------------------------------------------------------------


def test_without_a_scheduler_the_store_is_used(bench: Bench) -> None:
    bench.dag("d", task("a", pool="nowhere"), task("b"), task("c", "b"), task("e", pool_slots=200))
    bench.trigger("d", "r")
    answer = {name: bench.why(f"r.{name}", live=False) for name in "abce"}
    assert all("no_scheduler" in rules for rules in answer.values())
    assert set(answer["a"]) == {"no_scheduler", "pool"}
    assert "There is no pool 'nowhere'" in answer["a"]["pool"]
    assert set(answer["b"]) == {"no_scheduler", "queued", "no_worker"}
    assert "Not ended: b (queued)" in answer["c"]["trigger_rule"]
    assert "it can never start" in answer["e"]["pool"]


def test_without_a_scheduler_limits_in_use_are_not_claimed(bench: Bench) -> None:
    bench.pool("p", 1)
    bench.dag("d", task("a", pool="p"), task("b", pool="p"))
    bench.trigger("d", "r")
    assert set(bench.why("r.b", live=False)) == {"no_scheduler"}
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert set(bench.why("r.b", live=False)) == {"no_scheduler", "paused"}


def test_without_a_scheduler_the_previous_run_is_named(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a")
    bench.trigger("d", "r2", day=2)
    sentence = "depends_on_past: a is failed in the previous run r1; it has to be success or skipped."
    assert bench.why("r2.a", live=False)["past"] == sentence
    assert bench.why("r2.a")["past"] == sentence


# --- no blocker: it starts ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S290")
def test_without_blockers_the_next_step_starts_the_task(bench: Bench) -> None:
    """The limits are raised without a step of the scheduler: `why` names no blocker, and the next step starts the task."""
    bench.pool("p", 0)
    bench.dag("d", task("a", pool="p"))
    bench.trigger("d", "r")
    bench.command("set_paused", dag_id="d", is_paused=True)
    while blockers := bench.why("r.a"):
        assert set(blockers) <= {"pool", "paused"}
        if "pool" in blockers:
            bench.store.set_pool(next(p for p in bench.store.pools() if p.name == "p")._replace(slots=1), "ann", NOW)
            bench.scheduler.refresh_pools()
        else:
            bench.store.set_paused("d", False, "ann", NOW)
            bench.scheduler.schedules.refresh("d")
    assert bench.states("r")["a"] == "scheduled"
    bench.scheduler.readmit()
    bench.process()
    assert bench.states("r")["a"] == "queued"


# --- who holds it, what comes before it, what can change it -------------------------------------------------------------------


def _of(answer: dict[str, Any], rule: str) -> dict[str, Any]:
    found = [one for one in answer["blockers"] if one["rule"] == rule]
    assert len(found) == 1, answer["blockers"]
    blocker: dict[str, Any] = found[0]
    return blocker


@pytest.mark.spec("S263", "S290")
def test_a_full_pool_names_who_holds_it_the_longest_first(bench: Bench) -> None:
    bench.pool("p", 7)
    bench.dag("d", *(task(f"t{i}", pool="p", priority_weight=9 - i) for i in range(9)))
    bench.trigger("d", "r")
    bench.pass_time(MINUTE)
    bench.start("r.t0")
    answer = bench.why_answer("r.t8")
    pool = _of(answer, "pool")
    assert pool["holder_count"] == 7
    assert [one["task_id"] for one in pool["holders"]] == ["t0", "t1", "t2", "t3", "t4"]
    assert pool["holders"][0] == {
        "dag_id": "d",
        "run_id": "r",
        "task_id": "t0",
        "map_index": -1,
        "state": "running",
        "since": "2026-01-01T00:00:00Z",
        "started_at": "2026-01-01T00:01:00Z",
    }
    assert pool["holders"][1]["started_at"] is None
    assert pool["command"] == "tradewind pools set p 8"
    assert answer["position"]["ahead"] == 1
    assert answer["position"]["first"]["task_id"] == "t7"
    ends = {"code": "ends_holder", "arguments": {}}
    event = "one of the task instances that hold it ends"
    assert answer["next_event"] == {"event": event, "at": None, "rule": "pool", "ends": ends}
    assert pool["reason"] == {"code": "pool_full", "arguments": {"pool": "p", "free": 0, "capacity": 7, "amount": 1}}
    used = {"executor": "StubExecutor", "attached": True, "live": 7, "parallelism": None}
    assert answer["workers"] == {**used, "note": None, "note_phrase": None}
    assert answer["earliest_start"] == "2026-01-01T00:01:00Z"


def test_candidates_of_a_paused_dag_are_not_counted_ahead(bench: Bench) -> None:
    bench.pool("p", 1)
    for name in ("a", "b"):
        bench.dag(name, task("t0", pool="p", priority_weight=9), task("t1", pool="p"))
        bench.trigger(name, name)
    assert bench.why_answer("b/b.t1")["position"]["ahead"] == 2
    bench.command("set_paused", dag_id="a", is_paused=True)
    assert bench.why_answer("b/b.t1")["position"]["ahead"] == 1


def test_a_task_far_downstream_names_how_far_the_run_has_got(bench: Bench) -> None:
    bench.dag("d", task("t0", retries=1, retry_delay=HOUR), *(task(f"t{i}", f"t{i - 1}") for i in range(1, 20)))
    bench.trigger("d", "r")
    bench.start("r.t0")
    answer = bench.why_answer("r.t19")
    assert _of(answer, "trigger_rule")["sentence"].endswith("Not ended: t18 (not started). The run has reached t0 (running).")
    assert answer["next_event"]["event"] == "t0 ends"
    bench.report("r.t0", Outcome.FAILED)
    answer = bench.why_answer("r.t1")
    assert answer["earliest_start"] == "2026-01-01T01:00:00Z", "not before the retry of the task above it"


def test_a_moment_is_the_next_event_and_the_earliest_start(bench: Bench) -> None:
    bench.dag("d", task("a", retries=1, retry_delay=HOUR))
    bench.trigger("d", "r")
    bench.fail("r.a")
    answer = bench.why_answer("r.a")
    at = "2026-01-01T01:00:00Z"
    ends = {"code": "ends_at", "arguments": {"at": at}}
    assert answer["next_event"] == {"event": f"the clock reaches {at}", "at": at, "rule": "due", "ends": ends}
    assert answer["earliest_start"] == "2026-01-01T01:00:00Z"
    bench.command("set_paused", dag_id="d", is_paused=True)
    answer = bench.why_answer("r.a")
    assert answer["earliest_start"] is None, "a person has to unpause it first"
    assert _of(answer, "paused")["command"] == "tradewind dags unpause d"


def test_a_task_that_ended_without_running_names_the_cause(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"), task("s"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    finished = _of(bench.why_answer("r.c"), "finished")
    assert finished["sentence"] == (
        "It is upstream_failed: upstream of it, b (upstream_failed). The root cause is a (failed). "
        "Clear a and downstream tasks to run it again."
    )
    assert finished["command"] == "tradewind tasks clear d -t '^a$' --downstream --only-failed --run-id r"
    assert _of(bench.why_answer("r.b"), "finished")["command"] == finished["command"]


def test_a_skipped_task_names_the_branch_that_decided(bench: Bench) -> None:
    bench.dag("d", task("choose"), task("g.left", "choose"), task("below", "g.left"), task("right", "choose"))
    bench.trigger("d", "~r")
    bench.branch("~r.choose", "follow", "right")
    finished = _of(bench.why_answer("~r.below"), "finished")
    assert finished["command"] == "tradewind tasks clear d -t '^choose$' --downstream --run-id '~r'"
    assert "Clear choose and downstream tasks" in finished["sentence"]
    answer = as_dict(why(bench.store, bench.scheduler, "d", "g.left", "~r"))
    left = _of(answer, "finished")["reason"]["arguments"]["first"]
    chosen = {"code": "branch_not_chosen", "arguments": {"tasks": ["choose"]}}
    assert left["arguments"]["reason"] == chosen, "a stored reason that still holds is a phrase, too"


@pytest.mark.parametrize(
    ("stored", "sentence", "reason"),
    [
        (None, ".", None),
        ("a is failed", ": a is failed.", {"code": "run_reason_task", "arguments": {"task": "a", "state": "failed"}}),
        (
            "c is upstream_failed, and the root cause is a (failed)",
            ": c is upstream_failed, and the root cause is a (failed).",
            {"code": "run_reason_root", "arguments": {"task": "c", "state": "upstream_failed", "tasks": "a (failed)"}},
        ),
        ("somebody's words.", ": somebody's words.", "somebody's words"),
    ],
)
def test_the_stored_reason_of_a_run_is_recognised(bench: Bench, stored: str | None, sentence: str, reason: Any) -> None:
    """The reason of a run is stored in English. Other languages need its code."""
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    (found,) = of_run(bench.store.need_dag("d"), bench.run("r")._replace(reason=stored), None)
    assert found.sentence == f"Its run has been failed since 2026-01-01T00:00:00Z{sentence}"
    assert as_dict(found.reason)["arguments"].get("reason") == reason


def test_a_task_that_skipped_itself_is_its_own_cause(bench: Bench) -> None:
    bench.dag("d", task("one"))
    bench.trigger("d", "r")
    bench.finish("r.one", outcome=Outcome.SKIPPED)
    assert _of(bench.why_answer("r.one"), "finished")["command"] == "tradewind tasks clear d -t '^one$' --run-id r"
    assert pattern(["g.one", "two"]) == r"'^(g\.one|two)$'"


def test_a_chain_of_depends_on_past_names_the_root_cause(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a", depends_on_past=True), max_active_runs=9)
    for day in (1, 2, 3, 4):
        bench.trigger("d", f"r{day}", day=day)
    bench.fail("r1.a")
    bench.finish("r2.a", "r3.a", "r4.a")
    for live in (True, False):
        past = _of(bench.why_answer("r4.b", live=live), "past")
        assert past["sentence"] == (
            "depends_on_past: b is none in the previous run r3; it has to be success or skipped. "
            "The cause is 3 runs back in r1, where b is upstream_failed. The root cause is a (failed)."
        )
        assert past["command"] == "tradewind tasks clear d -t '^a$' --downstream --only-failed --run-id r1"
        assert (past["by_hand"], past["ends_with"]) == (True, "b is success or skipped in r1")


def test_a_chain_of_depends_on_past_names_the_running_task(bench: Bench) -> None:
    bench.dag("d", task("b", depends_on_past=True), max_active_runs=9)
    for day in (1, 2, 3):
        bench.trigger("d", f"r{day}", day=day)
    bench.start("r1.b")
    past = _of(bench.why_answer("r3.b"), "past")
    assert "2 runs back in r1, where b is running. See: tradewind why d b --run-id r1" in past["sentence"]
    assert (past["by_hand"], past["command"], past["ends_with"]) == (False, None, "b ends in r1")


def test_wait_for_downstream_names_the_blocking_task(bench: Bench) -> None:
    bench.dag("d", task("a", wait_for_downstream=True, depends_on_past=True), task("b", "a"), max_active_runs=9)
    bench.trigger("d", "r1", day=1)
    bench.finish("r1.a")
    bench.fail("r1.b")
    bench.trigger("d", "r2", day=2)
    assert _of(bench.why_answer("r2.a"), "past")["command"] == "tradewind tasks clear d -t '^b$' --run-id r1"


def test_rule_always_names_no_setups(bench: Bench) -> None:
    """Only blockers are named."""
    bench.dag("d", task("s", is_setup=True), task("x", "s"), task("w", "x", trigger_rule="always", pool="none"))
    bench.trigger("d", "r")
    assert set(bench.why("r.w")) == {"pool"}


def test_a_failed_setup_is_named_instead_of_the_trigger_rule(bench: Bench) -> None:
    """Until its next try its end is explained by the setup: its trigger rule is met."""
    bench.dag("d", task("s", is_setup=True), task("x", "s"), task("w", "x", trigger_rule="one_failed"))
    bench.trigger("d", "r")
    bench.finish("r.s")
    bench.fail("r.x")
    bench.finish("r.w", outcome=Outcome.RESCHEDULE, reschedule_at=NOW + HOUR)
    bench.command("mark", dag_id="d", run_id="r", task_ids=["s"], state="failed")
    answer = bench.why("r.w")
    assert answer.keys() == {"due", "setup"}
    assert answer["setup"] == "It is going to be upstream_failed: it needs the setup s (failed)."


def test_an_empty_task_names_no_limits(bench: Bench) -> None:
    bench.pool("p", 0)
    bench.dag("d", task("a"), task("b", "a", empty=True, pool="p"))
    bench.trigger("d", "r")
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert set(bench.why("r.b")) == {"trigger_rule"}


def test_lists_in_sentences_are_short(bench: Bench) -> None:
    many = [task(f"t{i:04}", pool="p") for i in range(2000)]
    bench.pool("p", 0)
    bench.dag("d", *many, task("end", *(one.task_id for one in many)))
    bench.trigger("d", "r")
    answer = bench.why_answer("r.end")
    sentence = _of(answer, "trigger_rule")["sentence"]
    assert sentence.endswith("Not ended: t0000 (scheduled), t0001 (scheduled), t0002 (scheduled) and 1997 more.")
    assert bench.why_answer("r.t1999")["position"]["ahead"] == 1999


# --- runs ---------------------------------------------------------------------------------------------------------------------


def test_a_queued_run_names_the_runs_that_hold_run_slots(bench: Bench) -> None:
    bench.dag("d", task("a"), max_active_runs=2)
    for day in range(1, 6):
        bench.trigger("d", f"r{day}", day=day)
    answer = bench.why_answer("r5.a")
    assert set(bench.why("r5.a")) == {"max_active_runs"}
    places = _of(answer, "max_active_runs")
    assert [one["run_id"] for one in places["holders"]] == ["r1", "r2"]
    assert answer["position"] == {"ahead": 2, "first": first_run("d", "r3")}
    assert answer["run_state"] == "queued"
    run = as_dict(why_run_of(bench.store, bench.scheduler, "d", "r5"))
    assert run["blockers"] == answer["blockers"]
    running = as_dict(why_run_of(bench.store, bench.scheduler, "d", "r1"))
    assert running["open"] == {"queued": {"count": 1, "first": ["a"]}}


def test_the_next_run_and_what_keeps_it(bench: Bench) -> None:
    daily = CronSchedule(("0 0 * * *",), interval_kind="data")
    bench.dag("d", task("a"), schedule=daily, start_date=NOW + DAY, max_active_runs=1, catchup=True)
    answer = as_dict(why(bench.store, bench.scheduler, "d", "a", None))
    assert (answer["run_id"], answer["state"]) == (None, None)
    assert _of(answer, "not_due")["sentence"] == "The next run of the DAG starts at 2026-01-03T00:00:00Z."
    assert answer["next_run"]["logical_date"] == "2026-01-02T00:00:00Z"
    assert answer["earliest_start"] == "2026-01-03T00:00:00Z"
    bench.pass_time(3 * DAY)
    answer = as_dict(why_no_run(bench.store, bench.scheduler, "d"))
    assert _of(answer, "max_active_runs")["holders"][0]["run_id"] == "scheduled__2026-01-03T00:00:00+00:00"
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert {one["rule"] for one in as_dict(why_no_run(bench.store, bench.scheduler, "d"))["blockers"]} == {
        "paused",
        "max_active_runs",
    }


def test_the_command_for_a_missing_date_works_for_a_task_that_depends_on_the_past(bench: Bench) -> None:
    daily = CronSchedule(("0 0 * * *",), interval_kind="data")
    bench.dag("d", task("a", depends_on_past=True), schedule=daily, start_date=NOW - 5 * DAY, catchup=False)
    (one,) = as_dict(why_no_run(bench.store, bench.scheduler, "d", NOW - 4 * DAY))["blockers"]
    day = "2025-12-28T00:00:00Z"
    span = f"--from-date {day} --to-date {day}"
    assert one["command"] == f"tradewind backfill create --dag-id d {span} --reprocess-behavior failed"
    dates: dict[str, Any] = {"from_date": NOW - 4 * DAY, "to_date": NOW - 4 * DAY}
    assert bench.command("create_backfill", dag_id="d", **dates, reprocess_behavior="failed")["runs"] == 1


def test_there_is_no_run_of_a_date(bench: Bench) -> None:
    daily = CronSchedule(("0 0 * * *",), interval_kind="data")
    bench.dag("d", task("a", empty=True), schedule=daily, start_date=NOW - 5 * DAY, end_date=NOW + 9 * DAY, catchup=False)

    def rules(date: int) -> list[str]:
        return [one["rule"] for one in as_dict(why_no_run(bench.store, bench.scheduler, "d", date))["blockers"]]

    assert rules(NOW - 4 * DAY) == ["catchup"]
    assert rules(NOW - 6 * DAY) == ["before_start"]
    assert rules(NOW + 10 * DAY) == ["schedule_ended"]
    assert rules(NOW - 4 * DAY + HOUR) == ["no_such_date"]
    assert rules(NOW + 2 * DAY) == ["not_due"]
    bench.command("set_paused", dag_id="d", is_paused=True)
    assert rules(NOW + 2 * DAY) == ["paused", "not_due"]
    assert rules(NOW - 4 * DAY) == ["catchup"]


@pytest.mark.parametrize(
    ("schedule", "more", "rule", "sentence"),
    [
        (NoSchedule(), {}, "no_schedule", "It has no schedule: it runs when it is triggered."),
        (OnceSchedule(), {}, "schedule_ended", "It runs once, and that run exists."),
        (CronSchedule(("0 0 * * *",)), {"end_date": NOW - DAY}, "schedule_ended", "its end_date is 2025-12-31"),
    ],
)
def test_a_dag_that_has_no_next_run_says_why(
    bench: Bench, schedule: Any, more: dict[str, Any], rule: str, sentence: str
) -> None:
    bench.dag("d", task("a", empty=True), schedule=schedule, start_date=NOW - 3 * DAY, catchup=False, **more)
    answer = as_dict(why_no_run(bench.store, bench.scheduler, "d"))
    assert sentence in _of(answer, rule)["sentence"]
    assert answer["earliest_start"] is None


@pytest.mark.spec("S465")
def test_a_file_with_an_import_error_is_named(bench: Bench) -> None:
    bench.dag("d", task("a"))
    problem = ImportProblem("NameError: name 'raed' is not defined", "", 3)
    for file in ("d.py", "new.py"):
        bench.store.register_file(ParsedFile("dags", file, "h", (), problem, 1, False, NOW), paused_at_creation=True)
    with pytest.raises(NotFound, match=r"new\.py \(NameError: name 'raed' is not defined\)"):
        as_dict(why_no_run(bench.store, bench.scheduler, "brand_new"))
    (note,) = as_dict(why_no_run(bench.store, bench.scheduler, "d"))["next_run"]["notes"]
    assert note.startswith("Its file d.py, line 3 cannot be imported now; its last good version is used: NameError")


def test_a_run_whose_rows_are_being_created_blocks_later_ones(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.dag("d", *(task(f"t{i}", empty=True) for i in range(2500)))
    for run_id in ("r1", "r2"):
        bench.commands.run(bench.ask_for("trigger", dag_id="d", run_id=run_id))
    bench.scheduler.schedules.refresh("d")
    assert set(bench.why("r1.t1")) == {"rows"}
    assert set(bench.why("r2.t1")) == {"rows", "run_order"}
    assert "and r1 comes first, whose task instances are still being created" in bench.why("r2.t1")["run_order"]


def test_a_queued_run_names_its_queued_previous_run(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r0", day=0)
    bench.trigger("d", "r2", day=2, run_after=NOW - DAY)
    bench.trigger("d", "r1", day=1, run_after=NOW)
    bench.trigger("d", "r3", day=3, run_after=NOW)
    assert set(bench.why("r1.a")) == {"max_active_runs", "past"}
    assert bench.why("r2.a")["previous_run"] == (
        "Its tasks depend on the previous run, and r1 is queued: that one starts first."
    )
    assert "and r2 is queued" in bench.why("r3.a")["previous_run"]
    assert bench.why_answer("r1.a")["position"] == {"ahead": 0, "first": None}
    assert bench.why_answer("r3.a")["position"] == {"ahead": 2, "first": first_run("d", "r1")}
    bench.finish("r0.a")
    assert bench.run_states("d") == {"r0": "success", "r1": "running", "r2": "queued", "r3": "queued"}
    assert set(bench.why("r2.a")) == {"max_active_runs", "past"}


def test_a_queued_run_names_a_previous_run_of_a_backfill(bench: Bench) -> None:
    """Run slots of its own kind are free; its previous run waits for one of the other kind."""
    bench.dag("d", task("a", depends_on_past=True), schedule=DAILY, start_date=NOW - 9 * DAY, max_active_runs=3)
    bench.command(
        "create_backfill",
        dag_id="d",
        from_date=NOW - 5 * DAY,
        to_date=NOW - 4 * DAY,
        max_active_runs=1,
        reprocess_behavior="failed",
    )
    kind = RunType.BACKFILL
    first = next(row.run_id for row in bench.runs("d") if row.run_type is kind)
    bench.finish(f"{first}.a")
    second = next(row.run_id for row in bench.runs("d") if row.run_type is kind and row.run_id != first)
    bench.clear("d", first)
    assert (bench.run_states("d")[first], bench.run_states("d")[second]) == ("queued", "running")
    bench.trigger("d", "r", logical_date=NOW - 5 * DAY + HOUR)
    bench.trigger("d", "without", logical_date=None)
    assert bench.run_states("d")["without"] == "running"
    assert set(bench.why("r.a")) == {"previous_run", "past"}
    assert f"and {first} is queued" in bench.why("r.a")["previous_run"]
    assert bench.why_answer("r.a")["position"] == {"ahead": 1, "first": first_run("d", first)}
    bench.finish(f"{second}.a")
    assert bench.run_states("d")[first] == bench.run_states("d")["r"] == "running"


def test_a_run_that_was_queued_again_says_so(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a")
    bench.trigger("d", "r2", day=2)
    bench.clear("d", "r1")
    assert bench.run_states("d") == {"r1": "running", "r2": "queued"}
    assert bench.why("r2.a")["max_active_runs"] == (
        "1 run of the DAG is running; its max_active_runs is 1. "
        "It has run before, and was queued again while it waited for its previous run."
    )


def test_a_previous_run_that_others_need_is_not_blocked_by_order(bench: Bench) -> None:
    """The run before it in the queue is not due; but the first run depends on it, so it starts in order."""
    bench.dag("d", task("a", depends_on_past=True), max_active_runs=1)
    bench.trigger("d", "r0", day=0)
    for run_id, day in (("r5", 5), ("r9", 9), ("r2", 2)):
        bench.trigger("d", run_id, day=day, run_after=NOW + HOUR)
    bench.clock.advance(HOUR)
    entry = bench.scheduler.dags["d"]
    entry.incomplete.add(bench.run("r9").id)
    assert "run_order" not in bench.why("r2.a")
    assert "and r2 is queued" in bench.why("r5.a")["previous_run"]
    entry.incomplete.clear()
    bench.finish("r0.a")
    assert bench.run("r2").state is RunState.RUNNING


# --- waits that hold no slot --------------------------------------------------------------------------------------------------


def _defer(bench: Bench, wait: Any, **more: Any) -> dict[str, Any]:
    bench.dag("d", task("t"))
    bench.trigger("d", "r", day=0)
    bench.finish("r.t", outcome=Outcome.DEFERRED, deferral=Deferral(wait, "go_on", **more))
    return bench.why_answer("r.t")


def test_a_trigger_is_named_with_its_timeout(bench: Bench) -> None:
    answer = _defer(bench, TriggerWait("pkg.Arrived"), timeout_at=NOW + HOUR)
    assert _of(answer, "deferred")["sentence"] == (
        "It has been deferred since 2026-01-01T00:00:00Z to the trigger pkg.Arrived. Its timeout is at 2026-01-01T01:00:00Z."
    )
    ends = {"code": "ends_trigger", "arguments": {}}
    assert answer["next_event"] == {"event": "its trigger fires", "at": None, "rule": "deferred", "ends": ends}
    bench.executor.ready = False
    assert set(bench.why("r.t")) == {"deferred", "no_worker"}


def test_a_wait_for_a_moment_names_it(bench: Bench) -> None:
    answer = _defer(bench, MomentWait(NOW + HOUR))
    assert answer["earliest_start"] == answer["next_event"]["at"] == "2026-01-01T01:00:00Z"


def test_a_wait_for_a_missing_task_says_so(bench: Bench) -> None:
    """Its other tasks have ended, but the wait needs the missing one, too."""
    bench.dag("other", task("x"))
    bench.trigger("other", "o1")
    bench.finish("other/o1.x")
    answer = _defer(bench, TasksWait("other", run_ids=("o1",), task_ids=("x", "y")))
    assert _of(answer, "deferred")["sentence"].endswith("on o1 there is no y.")


def test_a_wait_for_another_dag_names_its_states(bench: Bench) -> None:
    date = NOW - 100 * DAY
    wait = TasksWait("other", logical_dates=(date, date + DAY), task_ids=("x",))
    answer = _defer(bench, wait)
    assert "There is no DAG 'other'" in _of(answer, "waits_for_nothing")["sentence"]
    bench.dag("other", task("x"))
    bench.trigger("other", "o1", day=0)
    sentence = _of(bench.why_answer("r.t"), "deferred")["sentence"]
    assert sentence == (
        "It waits without a process until 'x' of DAG 'other' is success: "
        "on 2025-09-23T00:00:00Z x is queued; there is no run of 2025-09-24T00:00:00Z."
    )
    bench.command("set_paused", dag_id="other", is_paused=True)
    answer = bench.why_answer("r.t")
    assert _of(answer, "waits_for_paused")["command"] == "tradewind dags unpause other"
    assert answer["earliest_start"] is None
