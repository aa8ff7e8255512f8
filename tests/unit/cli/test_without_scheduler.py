"""Commands without a running scheduler: they hold the writer lock and write to the store themselves."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import click
import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli import command_client
from tradewind.cli.command_client import CommandClient
from tradewind.cli.locks import home_lock, writer_lock
from tradewind.cli.main import cli
from tradewind.model.errors import NotFound, StoreBusy
from tradewind.settings import load
from tradewind.wire.commands import SetPaused


def test_commands_without_a_database_give_an_error(run: Run) -> None:
    for words in (["dags", "list"], ["tasks", "list", "x"], ["why", "a", "b"], ["db", "check"]):
        done = run(*words)
        assert done.exit_code == 1
        assert "tradewind standalone" in done.stderr


@pytest.mark.spec("S75")
def test_commands_are_called_in_one_process_one_after_the_other(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several commands run in one interpreter, also after a refused one."""
    seen = []
    for words in (["pools", "set", "p", "3"], ["pools", "set", "p", "many"], ["pools", "get", "p"], ["dags", "list"]):
        try:
            code = cli.main(words, standalone_mode=False)
        except click.UsageError as error:
            code = error.exit_code
        seen.append((code or 0, capsys.readouterr().out))
    assert [code for code, _ in seen] == [0, 2, 0, 0]
    assert ("p" in seen[2][1], "alpha" in seen[3][1], "alpha" in seen[2][1]) == (True, True, False)


def test_lists(run: Run, known: Path) -> None:
    rows = json.loads(run("dags", "list", "-o", "json").stdout)
    assert [(row["dag_id"], row["is_paused"], row["owners"]) for row in rows] == [
        ("alpha", True, ["me"]),
        ("beta", True, ["me"]),
    ]
    assert rows[0]["fileloc"] == str(known / "dags" / "alpha.py")
    table = run("dags", "list", "--columns", "dag_id,is_paused").stdout.splitlines()
    assert [line.split() for line in table] == [
        ["dag_id", "|", "is_paused"],
        [table[1]],
        ["alpha", "|", "True"],
        ["beta", "|", "True"],
    ]
    plain = run("dags", "list", "-o", "plain", "--columns", "dag_id").stdout
    assert plain == "dag_id\nalpha\nbeta\n"
    assert "dag_id: alpha" in run("dags", "list", "-o", "yaml").stdout
    assert run("tasks", "list", "alpha").stdout.split() == ["one", "two", "three"]
    shown = json.loads(run("dags", "show", "alpha", "-o", "json").stdout)
    assert [(row["task_id"], row["upstream"]) for row in shown] == [("one", []), ("two", ["one"]), ("three", ["two"])]


def test_a_column_that_does_not_exist(run: Run, known: Path) -> None:
    done = run("dags", "list", "--columns", "dag_idd")
    assert done.exit_code == 2
    assert "'dag_id'" in done.stderr


def test_trigger_shows_the_run_and_warns_without_a_scheduler(run: Run, known: Path) -> None:
    done = run("dags", "trigger", "beta", "-c", '{"a": 1}', "-r", "mine", "-l", "2024-01-01", "-o", "json")
    assert done.exit_code == 0
    assert "No scheduler is running" in done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["run_id"], row["state"], row["conf"], row["logical_date"]) == (
        "mine",
        "queued",
        {"a": 1},
        "2024-01-01T00:00:00Z",
    )
    assert run("dags", "state", "beta", "mine").stdout == "queued\n"
    assert run("dags", "state", "beta", "2024-01-01").stdout == "queued\n"
    assert run("tasks", "state", "beta", "only", "mine").stdout == "None\n"
    again = run("dags", "trigger", "beta", "-r", "mine")
    assert again.exit_code == 1
    assert "mine" in again.stderr
    waiting = run("dags", "trigger", "beta", "--wait")
    assert waiting.exit_code == 1
    assert "is waiting" in waiting.stderr
    listed = json.loads(run("dags", "list-runs", "beta", "-s", "2024-01-01", "-e", "2024-01-02", "-o", "json").stdout)
    assert [one["run_id"] for one in listed] == ["mine"]
    assert "No scheduler" in run("why", "beta", "only", "mine").stdout


@pytest.mark.parametrize("conf", ["{", "[1]", '"text"'])
def test_a_conf_that_is_not_an_object_is_refused(run: Run, known: Path, conf: str) -> None:
    done = run("dags", "trigger", "beta", "-c", conf)
    assert done.exit_code == 2
    assert "JSON" in done.stderr


def test_pause_by_name_and_by_pattern(run: Run, known: Path) -> None:
    assert run("dags", "unpause", "alpha").stdout == "alpha is now unpaused\n"
    assert run("dags", "unpause", "alpha").stdout == "alpha was already unpaused\n"
    refused = run("dags", "unpause", ".*a$", "--treat-dag-id-as-regex", input="n\n")
    assert refused.exit_code == 1
    assert "2 DAGs to" in refused.stderr
    done = run("dags", "pause", ".*", "--treat-dag-id-as-regex", "-y", "-o", "json")
    assert json.loads(done.stdout) == [{"dag_id": "alpha", "is_paused": True}, {"dag_id": "beta", "is_paused": True}]
    assert run("dags", "pause", "^x", "--treat-dag-id-as-regex", "-y").exit_code == 1
    assert run("dags", "pause", "(", "--treat-dag-id-as-regex", "-y").exit_code == 2
    assert "'alpha'" in run("dags", "pause", "alhpa").stderr


def test_next_execution(run: Run, known: Path) -> None:
    done = run("dags", "next-execution", "beta")
    assert done.stdout == "None\n"
    assert "paused" in done.stderr


def test_clear_refuses_unknown_tasks(run: Run, known: Path) -> None:
    run("dags", "trigger", "alpha", "-r", "r")
    done = run("tasks", "clear", "alpha", "-t", "tow", "-y")
    assert done.exit_code == 1
    assert "'two'" in done.stderr
    assert run("tasks", "clear", "alpha", "-t", "(", "-y").exit_code == 2
    assert "nothing to clear" in run("tasks", "clear", "alpha", "-t", "two").stderr


@pytest.mark.spec("S122")
def test_pools(run: Run, known: Path) -> None:
    run("pools", "set", "p", "3", "for tests", "--include-deferred")
    assert run("pools", "set", "p", "-1").exit_code == 0
    (row,) = json.loads(run("pools", "get", "p", "-o", "json").stdout)
    assert (row["pool"], row["slots"], row["description"]) == ("p", -1, "for tests")
    assert run("pools", "delete", "p", input="n\n").exit_code == 1
    wrong = run("pools", "delete", "pp")
    assert "Did you mean 'p'?" in wrong.stderr
    assert "Really delete" not in wrong.stdout + wrong.stderr
    assert run("pools", "delete", "p", "-y").exit_code == 0
    assert "'default_pool'" in run("pools", "get", "defaultpool").stderr


def test_variables(run: Run, known: Path, tmp_path: Path) -> None:
    run("variables", "set", "name", "canary-value", "--description", "what for")
    run("variables", "set", "shape", '{"a": [1]}', "-j")
    assert run("variables", "get", "name").stdout == "canary-value\n"
    assert run("variables", "get", "nmae").exit_code == 1
    assert "'name'" in run("variables", "get", "nmae").stderr
    assert run("variables", "get", "nothing", "-d", "fallback").stdout == "fallback\n"
    assert run("variables", "get", "name", "-j").exit_code == 1
    assert run("variables", "set", "bad", "{", "-j").exit_code == 2
    assert "canary" not in run("variables", "list", "-o", "json").stdout
    assert "canary" in run("variables", "list", "--show-values").stdout
    run("variables", "set", "api_token", "canary-two")
    assert "canary-two" not in run("variables", "list", "--show-values", "--hide-sensitive").stdout
    assert b"canary" not in (known / "tradewind.db").read_bytes()

    target = tmp_path / "out.json"
    assert run("variables", "export", str(target)).exit_code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert json.loads(target.read_text()) == {
        "api_token": "canary-two",
        "name": {"value": "canary-value", "description": "what for"},
        "shape": {"a": [1]},
    }
    run("variables", "delete", "shape")
    run("variables", "set", "name", "other")
    assert "2 of 3" not in run("variables", "import", str(target), "-a", "fail").stdout
    assert run("variables", "get", "name").stdout == "other\n"
    assert run("variables", "import", str(target), "-a", "skip").stdout == "Imported 1 of 3 variables.\n"
    assert run("variables", "get", "shape").stdout == '{"a": [1]}\n'
    assert run("variables", "import", str(target)).stdout == "Imported 3 of 3 variables.\n"
    assert run("variables", "get", "name").stdout == "canary-value\n"
    target.write_text("[]")
    assert run("variables", "import", str(target)).exit_code == 1


@pytest.mark.spec("S12", "S123")
def test_connections(run: Run, known: Path) -> None:
    assert run("connections", "add", "a", "--conn-uri", "postgres://me:canary@db:5432/x?ssl=yes").exit_code == 0
    assert (
        run(
            "connections", "add", "b", "--conn-type", "http", "--conn-host", "h", "--conn-password", "-", input="canary\n"
        ).exit_code
        == 0
    )
    assert run("connections", "add", "c", "--conn-json", '{"conn_type": "http", "extra": {"k": 1}}').exit_code == 0
    listed = run("connections", "list", "-o", "json").stdout
    assert "canary" not in listed
    assert [row["conn_id"] for row in json.loads(listed)] == ["a", "b", "c"]
    (row,) = json.loads(run("connections", "get", "a", "--show-values", "-o", "json").stdout)
    assert (row["conn_type"], row["login"], row["password"], row["port"]) == ("postgres", "me", "canary", 5432)
    assert json.loads(row["extra"]) == {"ssl": "yes"}
    assert b"canary" not in (known / "tradewind.db").read_bytes()
    assert run("connections", "add", "a", "--conn-type", "http").exit_code == 1
    assert run("connections", "add", "a", "--conn-type", "http", "--overwrite").exit_code == 0
    assert run("connections", "add", "d").exit_code == 2
    assert "'host'" in run("connections", "add", "d", "--conn-json", '{"hots": "x"}').stderr
    assert run("connections", "delete", "a").exit_code == 0
    assert "'b'" not in run("connections", "get", "a").stdout


def test_a_lost_key_is_an_error_and_is_not_replaced(run: Run, known: Path) -> None:
    run("variables", "set", "k", "v")
    (known / "fernet.key").unlink()
    for words in (["variables", "get", "k"], ["variables", "set", "k", "w"]):
        done = run(*words)
        assert done.exit_code == 1
        assert "fernet.key" in done.stderr
    assert not (known / "fernet.key").exists()


def test_db(run: Run, home: Path) -> None:
    assert "created" in run("db", "migrate").stdout
    assert "up to date" in run("db", "migrate").stdout
    found = json.loads(run("db", "check", "--integrity", "-o", "json").stdout)
    assert found["integrity"] == "ok"
    (home / "tradewind.db").write_bytes(b"this is no database" * 100)
    done = run("db", "check")
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr


def test_config(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND__CORE__PARALLELISM", "7")
    assert run("config", "get-value", "core", "parallelism").stdout == "7\n"
    assert run("config", "get-value", "core.parallelism").stdout == "7\n"
    assert "TRADEWIND__CORE__PARALLELISM" in run("config", "explain", "core.parallelism").stdout
    changed = json.loads(run("config", "list", "--changed", "-o", "json").stdout)
    assert [row["name"] for row in changed] == ["core.parallelism"]
    assert "'core'" in run("config", "list", "--section", "croe").stderr
    monkeypatch.setenv("TRADEWIND__SECRETS__FERNET_KEY", "canary")
    assert "canary" not in run("config", "list").stdout


# --- the client ---------------------------------------------------------------------------------------------------------------


def test_the_client_waits_for_a_silent_writer_and_then_names_it(known: Path) -> None:
    settings = load()
    lock = writer_lock(settings)
    lock.acquire()
    try:
        with pytest.raises(StoreBusy, match="writing to this home folder"):
            CommandClient(settings, timeout_seconds=0.1).call(SetPaused("alpha", True))
    finally:
        lock.release()
    client = CommandClient(settings)
    assert client.call(SetPaused("alpha", False)).changed
    assert client.offline


def test_the_client_does_not_write_while_a_standalone_restarts_its_scheduler(
    known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load()
    lock = home_lock(settings)
    lock.acquire()
    looks: list[int] = []

    def answers(control: object) -> bool:
        looks.append(1)
        if len(looks) == 3:
            lock.release()
        return False

    monkeypatch.setattr(CommandClient, "_answers", staticmethod(answers))
    monkeypatch.setattr(command_client, "_LOOK_AGAIN_SECONDS", 0.001)
    client = CommandClient(settings)
    client.call(SetPaused("alpha", False))
    assert client.offline
    assert len(looks) >= 3


def test_the_client_raises_the_error_of_the_command(known: Path) -> None:
    with pytest.raises(NotFound, match="alpha"):
        CommandClient(load()).call(SetPaused("alpah", True))


def test_an_unknown_dag_without_a_scheduler_says_why_new_files_are_missing(run: Run, known: Path) -> None:
    done = run("dags", "trigger", "alhpa")
    assert done.exit_code == 1
    assert "Did you mean 'alpha'?" in done.stderr
    assert "No scheduler is running, so new DAG files are not read. Start one: tradewind standalone" in done.stderr
