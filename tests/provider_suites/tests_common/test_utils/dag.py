"""DAGs and the database: Tradewind has no second class for DAGs that the scheduler has read, and no table of them."""

from __future__ import annotations

from typing import Any


def create_scheduler_dag(dag: Any) -> Any:
    return dag


def sync_dag_to_db(dag: Any, *_args: Any, **_options: Any) -> Any:
    return dag


def sync_dags_to_db(dags: Any, *_args: Any, **_options: Any) -> list[Any]:
    return list(dags)
