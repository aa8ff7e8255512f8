"""Rendered fields are kept with the attempt: with limited size and without secrets."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.execution.world import carry_out
from tradewind.execution import rendered_fields
from tradewind.execution.run_task import TaskResult
from tradewind.model.states import Outcome
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator


class Templated(BaseOperator):
    template_fields = ("command", "more", "nothing")
    nothing = None

    def __init__(self, *, command: Any, more: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.more = more

    def execute(self, context: Any) -> None:
        if isinstance(self.more, dict):
            self.more.clear()  # what was rendered is kept, not what became of it


def kept(result: TaskResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.rendered) if result.rendered else {}
    return found


def fields(command: Any, more: Any = None) -> dict[str, Any]:
    return fields_of(Templated(task_id="t", command=command, more=more))


def fields_of(operator: Templated) -> dict[str, Any]:
    result = carry_out(operator)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return kept(result)


def test_rendered_fields_are_kept() -> None:
    assert fields("echo {{ ds }}", {"days": ["{{ ds_nodash }}", 2], "none": None}) == {
        "command": "echo 2024-03-05",
        "more": {"days": ["20240305", 2], "none": None},
        "nothing": None,
    }


def test_rendered_fields_of_failed_attempts_are_kept() -> None:
    class Fails(Templated):
        def execute(self, context: Any) -> None:
            raise ValueError

    result = carry_out(Fails(task_id="t", command="{{ ti.task_id }}"))
    assert (result.outcome, kept(result)) == (Outcome.FAILED, {"command": "t", "more": None, "nothing": None})


def test_an_operator_may_show_what_its_templated_fields_became() -> None:
    """astronomer-cosmos with Airflow 3: the SQL that dbt compiled is a templated field."""

    class Compiles(Templated):
        overwrite_rtif_after_execution = True

        def execute(self, context: Any) -> None:
            self.command = "SELECT 1"

    assert fields_of(Compiles(task_id="t", command="{{ ds }}"))["command"] == "SELECT 1"


def test_a_row_of_rendered_fields_shows_what_the_templated_fields_became() -> None:
    """astronomer-cosmos with Airflow 2: it replaces the row of its task."""

    class Compiles(Templated):
        def execute(self, context: Any) -> None:
            from airflow.models.renderedtifields import RenderedTaskInstanceFields as Row
            from airflow.utils.session import create_session

            self.command = "SELECT 1"
            with create_session() as session:
                row = Row(context["ti"], render_templates=False)
                session.query(Row).filter(Row.dag_id == self.dag_id, Row.run_id == context["ti"].run_id).delete()
                session.add(row)

    assert fields_of(Compiles(task_id="t", command="{{ ds }}"))["command"] == "SELECT 1"


def test_a_task_without_template_fields_has_no_rendered_fields() -> None:
    class Plain(BaseOperator):
        def execute(self, context: Any) -> None: ...

    assert carry_out(Plain(task_id="t")).rendered == b""
    assert carry_out(Templated(task_id="t", command="", more={})).rendered == b""


def test_values_under_secret_names_are_masked() -> None:
    found = fields({"api_token": "x", "deep": [{"password": {"a": 1}}], "user": "me"})
    assert found["command"] == {"api_token": "***", "deep": [{"password": "***"}], "user": "me"}


def test_rendered_fields_have_a_size_limit() -> None:
    found = fields("x" * 10_000, list(range(1_000)))
    assert found["command"] == "x" * rendered_fields.TEXT_MAX + "… (5904 more characters)"
    assert found["more"][-2:] == [rendered_fields.ITEMS_MAX - 1, "… 500 more"]
    many = fields("short", {str(i): "y" * 4_000 for i in range(400)})
    assert many == {
        "command": "short",
        "more": "(left out: the rendered fields of this attempt are too long in total)",
        "nothing": None,
    }


def test_values_that_json_does_not_have() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    assert fields({1, 2}, DAG("d")) == {"command": [1, 2], "more": "<DAG: d>", "nothing": None}
    assert fields("x", [Odd()])["more"] == "(cannot be shown: RuntimeError)"
