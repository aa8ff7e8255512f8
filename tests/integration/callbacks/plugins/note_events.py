"""A plugin whose listeners write the events of DAG `listened` to a note."""

from __future__ import annotations

import json
import os
from pathlib import Path

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin


def note(dag_id: str, **said: object) -> None:
    if dag_id == "listened":
        with open(Path(os.environ["CALLBACK_NOTES"]) / "listened", "a", encoding="utf-8") as file:
            file.write(json.dumps(said, default=str) + "\n")


class Listener:
    """Its events, with the arguments of Airflow 3 or some of them."""

    @hookimpl
    def on_task_instance_running(self, previous_state, task_instance):
        note(task_instance.dag_id, event="running", task=task_instance.task_id)

    @hookimpl
    def on_task_instance_success(self, task_instance):
        note(task_instance.dag_id, event="success", task=task_instance.task_id)

    @hookimpl
    def on_task_instance_failed(self, previous_state, task_instance, error):
        note(task_instance.dag_id, event="failed", task=task_instance.task_id, error=error)

    @hookimpl
    def on_dag_run_running(self, dag_run, msg):
        note(dag_run.dag_id, event="run running", state=dag_run.state)

    @hookimpl
    def on_dag_run_failed(self, dag_run, msg):
        note(dag_run.dag_id, event="run failed", state=dag_run.state, msg=msg, tags=sorted(dag_run.dag.tags))
        raise RuntimeError("a listener that fails")


class NoteEvents(AirflowPlugin):
    name = "note_events"
    listeners = [Listener()]
