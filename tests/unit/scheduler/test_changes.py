"""Notifications about changes that the API gets after each commit."""

from __future__ import annotations

from typing import Any

from tests.unit.scheduler.bench import Bench, task
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral, InputWait
from tradewind.scheduler import changes
from tradewind.scheduler.changes import Changes


def watched(bench: Bench) -> Changes:
    found = bench.scheduler.changes
    found.wanted = True
    found.take()
    return found


def test_a_commit_names_its_run_its_tasks_and_their_pools(bench: Bench) -> None:
    bench.pool("p q", 2)
    bench.dag("d", task("a", pool="p q"), task("b", "a"))
    changes_seen = watched(bench)
    bench.trigger("d", "r:1")
    names = changes_seen.take()
    assert {"dag:d", "run:d/r%3A1", "task:d/r%3A1/a/-1", "pool:p%20q", "triage"} <= set(names)
    bench.start("r:1.a")
    assert set(changes_seen.take()) == {"run:d/r%3A1", "task:d/r%3A1/a/-1"}
    bench.report("r:1.a", Outcome.SUCCESS)
    assert {"task:d/r%3A1/a/-1", "task:d/r%3A1/b/-1", "pool:p%20q", "pool:default_pool"} <= set(changes_seen.take())
    bench.finish("r:1.b", outcome=Outcome.FAILED)
    assert {"dag:d", "triage"} <= set(changes_seen.take()), "the run has failed"


def test_a_question_to_a_person_is_announced(bench: Bench) -> None:
    """The list of questions is not about one run that a page could watch."""
    bench.dag("d", task("t"))
    bench.trigger("d", "r")
    changes_seen = watched(bench)
    bench.finish(
        "r.t", outcome=Outcome.AWAITING_INPUT, deferral=Deferral(InputWait("Go on?", ("Yes",)), "execute_complete", b"{}", None)
    )
    assert "triage" in changes_seen.take()
    bench.command("answer_input", dag_id="d", run_id="r", task_id="t", chosen=["Yes"], user_id="7", user_name="ann")
    assert "triage" in changes_seen.take()


def test_nothing_is_collected_while_nobody_watches(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.finish("r.a")
    assert not bench.scheduler.changes


def test_many_changed_tasks_are_not_named_one_by_one(bench: Bench) -> None:
    bench.dag("d", *(task(f"t{i}") for i in range(changes.TASKS_MAX + 1)))
    changes_seen = watched(bench)
    bench.trigger("d", "r")
    names = changes_seen.take()
    assert "run:d/r" in names
    assert "tasks:d/r" in names
    assert not any(name.startswith("task:") for name in names)


def test_what_somebody_marks_or_clears_is_announced(bench: Bench) -> None:
    """Another person may look at the task instance, also when its run has ended and is not in memory."""
    bench.dag("d", task("a"))
    bench.trigger("d", "r")
    bench.finish("r.a")
    changes_seen = watched(bench)
    commands: list[tuple[str, dict[str, Any]]] = [("mark", {"state": "failed"}), ("clear", {}), ("mark", {"state": "success"})]
    for kind, more in commands:
        bench.command(kind, dag_id="d", run_id="r", task_ids=["a"], **more)
        assert {"tasks:d/r", "run:d/r", "dag:d", "triage"} <= set(changes_seen.take()), kind


def test_too_many_names_become_one() -> None:
    changes_seen = Changes()
    changes_seen.wanted = True
    for number in range(changes.NAMES_MAX + 10):
        changes_seen.dag(str(number))
    assert changes_seen.take() == ["resync"]
    changes_seen.dag("again")
    assert changes_seen.take() == ["dag:again"]


def test_everything_is_read_again_after_a_recovery(bench: Bench) -> None:
    changes_seen = watched(bench)
    bench.scheduler.record_failure("the disk is full")
    assert bench.scheduler.recover()
    assert changes_seen.take() == ["resync"]
