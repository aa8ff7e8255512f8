"""The real command line against a real standalone."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from tests.acceptance import dags
from tests.acceptance.harness import Standalone


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """`held`'s task waits until this file exists."""
    return tmp_path / "gate"


@pytest.fixture(autouse=True)
def unpaused(standalone: Standalone) -> None:
    for dag_id in ("chain", "held", "failing"):
        standalone.call("set_paused", dag_id=dag_id, is_paused=False)


def test_list_and_show(standalone: Standalone) -> None:
    rows = {row["dag_id"]: row for row in standalone.json("dags", "list")}
    assert set(rows) == {"chain", "held", "failing"}
    assert rows["chain"]["fileloc"] == str(standalone.dags_folder / "chain.py")
    assert sorted(standalone.cli("tasks", "list", "chain").split()) == ["add", "last", "say"]
    assert "say" in standalone.cli("dags", "show", "chain")


@pytest.mark.spec("S382")
def test_trigger_and_wait_gives_state_logs_and_rows(standalone: Standalone) -> None:
    done = standalone.run("dags", "trigger", "chain", "-c", '{"who": "me"}', "-r", "first", "--wait", "--timeout", "60")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["first", "success"]
    assert re.search(r"^DAG chain: run first is success after .*s \(3 success\)\.$", done.stderr, re.MULTILINE)
    (row,) = standalone.json("dags", "list-runs", "chain", "--state", "success", "--limit", "1")
    assert (row["dag_id"], row["run_id"], row["state"], row["conf"]) == ("chain", "first", "success", {"who": "me"})
    assert standalone.cli("tasks", "state", "chain", "last", "first").strip() == "success"
    assert "hello from me" in standalone.cli("tasks", "logs", "chain", "say", "first")
    assert "sum 2" in standalone.cli("tasks", "logs", "chain", "last", "first", "--try", "1")
    states = standalone.json("tasks", "states-for-dag-run", "chain", "first")
    assert {one["task_id"]: one["state"] for one in states} == dict.fromkeys(("say", "add", "last"), "success")


def test_trigger_wait_exits_with_1_if_the_run_failed(standalone: Standalone) -> None:
    done = standalone.run("dags", "trigger", "failing", "-r", "bad-one", "--wait")
    assert done.returncode == 1
    assert "First failed task: bad. Its log: tradewind tasks logs failing bad bad-one" in done.stderr
    assert standalone.cli("dags", "state", "failing", "bad-one").strip() == "failed"
    assert standalone.cli("tasks", "state", "failing", "after", "bad-one").strip() == "upstream_failed"
    assert "about to fail" in standalone.cli("tasks", "logs", "failing", "bad", "bad-one")


def test_trigger_wait_says_that_a_paused_dag_does_not_run(standalone: Standalone) -> None:
    """Before the wait: nobody would see the sentence after it."""
    standalone.cli("dags", "pause", "failing")
    done = standalone.run("dags", "trigger", "failing", "-r", "held", "--wait", "--timeout", "0.5")
    assert "DAG failing is paused: the run waits until the DAG is unpaused (tradewind dags unpause failing)." in done.stderr
    standalone.cli("dags", "unpause", "failing")
    standalone.wait_run("failing", "held")


@pytest.mark.spec("S74", "S440", "S462")
def test_clear_runs_again(standalone: Standalone) -> None:
    standalone.wait_run("chain", standalone.trigger("chain", run_id="cleared"))
    refused = standalone.run("tasks", "clear", "chain", "-t", "^add$", "--run-id", "cleared", input="n\n")
    assert refused.returncode == 1
    assert "nothing was changed" in refused.stderr
    cleared = standalone.json("tasks", "clear", "chain", "-t", "^add$", "--run-id", "cleared", "-d", "-y")
    assert sorted(row["task_id"] for row in cleared) == ["add", "last"]
    standalone.wait(lambda: standalone.json("dags", "list-runs", "chain", "--state", "success"), "the run succeeded again")
    standalone.wait_task("chain", "cleared", "last")
    standalone.wait_run("chain", "cleared")
    with standalone.store() as store:
        tries = {name: len(store.task_tries("chain", "cleared", name)) for name in ("say", "add", "last")}
    assert tries == {"say": 1, "add": 2, "last": 2}


@pytest.mark.spec("S65", "S441", "S445")
def test_tasks_run_ignores_dependencies_and_forces_a_new_try(standalone: Standalone, gate: Path) -> None:
    """Through the scheduler, whatever the executor is."""
    standalone.trigger("held", run_id="by-hand", conf={"gate": str(gate)})
    standalone.wait_task("held", "by-hand", "wait", ("running",))
    refused = standalone.run("tasks", "run", "held", "after", "by-hand")
    assert (refused.returncode, "Not ended: wait (running)" in refused.stderr) == (1, True), refused.stderr
    early = standalone.run("tasks", "run", "held", "after", "by-hand", "-i", "--wait", "--timeout", "60")
    assert (early.returncode, early.stdout.split()[-1]) == (0, "success"), early.stderr
    assert standalone.cli("tasks", "state", "held", "wait", "by-hand").strip() == "running"
    gate.touch()
    standalone.wait_run("held", "by-hand")
    standalone.wait_run("failing", standalone.trigger("failing", run_id="by-hand"))
    again = standalone.run("tasks", "run", "failing", "bad", "by-hand", "--force", "--wait", "--timeout", "60")
    assert (again.returncode, again.stdout.split()[-1]) == (1, "failed"), again.stderr
    standalone.wait_run("failing", "by-hand")
    with standalone.store() as store:
        tries = {name: len(store.task_tries("failing", "by-hand", name)) for name in ("bad", "after")}
    assert tries["bad"] == 2


@pytest.mark.spec("S71")
def test_tasks_run_uses_another_pool(standalone: Standalone) -> None:
    """It takes slots there until it is cleared; a pool that does not exist is refused."""
    standalone.wait_run("chain", standalone.trigger("chain", run_id="pooled"))
    standalone.cli("pools", "set", "narrow", "0", "for one task")
    wrong = standalone.run("tasks", "run", "chain", "say", "pooled", "--force", "--pool", "narow")
    assert wrong.returncode == 1
    assert "'narow'" in wrong.stderr
    assert "'narrow'" in wrong.stderr
    done = standalone.cli("tasks", "run", "chain", "say", "pooled", "--force", "--pool", "narrow")
    assert done == "chain.say in pooled is scheduled, try 2, in pool narrow\n"
    assert "pool narrow" in standalone.cli("why", "chain", "say", "pooled")
    with standalone.store() as store:
        assert store.task_instance("chain", "pooled", "say").pool == "narrow"
        assert store.pool_details("narrow").scheduled_slots == 1
    standalone.cli("pools", "set", "narrow", "1", "for one task")
    standalone.wait_task("chain", "pooled", "say")
    standalone.wait_run("chain", "pooled")
    standalone.cli("tasks", "clear", "chain", "-t", "^say$", "--run-id", "pooled", "-y")
    with standalone.store() as store:
        assert store.task_instance("chain", "pooled", "say").pool == "default_pool"
    standalone.wait_run("chain", "pooled")
    standalone.cli("pools", "delete", "narrow", "-y")


def test_logs_follow_a_running_task(standalone: Standalone, gate: Path) -> None:
    standalone.trigger("held", run_id="followed", conf={"gate": str(gate)})
    standalone.wait_task("held", "followed", "wait", ("running",))
    found: list[str] = []
    follower = threading.Thread(
        daemon=True, target=lambda: found.append(standalone.cli("tasks", "logs", "held", "wait", "followed", "-f"))
    )
    follower.start()
    gate.touch()
    follower.join(30)
    assert not follower.is_alive()
    assert "waiting" in found[0]
    assert "done" in found[0]


@pytest.mark.spec("S290")
def test_why_names_the_blockers(standalone: Standalone, gate: Path) -> None:
    standalone.trigger("held", run_id="asked", conf={"gate": str(gate)})
    standalone.wait_task("held", "asked", "wait", ("running",))
    text = standalone.cli("why", "held", "after", "asked")
    assert "wait" in text
    assert "[trigger_rule]" in text
    gate.touch()
    assert standalone.wait_run("held", "asked") == "success"
    assert "finished" in standalone.cli("why", "held", "after", "asked")


@pytest.mark.spec("S262", "S278")
def test_pause_holds_new_runs_and_unpause_starts_them(standalone: Standalone) -> None:
    assert standalone.json("dags", "pause", "chain") == [{"dag_id": "chain", "is_paused": True}]
    done = standalone.run("dags", "trigger", "chain", "-r", "held-back")
    assert "paused" in done.stderr
    assert "unpause" in standalone.cli("why", "chain", "say", "held-back")
    standalone.cli("dags", "unpause", "ch.*", "--treat-dag-id-as-regex", "-y")
    assert standalone.wait_run("chain", "held-back") == "success"


@pytest.mark.spec("S465")
def test_a_broken_file_is_an_import_error_and_other_dags_run(standalone: Standalone) -> None:
    standalone.write_dag("broken.py", dags.BROKEN)
    standalone.wait(lambda: standalone.run("dags", "list-import-errors").returncode == 1, "the import error")
    (row,) = standalone.json_of_failure("dags", "list-import-errors")
    assert row["filepath"] == "broken.py"
    assert "no_such_module_anywhere" in row["error"]
    assert row["line"] == 1
    (standalone.dags_folder / "broken.py").unlink()
    standalone.wait(lambda: standalone.run("dags", "list-import-errors").returncode == 0, "the import error is gone")
    assert standalone.wait_run("chain", standalone.trigger("chain")) == "success"


def test_pools_variables_connections(standalone: Standalone, tmp_path: Path) -> None:
    standalone.cli("pools", "set", "small", "2", "two at a time")
    assert [(row["pool"], row["slots"]) for row in standalone.json("pools", "get", "small")] == [("small", 2)]
    standalone.cli("pools", "delete", "small", "-y")
    standalone.cli("variables", "set", "greeting", "hello")
    assert standalone.cli("variables", "get", "greeting") == "hello\n"
    assert "hello" not in standalone.cli("variables", "list", "-o", "json")
    target = tmp_path / "variables.json"
    standalone.cli("variables", "export", str(target))
    assert json.loads(target.read_text())["greeting"] == "hello"
    assert target.stat().st_mode & 0o077 == 0
    standalone.cli("connections", "add", "base", "--conn-uri", "postgres://u:canary-secret@db:5432/x")
    assert "canary-secret" not in standalone.cli("connections", "get", "base")
    assert standalone.json("connections", "get", "base", "--show-values")[0]["password"] == "canary-secret"
    assert b"canary-secret" not in (standalone.home / "tradewind.db").read_bytes()
    assert b"canary-secret" not in (standalone.home / "tradewind.db-wal").read_bytes()


def test_info_shows_processes_and_pragmas(standalone: Standalone) -> None:
    found = standalone.json("info")
    assert f"process {standalone.child('scheduler')}," in found["running"]["scheduler"]
    assert found["running"]["worker host w1"].startswith(f"process {standalone.child('host')} on ")
    assert found["database"]["synchronous"] == 2
    assert found["database"]["journal_mode"] == "wal"
    assert found["isolation"]["mode"] == "same user"


def test_errors_are_one_line_with_the_nearest_name(standalone: Standalone) -> None:
    for words, code, hint in (
        (("dags", "trigger", "chian"), 1, "'chain'"),
        (("tasks", "state", "chain", "sya"), 1, "'say'"),
        (("dags", "triger", "chain"), 2, "'trigger'"),
        (("dags", "list", "--outptu", "json"), 2, "--output"),
        (("dags", "trigger", "chain", "-c", "{"), 2, "not JSON"),
    ):
        done = standalone.run(*words)
        assert done.returncode == code, words
        assert done.stdout == ""
        assert hint in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
