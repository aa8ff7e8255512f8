"""Triggering runs of other DAGs: the request, the results, and the wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.execution.world import DAY, World, carry_out, pushed
from tradewind import DAG, BaseOperator
from tradewind.execution.run_task import TaskResult
from tradewind.execution.task_instance import DagRun, DagRunType, TaskInstance
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import parse_moment
from tradewind.model.states import Outcome
from tradewind.model.waits import Resumption, TasksWait
from tradewind.operators import trigger_dagrun
from tradewind.operators.trigger_dagrun import TriggerDagRunOperator
from tradewind.sdk.exceptions import DagRunTriggerException
from tradewind.wire.messages import FindRuns, ListRows, TriggerRun


def _operator(**kwargs: Any) -> TriggerDagRunOperator:
    with DAG("d", schedule=None):
        return TriggerDagRunOperator(**{"task_id": "t", "trigger_dag_id": "other", **kwargs})


def _carried_out(resumption: Resumption | None = None, **kwargs: Any) -> TaskResult:
    return carry_out(_operator(**kwargs), resumption=resumption)


def test_it_requests_a_run(world: World) -> None:
    result = _carried_out(
        trigger_run_id="of {{ run_id }}",
        logical_date="{{ logical_date }}",
        conf={"day": "{{ ds }}", "n": 1},
        note="after {{ dag.dag_id }}",
        reset_dag_run=True,
        fail_when_dag_is_paused=True,
    )
    assert result.outcome is Outcome.SUCCESS
    at = parse_moment(DAY)
    conf = {"day": "2024-03-05", "n": 1}
    asked = TriggerRun(0, "other", 1, "of r1", at, conf, "after d", reset=True, fail_when_paused=True)
    assert world.questions == [asked]
    assert pushed(result) == {"trigger_dag_id": "other", "trigger_run_id": "of r1"}


def test_the_default_logical_date_is_now(world: World) -> None:
    _carried_out()
    _carried_out(logical_date=None)
    _carried_out(logical_date=datetime(2024, 3, 5, tzinfo=UTC))
    with pytest.warns(DeprecationWarning, match="logical_date"):
        _carried_out(execution_date="2024-03-05")
    dates = [question.logical_date for question in world.questions if isinstance(question, TriggerRun)]
    assert abs((dates[0] or 0) / 1e6 - datetime.now(UTC).timestamp()) < 60
    assert dates[1:] == [None, parse_moment(DAY), parse_moment(DAY)]


def test_invalid_requests_are_errors(world: World) -> None:
    for kwargs, sentence in (
        ({"logical_date": "soon"}, "logical_date of task 't': 'soon' is not a date and time"),
        ({"conf": {"x": {1, 2}}}, "conf of task 't' cannot be written as JSON"),
        ({"conf": "[1]"}, "it must be a dictionary"),
    ):
        result = _carried_out(**kwargs)
        assert result.outcome is Outcome.FAILED
        assert sentence in str(result.reason)
    assert world.questions == []
    assert _carried_out(conf='{"from": "{{ run_id }}"}').outcome is Outcome.SUCCESS
    world.broken = "There is no DAG 'other'"
    assert "cannot trigger DAG 'other': There is no DAG" in str(_carried_out().reason)


@pytest.mark.parametrize(
    ("done", "kwargs", "outcome", "words"),
    [
        ("exists", {}, Outcome.FAILED, "DagRunAlreadyExists: DAG 'other' already has the run 'r' (without a logical date)"),
        ("exists", {"skip_when_already_exists": True}, Outcome.SKIPPED, "skip_when_already_exists"),
        ("exists", {"skip_when_already_exists": "{{ 1 == 2 }}"}, Outcome.FAILED, "reset_dag_run=True"),
        ("cleared", {"reset_dag_run": True}, Outcome.SUCCESS, ""),
        ("paused", {"fail_when_dag_is_paused": True}, Outcome.FAILED, "tradewind dags unpause other"),
        ("rehearsed", {"wait_for_completion": True}, Outcome.SUCCESS, ""),
    ],
)
def test_results_of_the_request(world: World, done: str, kwargs: Any, outcome: Outcome, words: str) -> None:
    world.triggers = {"done": done, "run_id": "r", "logical_date": None}
    result = _carried_out(**kwargs)
    assert result.outcome is outcome
    assert words in (result.reason or "")


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Make the run have these states one after the other; return the durations of the waits."""

    def show(*states: str | None) -> list[float]:
        slept: list[float] = []
        left = list(states)

        def turn(seconds: float) -> None:
            slept.append(seconds)
            shown()

        def shown() -> None:
            state = left.pop(0)
            world.states = [] if state is None else [(0, None, state)]

        shown()
        monkeypatch.setattr(trigger_dagrun, "_sleep", turn)
        return slept

    return show


class _Own(TriggerDagRunOperator):
    """Has its own `execute`, so it keeps its process while it waits."""

    def execute(self, context: Any) -> None:
        super().execute(context)


def test_it_can_wait_for_the_end(looks: Callable[..., list[float]]) -> None:
    def carried_out(**kwargs: Any) -> TaskResult:
        with DAG("d", schedule=None):
            return carry_out(_Own(**{"task_id": "t", "trigger_dag_id": "other", **kwargs}))

    slept = looks("queued", "running", "success")
    assert carried_out(wait_for_completion=True, poke_interval=5).outcome is Outcome.SUCCESS
    assert slept == [5, 5]
    looks("running", "failed")
    assert "run 'made' of DAG 'other' is failed" in str(carried_out(wait_for_completion="{{ True }}").reason)
    looks("failed")
    assert carried_out(wait_for_completion=True, allowed_states=["failed"], failed_states=[]).outcome is Outcome.SUCCESS
    looks("running", None)
    assert "was deleted" in str(carried_out(wait_for_completion=True).reason)
    looks("running")
    assert carried_out().outcome is Outcome.SUCCESS
    looks("running")
    assert carried_out(wait_for_completion=True, deferrable=True).outcome is Outcome.DEFERRED


def test_the_scheduler_waits_for_the_end(world: World) -> None:
    world.states = [(0, None, "running")]
    first = _carried_out(wait_for_completion=True, deferrable=True, execution_timeout=timedelta(minutes=1))
    assert (first.outcome, pushed(first)["trigger_run_id"]) == (Outcome.DEFERRED, "made")
    deferral = first.deferral
    assert deferral is not None
    assert deferral.wait == TasksWait("other", run_ids=("made",), allowed=("success",), failed=("failed",))
    assert deferral.timeout_at is not None
    going_on = Resumption(deferral.method or "", deferral.kwargs, b'"success"')
    assert _carried_out(resumption=going_on).outcome is Outcome.DEFERRED, "somebody cleared the run since"
    world.states = [(0, None, "success")]
    assert _carried_out(resumption=going_on).outcome is Outcome.SUCCESS
    world.states = [(0, None, "failed")]
    assert "is failed" in str(_carried_out(resumption=going_on).reason)
    world.states = []
    assert "was deleted" in str(_carried_out(resumption=going_on).reason)
    assert [type(question) for question in world.questions].count(TriggerRun) == 1


class _Raises(BaseOperator):
    """Requests a run as `TriggerDagRunOperator` of the provider package standard does: by an exception."""

    def __init__(self, request: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request = request

    def execute(self, context: Any) -> None:
        raise DagRunTriggerException(trigger_dag_id="other", dag_run_id="manual__1", conf={"n": 1}, **self.request)


def _raised(resumption: Resumption | None = None, **request: Any) -> TaskResult:
    with DAG("d", schedule=None):
        return carry_out(_Raises(request, task_id="t"), resumption=resumption)


def test_an_exception_requests_a_run(world: World) -> None:
    result = _raised(logical_date=datetime(2024, 3, 5, tzinfo=UTC), note="a note", reset_dag_run=True)
    assert result.outcome is Outcome.SUCCESS
    assert world.questions == [TriggerRun(0, "other", 1, "manual__1", parse_moment(DAY), {"n": 1}, "a note", reset=True)]
    world.triggers = {"done": "exists", "run_id": "r", "logical_date": None}
    assert _raised(skip_when_already_exists=True).outcome is Outcome.SKIPPED


def test_the_scheduler_waits_for_a_run_that_an_exception_requested(world: World) -> None:
    world.states = [(0, None, "running")]
    first = _raised(wait_for_completion=True, allowed_states=["failed"], failed_states=["success"])
    assert first.outcome is Outcome.DEFERRED
    deferral = first.deferral
    assert deferral is not None
    assert deferral.wait == TasksWait("other", run_ids=("manual__1",), allowed=("failed",), failed=("success",))
    going_on = Resumption(deferral.method or "", deferral.kwargs, b'"failed"')
    assert _raised(going_on).outcome is Outcome.DEFERRED, "somebody cleared the run since"
    world.states = [(0, None, "failed")]
    assert _raised(going_on).outcome is Outcome.SUCCESS
    world.states = [(0, None, "success")]
    assert "is success" in str(_raised(going_on).reason)


def test_states_of_other_dags_by_airflows_names(world: World) -> None:
    date = datetime(2024, 3, 5, tzinfo=UTC)
    world.runs = [{"run_id": "r1", "state": "success", "logical_date": parse_moment(DAY)}]
    world.tables["task_instance"] = [
        {"run_id": "r1", "task_id": task_id, "map_index": index, "state": state}
        for task_id, index, state in (("a", -1, "success"), ("b", -1, "failed"), ("m", 0, "success"), ("m", 1, "skipped"))
    ]
    assert TaskInstance.get_ti_count("other", task_ids=["a", "b", "m"], run_ids=["r1"], states=["success"]) == 2
    assert TaskInstance.get_ti_count("other", task_ids=["a"], logical_dates=[date]) == 1
    assert TaskInstance.get_task_states("other", task_group_id="g", run_ids=["r1"]) == {
        "r1": {"a": "success", "b": "failed", "m_0": "success", "m_1": "skipped"}
    }
    assert world.questions == [
        ListRows(0, "task_instance", "other", ("r1",), ("a", "b", "m")),
        FindRuns(0, "other", start=parse_moment(DAY), end=parse_moment(DAY)),
        ListRows(0, "task_instance", "other", ("r1",), ("a",)),
        ListRows(0, "task_instance", "other", ("r1",), group="g"),
    ]
    assert TaskInstance.get_ti_count("other", map_index=1) == 1, "of all tasks and of the latest runs"
    assert (TaskInstance.get_dr_count("other"), TaskInstance.get_dr_count("other", run_ids=["r1"], states=["failed"])) == (1, 0)
    world.states = [("r1", None, "success")]
    assert TaskInstance.get_dagrun_state("other", "r1") == "success"


def test_ids_of_new_runs() -> None:
    date = datetime(2024, 3, 5, tzinfo=UTC)
    assert (
        DagRun.generate_run_id(run_type=DagRunType.MANUAL, logical_date=date, run_after=date) == f"manual__{date.isoformat()}"
    )
    assert DagRun.generate_run_id(DagRunType.SCHEDULED, date) == f"scheduled__{date.isoformat()}"
    without = DagRun.generate_run_id(run_type="manual", run_after=date)
    assert without.startswith(f"manual__{date.isoformat()}_")


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(DefinitionError, match="Did you mean 'success'"):
        _operator(allowed_states=["sucess"])
    with pytest.raises(DefinitionError, match="poke_interval"):
        _operator(poke_interval="often")
    with pytest.raises(DefinitionError, match="logical_date is 7"):
        _operator(logical_date=7)
