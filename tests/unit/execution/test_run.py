"""Running an attempt: the steps of a task, its exceptions, and its result."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed, workload
from tradewind.execution.context import get_current_context
from tradewind.execution.run_task import execute_task, running
from tradewind.model.branch import Branch
from tradewind.model.errors import TradewindError
from tradewind.model.moments import to_micros
from tradewind.model.states import Outcome
from tradewind.operators.bash import BashOperator
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import PythonOperator
from tradewind.scheduler.jobs import SCHEDULER
from tradewind.sdk.dag import DAG
from tradewind.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTerminated,
    AirflowTaskTimeout,
    DownstreamTasksSkipped,
    TaskDeferred,
)
from tradewind.sdk.operator import BaseOperator
from tradewind.sensors.python import PythonSensor


class _Does(BaseOperator):
    """Does what the test says."""

    def __init__(self, what: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.what = what

    def execute(self, context: Any) -> Any:
        return self.what(context)


def _does(what: Callable[[Any], Any], **kwargs: Any) -> _Does:
    with DAG("d", schedule=None):
        return _Does(what=what, task_id="t", **kwargs)


def _raises(error: BaseException | type[BaseException]) -> _Does:
    def what(context: Any) -> None:
        raise error

    return _does(what)


LATER = datetime(2024, 3, 5, 1, tzinfo=UTC)


@pytest.mark.spec("S373", "S375", "S476")
@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (AirflowSkipException("not today"), Outcome.SKIPPED, "not today"),
        (AirflowSkipException(), Outcome.SKIPPED, "the task raised AirflowSkipException"),
        (AirflowFailException("bad key"), Outcome.FAILED_FINAL, "AirflowFailException: bad key"),
        (AirflowSensorTimeout("too long"), Outcome.FAILED_FINAL, "AirflowSensorTimeout: too long"),
        (AirflowTaskTerminated("asked to end"), Outcome.FAILED_FINAL, "AirflowTaskTerminated: asked to end"),
        (AirflowTaskTimeout("5 s"), Outcome.FAILED, "AirflowTaskTimeout: 5 s"),
        (ValueError("a\n  b"), Outcome.FAILED, "ValueError: a b"),
        (ValueError("x" * 1000), Outcome.FAILED, "ValueError: " + "x" * 487 + "…"),
        (KeyError("k"), Outcome.FAILED, "KeyError: 'k'"),
        (RuntimeError, Outcome.FAILED, "RuntimeError"),
        (AirflowException("x"), Outcome.FAILED, "AirflowException: x"),
        (SystemExit(0), Outcome.FAILED, "the task called sys.exit(0); any exit code fails a task, use return instead"),
        (SystemExit("bye"), Outcome.FAILED, "the task called sys.exit('bye'); any exit code fails a task, use return instead"),
        (KeyboardInterrupt(), Outcome.FAILED, "the task was interrupted (KeyboardInterrupt)"),
        (MemoryError(), Outcome.FAILED, "MemoryError"),
        (GeneratorExit(), Outcome.FAILED, "GeneratorExit"),
        (asyncio.CancelledError(), Outcome.FAILED, "CancelledError"),
    ],
    ids=repr,
)
def test_exceptions_and_their_outcomes(error: BaseException, outcome: Outcome, reason: str) -> None:
    result = carry_out(_raises(error))
    assert (result.outcome, result.reason) == (outcome, reason)


@pytest.mark.spec("S376", "S476")
def test_reschedule() -> None:
    result = carry_out(_raises(AirflowRescheduleException(LATER)))
    assert (result.outcome, result.reschedule_at) == (Outcome.RESCHEDULE, to_micros(LATER))
    import pendulum

    assert carry_out(_raises(AirflowRescheduleException(pendulum.instance(LATER)))).reschedule_at == to_micros(LATER)
    naive = carry_out(_raises(AirflowRescheduleException(LATER.replace(tzinfo=None))))
    assert naive.reschedule_at == to_micros(LATER)


def test_skipping_downstream_is_success() -> None:
    result = carry_out(_raises(DownstreamTasksSkipped(tasks=["a", ("b", -1)])))
    assert (result.outcome, result.branch) == (Outcome.SUCCESS, Branch("skip", ("a", "b")))


# --- the order of things -----------------------------------------------------------------------------------------------


class _Renders(BaseOperator):
    """Has a template, and does what the test says."""

    template_fields = ("field",)

    def __init__(self, what: Callable[[_Renders, Any], Any], field: str = "{{ ds }}", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.what = what
        self.field = field

    def execute(self, context: Any) -> Any:
        return self.what(self, context)


def _renders(what: Callable[[_Renders, Any], Any], **kwargs: Any) -> _Renders:
    with DAG("d", schedule=None):
        return _Renders(what, task_id="t", **kwargs)


@pytest.mark.spec("S5")
def test_execute_of_the_most_derived_class_is_called() -> None:
    class Mine(BaseOperator):
        def execute(self, context: Any) -> str:
            return "mine"

    class More(Mine):
        def execute(self, context: Any) -> str:
            return super().execute(context) + " and more"

    with DAG("d", schedule=None):
        tasks = Mine(task_id="t"), More(task_id="u")
    assert [pushed(carry_out(task)) for task in tasks] == [{"return_value": "mine"}, {"return_value": "mine and more"}]


@pytest.mark.spec("S412")
def test_exceptions_for_authors_have_airflows_names() -> None:
    """Internal classes of Airflow without a counterpart (LocalTaskJob, BashTaskRunner, the file processors) have no such name."""
    names: list[str] = []

    def what(context: Any) -> None:
        names.extend(type(context[key]).__name__ for key in ("ti", "dag_run", "dag"))

    carry_out(_does(what))
    assert names == ["TaskInstance", "DagRun", "DAG"]
    assert all(issubclass(operator, BaseOperator) for operator in (BashOperator, PythonOperator, EmptyOperator))
    assert SCHEDULER == "SchedulerJob"


@pytest.mark.spec("S364")
def test_the_context_exists_before_the_first_hook() -> None:
    seen: list[Any] = []
    carry_out(_does(lambda context: None, pre_execute=lambda context: seen.append(context["execution_date"])))
    assert seen == [datetime(2024, 3, 5, tzinfo=UTC)]


@pytest.mark.spec("S367")
def test_templates_are_rendered_before_the_first_hook() -> None:
    seen: list[str] = []
    result = carry_out(
        _renders(lambda task, context: task.field, pre_execute=lambda context: seen.append(context["task"].field))
    )
    assert (seen, pushed(result)) == (["2024-03-05"], {"return_value": "2024-03-05"})


@pytest.mark.spec("S368")
def test_pre_execute_runs_first_and_can_prevent_execute() -> None:
    ran: list[str] = []

    def skip(context: Any) -> None:
        raise AirflowSkipException("not today")

    result = carry_out(_does(lambda context: ran.append("execute"), pre_execute=skip))
    assert (result.outcome, ran) == (Outcome.SKIPPED, [])


@pytest.mark.spec("S369")
def test_execute_gets_the_context_of_its_task_instance() -> None:
    def what(context: Any) -> str:
        assert get_current_context() is context
        return f"{context['dag'].dag_id}.{context['ti'].task_id}"

    assert pushed(carry_out(_does(what))) == {"return_value": "d.t"}


@pytest.mark.spec("S370")
@pytest.mark.parametrize(("value", "kept"), [(7, {"return_value": 7}), (0, {"return_value": 0}), (None, {})])
def test_a_returned_value_is_pushed_unless_it_is_none(value: Any, kept: dict[str, Any]) -> None:
    assert pushed(carry_out(_does(lambda context: value))) == kept


@pytest.mark.spec("S371", "S174")
def test_post_execute_gets_the_result_and_its_exception_fails_the_task() -> None:
    """A task succeeds only if no step raises an exception, from the context to the last hook."""
    seen: list[Any] = []

    def check(context: Any, result: Any) -> None:
        seen.append(result)
        if result != "good":
            raise ValueError("the result is bad")

    assert carry_out(_does(lambda context: "good", post_execute=check)).outcome is Outcome.SUCCESS
    bad = carry_out(_does(lambda context: "bad", post_execute=check))
    assert (seen, bad.outcome, bad.reason) == (["good", "bad"], Outcome.FAILED, "ValueError: the result is bad")


@pytest.mark.parametrize("arguments", ["context", "context, result", "context, *, result=None", "context, **more", "*every"])
def test_post_execute_of_a_class_may_take_no_result(arguments: str) -> None:
    """Airflow 1.8 and 3.3 pass only the context; the other releases pass the result too."""
    calls: list[str] = []
    scope: dict[str, Any] = {"calls": calls}
    exec(f"def post_execute(self, {arguments}):\n    calls.append(repr(locals().get('result')))", scope)
    task_class = type("Steps", (_Does,), {"post_execute": scope["post_execute"]})
    with DAG("d", schedule=None):
        task = task_class(what=lambda context: "r", task_id="t")
    assert carry_out(task).outcome is Outcome.SUCCESS
    assert calls == ["'r'" if "result" in arguments else "None"]


@pytest.mark.spec("S374")
def test_a_task_runs_as_a_copy() -> None:
    def what(task: _Renders, context: Any) -> str:
        task.field += " changed"
        return task.field

    task = _renders(what)
    assert [pushed(carry_out(task))["return_value"] for _ in range(2)] == ["2024-03-05 changed"] * 2
    assert task.field == "{{ ds }}"


def test_hooks_are_called_in_order(world: World) -> None:
    calls: list[Any] = []

    class Steps(BaseOperator):
        template_fields = ("field",)
        field = "{{ ds }}"

        def pre_execute(self, context: Any) -> None:
            calls.append(("pre", self.field))

        def execute(self, context: Any) -> str:
            calls.append("execute")
            assert running() is self
            assert get_current_context() is context
            assert os.environ["AIRFLOW_CTX_TASK_ID"] == "t"
            return "r"

        def post_execute(self, context: Any, result: Any = None) -> None:
            calls.append(("post", result))

    with DAG("d", schedule=None):
        task = Steps(
            task_id="t",
            pre_execute=lambda context: calls.append("pre hook"),
            post_execute=lambda context, result: calls.append("post hook"),
        )
    result = carry_out(task)
    assert calls == ["pre hook", ("pre", "2024-03-05"), "execute", ("post", "r"), "post hook"]
    assert pushed(result) == {"return_value": "r"}
    assert task.field == "{{ ds }}"  # it ran as a copy
    assert running() is None
    assert "AIRFLOW_CTX_TASK_ID" not in os.environ


def test_async_tasks_are_run_to_their_end() -> None:
    async def what() -> int:
        await asyncio.sleep(0)
        return 5

    assert pushed(carry_out(_does(lambda context: what()))) == {"return_value": 5}


def test_the_log_of_a_skipped_task_has_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    def skip(context: Any) -> None:
        raise AirflowSkipException("no file today")

    with caplog.at_level("INFO", "tradewind.task"):
        carry_out(_does(skip))
    assert "Skipped: no file today" in caplog.text


def test_the_log_of_a_soft_failed_sensor_has_the_error(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> bool:
        raise AirflowFailException("the server is gone")

    with DAG("d", schedule=None):
        sensor = PythonSensor(task_id="t", python_callable=fail, soft_fail=True)
    with caplog.at_level("INFO", "tradewind.task"):
        result = carry_out(sensor)
    assert result.outcome is Outcome.SKIPPED
    assert "Skipped: skipped because of soft_fail: the server is gone" in caplog.text
    assert "in fail" in caplog.text, "with the traceback of the error"


@pytest.mark.spec("S175")
def test_a_failed_pre_execute_prevents_execution() -> None:
    def refuse(context: Any) -> None:
        raise AirflowSkipException("not now")

    ran: list[int] = []
    result = carry_out(_does(lambda context: ran.append(1), pre_execute=refuse))
    assert (result.outcome, ran) == (Outcome.SKIPPED, [])


def test_a_template_that_fails_fails_the_task(capfd: pytest.CaptureFixture[str]) -> None:
    with DAG("d", schedule=None):
        task = PythonOperator(task_id="t", python_callable=print, op_args=["{{ dss }}"])
    result = carry_out(task)
    assert result.outcome is Outcome.FAILED
    assert "'dss' is undefined" in (result.reason or "")
    assert "Did you mean 'ds'?" in (result.reason or "")
    assert "in the templated field 'op_args' of task 't'" in capfd.readouterr().err


# --- XComs -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S370")
def test_without_a_result_nothing_is_pushed() -> None:
    assert pushed(carry_out(_does(lambda context: None))) == {}
    assert pushed(carry_out(_does(lambda context: 5, do_xcom_push=False))) == {}
    assert pushed(carry_out(_does(lambda context: 0))) == {"return_value": 0}


def test_multiple_outputs() -> None:
    result = carry_out(_does(lambda context: {"a": 1, "b": (2,)}, multiple_outputs=True))
    assert pushed(result) == {"a": 1, "b": (2,), "return_value": {"a": 1, "b": (2,)}}
    assert "must return a dictionary" in (carry_out(_does(lambda context: [1], multiple_outputs=True)).reason or "")
    assert "keys must be strings" in (carry_out(_does(lambda context: {1: 1}, multiple_outputs=True)).reason or "")
    assert carry_out(_does(lambda context: None, multiple_outputs=True)).outcome is Outcome.SUCCESS


def test_pushes_of_failed_attempts_are_reported() -> None:
    def what(context: Any) -> None:
        context["ti"].xcom_push("progress", 7)
        raise ValueError

    result = carry_out(_does(what))
    assert (result.outcome, pushed(result)) == (Outcome.FAILED, {"progress": 7})


def test_the_error_of_a_value_that_cannot_be_stored_gives_its_position(capfd: pytest.CaptureFixture[str]) -> None:
    result = carry_out(_does(lambda context: {"rows": [1, print]}))
    sentence = "return_value['rows'][1]: <function print> cannot be stored as an XCom"
    assert result.outcome is Outcome.FAILED
    assert sentence in (result.reason or "")
    output = capfd.readouterr().err
    assert sentence in output
    assert "Traceback" not in output  # it is about the value, not about any line


def test_large_values_are_written_to_files() -> None:
    kept: dict[str, bytes] = {}

    def spill(key: str, data: bytes) -> str | None:
        kept[key] = data
        return None if key == "inline" else f"file-{key}"

    def what(context: Any) -> str:
        context["ti"].xcom_push("small", "x")
        context["ti"].xcom_push("inline", "y" * 50)
        return "z" * 50

    task = _does(what)
    result = execute_task(task, workload("t"), spill=spill, inline_max=20)
    assert {one.key: (one.spill, one.value, one.size) for one in result.pushed} == {
        "small": (None, b'"x"', 3),
        "inline": (None, kept["inline"], 52),
        "return_value": ("file-return_value", b"", 52),
    }
    assert set(kept) == {"inline", "return_value"}
    assert [one.spill for one in execute_task(task, workload("t"), inline_max=20).pushed] == [None, None, None]


def test_the_error_of_a_value_above_the_limit_names_the_setting(capfd: pytest.CaptureFixture[str]) -> None:
    def what(context: Any) -> str:
        context["ti"].xcom_push("small", 1)
        return "z" * 2_000_000

    result = execute_task(_does(what), workload("t"), hard_max=1_000_000, spill=lambda key, data: "f")
    assert result.outcome is Outcome.FAILED
    assert result.reason == (
        "the XCom 'return_value' has 2 MB, more than the limit of 1 MB: write the data to a file or a table and "
        "return its name, or increase the setting core.xcom_max_bytes"
    )
    assert pushed(result) == {"small": 1}
    assert "core.xcom_max_bytes" in capfd.readouterr().err


def test_a_full_disk_fails_the_task() -> None:
    def spill(key: str, data: bytes) -> str:
        raise OSError(28, "No space left on device")

    result = execute_task(_does(lambda context: "z" * 50), workload("t"), spill=spill, inline_max=20)
    assert result.outcome is Outcome.FAILED
    assert "No space left on device" in (result.reason or "")


def test_the_branch_is_part_of_the_result() -> None:
    def what(context: Any) -> None:
        context["ti"].branch = Branch("stop")

    assert carry_out(_does(what)).branch == Branch("stop")


# --- tracebacks --------------------------------------------------------------------------------------------------------


def test_tracebacks_begin_in_the_authors_code(capfd: pytest.CaptureFixture[str]) -> None:
    def inner() -> None:
        raise LookupError("inside")

    def work() -> None:
        try:
            inner()
        except LookupError as error:
            raise ValueError("outside") from error

    with DAG("d", schedule=None):
        task = PythonOperator(task_id="t", python_callable=work)
    carry_out(task)
    output = capfd.readouterr().err
    assert output.count("Traceback (most recent call last)") == 2
    assert f"{os.sep}tradewind{os.sep}execution{os.sep}" not in output
    assert f"{os.sep}tradewind{os.sep}operators" not in output
    assert "in work" in output
    assert "in inner" in output
    assert output.rstrip().endswith("ValueError: outside")


def test_an_exception_that_cannot_be_shown_is_still_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    result = carry_out(_raises(Broken()))
    assert result.outcome is Outcome.FAILED
    assert (result.reason or "").startswith("Broken: ")
    assert "Broken" in capfd.readouterr().err


def test_a_log_that_cannot_be_written_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    assert carry_out(_raises(ValueError("x"))).outcome is Outcome.FAILED


def test_exceptions_have_common_base_classes() -> None:
    """Every error of Tradewind is a TradewindError, except those that must not be caught by `except Exception`."""
    assert issubclass(AirflowException, TradewindError)
    for passing in (AirflowTaskTimeout, AirflowTaskTerminated, TaskDeferred):
        assert not issubclass(passing, Exception)
    assert TaskDeferred(trigger=1, method_name="m", timeout=2).timeout == timedelta(seconds=2)
