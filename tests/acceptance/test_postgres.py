"""Everything works on PostgreSQL as on SQLite: the services, the commands, the API; and a server that restarts loses nothing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance import dags
from tests.acceptance.harness import Standalone
from tests.postgres_proxy import proxied
from tests.postgres_server import PostgresServer, private_server

ENVIRONMENT_DAG = """
import os

from tradewind import DAG, task

with DAG("environment", schedule=None):

    @task
    def names():
        return sorted(name for name in os.environ if "DATABASE" in name or "SQL_ALCHEMY" in name)

    names()
"""


@pytest.fixture(scope="module")
def standalone(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A running standalone whose store is a PostgreSQL database."""
    url = postgres_server.create_database()
    standalone = Standalone(tmp_path_factory.mktemp("standalone") / "home", environment={"TRADEWIND__DATABASE__URL": url})
    standalone.write_dag("chain.py", dags.CHAIN)
    standalone.write_dag("held.py", dags.HELD)
    standalone.write_dag("environment.py", ENVIRONMENT_DAG)
    with standalone.started():
        for dag_id in ("chain", "held", "environment"):
            standalone.wait_dag(dag_id)
            standalone.call("set_paused", dag_id=dag_id, is_paused=False)
        yield standalone


@pytest.mark.spec("S484")
def test_runs_commands_and_lists_work(standalone: Standalone) -> None:
    run_id = standalone.trigger("chain")
    assert standalone.wait_run("chain", run_id) == "success"
    assert {row["state"] for row in standalone.json("tasks", "states-for-dag-run", "chain", run_id)} == {"success"}
    assert standalone.json("dags", "list-runs", "chain")[0]["run_id"] == run_id
    standalone.cli("variables", "set", "colour", "blue")
    assert standalone.cli("variables", "get", "colour").strip() == "blue"
    assert "PostgreSQL" in standalone.cli("info")
    assert not (standalone.home / "tradewind.db").exists()


def test_the_api_reads_what_the_scheduler_wrote(standalone: Standalone) -> None:
    run_id = standalone.trigger("chain")
    standalone.wait_run("chain", run_id)
    found = json.loads(standalone.get(f"/api/v2/dags/chain/dagRuns/{run_id}/taskInstances"))
    assert {one["state"] for one in found["task_instances"]} == {"success"}
    assert json.loads(standalone.get("/api/v2/dags"))["total_entries"] == 3
    assert standalone.health() == {"metadatabase": "healthy", "scheduler": "healthy"}


def test_why_explains_a_task_that_waits(standalone: Standalone, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run_id = standalone.trigger("held", conf={"gate": str(gate)})
    standalone.wait_task("held", run_id, "wait", ("running",))
    assert "wait" in standalone.cli("why", "held", "after", run_id)
    gate.touch()
    assert standalone.wait_run("held", run_id) == "success"


def test_tasks_never_see_the_url_of_the_database(standalone: Standalone) -> None:
    run_id = standalone.trigger("environment")
    assert standalone.wait_run("environment", run_id) == "success"
    with standalone.store() as store:
        run = store.need_run("environment", run_id)
        ((_, _, value, _),) = store.xcoms(run.id, ["names"], "return_value")
    assert b"TRADEWIND__DATABASE__URL" not in value
    assert b"SQL_ALCHEMY" not in value


def test_a_killed_scheduler_is_replaced_and_its_runs_continue(standalone: Standalone) -> None:
    run_id = standalone.trigger("chain")
    os.kill(scheduler_of(standalone), signal.SIGKILL)
    assert standalone.wait_run("chain", run_id) == "success"


def test_a_backup_brings_back_what_was_there(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """`db backup`, `db reset` and `db restore`, by PostgreSQL's own programs."""
    url = postgres_server.create_database()
    path = f"{os.environ['PATH']}:{postgres_server.programs}"  # those of a package are not on the path
    standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__DATABASE__URL": url, "PATH": path})
    standalone.cli("variables", "set", "colour", "blue")
    backup = tmp_path / "tradewind.dump"
    standalone.cli("db", "backup", str(backup))
    assert backup.stat().st_mode & 0o777 == 0o600
    standalone.cli("db", "reset", "-y")
    assert standalone.json("variables", "list") == []
    standalone.cli("db", "restore", str(backup), "-y")
    assert standalone.cli("variables", "get", "colour").strip() == "blue"
    standalone.cli("db", "check", "--integrity")
    assert standalone.cli("db", "shell", "SELECT count(*) FROM dag").split()[-2:] != []
    refused = standalone.run("db", "shell", "DELETE FROM variable")
    assert "read-only" in refused.stderr + refused.stdout


def test_an_empty_database_does_not_replace_one_that_was_in_use(postgres_server: PostgresServer, tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "home")
    standalone.cli("variables", "set", "colour", "blue")
    standalone.environment["TRADEWIND__DATABASE__URL"] = postgres_server.create_database()
    refused = standalone.run("db", "migrate")
    assert refused.returncode == 1
    assert "tradewind db move" in refused.stderr
    standalone.cli("db", "reset", "-y")
    assert standalone.json("variables", "list") == []


def test_runs_go_on_after_the_server_was_restarted(tmp_path: Path) -> None:
    """After a crash of the server the scheduler comes back by itself."""
    with private_server() as server:
        standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__DATABASE__URL": server.create_database()})
        standalone.write_dag("chain.py", dags.CHAIN)
        with standalone.started():
            standalone.wait_dag("chain")
            standalone.call("set_paused", dag_id="chain", is_paused=False)
            first = standalone.trigger("chain")
            assert standalone.wait_run("chain", first) == "success"
            server.stop()
            assert standalone.run("dags", "list").returncode == 1
            server.start()
            standalone.wait(
                lambda: standalone.run("dags", "trigger", "chain").returncode == 0 or None, "a command that is accepted"
            )
            standalone.wait(
                lambda: (
                    [row["state"] for row in standalone.json("dags", "list-runs", "chain")] == ["success", "success"] or None
                ),
                "both runs ended",
            )


@pytest.fixture
def pair(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[tuple[Standalone, Standalone]]:
    """Two `standalone` on one database, as on two machines: the first is active, the second is its standby."""
    url = postgres_server.create_database()
    standalones = []
    for name in ("one", "two"):
        standalone = Standalone(tmp_path / name, environment={"TRADEWIND__DATABASE__URL": url})
        standalone.write_dag("chain.py", dags.CHAIN)
        standalones.append(standalone)
    try:
        standalones[0].start()
        standalones[0].wait_dag("chain")
        standalones[0].call("set_paused", dag_id="chain", is_paused=False)
        standalones[1].launch()
        standalones[1].wait_line("another scheduler is active")
        yield standalones[0], standalones[1]
    finally:
        for standalone in standalones:
            for pid in standalone.processes():
                os.kill(pid, signal.SIGCONT)
            standalone.close()


def scheduler_of(standalone: Standalone) -> int:
    """The pid of the scheduler process of a home folder."""
    (pid,) = [
        pid for pid, words in standalone.processes().items() if "scheduler" in words.split() and "standalone" not in words
    ]
    return pid


def epoch_of(standalone: Standalone) -> int:
    with standalone.store() as store:
        return store.epoch()


def test_a_standby_takes_over_after_kill_9_within_five_seconds(pair: tuple[Standalone, Standalone]) -> None:
    active, standby = pair
    assert epoch_of(standby) == 1
    supervisor = active.process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)  # as a machine that is gone: nothing restarts the scheduler there
    began = time.monotonic()
    os.kill(scheduler_of(active), signal.SIGKILL)
    standby.wait(lambda: epoch_of(standby) == 2 or None, "a new epoch", 20)
    assert time.monotonic() - began <= 5
    standby.wait(lambda: standby.run("jobs", "check").returncode == 0 or None, "the new scheduler accepts commands", 20)
    run_id = standby.trigger("chain")
    assert standby.wait_run("chain", run_id) == "success"


def test_a_stopped_scheduler_is_superseded_and_writes_nothing_more(pair: tuple[Standalone, Standalone]) -> None:
    """SIGSTOP: its connections stay open, so the end of the lease decides. What it has to write when it goes on is refused."""
    active, standby = pair
    pid = scheduler_of(active)
    supervisor = active.process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    standby.wait(lambda: epoch_of(standby) == 2 or None, "a new epoch", 30)
    assert time.monotonic() - began <= 15
    run_id = standby.trigger("chain")
    assert standby.wait_run("chain", run_id) == "success"
    before = rows_of(standby)
    with ThreadPoolExecutor(1) as threads, active.control(timeout=8) as control:
        late = threads.submit(control.call, "trigger", dag_id="chain", run_id="late")
        os.kill(pid, signal.SIGCONT)
        standby.wait(lambda: pid not in active.processes() or None, "the end of the former scheduler", 30)
        assert late.exception() is not None
    assert rows_of(standby) == before
    supervisor.send_signal(signal.SIGCONT)
    active.wait_line("the process cannot continue now and will be restarted", 30)
    assert epoch_of(standby) == 2, "the former scheduler is a standby now"


def rows_of(standalone: Standalone) -> list[tuple[object, ...]]:
    """What the scheduler writes of runs, and by which epoch."""
    with standalone.store() as store:
        runs = store.engine.rows("SELECT id, run_id, state, revision, journal_seq, epoch FROM dag_run ORDER BY id")
        return [*runs, *store.engine.rows("SELECT run, seq, slot, after FROM journal ORDER BY run, seq")]


@pytest.mark.long
def test_a_scheduler_behind_a_cut_network_is_replaced_within_fifteen_seconds(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The server sees its connections open and hears nothing: the end of the lease decides. It stops by itself meanwhile."""
    url = postgres_server.create_database()
    with proxied(postgres_server) as network:
        active = Standalone(tmp_path / "one", environment={"TRADEWIND__DATABASE__URL": network.url(url)})
        standby = Standalone(tmp_path / "two", environment={"TRADEWIND__DATABASE__URL": url})
        for standalone in (active, standby):
            standalone.write_dag("chain.py", dags.CHAIN)
        try:
            active.start()
            active.wait_dag("chain")
            active.call("set_paused", dag_id="chain", is_paused=False)
            standby.launch()
            standby.wait_line("another scheduler is active")
            pid = scheduler_of(active)
            began = time.monotonic()
            network.cut()
            standby.wait(lambda: epoch_of(standby) == 2 or None, "a new epoch", 30)
            assert time.monotonic() - began <= 15
            standby.wait(lambda: pid not in active.processes() or None, "the end of the former scheduler", 30)
            run_id = standby.trigger("chain")
            assert standby.wait_run("chain", run_id) == "success"
            before = rows_of(standby)
            network.mend()
            active.wait_line("another scheduler is active", 60)
            assert rows_of(standby) == before
            assert epoch_of(standby) == 2
        finally:
            network.mend()
            for standalone in (active, standby):
                standalone.close()


def test_a_scheduler_has_two_connections_the_web_server_few_and_workers_none(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with proxied(postgres_server) as network:
        url = network.url(postgres_server.create_database())
        standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__DATABASE__URL": url})
        standalone.write_dag("held.py", dags.HELD)
        gate = tmp_path / "gate"
        with standalone.started():
            standalone.wait_dag("held")
            standalone.call("set_paused", dag_id="held", is_paused=False)
            run_id = standalone.trigger("held", conf={"gate": str(gate)})
            standalone.wait_task("held", run_id, "wait", ("running",))
            with ThreadPoolExecutor(12) as threads:  # more than the web server has threads
                list(threads.map(lambda _: standalone.get("/api/v2/dags"), range(24)))
            owners = Counter(network.owners())
            scheduler, api = scheduler_of(standalone), standalone.child("api")
            assert owners.pop(scheduler) == 2
            assert api is not None
            assert 1 <= owners.pop(api) <= 10
            owners.pop(os.getpid(), None)  # of this test, which looks at the task
            assert owners == {}, standalone.processes()
            gate.touch()
            assert standalone.wait_run("held", run_id) == "success"


OUTAGE_DAG = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("outage", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    for name in ("during", "afterwards"):
        BashOperator(
            task_id=name,
            bash_command="echo begun >> '{{ dag_run.conf['folder'] }}/" + name + "'; until [ -e '{{ dag_run.conf['folder'] }}/gate_"
            + name + "' ]; do read -t 0.05 <> <(:) || true; done; echo ended >> '{{ dag_run.conf['folder'] }}/" + name + "'",
        )
"""


def test_a_crash_of_the_server_loses_no_running_task(tmp_path: Path) -> None:
    """One task ends while there is no database, another one afterwards: each runs once, and its result counts."""
    with private_server() as server:
        standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__DATABASE__URL": server.create_database()})
        standalone.write_dag("outage.py", OUTAGE_DAG)
        with standalone.started():
            standalone.wait_dag("outage")
            standalone.call("set_paused", dag_id="outage", is_paused=False)
            run_id = standalone.trigger("outage", conf={"folder": str(tmp_path)})
            for name in ("during", "afterwards"):
                standalone.wait_task("outage", run_id, name, ("running",))
                standalone.wait((tmp_path / name).exists, f"the begin of {name}")
            server.stop()
            (tmp_path / "gate_during").touch()
            standalone.wait(
                lambda: "ended" in (tmp_path / "during").read_text() or None, "the end of a task without a database"
            )
            server.start()
            standalone.wait_task("outage", run_id, "during", ("success",))
            (tmp_path / "gate_afterwards").touch()
            assert standalone.wait_run("outage", run_id) == "success"
            for name in ("during", "afterwards"):
                assert (tmp_path / name).read_text() == "begun\nended\n"
            with standalone.store() as store:
                snapshot = store.snapshot(store.need_run("outage", run_id).id)
                assert snapshot is not None
                assert [row.try_number for row in snapshot.rows] == [1, 1]


def test_a_store_is_moved_from_sqlite_and_its_runs_continue(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A run that waits for a task goes on in the new database; variables, history and numbers are the same."""
    url = postgres_server.create_database()
    standalone = Standalone(tmp_path / "home")
    standalone.write_dag("chain.py", dags.CHAIN)
    # stopping the services ends the running try; the next one follows in the new database
    standalone.write_dag("held.py", dags.HELD.replace('task_id="wait",', 'task_id="wait", retries=3, retry_delay=0,'))
    gate = tmp_path / "gate"
    with standalone.started():
        for dag_id in ("chain", "held"):
            standalone.wait_dag(dag_id)
            standalone.call("set_paused", dag_id=dag_id, is_paused=False)
        ended = standalone.trigger("chain")
        standalone.wait_run("chain", ended)
        waits = standalone.trigger("held", conf={"gate": str(gate)})
        standalone.wait_task("held", waits, "wait", ("running",))
        standalone.cli("variables", "set", "colour", "blue")
        refused = standalone.run("db", "move", url, "-y")
        assert "standalone is already running" in refused.stderr
    moved = standalone.run("db", "move", "-", "-y", input=f"{url}\n")
    assert moved.returncode == 0, moved.stderr
    assert "2 DAG runs" in moved.stdout
    assert not (standalone.home / "tradewind.db").exists()
    forgotten = standalone.run("dags", "list")
    assert "TRADEWIND__DATABASE__URL" in forgotten.stderr
    standalone.environment["TRADEWIND__DATABASE__URL"] = url
    again = standalone.run("db", "move", url, "-y")
    assert "is not in use" in again.stderr
    gate.touch()
    with standalone.started():
        assert standalone.wait_run("held", waits) == "success"
        assert standalone.wait_run("chain", ended) == "success"
        assert standalone.cli("variables", "get", "colour").strip() == "blue"
        assert standalone.wait_run("chain", standalone.trigger("chain")) == "success"
        with standalone.store() as store:
            numbers = [store.need_run("chain", ended).id, store.need_run("held", waits).id]
            assert numbers == [1, 2]


BEFORE_THE_COMMIT = ["move.tables_created", "move.table_copied=1", "move.table_copied=20", "move.before_commit"]
AFTER_THE_COMMIT = ["move.copied", "move.named", "move.renaming"]


@pytest.mark.parametrize("place", BEFORE_THE_COMMIT + AFTER_THE_COMMIT)
def test_a_move_that_is_killed_leaves_the_file_usable(place: str, postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Whatever step it dies at; and the move can be made again, at once or, after its commit, when the copy was deleted."""
    url = postgres_server.create_database()
    standalone = Standalone(tmp_path / "home")
    standalone.cli("variables", "set", "colour", "blue")
    name, _, number = place.partition("=")
    with closing(
        sqlite3.connect(standalone.home / "tradewind.db")
    ) as reader:  # so that the last change stays in the write-ahead log
        reader.execute("SELECT * FROM variable").fetchall()
        standalone.cli("variables", "set", "colour", "green")
        standalone.environment["TRADEWIND_FAILPOINTS"] = f"{name}=kill9@{number or 1}"
        killed = standalone.run("db", "move", url, "-y")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        del standalone.environment["TRADEWIND_FAILPOINTS"]
    assert standalone.cli("variables", "get", "colour").strip() == "green"
    again = standalone.run("db", "move", url, "-y")
    if name in AFTER_THE_COMMIT:
        assert "tradewind db reset -y" in again.stderr
        postgres_server.drop_database(url)
        url = postgres_server.create_database()
        again = standalone.run("db", "move", url, "-y")
    assert again.returncode == 0, again.stderr
    standalone.environment["TRADEWIND__DATABASE__URL"] = url
    assert standalone.cli("variables", "get", "colour").strip() == "green"
