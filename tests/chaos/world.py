"""A real `tradewind standalone` in its own folder, and its processes as listed by the kernel."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.commands import PlainClient
from tests.socket_paths import scheduler_socket
from tradewind.model.errors import Conflict, TradewindError

NAMES = {
    "scheduler": "tw-scheduler",
    "host": "tw-host",
    "image": "tw-image",
    "template": "tw-template",
    "runner": "tw-task",
    "api": "tw-api",
    "parser": "tw-parser",
    "supervisor": "tw-supervisor",
}


def now() -> int:
    """The current time in nanoseconds, on the clock that the marks use."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def until(what: str, seconds: float, look: Callable[[], Any]) -> Any:
    """Call `look` until its result is true, and return it. Raises AssertionError with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Whether a process has ended. Its parent is that of all orphans, which may not have waited for it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Process(NamedTuple):
    """A running process of the home folder under test."""

    pid: int
    began: int
    name: str
    command: str

    def alive(self) -> bool:
        return began(self.pid) == self.began

    def kill(self, number: int = signal.SIGKILL) -> bool:
        """Send a signal. False: the process has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def began(pid: int) -> int | None:
    """Start time in clock ticks; None if the process has ended or is a zombie."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


class World:
    """Starts, watches and stops one standalone.

    Args:
        home: an empty folder.
        settings: further environment variables.
    """

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        (home / "dags").mkdir(exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRADEWIND", "AIRFLOW"))}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        self.environment = {**kept, "TRADEWIND_HOME": str(home), **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""
        self.password = ""
        self._token = ""
        self.control = PlainClient(scheduler_socket(home), "chaos", timeout=5.0)

    # --- start and stop ---------------------------------------------------------------------------------------------------------

    def start(self, extra: dict[str, str] | None = None) -> None:
        """Start standalone and return at once. Its output goes to a file."""
        self.address = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tradewind", "standalone", "--no-examples", "--plain", "--port", "0"],
            env={**self.environment, **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with (self.home / "standalone.out").open("ab") as copy:
            for line in process.stdout:
                copy.write(line)
                copy.flush()
                text = line.decode(errors="replace")
                if found := re.search(r"Ready: (http://\S+)", text):
                    self.address = found[1]
                elif found := re.search(r"admin / (\S+)", text):
                    self.password = found[1]

    def restart_if_dead(self, extra: dict[str, str] | None = None) -> bool:
        if self.process is not None and self.process.poll() is None:
            return False
        self.start(extra)
        return True

    def ping(self) -> dict[str, Any] | None:
        """The answer of the scheduler to a ping; None if there is no answer."""
        try:
            answer: dict[str, Any] = self.control.call("ping", timeout=2.0)
        except (TradewindError, OSError):
            return None
        return answer

    def await_ready(self, seconds: float = 30.0) -> None:
        until("scheduler, worker host and API are up", seconds, lambda: self.address and (self.ping() or {}).get("workers"))

    def stop(self, seconds: float = 60.0) -> None:
        """Send TERM and wait for the end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_everything()
            raise AssertionError(f"standalone did not stop within {seconds:g} s of SIGTERM") from None

    def kill_everything(self) -> int:
        """Kill all processes at once, for failed tests too.

        They are stopped (SIGSTOP) first, so that none notices the death of another.
        """
        found = self.census()
        for process in found:
            process.kill(signal.SIGSTOP)
        killed = sum(process.kill() for process in found)
        for process in self.census():
            killed += process.kill()
        if self.process is not None:
            self.process.wait(10)
        return killed

    # --- processes ---------------------------------------------------------------------------------------------------

    def census(self) -> list[Process]:
        """All running processes with this home folder in their environment."""
        return processes_of(self.home)

    def find(self, kind: str) -> list[Process]:
        """The running processes of one kind."""
        return [process for process in self.census() if process.name == NAMES[kind]]

    # --- requests -------------------------------------------------------------------------------------------------------

    def trigger(self, dag: str, run: str, seconds: float = 60.0) -> None:
        """Trigger a run. Repeats the request until the run exists, because processes may die during a request."""

        def attempt() -> bool:
            try:
                self.control.call("trigger", dag_id=dag, run_id=run)
            except Conflict as error:
                return "already" in str(error) or "exist" in str(error)
            except (TradewindError, OSError):
                return False
            return True

        until(f"run {run} of {dag} is triggered", seconds, attempt)

    def get(self, path: str) -> Any:
        """A GET request to the API as administrator."""
        if not self._token:
            self._token = self._request("POST", "/auth/token", {"username": "admin", "password": self.password})["access_token"]
        return self._request("GET", path)

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        host = self.address.removeprefix("http://")
        if not host:
            raise OSError("the API has not said that it is ready")
        connection = http.client.HTTPConnection(host, timeout=10)
        try:
            headers = {"Content-Type": "application/json"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise OSError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return json.loads(data)

    def run_state(self, dag: str, run: str) -> str:
        return str(self.get(f"/api/v2/dags/{dag}/dagRuns/{run}")["state"])

    def has_succeeded(self, dag: str, run: str) -> bool:
        return self.run_state(dag, run) == "success"

    def has_ended(self, dag: str, run: str) -> bool:
        return self.run_state(dag, run) in ("success", "failed")

    def task_states(self, dag: str, run: str) -> dict[str, str]:
        answer = self.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances?limit=100")
        return {row["task_id"]: row["state"] for row in answer["task_instances"]}


def processes_of(home: Path) -> list[Process]:
    """All running processes with this home folder in their environment."""
    return list(_marked(f"TRADEWIND_HOME={home}".encode()))


def _marked(needle: bytes) -> Iterator[Process]:
    me = os.getpid()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == me:
            continue
        pid = int(entry)
        try:
            if needle not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                continue
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        start = began(pid)
        if start is not None:
            yield Process(pid, start, name, command)
