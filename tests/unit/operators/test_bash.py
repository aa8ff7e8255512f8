"""BashOperator: commands, output, exit codes, environment, and stopping."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import carry_out, pushed
from tradewind import DAG, task
from tradewind.model.errors import DefinitionError
from tradewind.model.states import Outcome
from tradewind.operators import subprocesses
from tradewind.operators.bash import BashOperator
from tradewind.operators.subprocesses import Command
from tradewind.sdk.exceptions import AirflowException, AirflowTaskTerminated


def _bash(command: Any, **kwargs: Any) -> BashOperator:
    with DAG("d", schedule=None, template_searchpath=kwargs.pop("searchpath", None)):
        return BashOperator(task_id="t", bash_command=command, **kwargs)


@pytest.mark.spec("S396")
@pytest.mark.parametrize(
    ("command", "last_line"),
    [
        ("echo one; echo two", "two"),
        ("printf 'one\ntwo'", "two"),
        ("echo two; echo", ""),
        ("true", ""),
        ("printf 'two  \r\n'", "two"),
        ("echo out; echo err >&2", "err"),
        ("echo {{ ds }}", "2024-03-05"),
        ("printf 'gr\\xc3\\xbc\\xff'", "grü\\xff"),
        ("head -c 300000 /dev/zero | tr '\\0' x", "x" * 300000),
        ("seq 1 100000", "100000"),
    ],
)
def test_the_last_line_is_the_result(command: str, last_line: str) -> None:
    result = carry_out(_bash(command))
    assert (result.outcome, pushed(result)["return_value"]) == (Outcome.SUCCESS, last_line)


def test_output_goes_to_stdout_line_by_line(capfd: pytest.CaptureFixture[str]) -> None:
    carry_out(_bash("echo one; echo two >&2; printf three", do_xcom_push=False))
    assert capfd.readouterr().out == "one\ntwo\nthree\n"


def test_output_is_written_while_the_command_runs(tmp_path: Path) -> None:
    """The command waits for an event that only its own first line of output can cause."""
    go = tmp_path / "go"
    os.mkfifo(go)
    reader, writer = os.pipe()
    script = f"""
from tests.unit.execution.world import carry_out
from tests.unit.operators.test_bash import _bash
carry_out(_bash("echo first; read line < {go}; echo $line"))
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=writer)
    os.close(writer)
    with os.fdopen(reader) as output:
        assert output.readline() == "first\n"
        go.write_text("second\n")
        assert output.readline() == "second\n"
    assert child.wait() == 0


@pytest.mark.spec("S396")
@pytest.mark.parametrize(
    ("code", "skips", "outcome"),
    [
        (0, 99, Outcome.SUCCESS),
        (1, 99, Outcome.FAILED),
        (99, 99, Outcome.SKIPPED),
        (99, None, Outcome.FAILED),
        (7, [7, 8], Outcome.SKIPPED),
        (99, [7, 8], Outcome.FAILED),
    ],
)
def test_exit_codes_set_the_state(code: int, skips: Any, outcome: Outcome) -> None:
    result = carry_out(_bash(f"exit {code}", skip_on_exit_code=skips))
    assert result.outcome is outcome
    if outcome is Outcome.FAILED:
        assert result.reason == f"AirflowException: the command ended with exit code {code}"


def test_a_signal_that_ends_the_command_is_named() -> None:
    assert carry_out(_bash("kill -9 $$")).reason == "AirflowException: the command was killed by signal 9 (SIGKILL)"


def test_env_and_append_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE", "o")
    show = "echo ${OUTSIDE:-none} ${MINE:-none} $AIRFLOW_CTX_TASK_ID"

    def said(**kwargs: Any) -> Any:
        return pushed(carry_out(_bash(show, **kwargs)))["return_value"]

    assert said() == "o none t"
    assert said(env={"MINE": "{{ ds }}"}) == "none 2024-03-05 t"
    assert said(env={"MINE": "m"}, append_env=True) == "o m t"
    assert "the value 5 for MINE" in (carry_out(_bash(show, env={"MINE": 5})).reason or "")


def test_the_command_runs_in_cwd(tmp_path: Path) -> None:
    assert pushed(carry_out(_bash("pwd -P", cwd=str(tmp_path))))["return_value"] == str(tmp_path.resolve())
    temporary = pushed(carry_out(_bash("touch x; pwd -P")))["return_value"]
    assert "tradewind-bash-" in temporary
    assert not Path(temporary).exists()
    assert "does not exist" in (carry_out(_bash("pwd", cwd=str(tmp_path / "no"))).reason or "")
    (tmp_path / "file").touch()
    assert "is not a folder" in (carry_out(_bash("pwd", cwd=str(tmp_path / "file"))).reason or "")


def test_script_files_are_templates(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("echo {{ ds }}")
    assert pushed(carry_out(_bash("job.sh", searchpath=str(tmp_path))))["return_value"] == "2024-03-05"


def test_output_processor_and_output_encoding() -> None:
    result = carry_out(_bash("""echo '{"a": 1}'""", output_processor=json.loads))
    assert pushed(result)["return_value"] == {"a": 1}
    assert pushed(carry_out(_bash("printf '\\xfc'", output_encoding="latin-1")))["return_value"] == "ü"
    with pytest.raises(DefinitionError, match="output_encoding is 'utf-9'"):
        _bash("true", output_encoding="utf-9")


@pytest.mark.parametrize("command", ["", "  ", None, 5])
def test_an_empty_command_is_an_error(command: Any) -> None:
    assert "it must be a non-empty string" in (carry_out(_bash(command)).reason or "")


def test_the_decorator_renders_what_the_function_returns() -> None:
    with DAG("d", schedule=None) as dag:

        @task.bash(env={"A": "a"})
        def t(word: str, ds: str = "") -> str:
            return f"echo {word} {ds} {{{{ run_id }}}} $A"

        t("hello")

        @task.bash
        def bad() -> Any:
            return 5

        bad()
    before: Any = dag.task_dict["t"]
    assert repr(before.bash_command) == "DYNAMIC (set during execution)"
    assert pushed(carry_out(dag.task_dict["t"]))["return_value"] == "hello 2024-03-05 r1 a"
    assert "the @task.bash function bad returned 5" in (carry_out(dag.task_dict["bad"]).reason or "")


# --- stopping ----------------------------------------------------------------------------------------------------------


def _is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _stop_from_a_thread(command: str, tmp_path: Path) -> tuple[Any, int]:
    """Run a command that writes its pid into a FIFO, and stop it as soon as it has written the pid."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    operator = _bash(f"{command}".replace("READY", f"echo $$ > {ready}"))
    found: list[Any] = []
    # rendered and run as it is: on_kill goes to this very object
    worker = threading.Thread(daemon=True, target=lambda: found.append(_run_itself(operator)))
    worker.start()
    pid = int(ready.read_text())
    operator.on_kill()
    worker.join(30)
    return found[0], pid


def _run_itself(operator: BashOperator) -> Any:
    from tests.unit.execution.world import workload
    from tradewind.execution.run_task import execute_task

    return execute_task(operator, workload("t"))


@pytest.mark.spec("S37")
def test_stopping_gives_the_command_time_to_clean_up(tmp_path: Path) -> None:
    """The whole process group receives TERM, and the operator waits for children that clean up after bash has ended."""
    mark = tmp_path / "cleaned"
    command = f"""bash -c "trap 'touch {mark}; exit 0' TERM; READY; sleep 1000 & wait" & wait"""
    result, _ = _stop_from_a_thread(command, tmp_path)
    assert result.outcome is Outcome.FAILED
    assert mark.exists()


def test_stopping_kills_a_command_that_ignores_term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "TERM_GRACE", 0.1)
    result, pid = _stop_from_a_thread("trap '' TERM; READY; while :; do sleep 1000; done", tmp_path)
    assert result.outcome is Outcome.FAILED
    assert _is_gone(pid)


def test_a_signal_while_the_operator_waits_ends_the_command(tmp_path: Path) -> None:
    """As in the task runner: its SIGTERM handler calls on_kill while the main thread reads or waits."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = textwrap.dedent(f"""
        import signal
        from tests.unit.execution.world import workload
        from tests.unit.operators.test_bash import _bash
        from tradewind.sdk.exceptions import AirflowTaskTerminated
        from tradewind.execution.run_task import execute_task
        from tradewind.operators import subprocesses
        subprocesses.TERM_GRACE = 0.2
        # the output is closed at once, so that the operator sits in Popen.wait
        operator = _bash("trap '' TERM; exec >&- 2>&-; echo $$ > {ready}; while :; do sleep 1000; done")
        def stop(number, frame):
            operator.on_kill()
            raise AirflowTaskTerminated("asked to end")
        signal.signal(signal.SIGTERM, stop)
        print(execute_task(operator, workload("t")).outcome.value)
    """)
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    pid = int(ready.read_text())
    child.send_signal(signal.SIGTERM)
    result, _ = child.communicate(timeout=30)
    assert result == "failed_final\n"
    assert _is_gone(pid)


def test_output_during_cleanup_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    """The output is larger than a pipe's buffer: if nobody read it, the command would block until it is killed."""
    operator = _bash("trap 'seq 40000; echo cleaned up; exit 1' TERM; echo ready; while :; do sleep 0.01; done")
    written = sys.stdout.write

    def stop(number: int, frame: object) -> None:
        operator.on_kill()
        raise AirflowTaskTerminated("asked to end")

    def stop_when_ready(text: str) -> int:
        if "ready" in text:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        return written(text)

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys.stdout, "write", stop_when_ready)
            assert carry_out(operator).outcome is Outcome.FAILED_FINAL
    finally:
        signal.signal(signal.SIGALRM, before)
    lines = capfd.readouterr().out.splitlines()
    assert [lines[0], *lines[-2:]] == ["ready", "40000", "cleaned up"]


class _StoppedWhileStarting(subprocess.Popen[bytes]):
    """A program that is stopped after it was started, but before its starter has the process object."""

    stopping: Callable[[], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stopping()


def test_a_stop_during_the_start_of_the_program_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Command(logging.getLogger("test"))
    monkeypatch.setattr(_StoppedWhileStarting, "stopping", staticmethod(started.stop), raising=False)
    monkeypatch.setattr(subprocess, "Popen", _StoppedWhileStarting)
    with pytest.raises(AirflowException, match="stopped"):
        started.run(["sleep", "1000"])


def test_a_signal_during_the_start_leaves_no_process_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program already runs, but its process object does not exist yet: the signal handler must not raise then."""
    operator = _bash("exec sleep 1000")
    pids: list[int] = []

    class SignalledWhileStarting(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            pids.append(self.pid)
            signal.raise_signal(signal.SIGTERM)

    def stop(number: int, frame: object) -> None:
        operator.on_kill()
        raise AirflowTaskTerminated("asked to end")

    monkeypatch.setattr(subprocess, "Popen", SignalledWhileStarting)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        assert carry_out(operator).outcome is Outcome.FAILED_FINAL
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)
    assert _is_gone(pids[0])


def test_no_command_starts_after_a_stop() -> None:
    stopped = Command(logging.getLogger("test"))
    stopped.stop()
    with pytest.raises(AirflowException, match="before it started"):
        stopped.run(["sleep", "1000"])
