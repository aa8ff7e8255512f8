"""A task that fails if another task of its run has failed."""

from __future__ import annotations

from typing import Any


def watcher() -> Any:
    from airflow.sdk import task

    @task(trigger_rule="one_failed", retries=0, task_id="watcher")
    def fail() -> None:
        raise RuntimeError("a task of this run failed")

    return fail()
