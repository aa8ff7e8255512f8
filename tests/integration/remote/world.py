"""A scheduler with a gateway, and workers in home folders of their own, as on other machines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.acceptance.harness import COMMAND, Standalone
from tradewind.model.errors import Unreachable
from tradewind.platform.linux import descendants

RULE = "TRADEWIND__"


class RemoteWorker:
    """One `tradewind worker`.

    Args:
        home: home folder of the worker; it shares no file with the scheduler.
        prefix: a command that runs the worker, such as `ip netns exec NAME`.
    """

    def __init__(
        self,
        home: Path,
        address: str,
        token: str,
        environment: Mapping[str, str] = {},
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.home = home
        (home / "dags").mkdir(parents=True, exist_ok=True)
        self._address = address
        self._prefix = prefix
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRADEWIND_", "AIRFLOW"))}
        self.environment = {**kept, "TRADEWIND_HOME": str(home), "TRADEWIND__WORKER__TOKEN": token, **environment}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        with (self.home / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [*self._prefix, *COMMAND, "worker", "--gateway", self._address, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return (self.home / "output").read_text(errors="replace")

    def stop(self, number: int = signal.SIGTERM, deadline: float = 30.0) -> int:
        """Send a signal, and wait for the end."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(deadline)

    def kill(self) -> None:
        """Kill all its processes at once, with its tasks, as when its machine loses power."""
        assert self.process is not None
        for pid in (self.process.pid, *descendants(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Make sure that no process of the worker is left."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class World:
    """A scheduler with a gateway, and its workers; see the module's docstring."""

    def __init__(self, folder: Path, environment: Mapping[str, str] = {}) -> None:
        self.folder = folder
        self.standalone = Standalone(
            folder / "scheduler",
            environment={f"{RULE}GATEWAY__ENABLED": "true", f"{RULE}GATEWAY__PORT": str(free_port()), **environment},
        )
        self.workers: list[RemoteWorker] = []

    @property
    def address(self) -> str:
        """The address of the gateway."""
        return f"ws://127.0.0.1:{self.standalone.environment[f'{RULE}GATEWAY__PORT']}"

    @contextmanager
    def started(self) -> Iterator[World]:
        """Start the scheduler's side for the block; end everything afterwards."""
        self.standalone.start()
        try:
            self.standalone.wait_line("Gateway for workers on other machines", 30)
            yield self
        finally:
            for worker in self.workers:
                worker.close()
            self.standalone.close()

    def token(self, name: str, *arguments: str) -> str:
        return self.standalone.cli("workers", "token", name, *arguments).strip()

    def worker(self, name: str, *arguments: str, environment: Mapping[str, str] = {}) -> RemoteWorker:
        """Start a worker, and wait until the scheduler knows it."""
        worker = RemoteWorker(self.folder / name, self.address, self.token(name), environment)
        self.workers.append(worker)
        worker.start(*arguments)
        self.wait_connected(name)
        return worker

    def wait_connected(self, name: str) -> None:
        self.standalone.wait(lambda: f"{name}@remote" in self.connected() or None, f"the worker {name} to connect", 30)

    def connected(self) -> set[str]:
        """Names of the connected workers; none while no scheduler answers."""
        try:
            return {one["worker"] for one in self.standalone.call("ping")["workers"]}
        except Unreachable:
            return set()

    def write_dag(self, name: str, source: str) -> None:
        """Put a DAG file into the folder of the scheduler. The workers get it through the gateway."""
        self.standalone.write_dag(name, source)

    def wait_log(self, text: str, *task: str) -> None:
        """Wait until the log of a task has this text: a remote worker sends logs twice a second, also after the result."""
        self.standalone.wait(
            lambda: text in self.standalone.cli("tasks", "logs", *task, check=False) or None, f"{text!r} in the log"
        )

    def wait_mark(self, file: Path, what: str, name: str, deadline: float = 30.0) -> None:
        """Wait until a task has written this mark."""

        def look() -> bool | None:
            return any(mark[:2] == (what, name) for mark in read_marks(file)) or None

        self.standalone.wait(look, f"the mark {what} {name}", deadline)

    def process_of_gateway(self) -> int:
        """Process id of the gateway that runs now."""
        pid = self.standalone.child("gateway")
        assert pid is not None, "no gateway is running"
        return pid


def free_port() -> int:
    """A port on which no process listens now."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def read_marks(file: Path) -> list[tuple[str, str, float]]:
    """The lines that the tasks have written: (begin or end, name, monotonic seconds)."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text().splitlines():
        match = re.fullmatch(r"(begin|end) (\S+) ([\d.]+)", line)
        if match:
            found.append((match[1], match[2], float(match[3])))
    return found
