"""The context of tasks in a manual run without a logical date."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import tradewind as tw
from tradewind import testing as kit
from tradewind.operators.python import PythonOperator


def test_a_manual_run_without_a_logical_date_has_no_data_interval() -> None:
    """As in Airflow 3: a run has both or neither. Without them, the context has no names derived from them."""
    seen: dict[str, Any] = {}
    start = datetime(2024, 5, 1, tzinfo=UTC)
    with tw.DAG("d", schedule="@daily", start_date=start, catchup=False) as dag:
        PythonOperator(task_id="t", python_callable=lambda **context: seen.update(context))
    world = kit.Simulation(dag, start=start)
    world.trigger(dag, "m", logical_date=None, run_type="manual")
    assert world.play().run("m").state == "success"
    run = seen["dag_run"]
    assert (run.logical_date, run.data_interval_start, run.data_interval_end) == (None, None, None)
    assert not {"logical_date", "ds", "ts", "data_interval_start", "data_interval_end"} & seen.keys()
