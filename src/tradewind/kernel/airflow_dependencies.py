"""Airflow's names for the conditions that keep a task from running, for people and scripts that know them.

Only the names are Airflow's; the sentences come from `explain`. Source: `NAME` of the classes in Airflow's `ti_deps/deps`.
"""

from __future__ import annotations

DEFAULT = "Dagrun Running"
"""The name for all other blockers: they concern the whole run."""

NAMES: dict[str, str] = {
    "trigger_rule": "Trigger Rule",
    "setup": "Trigger Rule",
    "teardown": "Trigger Rule",
    "branch": "Not Previously Skipped",
    "past": "Previous Dagrun State",
    "list": "Mapped dependencies have succeeded",
    "expanding": "Task has been mapped",
    "pool": "Pool Slots Available",
    "position": "Pool Slots Available",
    "max_active_tasks": "Task Instance Slots Available",
    "max_active_tasks_all_runs": "Task Instance Slots Available",
    "parallelism": "Task Instance Slots Available",
    "max_active_tis_per_dag": "Task Concurrency",
    "max_active_tis_per_dagrun": "Task Concurrency",
    "paused": "Dag Not Paused",
    "dates": "Execution Date",
    "not_due": "Execution Date",
    "run_after": "Execution Date",
    "running": "Task Instance Not Running",
    "restarting": "Task Instance Not Running",
    "queued": "Task Instance State",
    "executor": "Task Instance State",
    "deferred": "Task Instance State",
    "deferred_until": "Task Instance State",
    "waits_for_paused": "Task Instance State",
    "waits_for_nothing": "Task Instance State",
    "input": "Task Instance State",
    "finished": "Task Instance State",
}
"""`rule` of a `kernel.explain.Blocker` → Airflow's name."""


def dependency_name(rule: str, state: str | None) -> str:
    """Return Airflow's name for a blocker's rule.

    Args:
        state: state of the task instance. The rule `due` has one name for a retry and another one for a rescheduled sensor.
    """
    if rule == "due":
        return "Ready To Reschedule" if state == "up_for_reschedule" else "Not In Retry Period"
    return NAMES.get(rule, DEFAULT)
