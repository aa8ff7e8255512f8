"""Links to the runs of other DAGs that a task triggers or waits for. The API computes their addresses (`model.run_links`)."""

from __future__ import annotations

from typing import Any

from tradewind.execution.context import get_current_context
from tradewind.execution.instance_names import run_url
from tradewind.model.run_links import EXTERNAL_DAG, TRIGGERED_DAG, TRIGGERED_RUN_ID
from tradewind.sdk.operator_link import BaseOperatorLink

__all__ = ["ExternalDagLink", "TriggerDagRunLink"]


class TriggerDagRunLink(BaseOperatorLink):
    """A link to the run that a task has triggered."""

    name = TRIGGERED_DAG

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address of the run, for code in the task's own process; empty if no run was triggered yet."""
        run_id = get_current_context()["ti"].pushed.get(TRIGGERED_RUN_ID)
        return run_url(operator.trigger_dag_id, str(run_id)) if run_id else ""


class ExternalDagLink(BaseOperatorLink):
    """A link to the run that a task waits for, or whose tasks are cleared together with it."""

    name = EXTERNAL_DAG

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """As in Airflow, the address of the run of the other DAG with the run id of the task's own run."""
        return run_url(operator.external_dag_id, ti_key.run_id)
