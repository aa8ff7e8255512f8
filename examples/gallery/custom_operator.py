"""A custom operator: a class with arguments, template fields, and `execute`.

It has all features of the shipped operators: BaseOperator provides retries, pools, templates and XComs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tradewind import DAG, BaseOperator


class GreetOperator(BaseOperator):
    """Greets somebody.

    Args:
        name: whom; may be a template.
        words: how to begin.
    """

    # These arguments are rendered before execute() is called. A value that ends with .txt is the name of a template file.
    template_fields: Sequence[str] = ("name",)
    template_ext: Sequence[str] = (".txt",)
    ui_color = "#e8d5f0"

    def __init__(self, *, name: str, words: str = "Hello", **kwargs) -> None:
        super().__init__(**kwargs)
        self.name = name
        self.words = words

    def execute(self, context) -> str:
        self.log.info("greeting %s in run %s", self.name, context["run_id"])
        return f"{self.words}, {self.name}"


with DAG(
    "custom_operator", schedule=None, start_date=datetime(2026, 1, 1), params={"name": "Ada"}, tags=["example", "gallery"]
):
    GreetOperator(task_id="greet", name="{{ params.name }} of {{ ds }}", words="Good day", retries=1)
