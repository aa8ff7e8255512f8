"""Questions of tasks to people, with the real command line, web server and processes."""

from __future__ import annotations

from tests.acceptance.harness import Standalone

DAG_FILE = """
from datetime import datetime, timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLEntryOperator
from airflow.sdk import DAG, Param, task

with DAG("asks", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):

    @task
    def publish(answer):
        print("copies:", answer["params_input"]["copies"], "by", answer["responded_by_user"]["name"])

    @task
    def other():
        pass

    fill_in = HITLEntryOperator(task_id="fill_in", subject="How many?", params={"copies": Param(1, type="integer", maximum=9)})
    approve = ApprovalOperator(task_id="approve", subject="Go on?", assigned_users={"id": "somebody", "name": "somebody"})
    choose = HITLBranchOperator(task_id="choose", subject="Where?", options=["here", "there"], options_mapping={"here": "publish"})
    fill_in >> approve >> choose >> [publish(fill_in.output), other()]

with DAG("gives_up", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):
    ApprovalOperator(task_id="ask", subject="Go on?", response_timeout=timedelta(milliseconds=1))
"""


def _question(standalone: Standalone) -> str | None:
    found = standalone.json("hitl", "list")
    return found[0]["task_id"] if found else None


def test_people_answer_on_the_command_line_and_over_the_api(fresh: Standalone) -> None:
    fresh.write_dag("asks.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("asks")
    run = fresh.trigger("asks")
    fresh.wait(lambda: _question(fresh) == "fill_in", "the first question")
    refused = fresh.run("hitl", "respond", "asks", "fill_in", run, "--option", "OK", "--params", '{"copies": 10}')
    assert refused.returncode == 2
    assert "maximum of 9" in refused.stderr
    fresh.cli("hitl", "respond", "asks", "fill_in", run, "--option", "OK", "--params", '{"copies": 3}')
    fresh.wait(lambda: _question(fresh) == "approve", "the second question")
    fresh.cli("hitl", "respond", "asks", "approve", run, "--option", "Approve")
    fresh.wait(lambda: _question(fresh) == "choose", "the third question")
    fresh.cli("hitl", "respond", "asks", "choose", run, "--option", "here")
    assert fresh.wait_run("asks", run) == "success"
    states = {row["task_id"]: row["state"] for row in fresh.json("tasks", "states-for-dag-run", "asks", run)}
    assert states == {"fill_in": "success", "approve": "success", "choose": "success", "publish": "success", "other": "skipped"}
    assert "copies: 3 by " in fresh.cli("tasks", "logs", "asks", "publish", run)


def test_without_an_answer_the_task_fails_at_its_timeout(fresh: Standalone) -> None:
    fresh.write_dag("asks.py", DAG_FILE)
    fresh.start()
    fresh.wait_dag("gives_up")
    run = fresh.trigger("gives_up")
    assert fresh.wait_run("gives_up", run) == "failed"
    assert "HITLTimeoutError" in fresh.cli("tasks", "logs", "gives_up", "ask", run)
