"""`tradewind dags …` and `tasks …` without a scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run, carry_out, definition
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.model.definition import encode_definition, version_hash
from tradewind.model.rows import Batch, RunWrite, SchedulePosition, Skipped
from tradewind.model.states import RunState, TaskState
from tradewind.settings import load
from tradewind.store.factory import open_reader
from tradewind.store.sql.store import SqlStore

DAG_FILE = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator

with DAG("real", start_date=datetime(2024, 1, 1), schedule=None, params={"who": "nobody"}):
    first = BashOperator(task_id="first", bash_command="exit 1")
    second = BashOperator(task_id="second", bash_command="echo {{ ds }} {{ params.who }} $GREETING", append_env=True)
    broken = BashOperator(task_id="broken", bash_command="{{ nothing_of_that_name.at_all }}")
    first >> second >> broken
"""


@pytest.fixture
def real(known: Path) -> Path:
    folder = known / "dags"
    folder.mkdir(exist_ok=True)
    (folder / "real.py").write_text(DAG_FILE)
    return folder / "real.py"


def audit(home: Path) -> list[tuple[str, str | None]]:
    store = open_reader(home / "tradewind.db")
    try:
        return [(view.event, view.dag_id) for view in store.event_logs(limit=None).rows]
    finally:
        store.close()


def finish_runs(dag_id: str) -> None:
    """End every queued run of the DAG, with all its tasks as success."""
    store, _ = open_commands(load())
    assert isinstance(store, SqlStore)
    try:
        for row in store.active_runs(dag_id):
            store.commit(Batch(0, 1, [RunWrite(row.id, row.revision, RunState.SUCCESS, 1, 2, None, row.journal_seq)]))
            store.engine.run("UPDATE task_instance SET state = ? WHERE run = ?", (TaskState.SUCCESS.code, row.id))
    finally:
        store.close()


# --- looking ------------------------------------------------------------------------------------------------------------


def test_a_graph_is_written_in_graphviz_language(run: Run, known: Path, tmp_path: Path) -> None:
    text = run("dags", "show", "alpha", "--dot").stdout
    assert '"one" -> "two"' in text
    assert text.startswith('digraph "alpha" {')
    target = tmp_path / "alpha.dot"
    assert str(target) in run("dags", "show", "alpha", "--save", str(target)).stdout
    assert target.read_text() == text


def test_tasks_as_a_tree(run: Run, known: Path) -> None:
    assert run("tasks", "list", "alpha", "--tree").stdout.splitlines() == [
        "<BashOperator> one",
        "    <BashOperator> two",
        "        <BashOperator> three",
    ]


def test_dependencies_between_dags(run: Run, known: Path) -> None:
    import msgspec

    made = definition("gamma", "start", "watch")
    start, watch = made.tasks
    made = msgspec.structs.replace(
        made,
        tasks=(
            msgspec.structs.replace(start, operator="TriggerDagRunOperator", waits_for=("beta",)),
            msgspec.structs.replace(watch, operator="ExternalTaskSensor", waits_for=("alpha",)),
        ),
    )
    data = encode_definition(made)
    store, commands = open_commands(load())
    carry_out(
        commands,
        "register_file",
        {
            "bundle": DAGS_BUNDLE,
            "file": "gamma.py",
            "file_hash": "x",
            "dags": [["gamma", data, version_hash(data)]],
            "duration": 1,
            "at": 1,
        },
    )
    store.close()
    rows = json.loads(run("dags", "show-dependencies", "-o", "json").stdout)
    assert [(row["source"], row["target"], row["dependency_type"]) for row in rows] == [
        ("gamma", "beta", "trigger"),
        ("alpha", "gamma", "sensor"),
    ]


def test_the_next_executions_follow_the_schedule(run: Run, known: Path) -> None:
    moments = run("dags", "next-execution", "alpha", "-n", "3").stdout.split()
    assert len(moments) == 3
    assert all(moment.endswith("T06:00:00Z") for moment in moments)
    assert moments == sorted(set(moments))
    rows = json.loads(run("dags", "next-execution", "alpha", "-n", "2", "-o", "json").stdout)
    assert [row["run_after"] for row in rows] == moments[:2]
    assert run("dags", "next-execution", "alpha", "--field", "logical_date").stdout.split() == [rows[0]["logical_date"]]


@pytest.mark.spec("S241")
def test_the_report_names_each_file(run: Run, known: Path) -> None:
    rows = json.loads(run("dags", "report", "-o", "json").stdout)
    assert {row["file"]: (row["dag_num"], row["task_num"]) for row in rows} == {"alpha.py": (1, 3), "beta.py": (1, 1)}


def test_the_report_lists_a_file_with_import_errors(run: Run, real: Path) -> None:
    run("dags", "reserialize")
    real.with_name("broken.py").write_text("1 / 0\n# DAG tradewind")
    run("dags", "reserialize")
    rows = {row["file"]: row for row in json.loads(run("dags", "report", "-o", "json").stdout)}
    assert {name: row["errors"] for name, row in rows.items()} == {"real.py": 0, "broken.py": 1}
    assert all(row["last_parsed"] for row in rows.values())


def test_jobs(run: Run, known: Path) -> None:
    assert "no scheduler is alive" in run("jobs", "check").stderr
    assert run("jobs", "check").exit_code == 1
    assert "'SchedulerJob'" in run("jobs", "check", "--job-type", "SchedulerJop").stderr
    assert "There are no such jobs." in run("jobs", "list").stderr


# --- changing -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S74", "S439", "S463")
def test_clear_lists_asks_and_clears_in_steps_of_whole_runs(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND__SCHEDULER__BATCH_MAX_ROWS", "10")
    for day in range(1, 6):
        run("dags", "trigger", "alpha", "-r", f"r{day}", "-l", f"2024-01-0{day}")
    finish_runs("alpha")
    dry = run("tasks", "clear", "alpha", "-s", "2024-01-02", "--dry-run", "-o", "json")
    assert len(json.loads(dry.stdout)) == 12
    assert run("dags", "state", "alpha", "r2").stdout == "success\n"
    refused = run("tasks", "clear", "alpha", "-s", "2024-01-02", input="n\n")
    assert (refused.exit_code, "clear 12 task instances" in refused.stderr) == (1, True)
    assert run("dags", "state", "alpha", "r2").stdout == "success\n"
    done = run("tasks", "clear", "alpha", "-s", "2024-01-02", input="y\n")
    assert "Cleared 12 task instances of 4 runs." in done.stdout
    assert [run("dags", "state", "alpha", f"r{day}").stdout.strip() for day in (1, 2, 5)] == ["success", "queued", "queued"]
    assert run("dags", "clear", "alpha").exit_code == 2
    assert "Cleared 3 task instances of 1 run." in run("dags", "clear", "alpha", "--run-id", "r1", "-y").stdout


def states(run: Run, run_id: str) -> dict[str, str | None]:
    rows = json.loads(run("tasks", "states-for-dag-run", "alpha", run_id, "-o", "json").stdout)
    return {row["task_id"]: row["state"] for row in rows}


@pytest.mark.spec("S437")
def test_clear_includes_past_and_future_runs_and_can_keep_finished_runs(run: Run, known: Path) -> None:
    for day in range(1, 4):
        run("dags", "trigger", "alpha", "-r", f"r{day}", "-l", f"2024-01-0{day}")
    finish_runs("alpha")
    dry = run("tasks", "clear", "alpha", "-t", "^two$", "--run-id", "r2", "--past", "--dry-run", "-o", "json")
    assert [row["run_id"] for row in json.loads(dry.stdout)] == ["r1", "r2"]
    assert run("tasks", "clear", "alpha", "--past").exit_code == 2
    done = run("tasks", "clear", "alpha", "--run-id", "r2", "--no-reset-dag-runs", "--note", "stale", "-y")
    assert "Cleared 3 task instances of 1 run." in done.stdout
    assert run("dags", "state", "alpha", "r2").stdout == "success\n"
    assert set(states(run, "r2").values()) == {None}
    assert "stale" in run("tasks", "states-for-dag-run", "alpha", "r2").stdout


@pytest.mark.spec("S447", "S449")
def test_mark_lists_asks_and_marks(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r", "-l", "2024-01-01")
    refused = run("tasks", "mark", "alpha", "success", "-t", "one", "--run-id", "r", input="n\n")
    assert (refused.exit_code, "mark 1 task instance" in refused.stderr) == (1, True)
    assert "none" in refused.stdout
    assert states(run, "r")["one"] is None
    dry = run("tasks", "mark", "alpha", "success", "-t", "one", "-d", "--run-id", "r", "--dry-run")
    assert "would be marked; nothing was changed" in dry.stderr
    done = run("tasks", "mark", "alpha", "success", "-t", "one", "--run-id", "r", "--reason", "by hand", "-y")
    assert done.stdout == "Marked 1 task instance of 1 run.\n"
    assert states(run, "r")["one"] == "success"
    assert ("mark", "alpha") in audit(known)
    assert "nothing to mark" in run("tasks", "mark", "alpha", "success", "-t", "one", "--run-id", "r").stderr
    assert run("tasks", "mark", "alpha", "success").exit_code == 2, "of which runs?"
    assert "nothing to mark" in run("tasks", "mark", "alpha", "failed", "-s", "2025-01-01").stderr


@pytest.mark.spec("S69")
def test_tasks_run_can_mark_success_instead_of_running(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    assert "would be success (it was none)" in run("tasks", "run", "alpha", "one", "r", "-m", "--dry-run").stdout
    assert "is success (it was none)" in run("tasks", "run", "alpha", "one", "r", "--mark-success").stdout
    assert run("tasks", "state", "alpha", "one", "r").stdout == "success\n"
    assert "is already success" in run("tasks", "run", "alpha", "one", "r", "-m").stdout


@pytest.mark.spec("S191")
def test_set_state_of_a_run(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    refused = run("dags", "set-state", "alpha", "r", "failed", input="n\n")
    assert (refused.exit_code, "it is queued" in refused.stderr) == (1, True)
    dry = run("dags", "set-state", "alpha", "r", "failed", "--dry-run")
    assert "would be failed; nothing was changed" in dry.stderr
    assert run("dags", "state", "alpha", "r").stdout == "queued\n"
    done = run("dags", "set-state", "alpha", "r", "failed", "-y", "--note", "wrong day")
    assert done.stdout == "r  failed  (3 task instances marked)\n"
    assert set(states(run, "r").values()) == {"skipped"}
    assert "wrong day" in run("dags", "list-runs", "alpha").stdout
    assert "r  queued" in run("dags", "set-state", "alpha", "r", "queued", "-y").stdout


def test_notes(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r", "--note", "first")
    assert run("dags", "note", "alpha", "r", "second").stdout == "r has a new note.\n"
    assert json.loads(run("dags", "list-runs", "alpha", "-o", "json").stdout)[0]["note"] == "second"
    assert run("tasks", "note", "alpha", "two", "r", "slow").stdout == "two in r has a new note.\n"
    assert "slow" in run("tasks", "states-for-dag-run", "alpha", "r").stdout
    assert run("tasks", "note", "alpha", "two", "r").stdout == "two in r has no note any more.\n"
    assert "slow" not in run("tasks", "states-for-dag-run", "alpha", "r").stdout
    assert "'two'" in run("tasks", "note", "alpha", "tow", "r", "x").stderr


@pytest.mark.spec("S77", "S126")
def test_triggering_is_in_the_audit_log(run: Run, known: Path) -> None:
    run("dags", "trigger", "beta", "-r", "mine")
    assert ("trigger", "beta") in audit(known)


def test_delete_removes_a_dag_but_not_while_it_runs(run: Run, known: Path) -> None:
    run("dags", "trigger", "beta", "-r", "mine")
    refused = run("dags", "delete", "beta", "-y")
    assert (refused.exit_code, "mine" in refused.stderr) == (1, True)
    finish_runs("beta")
    assert run("dags", "delete", "beta", input="n\n").exit_code == 1
    done = run("dags", "delete", "beta", "-y")
    assert done.stdout == "Deleted DAG beta and 1 run.\n"
    assert "no DAG 'beta'" in run("dags", "details", "beta").stderr
    assert ("delete dag", "beta") in audit(known)
    assert run("dags", "list-runs", "alpha").exit_code == 0


def test_reserialize_parses_the_files_and_removes_missing_ones(run: Run, real: Path) -> None:
    done = run("dags", "reserialize")
    assert done.exit_code == 0, done.stderr
    assert "parsed 1 file; 3 DAGs changed" in done.stdout
    assert [row["dag_id"] for row in json.loads(run("dags", "list", "-o", "json").stdout)] == ["real"]
    real.write_text("1 / 0\n# DAG tradewind")
    assert run("dags", "reserialize").exit_code == 1
    assert run("airflow", "dags", "reserialize").exit_code == 0, "as in Airflow"
    assert run("dags", "list-runs", "real", "--state", "runing").exit_code == 2
    assert "1 DAG file with import errors. See: tradewind dags list-import-errors" in run("tasks", "list", "nosuch").stderr
    assert "'dags-folder'" in run("dags", "reserialize", "-B", "dags-foldre").stderr


def test_reserialize_loads_the_plugins(run: Run, real: Path) -> None:
    package = real.parent.parent / "plugins" / "ours"
    package.mkdir(parents=True)
    text = "from airflow.plugins_manager import AirflowPlugin\nclass Ours(AirflowPlugin):\n    name = 'ours'\n"
    (package / "__init__.py").write_text(text)
    done = run("dags", "reserialize")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "plugins: loaded 1 plugin; 0 files with errors.")
    assert [row["name"] for row in json.loads(run("plugins", "-o", "json").stdout)] == ["ours"]
    (package / "__init__.py").write_text("1 / 0")
    assert run("dags", "reserialize").exit_code == 1
    assert "ZeroDivisionError" in run("plugins").stderr


def test_a_filter_without_matches_prints_a_message(run: Run, known: Path) -> None:
    output = run("dags", "list", "--pattern", "nosuch", "--tag", "daily").stderr
    assert output == "No DAG matches --pattern nosuch, --tag daily. All DAGs: tradewind dags list\n"
    assert run("dags", "list", "--pattern", "alp").stderr == ""


def test_a_run_is_cleared_by_its_date(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "mine", "-l", "2026-01-02")
    for words in (("tasks", "clear", "alpha", "-t", "^two$"), ("dags", "clear", "alpha"), ("tasks", "mark", "alpha", "failed")):
        done = run(*words, "--run-id", "2026-01-02", "--dry-run")
        assert done.exit_code == 0, done.stderr
        assert "no run" in run(*words, "--run-id", "2026-01-03", "--dry-run").stderr


def test_pausing_several_at_once(run: Run, known: Path) -> None:
    wrong = run("dags", "unpause", "alpha", "betta")
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert [row["is_paused"] for row in json.loads(run("dags", "list", "-o", "json").stdout)] == [True, True]
    assert run("dags", "unpause", "alpha", "beta").stdout == "alpha is now unpaused\nbeta is now unpaused\n"


# --- one task ---------------------------------------------------------------------------------------------------------


def test_render_shows_the_fields_and_runs_nothing(run: Run, real: Path) -> None:
    done = run("tasks", "render", "real", "second", "2024-03-01", "-f", str(real))
    assert done.exit_code == 0, done.stderr
    assert "# property: bash_command" in done.stdout
    assert "echo 2024-03-01 nobody $GREETING" in done.stdout
    rows = json.loads(run("tasks", "render", "real", "second", "2024-03-01", "-f", str(real), "-o", "json").stdout)
    assert {"property": "bash_command", "value": "echo 2024-03-01 nobody $GREETING"} in rows
    broken = run("tasks", "render", "real", "broken", "-f", str(real))
    assert (broken.exit_code, "nothing_of_that_name" in broken.stderr) == (1, True)


@pytest.mark.spec("S377")
def test_tasks_test_runs_one_task(run: Run, real: Path) -> None:
    words = ("tasks", "test", "real", "second", "2024-03-01", "-f", str(real))
    done = run(*words, "-t", '{"who": "me"}', "--env-vars", '{"GREETING": "hello"}')
    assert done.exit_code == 0, done.stderr
    assert "2024-03-01 me hello" in done.stdout + done.stderr
    assert run("tasks", "test", "real", "first", "-f", str(real)).exit_code == 1
    assert "'second'" in run("tasks", "test", "real", "secnod", "-f", str(real)).stderr


def test_dags_test_draws_the_run_with_its_states(run: Run, real: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.dot"
    done = run("dags", "test", "real", "-f", str(real), "--mark-success-pattern", "second", "--save-dagrun", str(target))
    assert done.exit_code == 1
    text = target.read_text()
    assert 'label="first: failed", fillcolor=tomato' in text
    assert '"first" -> "second"' in text
    assert run("dags", "test", "real", "-f", str(real), "--use-executor").exit_code == 2


@pytest.mark.spec("S290")
def test_failed_deps_lists_the_unmet_dependencies(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    rows = json.loads(run("tasks", "failed-deps", "alpha", "two", "r", "-o", "json").stdout)
    assert rows
    assert all(row["rule"] and row["reason"] for row in rows)


@pytest.mark.spec("S70")
def test_all_four_ways_to_ignore_have_a_flag(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    flags = {"-A": True, "--ignore-dependencies": True, "--ignore-depends-on-past": False, "--force": False}
    for flag, runs in flags.items():
        done = run("tasks", "run", "alpha", "two", "r", flag, "--dry-run")
        assert (done.exit_code == 0) is runs, (flag, done.stderr)


@pytest.mark.spec("S65", "S443", "S444")
def test_tasks_run_is_refused_or_stored_for_the_next_scheduler(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r", "-l", "2024-01-01")
    refused = run("tasks", "run", "alpha", "two", "r")
    assert refused.exit_code == 1
    assert "dependencies not met: trigger_rule: Its trigger rule all_success" in refused.stderr
    assert "--ignore-dependencies" in refused.stderr
    dry = run("tasks", "run", "alpha", "two", "2024-01-01", "-i", "--dry-run")
    assert dry.stdout == "alpha.two in r would be scheduled (ignored: trigger_rule); nothing was changed\n"
    assert run("tasks", "state", "alpha", "two", "r").stdout == "None\n"
    done = run("tasks", "run", "alpha", "two", "r", "-A", "--ignore-depends-on-past")
    assert done.stdout == "alpha.two in r is scheduled, try 1 (ignored: trigger_rule)\n"
    assert "No scheduler is running" in done.stderr
    assert "is paused" in done.stderr
    assert run("tasks", "state", "alpha", "two", "r").stdout == "scheduled\n"
    assert ("run_task", "alpha") in audit(known)
    again = run("tasks", "run", "alpha", "two", "r", "-A")
    assert again.exit_code == 1
    assert "is scheduled already" in again.stderr
    assert run("tasks", "run", "alpha", "one", "r", "--wait").exit_code == 1
    assert run("tasks", "state", "alpha", "one", "r").stdout == "scheduled\n"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("--pool", "p"), 1, "tradewind pools set p SLOTS"),
        (("--raw",), 1, "tradewind tasks test"),
        (("-d", "wait", "-i"), 2, "--depends-on-past wait"),
        (("--map-index", "3"), 1, "it is not mapped"),
    ],
)
def test_tasks_run_refuses_unsupported_options(run: Run, known: Path, words: tuple[str, ...], code: int, hint: str) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    done = run("tasks", "run", "alpha", "one", "r", *words)
    assert (done.exit_code, hint in done.stderr) == (code, True), done.stderr
    assert "'one'" in run("tasks", "run", "alpha", "oen", "r").stderr
    assert run("tasks", "state", "alpha", "one", "r").stdout == "None\n"


# --- completion ---------------------------------------------------------------------------------------------------------


def test_ids_are_completed_from_the_database(run: Run, known: Path) -> None:
    import os
    import subprocess
    import sys

    run("dags", "trigger", "alpha", "-r", "monday")

    def completed(*words: str) -> set[str]:
        env = {
            **os.environ,
            "_TRADEWIND_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        done = subprocess.run([sys.executable, "-m", "tradewind"], env=env, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return {line.split(",")[-1] for line in done.stdout.split()}

    assert completed("tradewind", "dags", "pause", "al") == {"alpha"}
    assert completed("tradewind", "dags", "state", "alpha", "mon") == {"monday"}
    assert completed("tradewind", "tasks", "state", "alpha", "t") == {"two", "three"}
    (known / "tradewind.db").write_bytes(b"no database")
    assert completed("tradewind", "dags", "pause", "al") == set()


def test_list_skipped_lists_dates_without_a_run(run: Run, known: Path) -> None:
    assert run("dags", "list-skipped", "alpha").stderr == "No scheduled run was skipped.\n"
    assert "'alpha'" in run("dags", "list-skipped", "alhpa").stderr
    day = 86_400_000_000
    store, _ = open_commands(load())
    try:
        skipped = Skipped(0, 2 * day, "catchup is off", 3 * day)
        store.commit(Batch(0, 0, positions=[SchedulePosition("alpha", None, None, None, skipped)]))
    finally:
        store.close()
    (row,) = json.loads(run("dags", "list-skipped", "alpha", "-o", "json").stdout)
    assert row == {
        "from_date": "1970-01-01T00:00:00Z",
        "before": "1970-01-03T00:00:00Z",
        "reason": "catchup is off",
        "at": "1970-01-04T00:00:00Z",
    }
