"""Runs and tasks that miss their deadlines."""

from __future__ import annotations

import pytest

from tests.chaos.world import until
from tests.integration.callbacks.conftest import Instance
from tests.integration.callbacks.test_mail import text_of
from tests.unit.operators.servers import mail_server


def test_a_run_that_is_late_calls_its_alert(instance: Instance) -> None:
    run = instance.begin("late_run")
    (result,) = instance.wait_for_lines("late_run")
    assert (result["team"], result["alert"], result["run"], result["state"]) == ("ops", "soon", run, "running")
    instance.nothing_left()
    assert instance.ended("late_run", run) == "success"
    assert len(instance.lines("late_run")) == 1


@pytest.mark.spec("S125", "S260")
def test_a_missed_sla_is_reported_by_callback_and_mail(instance: Instance) -> None:
    with mail_server(instance.mail_port) as server:
        instance.world.control.call("set_paused", dag_id="late_task", is_paused=False)
        (answer,) = instance.wait_for_lines("late_task")
        until("the mail is there", 20, lambda: server.mails)
        instance.nothing_left()
    assert answer["dag"] == "late_task"
    assert answer["slas"] == ["first"]
    assert answer["tasks"] == "first on 2026-01-01T00:00:00+00:00"
    assert "second on 2026" in answer["blocking"]
    assert len(answer["states"]) == 2
    ((_, recipients, message),) = server.mails
    assert (recipients, message["Subject"]) == (["ada@example.org"], "[airflow] SLA miss on DAG=late_task")
    assert "first on 2026-01-01T00:00:00+00:00" in text_of(message)
    listed = instance.world.get("/api/v2/deadlineMisses?dag_id=late_task")["deadline_misses"]
    assert [(miss["task_id"], miss["name"]) for miss in listed] == [("first", "sla of 1 s")]
