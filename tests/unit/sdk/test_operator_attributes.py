"""Attributes of operators and of their results that code in DAG files, policies and tests reads. Expected values: Airflow 3.3.2."""

from __future__ import annotations

import warnings

import pytest

from tradewind.operators.bash import BashOperator
from tradewind.operators.branch import SkipMixin
from tradewind.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import task
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.xcom_arg import XComArg


def test_the_type_of_a_decorated_task_is_the_class_that_airflow_has() -> None:
    with DAG("d"):

        @task
        def one(x: int = 1) -> int:
            return x

        @task.branch
        def two() -> str:
            return "one"

        plain, branch, mapped = one(), two(), one.expand(x=[1])
    assert [arg.operator.task_type for arg in (plain, branch, mapped)] == [
        "_PythonDecoratedOperator",
        "_BranchPythonDecoratedOperator",
        "_PythonDecoratedOperator",
    ]
    assert plain.operator.operator_name == "@task"
    assert repr(plain.operator) == "<Task(_PythonDecoratedOperator): one>"
    assert repr(mapped.operator) == "<Mapped(_PythonDecoratedOperator): one__1>"
    assert repr(BashOperator(task_id="b", bash_command="x")) == "<Task(BashOperator): b>"


def test_which_operators_may_skip_tasks() -> None:
    class Own(PythonOperator, SkipMixin):
        """An operator of an author."""

    classes = (BranchPythonOperator, ShortCircuitOperator, Own, PythonOperator)
    made = [cls(task_id="t", python_callable=print) for cls in classes]
    assert [one.inherits_from_skipmixin for one in made] == [True, True, True, False]


def test_flags_of_tasks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = BaseOperator("t")
    assert (plain.is_async, plain.has_retry_policy, plain.retry_exponential_backoff) == (False, False, 0)
    with pytest.raises(AttributeError):
        plain.has_retry_policy = True


def test_a_result_has_the_flags_of_its_task() -> None:
    with DAG("d"):
        work = BaseOperator("t")
        end = BaseOperator("end").as_teardown(setups=work)
    result = XComArg(end)
    assert (result.is_setup, result.is_teardown, XComArg(work).is_setup) == (False, True, True)
    result.on_failure_fail_dagrun = True
    assert end.on_failure_fail_dagrun is True
    assert (result.roots, result.leaves) == ([end], [end])
