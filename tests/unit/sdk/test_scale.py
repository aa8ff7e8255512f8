"""The time to create a DAG is proportional to its size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tradewind.model.definition import DefinitionDefaults
from tradewind.sdk import decorators
from tradewind.sdk.dag import DAG
from tradewind.sdk.decorators import DecoratedOperator, task
from tradewind.sdk.definition import to_definition
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import TaskGroup

PER_OPERATOR = 150e-6
"""Seconds per task. Measured: 10 µs. An algorithm with quadratic time needs milliseconds."""


class Shell(BaseOperator):
    template_fields = ("command",)

    def __init__(self, *, command: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = command


class Plain(DecoratedOperator):
    def execute(self, context: Any) -> None: ...


def cost(build: Callable[[int], DAG], size: int) -> float:
    """CPU seconds per task to create a DAG and its definition."""
    gc.collect()
    start = time.process_time()
    dag = build(size)
    assert len(to_definition(dag, "f.py", DefinitionDefaults()).tasks) >= size
    return (time.process_time() - start) / size


def test_a_long_chain() -> None:
    def chain(size: int) -> DAG:
        with DAG("d", default_args={"owner": "me", "retries": 1}) as dag:
            before: BaseOperator | None = None
            for number in range(size):
                task = Shell(task_id=f"t{number}", command="true")
                if before is not None:
                    before >> task
                before = task
        return dag

    assert cost(chain, 10_000) < PER_OPERATOR


def test_large_lists_and_groups() -> None:
    def fan(size: int) -> DAG:
        with DAG("d") as dag:
            start, end = Shell(task_id="start", command=""), Shell(task_id="end", command="")
            start >> [Shell(task_id=f"t{n}", command="") for n in range(size // 2)] >> end
            with TaskGroup("g") as group:
                for n in range(size // 2):
                    Shell(task_id=f"t{n}", command="")
            start >> group >> end
        return dag

    assert cost(fan, 10_000) < PER_OPERATOR


def test_many_calls_of_one_function(monkeypatch: Any) -> None:
    monkeypatch.setitem(decorators.TASK_DECORATORS, "python", f"{__name__}:Plain")

    def calls(size: int) -> DAG:
        @task
        def step(x: int) -> None: ...

        with DAG("d") as dag:
            for number in range(size):
                step(number)
        return dag

    assert cost(calls, 5_000) < PER_OPERATOR


def test_flat_relatives_and_partial_subsets_of_a_deep_dag() -> None:
    with DAG("d") as dag:
        steps = [[Shell(task_id=f"{side}{n}", command="") for side in "ab"] for n in range(1_000)]
        for before, after in pairwise(steps):
            before[0] >> after
            before[1] >> after
    start = time.process_time()
    assert len(steps[0][0].get_flat_relatives()) == 1_998
    assert len(dag.partial_subset(".", include_downstream=True).tasks) == 2_000
    assert time.process_time() - start < 2_000 * PER_OPERATOR
