"""Operators that do nothing."""

from __future__ import annotations

from typing import Any

from airflow.models import BaseOperator


class MockOperator(BaseOperator):
    """An operator with two templated arguments."""

    template_fields = ("arg1", "arg2")

    def __init__(self, arg1: str = "", arg2: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arg1 = arg1
        self.arg2 = arg2

    def execute(self, context: Any) -> None: ...
