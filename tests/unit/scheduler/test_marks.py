"""Marking task instances, setting a run's state, and what follows."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.definition import MapLiteral, MapXCom
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.moments import DAY, SECOND
from tradewind.model.states import RunState
from tradewind.store.sql.store import SqlStore
from tradewind.wire.messages import Refused, Workload

SET_UP = (
    task("up", is_setup=True),
    task("work", "up"),
    task("down", "work", "up", is_teardown=True, trigger_rule="all_done_setup_success"),
)


def mark(bench: Bench, run_id: str | None, state: str, *task_ids: str, **more: Any) -> list[str]:
    """Mark, and return `run.task: from → to` of everything that changes."""
    answer = bench.command("mark", dag_id="d", run_id=run_id, state=state, task_ids=list(task_ids), **more)
    return [
        f"{one['run_id']}.{one['task_id']}"
        + (f"[{one['map_index']}]" if one["map_index"] >= 0 else "")
        + f": {one['state']} → {one['to']}"
        for one in answer["task_instances"]
    ]


def set_state(bench: Bench, run_id: str, state: str, **more: Any) -> Any:
    return bench.command("set_run_state", dag_id="d", run_id=run_id, state=state, **more)


# --- task instances -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S182", "S447", "S449")
def test_marking_a_failed_task_success_continues_its_run(bench: Bench) -> None:
    """Downstream tasks that failed because of it are examined again, and the failed run is queued. A dry run lists the same."""
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"), task("x"))
    bench.trigger("d", "r")
    bench.finish("r.x")
    bench.fail("r.a")
    assert bench.run("r").state is RunState.FAILED
    before = bench.states("r")
    touched = ["r.a: failed → success", "r.b: upstream_failed → none", "r.c: upstream_failed → none"]
    assert mark(bench, "r", "success", "a", dry_run=True) == touched
    assert bench.states("r") == before, "a dry run changes nothing"
    assert mark(bench, "r", "success", "a", reason="repaired by hand") == touched
    assert bench.states("r") == {"a": "success", "b": "queued", "c": "none", "x": "success"}
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    assert mark(bench, "r", "success") == [], "what is a success already is not touched"
    bench.check()


@pytest.mark.spec("S451", "S464")
def test_marking_a_running_task_stops_it(bench: Bench) -> None:
    """Its attempt is cancelled, its report is refused, its slot is free and its downstream task starts."""
    bench.pool("one", 1)
    bench.dag("d", task("a", pool="one"), task("b", "a", pool="one"))
    bench.trigger("d", "r")
    bench.start("r.a")
    work = bench.attempt("r.a")
    assert mark(bench, "r", "success", "a") == ["r.a: running → success"]
    assert bench.executor.cancelled == [work.key]
    assert bench.states("r") == {"a": "success", "b": "queued"}
    assert isinstance(bench.report(work), Refused), "it came too late"
    assert isinstance(bench.ask(work, "another"), Refused)
    bench.finish("r.b")
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_queued_or_retrying_task_can_be_marked(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", retries=1, retry_delay=600 * SECOND), task("c"), task("z", "a", "b", "c"))
    bench.trigger("d", "r")
    bench.fail("r.b")
    bench.start("r.c")
    assert mark(bench, "r", "skipped", "a", "b", "c") == [
        "r.a: queued → skipped",
        "r.b: up_for_retry → skipped",
        "r.c: running → skipped",
    ]
    assert len(bench.executor.cancelled) == 2
    assert bench.states("r") == {"a": "skipped", "b": "skipped", "c": "skipped", "z": "skipped"}
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_marking_failed_fails_downstream_tasks(bench: Bench) -> None:
    """As after a failure, but without another try; downstream tasks are not cleared."""
    bench.dag("d", task("a", retries=3), task("b", "a"), task("c", trigger_rule="all_done"))
    bench.trigger("d", "r")
    assert mark(bench, "r", "failed", "a") == ["r.a: queued → failed"]
    assert bench.states("r") == {"a": "failed", "b": "upstream_failed", "c": "queued"}
    bench.finish("r.c")
    assert bench.run("r").state is RunState.FAILED


def test_marking_reopens_a_finished_run_only_if_a_task_has_to_run(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    answer = bench.command("mark", dag_id="d", run_id="r", state="failed", task_ids=["a"])
    assert answer["ended"] == ["r"]
    assert (bench.states("r"), bench.run("r").state) == ({"a": "failed", "b": "success"}, RunState.SUCCESS)
    bench.check()


@pytest.mark.spec("S448", "S452")
def test_only_existing_runs_are_marked(bench: Bench) -> None:
    """Dates without a run are ignored, and so is an instance that has the state already."""
    bench.dag("d", task("a"), task("b", "a"))
    for day in (1, 2, 4):
        bench.trigger("d", f"r{day}", day=day)
        bench.fail(f"r{day}.a")
    start = NOW - 100 * DAY
    found = mark(bench, None, "success", "a", start=start + 2 * DAY, end=start + 9 * DAY)
    assert found == [f"r{day}.{step}" for day in (2, 4) for step in ("a: failed → success", "b: upstream_failed → none")]
    assert len(bench.runs("d")) == 3, "no run is made for a day that has none"
    assert mark(bench, "r1", "success", "a", future=True) == ["r1.a: failed → success", "r1.b: upstream_failed → none"]
    assert mark(bench, None, "success", "a", start=NOW, end=NOW) == []
    with pytest.raises(NotFound, match="has no run 'r3'"):
        mark(bench, "r3", "success", "a")
    bench.work()
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_marks_of_relatives_and_of_runs_before(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"), task("x", "a"), paused=True)
    for day in (1, 2, 3):
        bench.trigger("d", f"r{day}", day=day)

    def touched(*task_ids: str, **more: Any) -> str:
        found = mark(bench, "r2", "success", *task_ids, dry_run=True, **more)
        return " ".join(one.partition(":")[0] for one in found)

    assert touched("b") == "r2.b"
    assert touched("b", upstream=True) == "r2.a r2.b"
    assert touched("b", downstream=True) == "r2.b r2.c"
    assert touched("b", upstream=True, downstream=True) == "r2.a r2.b r2.c r2.x", "x comes after a, which is marked too"
    assert touched("b", past=True) == "r1.b r2.b"
    assert touched("b", future=True) == "r2.b r3.b"
    assert touched() == "r2.a r2.b r2.c r2.x"
    with pytest.raises(NotFound, match="Did you mean 'x'"):
        touched("xx")


def test_marks_of_map_indexes(bench: Bench) -> None:
    bench.dag("d", task("m", mapped=True, expand=(MapLiteral(3),)), task("z", "m"))
    bench.trigger("d", "r")
    bench.finish("r.m[0]")
    bench.fail("r.m[1]", "r.m[2]")
    assert bench.states("r")["z"] == "upstream_failed"
    assert mark(bench, "r", "success", instances=[["m", 2]]) == ["r.m[2]: failed → success", "r.z: upstream_failed → none"]
    assert bench.states("r")["z"] == "upstream_failed", "m[1] is still failed"
    assert mark(bench, "r", "success", instances=[["m", 1]]) == ["r.m[1]: failed → success", "r.z: upstream_failed → none"]
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


def test_a_mapped_task_is_marked_before_it_has_instances(bench: Bench) -> None:
    bench.dag("d", task("a"), task("m", "a", mapped=True, expand=(MapXCom("a"),)), task("z", "m"))
    bench.trigger("d", "r")
    assert mark(bench, "r", "success", "m") == ["r.m: none → success"]
    bench.work()
    assert bench.states("r") == {"a": "success", "m": "success", "z": "success"}
    bench.check()


def test_the_past_of_another_run_is_marked(bench: Bench) -> None:
    bench.dag("d", task("a", depends_on_past=True))
    bench.trigger("d", "r1", day=1)
    bench.fail("r1.a")
    bench.trigger("d", "r2", day=2)
    assert bench.states("r2") == {"a": "none"}
    mark(bench, "r1", "success", "a")
    assert bench.states("r2") == {"a": "queued"}, "its past has just become good"


def test_the_audit_log_and_the_history_say_who_and_why(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    mark(bench, "r", "success", "a", reason="checked", note="see ticket 7")
    inner = bench.watched.inner
    assert isinstance(inner, SqlStore)
    (entry,) = inner.event_logs(event="mark").rows
    assert (entry.owner, json.loads(entry.extra or "")) == ("ann", {"state": "success", "count": 1, "reason": "checked"})
    (shown,) = inner.list_task_instances("d", "r").rows
    assert (shown.state, shown.note) == ("success", "see ticket 7")
    assert (shown.pid, shown.executor) == (99, None), "where it ran is still shown; the task names no executor"
    assert [one.executor for one in inner.attempts_of_run(bench.run("r").id)] == ["StubExecutor"]
    assert inner.task_instance("d", "r", "a") == shown
    assert [one.state for one in inner.task_tries("d", "r", "a")] == ["success"]
    assert [one.outcome for one in inner.attempts("d", "r", "a")] == ["failed"], "what really happened stays"


def test_a_large_mark_takes_bounded_steps(bench: Bench) -> None:
    bench.commands.config = msgspec.structs.replace(bench.config, batch_max_rows=4)
    bench.dag("d", task("a"), task("b"), max_active_runs=9, paused=True)
    for day in range(1, 5):
        bench.trigger("d", f"r{day}", day=day)
    after, rounds, touched = None, 0, 0
    while True:
        answer = bench.command("mark", dag_id="d", state="success", after=after)
        touched, rounds, after = touched + len(answer["task_instances"]), rounds + 1, answer["next"]
        if after is None:
            break
    assert (touched, rounds) == (8, 4), "a run at a time"


def test_a_step_of_a_mark_is_bounded_without_changes_too(bench: Bench) -> None:
    """The scheduler must not read the whole history at once."""
    bench.dag("d", task("a"), task("b"), max_active_runs=99, paused=True)
    for day in range(1, 61):
        bench.trigger("d", f"r{day}", day=day)
    bench.command("mark", dag_id="d", state="success")
    bench.commands.config = msgspec.structs.replace(bench.config, batch_max_rows=2)
    for command, args in (("mark", {"state": "success"}), ("clear", {"only_failed": True})):
        after, rounds = None, 0
        while True:
            answer = bench.command(command, dag_id="d", after=after, **args)
            assert answer["task_instances"] == []
            rounds, after = rounds + 1, answer["next"]
            if after is None:
                break
        assert rounds == 3, "of 50 rows each"


def test_impossible_marks_are_refused(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    with pytest.raises(Conflict, match=r"success, failed or skipped, not 'sucess'\. Did you mean 'success'"):
        mark(bench, "r", "sucess")
    with pytest.raises(Conflict, match="at most 1000 characters"):
        mark(bench, "r", "success", note="x" * 1001)
    with pytest.raises(Conflict, match="success, failed or queued, not 'running'"):
        set_state(bench, "r", "running")


# --- runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S165", "S191")
def test_a_run_can_be_set_to_failed(bench: Bench) -> None:
    """Tasks that run or wait for a retry fail, others are skipped; no task is left unfinished."""
    bench.dag("d", task("a"), task("b", retries=1, retry_delay=SECOND), task("c"), task("done"), task("z", "a", "b"))
    bench.trigger("d", "r")
    bench.finish("r.done")
    bench.start("r.a")
    bench.fail("r.b")
    answer = set_state(bench, "r", "failed", dry_run=True)
    assert (answer["before"], answer["now"], len(answer["task_instances"])) == ("running", "failed", 4)
    assert bench.run("r").state is RunState.RUNNING
    set_state(bench, "r", "failed", reason="wrong day")
    assert bench.states("r") == {"a": "failed", "b": "failed", "c": "skipped", "done": "success", "z": "skipped"}
    row = bench.run("r")
    assert (row.state, row.reason) == (RunState.FAILED, "marked failed by ann: wrong day")
    assert len(bench.executor.cancelled) == 2, "a, and c, which was on its way"
    assert isinstance(bench.report("r.a"), Refused)
    bench.pass_time(10 * SECOND)
    assert bench.states("r")["b"] == "failed", "it is not tried again"
    bench.check()


def test_a_run_can_be_set_to_success(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"))
    bench.trigger("d", "r")
    bench.fail("r.a")
    assert bench.run("r").state is RunState.FAILED
    assert set_state(bench, "r", "success")["now"] == "success"
    assert set(bench.states("r").values()) == {"success"}
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


@pytest.mark.parametrize("state", ["success", "failed"])
def test_setting_a_run_ends_the_attempts_of_tasks_that_the_dag_has_no_more(bench: Bench, state: str) -> None:
    """Otherwise the process would run on after the end of its run, and nobody would stop it."""
    bench.dag("d", task("gone"), task("past"), task("a"))
    bench.trigger("d", "r")
    bench.start("r.gone")
    bench.fail("r.past")
    bench.dag("d", task("a"))
    set_state(bench, "r", state)
    assert bench.run("r").state is RunState(state)
    assert len(bench.executor.cancelled) == 2, "gone, and a, which was on its way"
    assert isinstance(bench.report("r.gone"), Refused)
    bench.check()


def test_a_queued_run_can_be_set_to_a_finished_state(bench: Bench) -> None:
    """It never starts, and other runs start instead."""
    bench.dag("d", task("a"), max_active_runs=1)
    for name in ("r1", "r2", "r3"):
        bench.trigger("d", name)
    set_state(bench, "r2", "failed")
    assert bench.states("r2") == {"a": "skipped"}
    bench.work()
    assert bench.run_states("d") == {"r1": "success", "r2": "failed", "r3": "success"}
    bench.check()


@pytest.mark.spec("S437")
def test_queueing_a_run_runs_its_cleared_tasks(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "r")
    bench.work()
    bench.clear("d", "r", "b", reset_dag_runs=False)
    assert (bench.states("r"), bench.run("r").state) == ({"a": "success", "b": "none"}, RunState.SUCCESS)
    bench.check()
    set_state(bench, "r", "queued")
    assert bench.states("r") == {"a": "success", "b": "queued"}
    bench.finish("r.b")
    assert bench.run("r").state is RunState.SUCCESS
    assert set_state(bench, "r", "queued", dry_run=True)["now"] == "queued"
    bench.check()


def test_an_active_run_is_not_queued_again(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.start("r.a")
    assert set_state(bench, "r", "queued")["now"] == "running"
    assert bench.states("r") == {"a": "running"}
    bench.finish("r.a")
    bench.check()


@pytest.mark.parametrize("restarts", [False, True])
def test_teardowns_run_before_a_failed_run_ends(bench: Bench, restarts: bool) -> None:
    """The run fails nevertheless, whatever the teardown does."""
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("work", "up"),
        task("down", "work", "up", is_teardown=True, trigger_rule="all_done_setup_success"),
    )
    bench.trigger("d", "r")
    bench.finish("r.up")
    bench.start("r.work")
    answer = set_state(bench, "r", "failed")
    assert answer["now"] == "running"
    assert answer["teardowns"] == [{"task_id": "down", "map_index": -1}]
    if restarts:
        bench.restart()
    assert bench.states("r") == {"up": "success", "work": "failed", "down": "queued"}
    bench.finish("r.down")
    row = bench.run("r")
    assert (row.state, row.reason) == (RunState.FAILED, "marked failed by ann")
    bench.check()


def test_a_teardown_with_nothing_to_tear_down_is_skipped(bench: Bench) -> None:
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("work", "up"),
        task("down", "work", "up", is_teardown=True, trigger_rule="all_done_setup_success"),
        paused=True,
    )
    bench.trigger("d", "r")
    assert set_state(bench, "r", "failed")["now"] == "failed"
    assert set(bench.states("r").values()) == {"skipped"}
    bench.check()


def test_clearing_a_failing_run_lets_it_continue(bench: Bench) -> None:
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("work", "up"),
        task("down", "work", "up", is_teardown=True, trigger_rule="all_done_setup_success"),
    )
    bench.trigger("d", "r")
    bench.finish("r.up")
    set_state(bench, "r", "failed")
    bench.clear("d", "r", "work")
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    bench.check()


# --- notes ----------------------------------------------------------------------------------------------------------------


def test_marks_write_notes(bench: Bench) -> None:
    bench.dag("d", task("a"), task("m", mapped=True, expand=(MapLiteral(2),)))
    bench.trigger("d", "r")
    assert bench.command("note_run", dag_id="d", run_id="r", note="look")["note"] == "look"
    assert bench.run("r").note == "look"
    bench.check()
    assert bench.command("note_run", dag_id="d", run_id="r", note="")["note"] is None
    noted: dict[str, Any] = {"dag_id": "d", "run_id": "r", "note": "slow"}
    assert bench.command("note_task", **noted, task_id="m")["task_instances"] == 2
    assert bench.command("note_task", **noted, task_id="m", map_index=1)["task_instances"] == 1
    with pytest.raises(NotFound, match="no task instance of 'm' with map index 7"):
        bench.command("note_task", **noted, task_id="m", map_index=7)
    with pytest.raises(NotFound, match="has no task 'n'"):
        bench.command("note_task", **noted, task_id="n")
    bench.work()
    bench.check()


# --- listeners of plugins -----------------------------------------------------------------------------------------------

EVENTS = [
    *(f"on_task_instance_{state}" for state in ("success", "failed", "skipped")),
    "on_dag_run_success",
    "on_dag_run_failed",
]


def told(bench: Bench) -> list[tuple[str, str, str | None, str]]:
    """Return and delete what the listeners are to be told of a person: (event, task, error or message, state)."""
    found: list[tuple[str, str, str | None, str]] = []
    for item in bench.store.outbox_items():
        work = msgspec.msgpack.decode(item.payload, type=Workload)
        call = work.call
        assert call is not None
        words = (call.end_reason, call.run_state) if call.of_run else (call.reason, call.state)
        found += [(call.argument, work.task_id, *words)] if call.by_hand else []
        bench.store.delete_outbox_item(item.id)
    return found


@pytest.fixture
def listened(bench: Bench) -> Bench:
    bench.command(
        "register_plugins", plugins=[{"name": "ours", "source": "ours.py", "listener_events": EVENTS}], problems=[], at=NOW
    )
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"))
    bench.trigger("d", "r")
    return bench


def test_listeners_are_told_of_marked_task_instances(listened: Bench) -> None:
    listened.fail("r.a")
    mark(listened, "r", "success", "a", dry_run=True)
    assert told(listened) == []
    mark(listened, "r", "success", "a")
    said = "TaskInstance's state was manually set to `success`."
    assert told(listened) == [("on_task_instance_success", "a", said, "success")]
    mark(listened, "r", "skipped", "b", "c")
    assert [one[:2] for one in told(listened)] == [
        ("on_task_instance_skipped", "b"),
        ("on_task_instance_skipped", "c"),
    ]


def test_listeners_are_told_of_a_run_that_is_set(listened: Bench) -> None:
    """And of its running tasks, which are stopped; not of those that had not started."""
    listened.start("r.a")
    set_state(listened, "r", "failed")
    assert told(listened) == [
        ("on_task_instance_failed", "a", "TaskInstance's state was manually set to `failed`.", "failed"),
        ("on_dag_run_failed", "", "Dag Run's state was manually set to `failed`.", "failed"),
    ]
    set_state(listened, "r", "queued")
    assert told(listened) == []


def test_without_listeners_nothing_is_told(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    set_state(bench, "r", "success")
    assert bench.store.outbox_items() == []
