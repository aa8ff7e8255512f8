"""The kit's assertions, secrets, frozen clock and DAG folder."""

from __future__ import annotations

import datetime as dates
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tradewind import DAG, Connection, Variable, task
from tradewind.model.errors import NotFound
from tradewind.operators.bash import BashOperator
from tradewind.sdk.exceptions import VariableNotFound
from tradewind.sensors.python import PythonSensor
from tradewind.testing import (
    DagFolder,
    FrozenClock,
    TestedRun,
    assert_rendered,
    assert_run,
    assert_states,
    assert_xcom,
    fake_variables,
    frozen,
    log_of,
    rendered,
    run_dag,
    run_task,
    state_of,
    xcom_of,
)
from tradewind.wire import runtime


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the defaults."""
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))


@pytest.fixture
def failed() -> TestedRun:
    """A run with a task that succeeded, one that failed, and one behind it."""
    with DAG("d", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        good = BashOperator(task_id="good", bash_command="echo {{ ds }}")

        @task
        def bad() -> None:
            print("about to fail")
            raise ValueError("no such luck")

        good >> bad() >> BashOperator(task_id="low", bash_command="true")
    return run_dag(dag, logical_date=datetime(2026, 3, 14, tzinfo=UTC))


def test_what_happened_can_be_asked(failed: TestedRun) -> None:
    assert (state_of(failed), state_of(failed, "bad")) == ("failed", "failed")
    assert xcom_of(failed, "good") == "2026-03-14"
    assert rendered(failed, "good", "bash_command") == "echo 2026-03-14"
    assert log_of(failed, "bad").startswith("about to fail\n")
    assert "ValueError: no such luck" in log_of(failed, "bad")
    assert "2026-03-14" in log_of(failed, "good")
    with pytest.raises(NotFound, match="Did you mean 'good'"):
        state_of(failed, "god")
    with pytest.raises(NotFound, match="never ran: it is upstream_failed"):
        rendered(failed, "low")
    with pytest.raises(NotFound, match="no template field 'command'"):
        rendered(failed, "good", "command")


def test_a_failed_assertion_shows_the_table_and_the_log(failed: TestedRun) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_run(failed)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the run is failed, not success"
    assert [line.split()[:2] for line in lines[2:5]] == [["good", "success"], ["bad", "failed"], ["low", "upstream_failed"]]
    assert "log of bad:" in lines
    assert "about to fail" in lines


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda run: assert_states(run, good="failed", bad="failed"), "good is success, not failed"),
        (lambda run: assert_states(run, {"low": "skipped"}), "low is upstream_failed, not skipped"),
        (lambda run: assert_xcom(run, "good", 1), "the XCom 'return_value' of good is '2026-03-14', not 1"),
        (lambda run: assert_rendered(run, "good", bash_command="x"), "good.bash_command is 'echo 2026-03-14', not 'x'"),
    ],
)
def test_assertions_say_both_values(failed: TestedRun, check: Any, sentence: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check(failed)
    assert str(caught.value).splitlines()[0] == sentence
    assert "d manual__2026-03-14T00:00:00+00:00: failed" in str(caught.value)


def test_assertions_that_hold_say_nothing(failed: TestedRun) -> None:
    assert_run(failed, "failed")
    assert_states(failed, {"good": "success"}, low="upstream_failed")
    assert_xcom(failed, "good", "2026-03-14")


# --- one task -----------------------------------------------------------------------------------------------------------


def test_a_task_alone_has_its_own_retries_and_given_values() -> None:
    with DAG("d", schedule=None) as dag:

        @task
        def above() -> int:
            raise AssertionError("it is not carried out")

        @task.branch(retries=1, retry_delay=timedelta(hours=1))
        def choose(number: int, ti: Any = None) -> str:
            if ti.try_number == 1:
                raise ValueError
            return "left" if number > 3 else "right"

        @task
        def left() -> None: ...

        @task
        def right() -> None: ...

        choose(above()) >> [left(), right()]
    run = run_task(dag.get_task("choose"), xcoms={"above": 4}, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert (state_of(run), list(run.tasks), xcom_of(run, "choose")) == ("success", ["choose"], "left")
    assert run.attempts[1].started - run.attempts[0].ended == timedelta(hours=1)


def test_a_task_alone_that_fails_is_a_failed_run() -> None:
    @task
    def bad() -> None:
        raise KeyError("x")

    run = run_task(bad())
    assert (state_of(run), run.tasks["bad"].reason) == ("failed", "KeyError: 'x'")


# --- variables and connections --------------------------------------------------------------------------------------------


def test_secrets_hold_for_tasks_and_for_the_test_itself(fake_variables: Any, fake_connections: Any) -> None:
    fake_variables["table"] = {"rows": 3}
    fake_connections["db"] = {"conn_type": "postgres", "host": "h", "password": "pw"}

    @task
    def read() -> list[Any]:
        return [Variable.get("table", deserialize_json=True), Connection.get("db").password]

    assert xcom_of(run_task(read()), "read") == [{"rows": 3}, "pw"]
    assert Connection.get("db").host == "h"
    Variable.set("seen", "yes")
    assert fake_variables["seen"] == "yes"
    Variable.delete("seen")
    with pytest.raises(VariableNotFound, match="Did you mean 'table'"):
        Variable.get("tabel")


def test_secrets_end_with_their_block() -> None:
    with fake_variables(a="outer"):
        with fake_variables({"a": "inner", "b": "2"}):
            assert (Variable.get("a"), Variable.get("b")) == ("inner", "2")
        assert (Variable.get("a"), Variable.get("b", default=None)) == ("outer", None)
    with pytest.raises(runtime.NoRuntime):
        Variable.get("a")


# --- the clock ------------------------------------------------------------------------------------------------------------


def test_time_stands_still_and_waiting_moves_it(frozen_clock: FrozenClock) -> None:
    frozen_clock.move_to(datetime(2026, 2, 1, 12, tzinfo=UTC))
    began = time.monotonic()
    time.sleep(0)
    assert datetime.now(UTC) == datetime(2026, 2, 1, 12, tzinfo=UTC)
    frozen_clock.tick(timedelta(hours=2))
    assert (datetime.now(UTC).hour, time.time(), time.monotonic() - began) == (14, frozen_clock.now.timestamp(), 7200)
    assert isinstance(dates.datetime(2026, 1, 1, tzinfo=UTC), datetime)
    assert type(datetime(2026, 1, 1, tzinfo=UTC)) is dates.datetime


def test_time_goes_on_after_the_block() -> None:
    with frozen(datetime(2000, 1, 1, tzinfo=UTC)), frozen(datetime(1999, 1, 1, tzinfo=UTC)):
        assert datetime.now(UTC).year == 1999
    assert datetime.now(UTC).year > 2000
    assert datetime is dates.datetime


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_a_sensor_waits_virtually_in_a_whole_run(frozen_clock: FrozenClock, mode: str) -> None:
    frozen_clock.move_to(datetime(2026, 1, 1, tzinfo=UTC))
    with DAG("d", schedule=None) as dag:
        PythonSensor(
            task_id="late",
            python_callable=lambda: datetime.now(UTC) >= datetime(2026, 1, 2, tzinfo=UTC),
            mode=mode,
            timeout=1e6,
        )
    assert_run(run_dag(dag))
    assert frozen_clock.now == datetime(2026, 1, 2, tzinfo=UTC)


# --- the folder -----------------------------------------------------------------------------------------------------------

GOOD = """from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
with DAG('{0}', schedule=None):
    a = EmptyOperator(task_id='a')
"""


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.py": "import nothing_of_this_name"}, "a.py: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ({"a.py": GOOD.format("x"), "b.py": GOOD.format("x")}, "b.py: DAG 'x' is also in a.py"),
        ({"a.py": GOOD.format("x") + "    a >> EmptyOperator(task_id='b') >> a\n"}, "a.py: .*a.*b"),
        ({"a.py": GOOD.format("x") + "import warnings\nwarnings.warn('old')\n"}, r"a.py: UserWarning: old \(line 6\)"),
        ({"a.py": "x = 1\n"}, "no file holds a DAG"),
    ],
)
def test_a_folder_out_of_order(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(AssertionError, match=sentence):
        DagFolder.read(tmp_path).check()


def test_a_folder_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(GOOD.format("x"))
    (tmp_path / "b.py").write_text(GOOD.format("y"))
    found = DagFolder.read(tmp_path)
    found.check()
    assert (found.files, [one.dag_id for one in found.tasks()]) == ({"a.py": ["x"], "b.py": ["y"]}, ["x", "y"])
    with pytest.raises(NotFound, match="holds a DAG 'xx'"):
        found.dag("xx")
    with pytest.raises(NotFound, match="there is no folder"):
        DagFolder.read(tmp_path / "none")
