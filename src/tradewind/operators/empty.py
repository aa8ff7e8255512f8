"""A task that does nothing: a point where arrows meet. It costs no process."""

from __future__ import annotations

from typing import Any, ClassVar

from tradewind.sdk.operator import BaseOperator


class EmptyOperator(BaseOperator):
    """Does nothing. The scheduler sets it to success without starting a process, unless it has hooks."""

    ui_color = "#e8f7e4"
    inherits_from_empty_operator: ClassVar[bool] = True

    def execute(self, context: Any) -> None:
        pass


DummyOperator = EmptyOperator
"""Airflow 1 and 2's name."""
