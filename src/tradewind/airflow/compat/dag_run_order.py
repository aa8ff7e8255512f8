"""`DagRunOrder` of Airflow 1: what a `python_callable` of `TriggerDagRunOperator` filled and returned."""

from __future__ import annotations

from typing import Any

__all__ = ["DagRunOrder"]


class DagRunOrder:
    """The run to trigger.

    Args:
        run_id: id of the run.
        payload: its conf.
    """

    def __init__(self, run_id: str | None = None, payload: Any = None) -> None:
        self.run_id = run_id
        self.payload = payload
