"""`tradewind backfill …` without a scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from tests.unit.cli.conftest import Run, carry_out, definition
from tradewind.cli.commands.backfill import _closing_line
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.model.definition import encode_definition, version_hash
from tradewind.model.moments import DAY
from tradewind.model.rows import BackfillRow
from tradewind.settings import load

MOMENT_2024 = 1_704_067_200_000_000
"""2024-01-01 in UTC."""

SPAN = ("--dag-id", "alpha", "--from-date", "2024-01-01", "--to-date", "2024-01-04")


def test_dry_run_prints_the_plan_and_changes_nothing(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "mine", "-l", "2024-01-02T06:00:00")
    done = run("backfill", "create", *SPAN, "--dry-run", "-o", "json")
    assert done.exit_code == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [(turn["logical_date"][:10], turn["outcome"], turn["run_id"]) for turn in plan] == [
        ("2024-01-01", "new", None),
        ("2024-01-02", "skipped: its run is queued or running", "mine"),
        ("2024-01-03", "new", None),
    ]
    output = run("backfill", "create", *SPAN, "--dry-run").stderr
    assert "3 runs: 2 new, 1 skipped. Nothing was changed." in output
    assert run("backfill", "list").stderr == "There is no active backfill.\n"


def test_create_list_show_pause_cancel(run: Run, known: Path) -> None:
    made = run("backfill", "create", *SPAN, "--max-active-runs", "2", "--dag-run-conf", '{"a": 1}')
    assert made.exit_code == 0, made.stderr
    assert made.stdout == "Backfill 1 of DAG alpha: 3 runs, 3 of them will be run.\n"
    assert "No scheduler is running" in made.stderr
    assert "paused" in made.stderr
    (row,) = json.loads(run("backfill", "list", "-o", "json").stdout)
    assert (row["id"], row["state"], row["progress"], row["dag_run_conf"]) == (1, "running", "0/3", {"a": 1})
    assert "already has the active backfill" in run("backfill", "create", *SPAN).stderr
    assert run("backfill", "pause", "alpha").stdout == "Backfill 1 of DAG alpha is now paused\n"
    assert json.loads(run("backfill", "show", "1", "-o", "json").stdout)["state"] == "paused"
    assert run("backfill", "unpause", "1").stdout == "Backfill 1 of DAG alpha is now unpaused\n"
    assert run("backfill", "cancel", "1", input="n\n").exit_code == 1
    assert run("backfill", "cancel", "1", "-y").stdout == "Backfill 1 of DAG alpha is cancelled after 0 of 3 runs.\n"
    assert run("backfill", "cancel", "1", "-y").exit_code == 1
    (row,) = json.loads(run("backfill", "list", "--all", "-o", "json").stdout)
    assert row["state"] == "cancelled"
    assert "no backfill 7" in run("backfill", "show", "7").stderr


def test_impossible_backfills_give_an_error(run: Run, known: Path) -> None:
    assert "cannot be backfilled" in run("backfill", "create", "--dag-id", "beta", *SPAN[2:]).stderr
    assert "'alpha'" in run("backfill", "create", "--dag-id", "alhpa", *SPAN[2:]).stderr
    assert run("backfill", "create", "--dag-id", "alpha").exit_code == 2
    waited = run("backfill", "create", *SPAN, "--wait")
    assert (waited.exit_code, "waiting" in waited.stderr) == (1, True)


def test_dates_outside_of_the_dag_are_named(run: Run, known: Path) -> None:
    settings = load()
    store, commands = open_commands(settings)
    made = definition("bounded", "one", cron="0 6 * * *")
    made = msgspec.structs.replace(made, start_date=MOMENT_2024, end_date=MOMENT_2024 + 10 * DAY)
    data = encode_definition(made)
    file = {"bundle": DAGS_BUNDLE, "file": "bounded.py", "file_hash": "x", "dags": [["bounded", data, version_hash(data)]]}
    try:
        carry_out(commands, "register_file", {**file, "duration": 1000, "at": 1_700_000_000_000_000})
    finally:
        store.close()
    early = run("backfill", "create", "--dag-id", "bounded", "--from-date", "2023-01-01", "--to-date", "2023-01-04").stderr
    assert "starts at 2024-01-01T00:00:00Z (start_date), and the backfill ends before, at 2023-01-04" in early
    late = run("backfill", "create", "--dag-id", "bounded", "--from-date", "2024-03-01", "--to-date", "2024-03-04").stderr
    assert "ended at 2024-01-11T00:00:00Z (end_date), and the backfill starts after it, at 2024-03-01" in late


def test_the_closing_line_of_a_backfill() -> None:
    row = BackfillRow(**{**dict.fromkeys(BackfillRow._fields), "id": 3, "dag_id": "d", "planned": 5, "handled": 5})  # type: ignore[arg-type]
    result = _closing_line(row, {"failed": 1, "success": 3}, 12.34)
    assert result == (
        "Backfill 3 of DAG d is completed after 12.3 s: 3 success, 1 failed, 1 not changed.\n"
        "Show the runs: tradewind backfill show 3 --runs"
    )
    assert _closing_line(row._replace(handled=2), {"success": 2}, 1) == (
        "Backfill 3 of DAG d is cancelled at 2 of 5 runs after 1.0 s: 2 success."
    )


def test_the_backfill_command_of_airflow_2(run: Run, known: Path) -> None:
    done = run("dags", "backfill", "alpha", "-s", "2024-01-01", "-e", "2024-01-04", "--dry-run", "-o", "json")
    assert len(json.loads(done.stdout)) == 3
    assert "  backfill  " not in run("dags", "--help").stdout
