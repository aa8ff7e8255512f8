"""The root command: help, wrong usage, exit codes, imported modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli import main as root
from tradewind.cli.compose import database
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.cli.main import COMMANDS
from tradewind.model.rows import UnreadFiles
from tradewind.settings import load


def loaded_by(*words: str) -> set[str]:
    """Modules that a command line imports."""
    code = (
        "import sys; from tradewind.cli.main import main; sys.argv = ['tradewind', *sys.argv[1:]]\n"
        "import io; real, sys.stdout = sys.stdout, io.StringIO()\n"
        "main()\nreal.write('\\n'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_help_lists_every_command_and_loads_none() -> None:
    modules = loaded_by("--help")
    assert not {"rich", "msgspec", "sqlite3", "subprocess", "tradewind.settings", "tradewind.cli.commands.dags"} & modules


def test_lists_load_no_web_framework_and_no_drawing(known: Path) -> None:
    modules = loaded_by("dags", "list")
    assert not {"rich", "fastapi", "uvicorn", "jinja2", "pendulum", "cryptography", "yaml", "subprocess"} & modules


def test_every_command_has_help_and_the_list_agrees_with_it(run: Run, names: list[str]) -> None:
    text = run("--help").stdout
    for name, entry in COMMANDS.items():
        assert name in text
        assert entry.help.split()[0] in text
    for name in names:
        done = run(*name.split(), "--help")
        assert done.exit_code == 0, name
        first = done.stdout.split("\n\n")[1].strip()
        assert first, f"{name} does not say what it does"
    sheet = run("cheat-sheet").stdout
    assert all(name in sheet for name in names if name not in ("dags", "tasks"))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["dgas"], "Did you mean 'dags'?"),
        (["dags", "lsit"], "Did you mean 'list'?"),
        (["dags", "xyzzy"], "There are: "),
        (["dags", "list", "--clumns", "x"], "--columns"),
        (["pools", "set", "p", "many"], "many"),
        (["pools", "set", "p", "1", "--include-defered"], "--include-deferred"),
        (["dags", "list", "-o", "xml"], "table"),
        (["dags", "list", "-o", "jsn"], "Did you mean 'json'?"),
        (["tasks", "mark", "d", "sucess"], "'STATE': 'sucess' is not one of"),
        (["pools", "set", "p", "two"], "'two' is not a whole number. See"),
        (["airflow", "task", "list"], "Did you mean 'tasks list'?"),
        (["airflow", "tasks", "logs", "d", "t"], "Tradewind has it: tradewind tasks logs"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(run: Run, words: list[str], hint: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert hint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_invalid_settings_are_reported_without_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND__CORE__PARALELISM", "3")
    done = run("dags", "list")
    assert done.exit_code == 1
    assert "TRADEWIND__CORE__PARALLELISM" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_airflows_variable_names_is_explained(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql+psycopg2://airflow:secret@127.0.0.1:1/airflow")
    done = run("dags", "list")
    assert done.exit_code == 1
    assert "The environment variable AIRFLOW__DATABASE__SQL_ALCHEMY_CONN names this database" in done.stderr
    assert "secret" not in done.stderr
    monkeypatch.setenv("TRADEWIND__DATABASE__URL", "none")
    assert "AIRFLOW__" not in run("dags", "list").stderr


def test_an_unexpected_error_is_one_line_without_debug(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(database, "open_reader", broken)
    done = run("dags", "list")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "boom" in done.stderr
    assert "--debug" in done.stderr
    with pytest.raises(ZeroDivisionError):
        run("--debug", "dags", "list")
    monkeypatch.setenv("TRADEWIND_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("dags", "list")


def test_a_closed_pipe_prints_no_error() -> None:
    code = f"{sys.executable} -m tradewind cheat-sheet | head -c 1"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_completion_for_each_shell_and_both_names(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        text = run("completion", shell).stdout
        assert "_TRADEWIND_COMPLETE" in text
        assert "tw" in text
    env = {"_TRADEWIND_COMPLETE": "bash_complete", "COMP_WORDS": "tw dags li", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-m", "tradewind"], env=env, capture_output=True, text=True, check=False)
    assert {line.split(",")[-1] for line in done.stdout.split()} == {
        "list",
        "list-import-errors",
        "list-jobs",
        "list-runs",
        "list-skipped",
    }


@pytest.mark.parametrize("group", ["db", "waits", "workers", "celery"])
def test_a_group_without_a_command_shows_its_help(run: Run, group: str) -> None:
    done = run(group)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == run(group, "--help").stdout


def test_every_group_names_its_commands_after_an_unknown_one(run: Run, names: list[str]) -> None:
    for group in {name.split()[0] for name in names if " " in name} - {"airflow"}:
        assert f"tradewind {group} has no command 'qqqq'. There are: " in run(group, "qqqq").stderr


def test_version(run: Run) -> None:
    import tradewind

    assert run("version").stdout.strip() == tradewind.__version__
    assert root.main(["version"]) == 0


@pytest.mark.parametrize(("words", "budget"), [(("--help",), 0.150), (("dags", "list"), 0.400)])
def test_start_up_stays_within_its_budget(known: Path, words: tuple[str, ...], budget: float) -> None:
    """Processor time, the best of several: about the time on an idle machine."""
    import resource

    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "tradewind", *words], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(found) < budget, found


def test_airflows_folder_options_are_accepted_and_have_no_effect(run: Run, known: Path) -> None:
    done = run("tasks", "list", "alpha", "-S", "/dags")
    assert done.stdout.split() == ["one", "two", "three"]
    assert "has no effect" in done.stderr
    assert "has no effect" in run("dags", "state", "alpha", "-B", "dags-folder").stderr


def test_verbose_after_a_command_shows_the_traceback(run: Run, home: Path) -> None:
    from tradewind.model.errors import NotFound

    assert run("dags", "list").exit_code == 1
    with pytest.raises(NotFound):
        run("dags", "list", "-v")
    assert run("dags", "lsit", "-v").exit_code == 2


def test_a_command_waits_for_a_dag_whose_file_is_being_read(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def note(unread: int) -> None:
        store, _ = open_commands(load())
        store.note_unread_files("dags", UnreadFiles(3, unread))
        store.close()

    def read_on(seconds: float) -> None:
        pauses.append(seconds)
        note(2 - len(pauses))

    note(2)
    monkeypatch.setattr(root, "pause", read_on)
    at_once = run("--no-wait", "dags", "details", "later")
    assert (at_once.exit_code, pauses) == (1, [])
    assert "There is no DAG 'later' yet: 2 of 3 DAG files are still being read. Try again in some seconds." in at_once.stderr
    later = run("dags", "details", "later")
    assert (later.exit_code, len(pauses)) == (1, 2), "it waits until all files are read"
    assert "2 of 3 DAG files are still being read. Waiting at most 30 s" in later.stderr
    assert "There is no DAG 'later'." in later.stderr
    note(1)
    assert "1 of 3 DAG files is still being read" in run("--no-wait", "why", "later", "a").stderr
    note(1)
    assert "1 of 3 DAG files is still being read: DAGs may be missing." in run("dags", "list").stderr
