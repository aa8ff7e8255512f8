"""`airflow.example_dags.subdags.subdag`."""

from __future__ import annotations

from typing import Any

from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.dag import DAG

TASKS = 5


def subdag(parent_dag_name: str, child_dag_name: str, args: dict[str, Any]) -> DAG:
    """A DAG of five tasks that do nothing, for a `SubDagOperator`.

    Args:
        args: the `default_args`.
    """
    found = DAG(f"{parent_dag_name}.{child_dag_name}", default_args=args, schedule="@daily", start_date=args.get("start_date"))
    for number in range(1, TASKS + 1):
        EmptyOperator(task_id=f"{child_dag_name}-task-{number}", dag=found)
    return found
