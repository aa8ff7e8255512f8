"""A real Tradewind in its own home folder, for tests, the kill test and benchmarks.

    standalone = Standalone(tmp_path / "home")
    standalone.write_dag("hello.py", SOURCE)
    with standalone.started():
        standalone.wait_dag("hello")
        standalone.cli("dags", "unpause", "hello")
        run_id = standalone.trigger("hello")
        assert standalone.wait_run("hello", run_id) == "success"

No function sleeps for a fixed time. Each event (a line of output, a notice of the scheduler) wakes the waiting functions, which
then check their condition again. Every wait has a deadline; its error shows the output so far.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.commands import PlainClient
from tests.socket_paths import scheduler_socket
from tradewind.model.errors import TradewindError
from tradewind.store.factory import open_reader
from tradewind.store.sql.store import SqlStore

T = TypeVar("T")

COMMAND = (sys.executable, "-m", "tradewind")
_GLANCE_SECONDS = 0.2
"""Some events cause no notification: while waiting, check at least this often."""
FINISHED = ("success", "failed")
DEFAULTS = {"TRADEWIND__RUNNER__DRAIN_TIMEOUT": "0"}
"""Settings of every instance under test: the end of a test does not wait for running tasks."""


class Timeout(AssertionError):
    """An awaited event did not happen before the deadline."""


class Standalone:
    """One home folder and the `standalone` that runs on it.

    Args:
        home: the home folder; created if it is missing.
        environment: environment variables for `standalone` and every command.
        arguments: arguments of `standalone`.
        command: the program that runs the command line.
    """

    def __init__(
        self,
        home: Path,
        *,
        environment: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = ("--port", "0", "--no-examples", "--plain"),
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self.home = home
        self.arguments = arguments
        self.command = command
        home.mkdir(parents=True, exist_ok=True)
        self.dags_folder = home / "dags"
        self.dags_folder.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRADEWIND_", "AIRFLOW"))}
        self.environment = {**kept, "TRADEWIND_HOME": str(home), **(environment or {})}
        self.process: subprocess.Popen[str] | None = None
        self.lines: list[str] = []
        self.address = ""
        self.password = ""
        self._bell = threading.Condition()
        self._follower: threading.Thread | None = None
        self._reader: threading.Thread | None = None

    # --- life -------------------------------------------------------------------------------------------------------------

    def start(self, deadline: float = 30.0) -> float:
        """Start and wait until the health page reports a healthy instance. Returns the seconds that this took.

        Raises:
            Timeout, AssertionError: the instance did not start; its output is in the message.
        """
        began = time.monotonic()
        self.launch()
        self.wait_line("Ready: ", deadline)
        while self.health() != {"metadatabase": "healthy", "scheduler": "healthy"}:
            if time.monotonic() - began > deadline:
                raise Timeout(f"not healthy after {deadline} s: {self.health()}\n" + self.output)
            self._wait_for_bell()
        took = time.monotonic() - began
        self._follower = threading.Thread(target=self._follow, args=(self.process,), daemon=True)
        self._follower.start()
        return took

    def launch(self) -> None:
        """Start without waiting."""
        assert self.process is None or self.process.poll() is not None, "it is running already"
        self.lines, self.address = [], ""
        self.process = subprocess.Popen(
            [*self.command, "standalone", *self.arguments],
            env={**DEFAULTS, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    @contextmanager
    def started(self) -> Iterator[Standalone]:
        """Start for the block, and stop (or kill) afterwards."""
        self.start()
        try:
            yield self
        finally:
            self.close()

    def stop(self, number: int = signal.SIGTERM, deadline: float = 60.0) -> int:
        """Send a signal and wait for the end. Returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            code = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise Timeout(f"it did not stop within {deadline} s after {signal.Signals(number).name}\n" + self.output) from None
        if self._reader is not None:
            self._reader.join(5)
        return code

    def close(self) -> None:
        """Make sure that no process of the instance is left."""
        if self.process is not None and self.process.poll() is None:
            try:
                self.stop()
            except Timeout:
                self.process.kill()
                self.process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # --- commands -----------------------------------------------------------------------------------------------------------

    def cli(self, *words: str, check: bool = True, input: str | None = None, timeout: float = 60.0) -> str:
        """Run a command. Returns its stdout.

        Raises:
            AssertionError: with `check`, the exit code is not 0.
        """
        done = self.run(*words, input=input, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"tradewind {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, *words: str, input: str | None = None, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command, with any exit code."""
        return subprocess.run(
            [*self.command, *words],
            env=self.environment,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def json(self, *words: str) -> Any:
        """The rows that a command prints with `-o json`."""
        return json.loads(self.cli(*words, "-o", "json"))

    def json_of_failure(self, *words: str) -> Any:
        """As `json`, for a command that ends with exit code 1."""
        return json.loads(self.cli(*words, "-o", "json", check=False))

    def control(self, timeout: float = 30.0) -> PlainClient:
        """A new connection to the scheduler."""
        return PlainClient(scheduler_socket(self.home), "test", timeout)

    def call(self, command: str, **args: Any) -> Any:
        """Send one command to the scheduler, without a process for it."""
        with self.control() as control:
            return control.call(command, **args)

    def trigger(self, dag_id: str, **args: Any) -> str:
        """Trigger a run. Returns its id."""
        run_id: str = self.call("trigger", dag_id=dag_id, **args)["run_id"]
        return run_id

    @contextmanager
    def store(self) -> Iterator[SqlStore]:
        """A read-only connection to the database."""
        reader = open_reader(self.environment.get("TRADEWIND__DATABASE__URL") or self.home / "tradewind.db")
        try:
            yield reader
        finally:
            reader.close()

    def succeeded_runs(self, dag_id: str, count: int) -> list[str]:
        """Wait until a DAG has this number of runs and all have succeeded. Returns their ids, the newest first."""

        def look() -> list[str] | None:
            found = self.json("dags", "list-runs", dag_id)
            done = [row["run_id"] for row in found if row["state"] == "success"]
            return done if len(done) == len(found) == count else None

        return self.wait(look, f"{count} runs of {dag_id} succeed")

    def return_value(self, dag_id: str, run_id: str, task_id: str) -> object:
        """The return value of a task that is not mapped."""
        with self.store() as store:
            row = store.need_run(dag_id, run_id)
            ((_, _, value, _),) = store.xcoms(row.id, [task_id], "return_value")
        return json.loads(value)

    def write_dag(self, name: str, source: str) -> Path:
        """Put a file into the DAG folder atomically."""
        path = self.dags_folder / name
        draft = self.home / f"{name}.draft"
        draft.write_text(source)
        draft.replace(path)
        return path

    def health(self) -> dict[str, str]:
        """State of these components: {"metadatabase": "healthy", "scheduler": "healthy"}."""
        with urllib.request.urlopen(f"{self.address}/api/v2/monitor/health", timeout=10) as answer:
            found = json.load(answer)
        return {name: found[name]["status"] for name in ("metadatabase", "scheduler")}

    # --- waiting ------------------------------------------------------------------------------------------------------------

    def get(self, path: str, accept: str = "application/json") -> str:
        """The answer of the API to a GET request of the administrator."""
        return self.request("GET", path, accept=accept)

    def request(self, method: str, path: str, payload: Any = None, accept: str = "application/json") -> str:
        """The answer of the API to a request with any method; `payload` is sent as JSON."""
        body = json.dumps({"username": "admin", "password": self.password}).encode()
        asked = urllib.request.Request(f"{self.address}/auth/token", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            token = json.load(answer)["access_token"]
        headers = {"Authorization": f"Bearer {token}", "Accept": accept, "Content-Type": "application/json"}
        data = None if payload is None else json.dumps(payload).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.address + path, data, headers, method=method), timeout=30
        ) as answer:
            text: str = answer.read().decode()
        return text

    def wait(self, look: Callable[[], T | None], what: str, deadline: float = 30.0) -> T:
        """Call `look` after each event until its result is true. Returns the result.

        Raises:
            Timeout: the result was not true before the deadline.
        """
        until = time.monotonic() + deadline
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > until:
                raise Timeout(f"{what}: not within {deadline} s\n{self.output}")
            self._wait_for_bell()

    def wait_line(self, text: str, deadline: float = 30.0) -> str:
        """Wait for a line of the output that contains `text`."""

        def look() -> str | None:
            found = next((line for line in list(self.lines) if text in line), None)
            if found is None and self.process is not None and self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode} before it said {text!r}:\n{self.output}")
            return found

        return self.wait(look, f"the line {text!r}", deadline)

    def wait_dag(self, dag_id: str, deadline: float = 30.0) -> None:
        """Wait until the DAG is registered."""
        with self.store() as store:
            self.wait(lambda: store.dag(dag_id), f"DAG {dag_id}", deadline)

    def wait_run(self, dag_id: str, run_id: str, states: tuple[str, ...] = FINISHED, deadline: float = 60.0) -> str:
        """Wait until the run has one of the states (default: ended). Returns the state."""
        with self.store() as store:

            def look() -> str | None:
                row = store.find_run(dag_id, run_id)
                return row.state.value if row is not None and row.state.value in states else None

            return self.wait(look, f"run {run_id} of {dag_id} in {' or '.join(states)}", deadline)

    def wait_task(
        self, dag_id: str, run_id: str, task_id: str, states: tuple[str, ...] = ("success",), deadline: float = 60.0
    ) -> str:
        """Wait until the task has one of the states. Returns the state."""
        with self.store() as store:

            def look() -> str | None:
                state = store.task_instance(dag_id, run_id, task_id).state
                return state if state in states else None

            return self.wait(look, f"{task_id} of {run_id} in {' or '.join(states)}", deadline)

    def wait_gone(self, deadline: float = 30.0) -> None:
        """Wait until no process of the instance is left."""
        self.wait(lambda: not self.processes(), "no process left", deadline)

    # --- looking ------------------------------------------------------------------------------------------------------------

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def processes(self) -> dict[int, str]:
        """Pid → command line of every running process of this home folder, tasks included."""
        mark = f"TRADEWIND_HOME={self.home}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if mark not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state != "Z" and words:
                found[int(entry.name)] = words
        return found

    def processor_seconds(self) -> float:
        """CPU time of all running processes together."""
        ticks = 0
        for pid in self.processes():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def child(self, kind: str) -> int | None:
        """Pid of scheduler, host, parser or api; None if it does not run."""
        for pid, words in self.processes().items():
            if words == f"tradewind: {kind}":
                return pid
        return None

    # --- bells ----------------------------------------------------------------------------------------------------------------

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            line = line.rstrip("\n")
            self.lines.append(line)
            if "Web page" in line:
                self.address = line.split()[-1]
            if "Login" in line and " / " in line:
                self.password = line.split(" / ")[1].split()[0]
            self._ring()
        self._ring()

    def _follow(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            try:
                with self.control() as control:
                    for _ in control.follow():
                        self._ring()
            except (TradewindError, OSError):
                pass
            with self._bell:  # the scheduler does not answer: try again soon
                self._bell.wait(_GLANCE_SECONDS)

    def _ring(self) -> None:
        with self._bell:
            self._bell.notify_all()

    def _wait_for_bell(self) -> None:
        with self._bell:
            self._bell.wait(_GLANCE_SECONDS)
