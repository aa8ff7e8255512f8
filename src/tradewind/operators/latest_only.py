"""Skipping what comes after, except in the latest run of the schedule."""

from __future__ import annotations

import time
from typing import Any

from tradewind.execution.neighbour_runs import until_next_run_is_due
from tradewind.execution.task_instance import DagRunType
from tradewind.operators.branch import BaseBranchOperator, Choice

BY_HAND = (DagRunType.MANUAL, DagRunType.OPERATOR_TRIGGERED)


class LatestOnlyOperator(BaseBranchOperator):
    """In runs of the schedule whose successor is due already, the tasks directly downstream are skipped.

    Runs that people or other DAGs triggered go on, and so do those without a next one.
    """

    ui_color = "#e9ffdb"

    def choose_branch(self, context: Any) -> Choice:
        if context["dag_run"].run_type in BY_HAND:
            self.log.info("This run was triggered: downstream tasks go on")
        elif (left := until_next_run_is_due(self.dag, context["ti"].workload, time.time_ns() // 1000)) is not None and left < 0:
            self.log.info("A later run is due already: downstream tasks are skipped")
            return []
        else:
            self.log.info("This is the latest run: downstream tasks go on")
        return sorted(self.downstream_task_ids)
