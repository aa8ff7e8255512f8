"""Deferral: the request of a task that waits without a process, and how the task continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.execution.world import pushed, workload
from tradewind import DAG
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.execution.run_trigger import make_trigger, wait_for_end
from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.states import Outcome
from tradewind.model.waits import TIMEOUT, MomentWait, Resumption, TriggerEnd, TriggerWait
from tradewind.sdk.exceptions import AirflowException, TaskDeferralTimeout
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.trigger import BaseTrigger, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent
from tradewind.triggers.temporal import DateTimeTrigger, TimeDeltaTrigger

LATER = datetime(2030, 1, 1, tzinfo=UTC)


class Echo(BaseTrigger):
    """Emits the events that it was created with."""

    def __init__(self, what: Any = None, how: str = "fire") -> None:
        super().__init__()
        self.what = what
        self.how = how
        self.cleaned = False

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.Echo", {"what": self.what, "how": self.how}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(0)
        if self.how == "raise":
            raise RuntimeError("the server is gone")
        if self.how == "success":
            yield TaskSuccessEvent(xcoms={"return_value": self.what})
        elif self.how == "skip":
            yield TaskSkippedEvent()
        elif self.how == "fire":
            yield TriggerEvent(self.what)

    async def cleanup(self) -> None:
        self.cleaned = True


class Waiting(BaseOperator):
    def __init__(self, trigger: Any, method: str = "go_on", timeout: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.trigger = trigger
        self.method = method
        self.after = timeout

    def execute(self, context: Any) -> Any:
        self.defer(trigger=self.trigger, method_name=self.method, kwargs={"pair": (1, 2)}, timeout=self.after)

    def go_on(self, context: Any, event: Any, pair: Any) -> Any:
        return [event, pair, context["ds"]]


def _waiting(trigger: Any, **more: Any) -> Waiting:
    with DAG("d", schedule=None):
        return Waiting(trigger, task_id="t", **more)


def _first(trigger: Any, **more: Any) -> TaskResult:
    return execute_task(_waiting(trigger, **more), workload("t"))


def test_the_trigger_of_a_deferred_task_is_serialized() -> None:
    result = _first(Echo({"a": LATER}), timeout=60)
    assert result.outcome is Outcome.DEFERRED
    assert result.deferral is not None
    wait = result.deferral.wait
    assert isinstance(wait, TriggerWait)
    assert decode_xcom(wait.kwargs) == {"what": {"a": LATER}, "how": "fire"}
    assert (result.deferral.method, decode_xcom(result.deferral.kwargs)) == ("go_on", {"pair": (1, 2)})
    assert result.deferral.timeout_at is not None


def test_a_wait_for_a_point_in_time_needs_no_trigger() -> None:
    result = _first(DateTimeTrigger(LATER))
    assert result.deferral is not None
    assert result.deferral.wait == MomentWait(int(LATER.timestamp()) * 1_000_000, encode_xcom(LATER))
    assert isinstance(TimeDeltaTrigger(timedelta(hours=1)).as_wait(), MomentWait)


def test_the_task_continues_in_the_given_method() -> None:
    found = Resumption("go_on", encode_xcom({"pair": (1, 2)}), encode_xcom({"b": 1}))
    result = execute_task(_waiting(None), msgspec.structs.replace(workload("t"), resumption=found))
    assert result.outcome is Outcome.SUCCESS
    assert pushed(result)["return_value"] == [{"b": 1}, (1, 2), "2024-03-05"]


@pytest.mark.parametrize(("error", "sentence"), [(TIMEOUT, "exceeded its timeout"), ("it broke", "it broke")])
def test_a_failed_wait_fails_the_task(error: str, sentence: str) -> None:
    found = Resumption("go_on", error=error)
    result = execute_task(_waiting(None), msgspec.structs.replace(workload("t"), resumption=found))
    assert result.outcome is Outcome.FAILED
    assert sentence in (result.reason or "")
    assert issubclass(TaskDeferralTimeout, AirflowException)


def test_invalid_arguments_of_defer_are_errors_with_advice() -> None:
    assert "Did you mean 'go_on'" in (_first(Echo(), method="go_one").reason or "")
    assert "cannot run in the triggerer" in (_first(object()).reason or "")
    assert "cannot be stored" in (_first(Echo(lambda: 1)).reason or "")


def _end(trigger: BaseTrigger) -> TriggerEnd:
    return asyncio.run(wait_for_end(trigger))


def test_events_of_triggers() -> None:
    assert decode_xcom(_end(Echo({"x": 1})).event) == {"x": 1}
    done = _end(Echo([1], "success"))
    assert (done.outcome, done.xcoms) == (Outcome.SUCCESS, {"return_value": b"[1]"})
    assert _end(Echo(how="skip")).outcome is Outcome.SKIPPED
    assert "the server is gone" in (_end(Echo(how="raise")).error or "")
    assert "without an event" in (_end(Echo(how="nothing")).error or "")
    for how in ("fire", "raise", "nothing"):
        trigger = Echo(how=how)
        _end(trigger)
        assert trigger.cleaned


def test_triggers_are_created_from_their_serialized_form() -> None:
    made = make_trigger(TriggerWait(f"{__name__}.Echo", encode_xcom({"what": 3})))
    assert isinstance(made, Echo)
    assert made.what == 3
    for classpath, sentence in (
        ("no_such_module.Thing", "cannot import the trigger"),
        (f"{__name__}.Ecko", "Did you mean 'Echo'"),
        (f"{__name__}.LATER", "is not a trigger"),
    ):
        with pytest.raises(AirflowException, match=sentence):
            make_trigger(TriggerWait(classpath))
