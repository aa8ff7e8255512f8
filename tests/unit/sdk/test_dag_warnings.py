"""Warnings about DAGs: their texts, and that the web page can translate them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tradewind.model.phrases import recognised
from tradewind.model.sentences import TEMPLATES
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk import dag_warnings
from tradewind.sdk.dag import DAG

CODES = [code for code in TEMPLATES if "warning_" in code]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({"outlets": [object()]}, ("task_warning_outlets", "tasks_warning_outlets")),
        ({"executor_config": {"image": "x"}}, ("task_warning_executor_config", "tasks_warning_executor_config")),
        ({"resources": {"cpus": 2}}, ("task_warning_resources", "tasks_warning_resources")),
        ({"executor": "KubernetesExecutor"}, ("warning_executor", "warning_executor_of_tasks")),
    ],
)
def test_a_warning_is_a_phrase_and_names_the_first_task(arguments: dict[str, Any], codes: tuple[str, str]) -> None:
    for number, code, middle in ((1, codes[0], "task t0: "), (3, codes[1], "task t0 and 2 more: ")):
        with DAG("d", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            for index in range(number):
                EmptyOperator(task_id=f"t{index}", **arguments)
        (text,) = [
            *dag_warnings.of_dag(dag),
            *dag_warnings.of_executors(dag, "LocalExecutor"),
            *dag_warnings.of_executor_configs(dag, "LocalExecutor"),
        ]
        assert text.startswith(f"{next(iter(arguments))} of {middle}")
        found = recognised(text, CODES)
        assert found is not None
        assert (found.code, found.arguments["task"]) == (code, "t0")
