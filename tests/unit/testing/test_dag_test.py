"""`dag.test()` and `run_dag`: production's decisions, in this process, without waiting."""

from __future__ import annotations

import bdb
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tradewind import DAG, AirflowFailException, AirflowSkipException, Param, TriggerRule, Variable, get_current_context, task
from tradewind.kernel.machine import RunMachine
from tradewind.model.errors import ConfigError, Conflict, DefinitionError, NotYetSupported, UnknownArgument
from tradewind.operators.empty import EmptyOperator
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator
from tradewind.sensors.external_task import ExternalTaskSensor
from tradewind.sensors.python import PythonSensor
from tradewind.sensors.time_delta import WaitSensor
from tradewind.testing import TestedRun, run_dag
from tradewind.testing.inline_executor import InlineExecutor
from tradewind.wire import runtime

DAY = datetime(2024, 3, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the defaults."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))


@contextmanager
def a_dag(**arguments: Any) -> Iterator[DAG]:
    given: dict[str, Any] = {"schedule": None, "start_date": datetime(2024, 1, 1, tzinfo=UTC)}
    with DAG("d", **{**given, **arguments}) as dag:
        yield dag


def states(run: TestedRun) -> dict[str, str]:
    return {task_id: one.state.value for task_id, one in run.tasks.items()}


# --- what it is for -----------------------------------------------------------------------------------------------------


def test_a_breakpoint_stops_in_the_calling_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = []

    def hook(*args: object, **kwargs: object) -> None:
        frame = sys._getframe(1)
        stops.append((os.getpid(), threading.current_thread(), frame.f_code.co_name, frame.f_locals["seen"]))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with a_dag() as dag:

        @task
        def look() -> None:
            seen = 42  # noqa: F841 (for the debugger)
            breakpoint()

        look()
    assert dag.test(say=str).state == "success"
    assert stops == [(os.getpid(), threading.main_thread(), "look", 42)]


def test_leaving_the_debugger_ends_everything() -> None:
    later = []
    with a_dag() as dag:

        @task(retries=3)
        def stopped() -> None:
            raise bdb.BdbQuit

        @task(trigger_rule=TriggerRule.ALL_DONE)
        def after() -> None:
            later.append(1)

        stopped() >> after()
    with pytest.raises(KeyboardInterrupt):
        run_dag(dag)
    assert later == []


def test_ctrl_c_ends_everything_and_python_minds_it_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with a_dag() as dag:

        @task(retries=3)
        def interrupted() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

        interrupted()
    with pytest.raises(KeyboardInterrupt):
        run_dag(dag)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(runtime.NoRuntime):
        Variable.get("x")


def test_it_tells_what_happens_and_ends_with_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with a_dag() as dag:

        @task
        def good() -> None:
            print("hello from the task")

        @task
        def bad() -> None:
            raise ValueError("no such luck")

        good() >> bad() >> EmptyOperator(task_id="low")
    dag.test(logical_date=DAY)
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[:2] == ["[good] running", "hello from the task"]
    assert "[bad] failed (ValueError: no such luck) after" in output.out
    table = lines[lines.index("") + 1 :]
    assert [line.split()[:2] for line in table[:3]] == [["good", "success"], ["bad", "failed"], ["low", "upstream_failed"]]
    assert table[1].endswith("ValueError: no such luck")
    assert table[3] == "d manual__2024-03-05T00:00:00+00:00: failed"
    assert 'raise ValueError("no such luck")' in output.err


LOGS = """
import logging
from tradewind import DAG, task

with DAG("logs", schedule=None) as dag:
    @task
    def says():
        logging.info("by the root logger")
        logging.getLogger("mine").info("by a logger of the file")
        logging.getLogger("mine").debug("not shown")

    says()
dag.test()
logging.getLogger("mine").info("after the run")
"""


def test_it_shows_what_loggers_of_the_file_say() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], capture_output=True, text=True, timeout=60, check=True)
    shown = [line for line in done.stderr.splitlines() if "Done. Returned value" not in line]
    assert shown == ["    INFO by the root logger", "    INFO by a logger of the file"]


def test_run_dag_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with a_dag() as dag:
        EmptyOperator(task_id="t")
    assert run_dag(dag).state == "success"
    assert capsys.readouterr() == ("", "")


# --- the same decisions -------------------------------------------------------------------------------------------------


def test_values_travel_and_tasks_see_their_run() -> None:
    with a_dag(schedule="@daily") as dag:

        @task
        def one() -> dict[str, int]:
            return {"n": 20}

        @task
        def two(got: dict[str, int], ds: str | None = None, dag_run: Any = None) -> list[Any]:
            return [got["n"] + 1, ds, dag_run.run_id, get_current_context()["ti"].try_number]

        two(one())
    run = run_dag(dag, logical_date=DAY)
    assert run.xcom("two") == [21, "2024-03-05", "manual__2024-03-05T00:00:00+00:00", 1]
    assert (run.xcom("two", "nothing"), run.dag_id, run.get_state()) == (None, "d", "success")


def test_branches_skips_failures_and_trigger_rules() -> None:
    with a_dag() as dag:

        @task.branch
        def choose() -> str:
            return "left"

        @task
        def skip() -> None:
            raise AirflowSkipException("not today")

        @task(retries=5)
        def fail() -> None:
            raise AirflowFailException("never")

        left, right = EmptyOperator(task_id="left"), EmptyOperator(task_id="right")
        join = EmptyOperator(task_id="join", trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS)
        choose() >> [left, right] >> join
        skip() >> EmptyOperator(task_id="below_skip")
        fail() >> EmptyOperator(task_id="below_fail")
    run = run_dag(dag)
    assert run.state == "failed"
    assert states(run) == {
        "left": "success",
        "right": "skipped",
        "join": "success",
        "choose": "success",
        "skip": "skipped",
        "below_skip": "skipped",
        "fail": "failed",
        "below_fail": "upstream_failed",
    }
    assert run.tasks["fail"].try_number == 1


def test_nobody_waits_for_retries() -> None:
    tries: list[int] = []
    with a_dag() as dag:

        @task(retries=3, retry_delay=timedelta(hours=2))
        def flaky(ti: Any = None) -> None:
            tries.append(ti.try_number)
            if len(tries) < 3:
                raise ValueError("not yet")

        flaky()
    received: list[str] = []
    began = time.monotonic()
    run = run_dag(dag, say=received.append)
    assert time.monotonic() - began < 30
    assert (run.state, tries) == ("success", [1, 2, 3])
    assert received.count("… nothing to do for 120 min: the clock jumps") == 2
    ended = run.row.ended_at
    assert ended is not None
    assert ended - run.row.queued_at > 4 * 3_600_000_000


def test_a_rescheduled_sensor_is_called_again_at_once() -> None:
    looks: list[int] = []
    with a_dag() as dag:
        PythonSensor(
            task_id="s",
            python_callable=lambda: looks.append(1) or len(looks) > 3,  # type: ignore[func-returns-value]
            mode="reschedule",
            poke_interval=3600,
        )
    run = run_dag(dag)
    assert (run.state, len(looks), run.tasks["s"].try_number) == ("success", 4, 1)


def test_a_rescheduled_sensor_times_out_by_the_time_that_was_skipped() -> None:
    looks: list[int] = []
    with a_dag() as dag:
        PythonSensor(
            task_id="s",
            python_callable=lambda: looks.append(1),
            mode="reschedule",
            poke_interval=600,
            timeout=3000,
        )
    run = run_dag(dag)
    assert (run.state, len(looks)) == ("failed", 6)
    assert "longer than its timeout of 3000 seconds" in str(run.tasks["s"].reason)


def test_a_run_may_time_out() -> None:
    with a_dag(dagrun_timeout=timedelta(hours=1)) as dag:
        PythonSensor(task_id="s", python_callable=lambda: False, mode="reschedule", poke_interval=900)
    run = run_dag(dag)
    assert (run.state, states(run)) == ("failed", {"s": "skipped"})


def test_tasks_go_by_priority() -> None:
    order: list[str] = []
    with a_dag() as dag:

        class Note(BaseOperator):
            def execute(self, context: Any) -> None:
                order.append(self.task_id)

        for weight in (1, 3, 2):
            Note(task_id=f"w{weight}", priority_weight=weight)
    run_dag(dag)
    assert order == ["w3", "w2", "w1"]


def test_an_unknown_pool_or_a_small_one_holds_up_nothing() -> None:
    with a_dag() as dag:

        @task(pool="not_here", pool_slots=500)
        def work() -> None:
            pass

        work()
    assert run_dag(dag).state == "success"


def test_the_schedule_makes_no_run_of_its_own() -> None:
    """Whatever is due by its schedule, exactly one run is made."""
    ran = []
    with a_dag(schedule="* * * * *", catchup=True, is_paused_upon_creation=True) as dag:

        @task(retries=1, retry_delay=timedelta(days=3))
        def once(ti: Any = None) -> None:
            ran.append(ti.run_id)
            if len(ran) == 1:
                raise ValueError("wait three days")

        once()
    run = run_dag(dag, logical_date=DAY)
    assert ran == [run.run_id] * 2
    assert run.store.active_runs() == []


def test_a_dag_without_tasks_succeeds() -> None:
    with a_dag() as dag:
        pass
    run = run_dag(dag)
    assert (run.state, run.tasks) == ("success", {})


def test_a_dag_is_tested_again_as_fresh() -> None:
    with a_dag() as dag:

        @task
        def rendered(text: str) -> str:
            return text

        rendered("{{ ds }}")
    assert [run_dag(dag, logical_date=DAY + timedelta(n)).xcom("rendered") for n in range(2)] == ["2024-03-05", "2024-03-06"]


def test_a_run_that_cannot_go_on_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InlineExecutor, "submit", lambda self, workloads: None)
    with a_dag() as dag:

        @task
        def work() -> None:
            pass

        work()
    with pytest.raises(Conflict, match=r"cannot continue, and no timer can change this.*work \(queued\)"):
        run_dag(dag)


def test_a_fault_of_our_own_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler sets a run aside that it cannot decide, and tries again later: here that would be for ever."""

    def broken(self: RunMachine, event: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RunMachine, "_attempt_started", broken)
    with a_dag() as dag:

        @task
        def work() -> None:
            pass

        work()
    with pytest.raises(Conflict, match="internal error of Tradewind"):
        run_dag(dag)


def test_an_execution_timeout_is_told_not_enforced() -> None:
    with a_dag() as dag:

        @task(execution_timeout=timedelta(microseconds=1))
        def slow() -> int:
            return sum(range(10_000))

        slow()
    received: list[str] = []
    assert run_dag(dag, say=received.append).state == "success"
    assert any("longer than its execution_timeout" in line for line in received)


# --- arguments ------------------------------------------------------------------------------------------------------------


def date_and_conf() -> DAG:
    with a_dag(params={"limit": Param(3, type="integer")}) as dag:

        @task
        def seen(params: Any = None, dag_run: Any = None) -> list[Any]:
            context = get_current_context()
            return [context.get("ds"), params["limit"], dag_run.conf, str(dag_run.run_after)]

        seen()
    return dag


def test_dates_and_conf() -> None:
    dag = date_and_conf()
    after = "2024-03-05 00:00:00+00:00"
    assert run_dag(dag, logical_date=DAY).xcom("seen") == ["2024-03-05", 3, {}, after]
    assert run_dag(dag, logical_date=DAY.replace(tzinfo=None)).xcom("seen")[0] == "2024-03-05"
    assert run_dag(dag, execution_date=DAY, conf={"limit": 4}).xcom("seen") == ["2024-03-05", 4, {"limit": 4}, after]
    assert run_dag(dag, logical_date=None, run_after=DAY, run_conf={"limit": 5}).xcom("seen") == [None, 5, {"limit": 5}, after]
    now = run_dag(dag)
    assert now.row.logical_date is not None
    assert abs(now.row.logical_date / 1e6 - time.time()) < 60


def test_arguments_that_cannot_be() -> None:
    dag = date_and_conf()
    with pytest.raises(Conflict, match="limit"):
        run_dag(dag, run_conf={"limit": "many"})
    with pytest.raises(UnknownArgument, match=r"no argument 'logical_data'\. Did you mean 'logical_date'\?"):
        run_dag(dag, logical_data=DAY)
    with pytest.raises(UnknownArgument, match="conf is the old name of run_conf"):
        run_dag(dag, run_conf={"limit": 1}, conf={"limit": 2})
    with pytest.raises(NotYetSupported, match="use_executor"):
        run_dag(dag, use_executor=True)
    with pytest.raises(DefinitionError, match="must be a datetime"):
        run_dag(dag, logical_date="2024-03-05")
    assert run_dag(dag, use_executor=False, session=None).state == "success"


def test_tasks_that_match_are_taken_for_done() -> None:
    ran = []
    with a_dag() as dag:
        for name in ("wait_for_a", "wait_for_b", "work"):

            @task(task_id=name)
            def note(ti: Any = None) -> None:
                ran.append(ti.task_id)

            note()
    assert states(run_dag(dag, mark_success_pattern="wait_for_.*")) == dict.fromkeys(
        ("wait_for_a", "wait_for_b", "work"), "success"
    )
    assert ran == ["work"]


VARIABLES = {
    "v.json": '{"bucket": "b1", "table": {"name": "t"}}',
    "v.yaml": "bucket: b1\ntable:\n  name: t\n",
    "v.env": '# two of them\nbucket=b1\n\ntable = {"name": "t"}\n',
}
CONNECTIONS = {
    "c.json": '{"pg": "postgres://ada:p%40ss@db:5432/main", "web": {"conn_type": "http", "host": "h", "extra": {"a": 1}}}',
    "c.yml": "pg: [postgres://ada:p%40ss@db:5432/main]\nweb:\n  conn_type: http\n  host: h\n  extra: {a: 1}\n",
    "c.env": 'pg=postgres://ada:p%40ss@db:5432/main\nweb={"conn_type": "http", "host": "h", "extra": "{\\"a\\": 1}"}\n',
}


@pytest.mark.parametrize(("variables", "connections"), list(zip(VARIABLES, CONNECTIONS, strict=True)))
def test_variables_and_connections_from_files(tmp_path: Path, variables: str, connections: str) -> None:
    (tmp_path / variables).write_text(VARIABLES[variables])
    (tmp_path / connections).write_text(CONNECTIONS[connections])
    with a_dag() as dag:

        @task
        def read(conn: Any = None) -> list[Any]:
            Variable.set("made", "by the task")
            table = Variable.get("table", deserialize_json=True)
            return [Variable.get("bucket"), table, Variable.get("made"), conn.pg.password, conn.pg.port, conn.web.extra_dejson]

        read()
    run = run_dag(dag, variable_file_path=str(tmp_path / variables), conn_file_path=str(tmp_path / connections))
    assert run.xcom("read") == ["b1", {"name": "t"}, "by the task", "p@ss", 5432, {"a": 1}]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("v.json", "{", "cannot be read"),
        ("v.json", "[1]", "object of names and values, not list"),
        ("v.yaml", "a: [", "no valid YAML"),
        ("v.env", "just words", "line 1 is not of the form NAME=value"),
        ("v.ini", "", r"must end with \.json, \.yaml or \.env"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        run_dag(date_and_conf(), variable_file_path=str(tmp_path / name))
    with pytest.raises(ConfigError, match="cannot be read"):
        run_dag(date_and_conf(), conn_file_path=str(tmp_path / "missing.json"))


def test_a_connection_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"pg": {"hots": "db"}}')
    with pytest.raises(AirflowException, match=r"'pg': unknown key 'hots'\. Did you mean 'host'\?"):
        run_dag(date_and_conf(), conn_file_path=str(tmp_path / "c.json"))


def test_a_sensor_for_another_dag_says_that_nothing_will_come(capsys: pytest.CaptureFixture[str]) -> None:
    """Here there are no runs of other DAGs: it says so and goes on at its timeout, instead of waiting for a week."""
    with a_dag() as dag:
        ExternalTaskSensor(task_id="t", external_dag_id="up", timeout=3600, soft_fail=True)
    assert states(dag.test()) == {"t": "skipped"}
    out = capsys.readouterr().out
    assert "[t] waits for DAG 'up'; dag.test() creates no runs of it" in out
    assert "nothing to do for 60 min: the clock jumps" in out
    assert states(dag.test(mark_success_pattern="t")) == {"t": "success"}


def test_sensors_of_moments_do_not_wait_in_real_time() -> None:
    with a_dag() as dag:
        WaitSensor(task_id="a", time_to_wait=600) >> WaitSensor(task_id="b", time_to_wait=timedelta(hours=5), timeout=50_000)
    run = dag.test()
    assert run.state == "success"
