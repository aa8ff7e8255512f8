"""`why`, `dags why`, `dags upcoming` and `tasks failed-deps` without a scheduler: answers from the database alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.spec("S290")
def test_why_of_a_task(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    lines = run("why", "alpha", "two").stdout.splitlines()
    assert lines[0] == "alpha.two in r: not examined yet (the run is queued)"
    assert "  - Its DAG is paused: unpause it.  [paused]" in lines
    assert "    " + "  tradewind dags unpause alpha" in lines
    found = json.loads(run("why", "alpha", "two", "r", "-o", "json").stdout)
    assert [one["rule"] for one in found["blockers"]] == ["no_scheduler", "paused", "trigger_rule"]


def test_why_of_missing_runs_and_tasks(run: Run, known: Path) -> None:
    assert run("why", "alpha", "two").stdout.startswith("alpha.two has no run yet\n")
    assert "alpha: the next run\n" in run("why", "alpha").stdout
    assert "It has no schedule: it runs when it is triggered." in run("dags", "why", "beta").stdout
    assert run("why", "alpha", "two", "2024-01-01").stdout.startswith("alpha: there is no run for 2024-01-01T00:00:00Z\n")
    assert run("dags", "why", "alpha", "2024-01-01").stdout.startswith("alpha: there is no run for 2024-01-01T00:00:00Z\n")
    for words in (["why", "alhpa"], ["dags", "why", "alhpa", "x"], ["why", "alhpa", "two", "r"]):
        done = run(*words)
        assert done.exit_code == 1
        assert "'alpha'" in done.stderr
    assert "'two'" in run("why", "alpha", "tow").stderr
    assert "alpha" in run("why", "alpha", "two", "nonsense").stderr


def test_why_of_a_run(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    for words in (["dags", "why", "alpha", "r"], ["dags", "why", "alpha", "-r", "r"], ["why", "alpha", "--run-id", "r"]):
        assert run(*words).stdout.startswith("alpha r: queued\n")


def test_a_run_can_be_an_argument_or_an_option(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "one")
    run("dags", "trigger", "alpha", "-r", "other")
    for command in (["why"], ["tasks", "failed-deps"], ["tasks", "state"], ["tasks", "tries"]):
        result = run(*command, "alpha", "two", "one")
        assert result.exit_code == 0
        assert run(*command, "alpha", "two", "--run-id", "one").stdout == result.stdout
    both = run("why", "alpha", "two", "one", "--run-id", "other")
    assert both.exit_code == 2
    assert "two different runs are given: one and --run-id other." in both.stderr


@pytest.mark.spec("S290")
def test_failed_deps_has_airflows_names(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    lines = run("tasks", "failed-deps", "alpha", "two", "r").stdout.splitlines()
    assert lines[0] == "Task instance dependencies not met:"
    assert "Dag Not Paused: Its DAG is paused: unpause it." in lines
    assert lines[-1].startswith("Trigger Rule: Its trigger rule all_success requires")
    rows = json.loads(run("tasks", "failed-deps", "alpha", "two", "r", "-o", "json").stdout)
    assert [row["name"] for row in rows] == ["Dagrun Running", "Dag Not Paused", "Trigger Rule"]


def test_upcoming(run: Run, known: Path) -> None:
    done = run("dags", "upcoming")
    assert "Nothing is planned." in done.stderr
    assert "Not listed: 2 paused DAGs" in done.stderr
    run("dags", "unpause", "alpha")
    run("dags", "unpause", "beta")
    run("dags", "trigger", "beta", "-r", "r")
    (row,) = json.loads(run("dags", "upcoming", "beta", "-o", "json").stdout)
    assert (row["dag_id"], row["kind"], row["run_id"]) == ("beta", "queued", "r")
    rows = json.loads(run("dags", "upcoming", "-n", "3", "-o", "json").stdout)
    result = [(one["dag_id"], one["kind"]) for one in rows]
    assert sorted(result) == [("alpha", "run"), ("alpha", "run"), ("beta", "queued")]
    assert result[2] == ("alpha", "run")  # today's may be due already
    assert "+01:00" in run("dags", "upcoming", "--timezone", "Africa/Lagos").stdout
    wrong = run("dags", "upcoming", "--timezone", "Africa/Lagoss")
    assert wrong.exit_code == 1
    assert "Africa/Lagos" in wrong.stderr
