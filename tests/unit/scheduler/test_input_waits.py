"""Task instances that wait for the answer of a person: answers, timeouts, restarts, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.execution.xcom_codec import decode_xcom
from tradewind.kernel.admission import PARALLELISM
from tradewind.model.errors import Conflict, NotFound, WrongArgument
from tradewind.model.moments import HOUR
from tradewind.model.states import Outcome
from tradewind.model.waits import Deferral, InputWait
from tradewind.store.port.lists import HitlFilter

QUESTION = InputWait("Go on?", ("Approve", "Reject"), params=b'{"copies": {"value": 1, "description": null, "schema": {}}}')


def ask(bench: Bench, wait: InputWait = QUESTION, timeout_at: int | None = None) -> None:
    """Have the task `t` ask, in its present attempt."""
    deferral = Deferral(wait, "execute_complete", b"{}", timeout_at)
    bench.finish("r.t", outcome=Outcome.AWAITING_INPUT, deferral=deferral)


@pytest.fixture
def asked(bench: Bench) -> Bench:
    bench.dag("d", task("t", retries=1), task("after", "t"))
    bench.trigger("d", "r", day=0)
    ask(bench)
    return bench


def given(*options: str, **more: Any) -> dict[str, Any]:
    return {
        "dag_id": "d",
        "run_id": "r",
        "task_id": "t",
        "chosen": list(options),
        "user_id": "7",
        "user_name": "ann",
        **more,
    }


def answer(bench: Bench, *options: str, **more: Any) -> Any:
    return bench.command("answer_input", **given(*options, **more))


def answer_unnoticed(bench: Bench, *options: str) -> str | None:
    """Answer while the scheduler does not look. Returns the sentence of a refusal."""
    result, _ = bench.commands.run(bench.ask_for("answer_input", **given(*options)))
    return result.message


def event(bench: Bench) -> Any:
    resumption = bench.attempt("r.t").resumption
    assert resumption is not None
    return decode_xcom(resumption.event)


def test_an_answer_continues_the_task_in_the_same_try(asked: Bench) -> None:
    assert asked.states("r") == {"t": "awaiting_input", "after": "none"}
    assert asked.scheduler.admission.used(PARALLELISM) == 0
    answer(asked, "Approve", params={"copies": 3})
    asked.process()
    assert asked.attempt("r.t").try_number == 1
    found = event(asked)
    assert (found["chosen_options"], found["params_input"], found["timedout"]) == (["Approve"], {"copies": 3}, False)
    assert found["responded_by_user"] == {"id": "7", "name": "ann"}
    assert found["responded_at"].timestamp() * 1e6 == NOW
    asked.finish("r.t", "r.after")
    assert asked.run("r").state.value == "success"
    asked.check()


def test_an_answer_counts_once(asked: Bench) -> None:
    assert answer_unnoticed(asked, "Approve") is None
    assert "at the same time" in str(answer_unnoticed(asked, "Reject"))
    asked.restart()
    with pytest.raises(Conflict, match="does not wait for an answer"):
        answer(asked, "Reject")
    assert event(asked)["chosen_options"] == ["Approve"]


def test_an_answer_that_was_given_while_no_scheduler_ran_counts(asked: Bench) -> None:
    answer_unnoticed(asked, "Reject")
    asked.restart()
    assert event(asked)["chosen_options"] == ["Reject"]
    asked.check()


@pytest.mark.parametrize(
    ("options", "more", "sentence"),
    [
        (("Aprove",), {}, "Did you mean 'Approve'"),
        (("Approve", "Reject"), {}, "asks for one of"),
        ((), {}, "choose an option"),
        (("Approve",), {"params": {"copy": 1}}, "no field 'copy'"),
    ],
)
def test_a_wrong_answer_is_refused_and_the_task_goes_on_waiting(
    asked: Bench, options: tuple[str, ...], more: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(WrongArgument, match=sentence):
        answer(asked, *options, **more)
    asked.process()
    assert asked.states("r")["t"] == "awaiting_input"


def test_a_task_instance_that_does_not_exist(asked: Bench) -> None:
    with pytest.raises(NotFound, match="no task instance"):
        answer(asked, "Approve", task_id="nowhere")


def test_the_defaults_count_after_the_timeout(bench: Bench) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r", day=0)
    ask(bench, InputWait("Go on?", ("a", "b"), defaults=("b",), params=b'{"x": {"value": 5}, "y": 6}'), NOW + HOUR)
    bench.pass_time(HOUR)
    bench.process()
    found = event(bench)
    assert (found["chosen_options"], found["params_input"], found["timedout"]) == (["b"], {"x": 5, "y": 6}, True)
    assert found["responded_by_user"] is None
    (shown,) = bench.store.hitl_details(HitlFilter()).rows
    assert (shown.response_received, shown.chosen_options, shown.responded_by_user) == (True, ["b"], None)
    bench.check()


def test_without_defaults_the_task_gets_the_timeout(bench: Bench) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r", day=0)
    ask(bench, timeout_at=NOW + HOUR)
    bench.pass_time(HOUR)
    bench.process()
    assert event(bench)["error_type"] == "timeout"


def test_an_answer_before_the_scheduler_notices_the_timeout_counts(bench: Bench) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r", day=0)
    ask(bench, InputWait("Go on?", ("a", "b"), defaults=("b",)), NOW + HOUR)
    answer_unnoticed(bench, "a")
    bench.pass_time(HOUR)
    bench.process()
    assert event(bench)["chosen_options"] == ["a"]


def test_a_retry_asks_again_and_the_earlier_try_keeps_its_answer(asked: Bench) -> None:
    answer(asked, "Reject")
    asked.process()
    asked.fail("r.t")
    asked.next_timer()
    asked.process()
    ask(asked)
    found = asked.store.hitl_detail("d", "r", "t")
    assert found is not None
    assert not found.response_received
    before = asked.store.hitl_try("d", "r", "t", -1, 1)
    assert before is not None
    assert before.chosen_options == ["Reject"]
    assert asked.store.hitl_details(HitlFilter(answered=True)).rows == []
    assert len(asked.store.hitl_details(HitlFilter(answered=False, dag_id="d", run_id="r")).rows) == 1


def test_a_clear_ends_the_wait(asked: Bench) -> None:
    asked.clear("d", "r", "t")
    asked.process()
    with pytest.raises(Conflict):
        answer(asked, "Approve")
    assert asked.attempt("r.t").resumption is None
    asked.check()


def test_why_says_that_it_waits_for_a_person(bench: Bench) -> None:
    bench.dag("d", task("t"))
    bench.trigger("d", "r", day=0)
    ask(bench, InputWait("Go on?", ("yes", "no"), defaults=("no",), assigned_users=(("7", "ann"),)), NOW + HOUR)
    (found,) = bench.why_answer("r.t")["blockers"]
    assert found["rule"] == "input"
    assert "for ann to answer 'Go on?'" in found["sentence"]
    assert "the default 'no' counts" in found["sentence"]
    assert found["command"] == "tradewind hitl respond d t r --option yes"
