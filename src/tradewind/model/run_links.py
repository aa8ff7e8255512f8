"""Links of operators to runs of other DAGs. The API computes their addresses from stored values; no task process does."""

from __future__ import annotations

TRIGGERED_DAG, TRIGGERED_DAG_KEY = "Triggered DAG", "_link_TriggerDagRunLink"
"""Name and key of the link to the run that a task has triggered."""
EXTERNAL_DAG, EXTERNAL_DAG_KEY = "External DAG", "_link_ExternalDagLink"
"""Name and key of the link to the run that a task waits for, or whose tasks are cleared together with it."""
COMPUTED_KEYS = frozenset({TRIGGERED_DAG_KEY, EXTERNAL_DAG_KEY})

TRIGGERED_DAG_ID, TRIGGERED_RUN_ID = "trigger_dag_id", "trigger_run_id"
"""Keys of the XComs with the ids of a triggered run. The names are Airflow's."""
