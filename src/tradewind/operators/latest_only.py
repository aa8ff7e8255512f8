"""An operator that skips downstream tasks except in the latest scheduled run."""

from __future__ import annotations

import time
from typing import Any

from tradewind.execution.neighbour_runs import time_until_next_run
from tradewind.execution.task_instance import DagRunType
from tradewind.operators.branch import BaseBranchOperator, Choice

TRIGGERED_TYPES = (DagRunType.MANUAL, DagRunType.OPERATOR_TRIGGERED)


class LatestOnlyOperator(BaseBranchOperator):
    """Skips the direct downstream tasks in a scheduled run if the next run is already due.

    Triggered runs (by a person or by another DAG), and runs without a next run, are never skipped.
    """

    ui_color = "#e9ffdb"

    def choose_branch(self, context: Any) -> Choice:
        if context["dag_run"].run_type in TRIGGERED_TYPES:
            self.log.info("This run was triggered: downstream tasks continue")
        elif (left := time_until_next_run(self.dag, context["ti"].workload, time.time_ns() // 1000)) is not None and left < 0:
            self.log.info("A later run is already due: skipping direct downstream tasks")
            return []
        else:
            self.log.info("This is the latest run: downstream tasks continue")
        return sorted(self.downstream_task_ids)
