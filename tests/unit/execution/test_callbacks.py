"""Callbacks of tasks: which are called, with which context, and that they do not change the result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.execution.world import carry_out, workload
from tradewind.execution.context import get_current_context
from tradewind.execution.run_task import execute_task
from tradewind.model.moments import parse_moment, to_micros
from tradewind.model.states import Outcome
from tradewind.model.waits import Resumption
from tradewind.sdk.dag import DAG
from tradewind.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    AirflowTaskTerminated,
    AirflowTaskTimeout,
    DownstreamTasksSkipped,
)
from tradewind.sdk.notifier import BaseNotifier
from tradewind.sdk.operator import BaseOperator

KINDS = ("on_execute", "on_success", "on_failure", "on_retry", "on_skipped")


class Doing(BaseOperator):
    def __init__(self, *, do: Callable[[], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.do = do

    def execute(self, context: Any) -> Any:
        return self.do()


def raising(error: BaseException) -> Callable[[], Any]:
    def do() -> Any:
        raise error

    return do


def called_by(do: Callable[[], Any], **changes: Any) -> list[tuple[str, str | None, str]]:
    """(name of the callback, state of the task instance, exception)."""
    found: list[tuple[str, str | None, str]] = []

    def note(kind: str, context: Any) -> None:
        error = context.get("exception")
        found.append((kind, context["ti"].state, type(error).__name__ if error is not None else ""))
        assert get_current_context() is context

    task = Doing(task_id="t", do=do, **{f"{kind}_callback": functools.partial(note, kind) for kind in KINDS})
    result = carry_out(task, **changes)
    if result.callbacks is not None:
        assert [kind for kind, *_ in found] in ([], ["on_execute"]), "the others wait for the report"
        result.callbacks()
    return found


RAN = ("on_execute", "running", "")


@pytest.mark.spec("S389", "S390")
@pytest.mark.parametrize(
    ("do", "last"),
    [
        (lambda: 1, ("on_success", "success", "")),
        (raising(AirflowSkipException("no")), ("on_skipped", "skipped", "AirflowSkipException")),
        (raising(DownstreamTasksSkipped(tasks=["x"])), ("on_success", "success", "")),
        (raising(ValueError("no")), ("on_retry", "up_for_retry", "ValueError")),
        (raising(SystemExit(0)), ("on_retry", "up_for_retry", "SystemExit")),
        (raising(AirflowFailException("no")), ("on_failure", "failed", "AirflowFailException")),
        (object, ("on_retry", "up_for_retry", "XComNotSerializable")),
    ],
)
def test_the_result_decides_which_callback_is_called(do: Callable[[], Any], last: tuple[str, str, str]) -> None:
    assert called_by(do, try_number=1, max_tries=1) == [RAN, last]


def test_a_task_that_goes_on_after_a_wait_calls_on_execute_callback_again() -> None:
    """As Airflow does."""
    found = []

    class Waiting(BaseOperator):
        def go_on(self, context: Any, event: Any = None) -> None:
            found.append("method")

    task = Waiting(task_id="t", on_execute_callback=lambda context: found.append("callback"))
    result = carry_out(task, resumption=Resumption("go_on"))
    assert (result.outcome, found) == (Outcome.SUCCESS, ["callback", "method"])


@pytest.mark.spec("S390")
def test_the_last_try_calls_on_failure_callback() -> None:
    assert called_by(raising(ValueError("no")), try_number=2, max_tries=1) == [RAN, ("on_failure", "failed", "ValueError")]


def test_a_reschedule_calls_no_result_callback() -> None:
    again = AirflowRescheduleException(parse_datetime("2024-03-06T00:00:00Z"))
    assert called_by(raising(again)) == [RAN]


def parse_datetime(text: str) -> Any:
    from tradewind.model.moments import from_micros

    return from_micros(parse_moment(text))


def test_a_stopped_task_calls_callbacks_only_after_a_timeout() -> None:
    """A task that was cleared or marked, or whose worker ends, does not know its final state."""
    assert called_by(raising(AirflowTaskTerminated("TERM"))) == [RAN]
    assert called_by(raising(AirflowTaskTimeout("XCPU"))) == [RAN, ("on_failure", "failed", "AirflowTaskTimeout")]
    assert issubclass(AirflowTaskTimeout, BaseException)


def test_a_failure_before_execute_calls_on_failure_callback() -> None:
    class Templated(Doing):
        template_fields = ("text",)
        text = "{{ no_such_thing }}"

    found: list[str] = []
    task = Templated(task_id="t", do=lambda: 1, on_failure_callback=lambda context: found.append(str(context["exception"])))
    result = carry_out(task)
    assert result.outcome is Outcome.FAILED
    assert result.callbacks is not None
    result.callbacks()
    assert found == ["'no_such_thing' is undefined"]


@pytest.mark.spec("S391")
def test_an_exception_of_a_callback_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    found: list[str] = []

    def bad(context: Any) -> None:
        raise RuntimeError("chat is down")

    def leaves(context: Any) -> None:
        raise SystemExit(3)

    several = [bad, leaves, lambda context: found.append("ok")]
    task = Doing(task_id="t", do=lambda: 1, on_execute_callback=bad, on_success_callback=several)
    result = carry_out(task)
    assert result.outcome is Outcome.SUCCESS
    assert result.callbacks is not None
    result.callbacks()
    assert found == ["ok"]
    assert [record.getMessage() for record in caplog.records] == [
        "on_execute_callback bad of task t failed; the result of the task does not change",
        "on_success_callback bad of task t failed; the result of the task does not change",
        "on_success_callback leaves of task t failed; the result of the task does not change",
    ]
    assert "chat is down" in caplog.text


def test_a_callback_sees_the_end_date() -> None:
    seen: list[Any] = []
    task = Doing(task_id="t", do=lambda: 1, on_success_callback=lambda context: seen.append(context["ti"]))
    result = execute_task(task, workload("t"), started=to_micros(parse_datetime("2024-03-06T00:00:00Z")))
    assert result.callbacks is not None
    result.callbacks()
    (ti,) = seen
    assert ti.end_date > ti.start_date
    assert ti.duration == (ti.end_date - ti.start_date).total_seconds()


class Chat(BaseNotifier):
    template_fields = ("text",)
    sent: list[str] = []

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        Chat.sent.append(self.text)


def test_a_notifier_can_be_a_callback() -> None:
    """It is rendered for each task separately."""
    Chat.sent.clear()
    notifier = Chat("{{ ti.task_id }} of {{ shout(dag.dag_id) }} on {{ ds }}")
    with DAG("d", user_defined_macros={"shout": str.upper}, default_args={"on_success_callback": notifier}):
        tasks = [Doing(task_id=name, do=lambda: 1) for name in ("a", "b")]
    for task in tasks:
        result = carry_out(task)
        assert result.callbacks is not None
        result.callbacks()
    assert Chat.sent == ["a of D on 2024-03-05", "b of D on 2024-03-05"]


def test_dag_test_calls_callbacks() -> None:
    found: list[str] = []
    with DAG("d") as dag:
        Doing(task_id="t", do=lambda: 1 / 0, on_failure_callback=lambda context: found.append(context["ti"].task_id))
    assert dag.test(say=lambda line: None).state == "failed"
    assert found == ["t"]
