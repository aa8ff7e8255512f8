"""Effects that descriptions of Airflow promise, observed with real processes and commands."""

from __future__ import annotations

import getpass
import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.dags import BROKEN, CHAIN
from tests.acceptance.harness import Standalone

SOURCE = """
import os
import signal
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from tradewind import DAG, task
from tradewind.operators.python import PythonOperator
from tradewind.sensors.date_time import DateTimeSensorAsync
from tradewind.timetables.interval import CronDataIntervalTimetable

HERE = Path({here!r})

with DAG(
    "periods",
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=datetime.fromisoformat({start!r}),
    catchup=True,
    is_paused_upon_creation=False,
):

    @task
    def note(logical_date, data_interval_end):
        now = datetime.now(timezone.utc)
        (HERE / f"period.{{logical_date.isoformat()}}").write_text(f"{{data_interval_end.isoformat()}} {{now.isoformat()}}")

    note()

with DAG("values", schedule=None, is_paused_upon_creation=False):

    @task
    def push():
        return os.getpid()

    @task
    def pull(ti):
        ti.xcom_push("pids", [ti.xcom_pull(task_ids="push"), os.getpid()])

    push() >> pull()


def refuse(context, result):
    raise ValueError("the result is bad")


with DAG("steps", schedule=None, is_paused_upon_creation=False):
    PythonOperator(task_id="good", python_callable=lambda: 1, post_execute=lambda context, result: None)
    PythonOperator(task_id="bad", python_callable=lambda: 1, post_execute=refuse)


def held(context):
    with (HERE / "callback").open("w") as file:
        file.write(str(context["ti"].state))
    with open(HERE / "gate") as gate:  # a fifo: goes on when the test lets it
        gate.read()


with DAG("told", schedule=None, is_paused_upon_creation=False):

    @task(on_failure_callback=held)
    def fails():
        raise ValueError("no")

    fails()


class Stoppable(PythonOperator):
    def on_kill(self):
        (HERE / "on_kill").write_text(str(os.getpid()))


def terminates_itself():
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("the handler raises")


with DAG("waits", schedule=None, is_paused_upon_creation=False):
    DateTimeSensorAsync(task_id="moment", target_time="{{{{ dag_run.start_date + macros.timedelta(seconds=1) }}}}")

with DAG("words", schedule=None, is_paused_upon_creation=False):

    @task
    def words():
        return sys.orig_argv

    words()

with DAG("terminated", schedule=None, is_paused_upon_creation=False):
    Stoppable(task_id="t", python_callable=terminates_itself, retries=1, retry_delay=timedelta(seconds=0))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("effects")


STARTED = datetime.now(UTC)
START = STARTED.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
"""Begins the first of the periods: two have ended, one is under way."""


@pytest.fixture(scope="module")
def effects(folder: Path) -> Iterator[Standalone]:
    """A standalone that knows the DAGs of `SOURCE`, and a file that cannot be read."""
    standalone = Standalone(folder / "home")
    os.mkfifo(folder / "gate")
    standalone.write_dag("effects.py", SOURCE.format(here=str(folder), start=START.isoformat()))
    standalone.write_dag("broken.py", BROKEN)
    with standalone.started():
        standalone.wait_dag("terminated")
        yield standalone


def ended(standalone: Standalone, dag_id: str) -> str:
    """State of the run `one`, which is new and has ended."""
    return standalone.wait_run(dag_id, standalone.trigger(dag_id, run_id="one"))


def xcom(standalone: Standalone, dag_id: str, task_id: str, key: str = "return_value") -> Any:
    """What a task of the run `one` has pushed."""
    return json.loads(standalone.cli("xcom", "get", dag_id, task_id, "one", "--key", key))


@pytest.mark.spec("S4")
def test_a_run_starts_at_the_end_of_its_data_interval(effects: Standalone, folder: Path) -> None:
    """Each complete hour has its run, which works on that hour's date; the hour that is under way has none."""
    hour = timedelta(hours=1)
    effects.wait(lambda: sum(bool(path.read_text()) for path in folder.glob("period.*")) >= 2, "the runs of two periods")
    for path in sorted(folder.glob("period.*")):
        logical_date = datetime.fromisoformat(path.name.partition(".")[2])
        end, at = (datetime.fromisoformat(word) for word in path.read_text().split())
        assert logical_date + hour == end <= at
    dates = {row["logical_date"] for row in effects.json("dags", "list-runs", "periods")}
    asked = datetime.now(UTC)
    assert {START, START + hour} <= {datetime.fromisoformat(date) for date in dates}
    assert all(datetime.fromisoformat(date) + hour <= asked for date in dates)


@pytest.mark.spec("S15")
def test_a_value_passes_from_one_task_process_to_another(effects: Standalone) -> None:
    assert ended(effects, "values") == "success"
    pushed_by, pulled_by = xcom(effects, "values", "pull", "pids")
    assert (pushed_by, pushed_by != pulled_by) == (xcom(effects, "values", "push"), True)


@pytest.mark.spec("S174")
def test_a_task_is_success_after_its_last_hook(effects: Standalone) -> None:
    state = ended(effects, "steps")
    rows = {row["task_id"]: row["state"] for row in effects.json("tasks", "states-for-dag-run", "steps", "one")}
    assert (state, rows) == ("failed", {"good": "success", "bad": "failed"})


@pytest.mark.spec("S392")
def test_a_state_is_committed_before_its_callback_is_called(effects: Standalone, folder: Path) -> None:
    """While the callback is held, other processes read the state."""
    run_id = effects.trigger("told")
    gate = os.open(folder / "gate", os.O_RDWR)
    try:
        effects.wait(lambda: (folder / "callback").exists() and (folder / "callback").read_text(), "the callback is called")
        assert effects.cli("tasks", "state", "told", "fails", run_id).strip() == "failed"
        assert effects.cli("dags", "state", "told", run_id).strip() == "failed"
    finally:
        os.write(gate, b"go on")
        os.close(gate)


@pytest.mark.spec("S82", "S365")
def test_sigterm_in_a_task_process_calls_on_kill_and_fails_the_try(effects: Standalone, folder: Path) -> None:
    """The handler raises inside of the task's code. As since Airflow 3, a task that somebody terminated is not tried again."""
    assert ended(effects, "terminated") == "failed"
    (only,) = effects.json("tasks", "tries", "terminated", "t", "one")
    assert (only["try_number"], only["state"]) == (1, "failed")
    assert "AirflowTaskTerminated" in only["reason"]
    assert "SIGTERM" in only["reason"]
    assert (folder / "on_kill").read_text().isdigit()


@pytest.mark.spec("S77")
def test_actions_of_command_line_and_api_are_in_the_audit_log(effects: Standalone) -> None:
    """Each with who did it."""
    effects.cli("dags", "trigger", "values", "-r", "by-command")
    effects.request("PATCH", "/api/v2/dags/values?update_mask=is_paused", {"is_paused": True})
    effects.cli("dags", "unpause", "values")
    with effects.store() as store:
        seen = [(row.event, row.owner) for row in store.event_logs(dag_id="values", limit=None).rows]
    assert ("trigger", getpass.getuser()) in seen
    assert [owner for event, owner in seen if "pause" in event] == ["admin", getpass.getuser()]


@pytest.mark.spec("S241")
def test_dags_report_shows_duration_dags_and_errors_of_each_file(effects: Standalone) -> None:
    rows = {row["file"]: row for row in effects.json("dags", "report")}
    assert set(rows) == {"effects.py", "broken.py"}
    good, broken = rows["effects.py"], rows["broken.py"]
    assert (good["dag_num"], good["task_num"], good["errors"]) == (7, 9, 0)
    assert (broken["dag_num"], broken["task_num"], broken["errors"]) == (0, 0, 1)
    assert 0 < good["duration"] < 30
    for row in (good, broken):
        assert STARTED <= datetime.fromisoformat(row["last_parsed"]) <= datetime.now(UTC)


@pytest.mark.spec("S116")
def test_a_dag_is_active_while_its_file_exists_and_paused_on_request(effects: Standalone) -> None:
    def shown() -> tuple[bool, bool, bool]:
        """(is it listed, is it active, is it paused)."""
        row = json.loads(effects.get("/api/v2/dags/chain"))
        return "chain" in [one["dag_id"] for one in effects.json("dags", "list")], not row["is_stale"], row["is_paused"]

    path = effects.write_dag("chain.py", CHAIN)
    effects.wait_dag("chain")
    assert shown() == (True, True, True)
    effects.cli("dags", "unpause", "chain")
    assert shown() == (True, True, False)
    path.unlink()
    with effects.store() as store:
        effects.wait(lambda: not store.need_dag("chain").is_active, "the DAG is no longer active")
    assert shown() == (False, False, False)


@pytest.mark.spec("S23")
def test_services_and_restarted_services_have_the_same_parent(effects: Standalone) -> None:
    def parents() -> dict[str, int]:
        found = {}
        for kind in ("scheduler", "host", "parser", "api"):
            pid = effects.child(kind)
            assert pid is not None, kind
            found[kind] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return found

    assert effects.process is not None
    one = dict.fromkeys(("scheduler", "host", "parser", "api"), effects.process.pid)
    assert parents() == one
    old = effects.child("scheduler")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    effects.wait(lambda: effects.child("scheduler") not in (None, old), "another scheduler")
    assert parents() == one
    effects.wait(lambda: effects.run("jobs", "check").returncode == 0, "it answers")


@pytest.mark.spec("S115", "S197")
def test_a_killed_service_is_a_failed_job_and_its_successor_runs(effects: Standalone) -> None:
    old = effects.child("parser")
    assert old is not None

    def is_known() -> bool:
        """The parser has connected to the scheduler that runs now: an earlier test may have killed the one before."""
        rows = effects.json("jobs", "list", "--state", "running")
        scheduler = next((row for row in rows if row["job_type"] == "SchedulerJob"), None)
        parser = next((row for row in rows if row["pid"] == old), None)
        return scheduler is not None and parser is not None and parser["latest_heartbeat"] >= scheduler["start_date"]

    effects.wait(is_known, "the parser's connection")
    os.kill(old, signal.SIGKILL)

    def jobs() -> dict[int, dict[str, Any]]:
        return {row["pid"]: row for row in effects.json("jobs", "list") if row["job_type"] == "DagProcessorJob"}

    effects.wait(lambda: sorted(row["state"] for row in jobs().values()) == ["failed", "running"], "the jobs of both parsers")
    found = jobs()
    dead, alive = found.pop(old), found.popitem()[1]
    assert dead["start_date"] <= dead["latest_heartbeat"] <= dead["end_date"]
    assert (dead["state"], alive["state"], alive["end_date"]) == ("failed", "running", None)


@pytest.mark.spec("S403")
def test_the_duration_of_a_wait_is_kept(effects: Standalone) -> None:
    assert ended(effects, "waits") == "success"
    steps = effects.json("tasks", "history", "waits", "moment", "one")
    (waited,) = [step for step in steps if step["state"] == "deferred"]
    assert waited["lasted"] > 0
    assert "it waits for" in waited["cause"]
    assert steps[-1]["state"] == "success"


@pytest.mark.spec("S109")
def test_a_task_runs_in_a_fork_of_its_template_or_in_a_new_interpreter(effects: Standalone, tmp_path: Path) -> None:
    ended(effects, "words")
    forked = xcom(effects, "words", "words")
    assert "tradewind.worker.fresh_interpreter" not in forked
    standalone = Standalone(tmp_path / "home", environment={"AIRFLOW__CORE__EXECUTE_TASKS_NEW_PYTHON_INTERPRETER": "true"})
    standalone.write_dag("effects.py", (effects.dags_folder / "effects.py").read_text())
    with standalone.started():
        standalone.wait_dag("words")
        ended(standalone, "words")
        assert "tradewind.worker.fresh_interpreter" in xcom(standalone, "words", "words")
