"""The real command line against a real standalone: backfills, clearing many runs, dry runs, jobs, the audit log."""

from __future__ import annotations

import getpass
import json

import pytest

from tests.acceptance.harness import Standalone

DAILY = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("daily", start_date=datetime.datetime(2024, 1, 1), schedule="@daily", catchup=False, max_active_runs=1) as dag:
    BashOperator(task_id="a", bash_command="echo {{ ds }} {{ dag_run.conf.get('word', '-') }}") >> BashOperator(
        task_id="b", bash_command="[ {{ ds }} != '2024-01-03' ] || [ {{ dag_run.conf.get('word', '-') }} = again ]"
    )
"""


@pytest.fixture(scope="module", autouse=True)
def daily(standalone: Standalone) -> None:
    standalone.write_dag("daily.py", DAILY)
    standalone.wait_dag("daily")
    standalone.cli("dags", "unpause", "daily", "chain")


def states(standalone: Standalone) -> dict[str, str]:
    rows = standalone.json("dags", "list-runs", "daily", "-s", "2024-01-01", "-e", "2024-01-31")
    return {row["logical_date"][:10]: row["state"] for row in rows}


@pytest.mark.spec("S204")
def test_a_backfill_runs_past_dates_and_then_only_failed_runs(standalone: Standalone) -> None:
    span = ("--dag-id", "daily", "--from-date", "2024-01-01", "--to-date", "2024-01-05")
    plan = standalone.json("backfill", "create", *span, "--dry-run")
    assert [turn["outcome"] for turn in plan] == ["new"] * 5
    assert states(standalone) == {}
    done = standalone.run("backfill", "create", *span, "--max-active-runs", "2", "--wait", "--timeout", "100", timeout=120)
    assert done.returncode == 1, "one of its runs failed\n" + done.stderr
    assert states(standalone) == {f"2024-01-0{day}": "failed" if day == 3 else "success" for day in range(1, 6)}
    assert "2024-01-02" in standalone.cli("tasks", "logs", "daily", "a", "2024-01-02")
    again = standalone.run(
        *(
            "backfill",
            "create",
            *span,
            "--reprocess-behavior",
            "failed",
            "--dag-run-conf",
            '{"word": "again"}',
            "--wait",
            "-o",
            "json",
        )
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["progress"] == "5/5"
    assert set(states(standalone).values()) == {"success"}
    outcomes = standalone.json("backfill", "show", "daily", "--runs")
    assert [row["outcome"].partition(":")[0] for row in outcomes] == ["skipped", "skipped", "rerun", "skipped", "skipped"]


def test_many_runs_are_cleared_in_several_commands(standalone: Standalone) -> None:
    rows = standalone.json("tasks", "clear", "daily", "-e", "2024-01-31", "-t", "^b$", "--dry-run")
    assert len(rows) == 5
    assert set(states(standalone).values()) == {"success"}
    text = standalone.cli("tasks", "clear", "daily", "-e", "2024-01-31", "-t", "^b$", "-y")
    assert "Cleared 5 task instances of 5 runs." in text
    for row in rows:
        standalone.wait_task("daily", row["run_id"], "b", ("success", "failed"))
        standalone.wait_run("daily", row["run_id"])


@pytest.mark.spec("S77", "S126")
def test_changes_are_in_the_audit_log_with_their_user(standalone: Standalone) -> None:
    standalone.wait_run("chain", standalone.cli("dags", "trigger", "chain", "-r", "audited").split()[0])
    with standalone.store() as store:
        entry = store.event_logs(event="trigger", run_id="audited").rows[0]
    assert (entry.dag_id, entry.owner) == ("chain", getpass.getuser())


@pytest.mark.spec("S115")
def test_jobs_and_render(standalone: Standalone) -> None:
    assert standalone.cli("jobs", "check").strip() == "1 scheduler is alive."
    (row,) = standalone.json("jobs", "check", "--job-type", "LocalExecutorJob", "--local")
    assert row["pid"] == standalone.child("host")
    jobs = {row["job_type"]: row for row in standalone.json("jobs", "list")}
    assert sorted(jobs) == ["ApiServerJob", "DagProcessorJob", "LocalExecutorJob", "SchedulerJob"]
    assert {row["state"] for row in jobs.values()} == {"running"}
    assert jobs["DagProcessorJob"]["pid"] == standalone.child("parser")
    assert jobs["ApiServerJob"]["pid"] == standalone.child("api")
    assert "echo 2024-02-01 -" in standalone.cli("tasks", "render", "daily", "a", "2024-02-01")


def test_reserialize_and_delete_with_a_live_scheduler(standalone: Standalone) -> None:
    assert "parsed 4 files" in standalone.cli("dags", "reserialize")
    (standalone.dags_folder / "daily.py").unlink()
    standalone.wait(lambda: "daily" not in [row["dag_id"] for row in standalone.json("dags", "list")], "the DAG is gone")
    standalone.cli("dags", "delete", "daily", "-y")
    assert standalone.run("dags", "details", "daily").returncode == 1
    standalone.write_dag("daily.py", DAILY)
    standalone.wait_dag("daily")
    standalone.cli("dags", "unpause", "daily")
    assert standalone.cli("dags", "trigger", "daily", "-r", "new-life", "--wait").split() == ["new-life", "success"]
