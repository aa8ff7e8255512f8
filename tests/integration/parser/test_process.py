"""The process of the parser: its connection to the scheduler across restarts, and no process that is left behind."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.integration.parser.running_parser import DEADLINE_SECONDS, Store, dag_text
from tradewind.parser.config import ParserConfig
from tradewind.platform import linux
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.wire.commands import RegisterFiles, receive, result_for
from tradewind.wire.connection import Connection
from tradewind.wire.messages import ClientHello, CommandRequest, CommandResult, Welcome, decode_to_scheduler, encode

MARK = "TRADEWIND_TEST_OF_PARSER"
RUN = (
    "import sys, msgspec; from tradewind.observe import log; from tradewind.parser.config import ParserConfig; "
    "from tradewind.parser.main import main; from tradewind.platform.clock import SystemClock; "
    "from tradewind.platform.loop import Loop; log.configure('parser'); "
    "main(msgspec.json.decode(sys.argv[1], type=ParserConfig), Loop(SystemClock()))"
)


class SchedulerStandIn:
    """A fake scheduler: listens, welcomes, answers from a `Store`, and can disconnect at the worst moment."""

    def __init__(self, path: str, store: Store) -> None:
        self.path = path
        self.store = store
        self.loop = Loop(SystemClock())
        self.connections: list[Connection] = []
        self.hellos = 0
        self.deaf = False
        """Execute commands, and close the connection instead of answering."""
        self.failing = 0
        """The number of registrations that are answered with a busy database."""
        self.listener: socket.socket | None = None
        self.listen()

    def listen(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.setblocking(False)
        self.loop.watch(self.listener, selectors.EVENT_READ, lambda events: self._accept())

    def vanish(self) -> None:
        if self.listener is not None:
            self.loop.unwatch(self.listener)
            self.listener.close()
            self.listener = None
            os.unlink(self.path)
        for connection in self.connections:
            connection.close()

    def _accept(self) -> None:
        assert self.listener is not None
        link, _ = self.listener.accept()
        self.connections.append(Connection(link, self.loop, self._heard, lambda connection: None))

    def _heard(self, connection: Connection, document: bytes) -> None:
        message = decode_to_scheduler(document)
        if isinstance(message, ClientHello):
            self.hellos += 1
            connection.send(encode(Welcome(1)))
            return
        assert isinstance(message, CommandRequest)
        command = receive(message).command
        if isinstance(command, RegisterFiles) and self.failing:
            self.failing -= 1
            connection.send(encode(CommandResult(message.op, error="StoreBusy", message="database is locked")))
            return
        value = self.store.command(command)
        if self.deaf and isinstance(command, RegisterFiles):
            connection.close()
        else:
            connection.send(encode(result_for(message.op, value)))

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, (self.store.owner, self.store.problems)
            self.loop.turn(20_000)


class Deployment:
    def __init__(self, root: Path) -> None:
        self.folder = root / "dags"
        self.folder.mkdir()
        self.config = ParserConfig(str(self.folder), scheduler_socket=str(root / "s"), timeout=20_000_000)
        self.mark = str(root)
        self.scheduler = SchedulerStandIn(self.config.scheduler_socket, Store())
        self.store = self.scheduler.store
        self.until = self.scheduler.until
        self.process: subprocess.Popen[bytes] | None = None

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def start(self) -> subprocess.Popen[bytes]:
        argument = msgspec.json.encode(self.config).decode()
        environment = {**os.environ, MARK: self.mark}
        self.process = subprocess.Popen([sys.executable, "-c", RUN, argument], env=environment)
        return self.process

    def left(self) -> list[int]:
        return [pid for pid in linux.marked(MARK, self.mark) if not linux.is_zombie(pid)]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.scheduler.vanish()
        for pid in self.left():
            linux.kill_quietly(pid)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    yield made
    made.close()


@pytest.mark.spec("S88")
def test_files_are_registered_and_term_ends_all_processes(deployment: Deployment) -> None:
    deployment.write("a.py", dag_text("a"))
    deployment.write("slow.py", "# dag tradewind\nimport time\ntime.sleep(1000)\n")
    process = deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a"})
    assert len(deployment.left()) >= 3  # parser, zygote, the sleeping child
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_SECONDS) == 0
    deployment.until(lambda: deployment.left() == [])


@pytest.mark.spec("S242")
def test_the_children_of_a_killed_parser_end_and_the_next_parser_continues(deployment: Deployment) -> None:
    deployment.write("a.py", dag_text("a"))
    deployment.write("slow.py", "# dag tradewind\nimport time\ntime.sleep(1000)\n")
    process = deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a"})
    process.kill()
    process.wait()
    deployment.until(lambda: deployment.left() == [])
    deployment.write("b.py", dag_text("b"))
    deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a", "b"})
    assert len(deployment.store.hashes["a"]) == 1


def test_a_restarted_scheduler_receives_missed_registrations(deployment: Deployment) -> None:
    deployment.write("a.py", dag_text("a"))
    deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a"})
    deployment.scheduler.vanish()
    deployment.write("b.py", dag_text("b"))
    deployment.scheduler.listen()
    deployment.until(lambda: deployment.store.dags() == {"a", "b"})
    assert deployment.scheduler.hellos == 2


def test_an_unanswered_registration_is_sent_again(deployment: Deployment) -> None:
    deployment.scheduler.deaf = True
    deployment.write("a.py", dag_text("a"))
    deployment.start()
    deployment.until(lambda: deployment.scheduler.hellos >= 2)
    deployment.scheduler.deaf = False
    deployment.write("b.py", dag_text("b"))
    deployment.until(lambda: deployment.store.dags() == {"a", "b"})
    assert len(deployment.store.hashes["a"]) == 1


def test_a_busy_database_only_delays_registrations(deployment: Deployment) -> None:
    deployment.scheduler.failing = 2
    deployment.write("a.py", dag_text("a"))
    deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a"})
    assert deployment.scheduler.failing == 0


def test_a_parser_that_starts_first_waits_for_the_scheduler(deployment: Deployment) -> None:
    deployment.scheduler.vanish()
    deployment.write("a.py", dag_text("a"))
    process = deployment.start()
    deployment.until(lambda: len(deployment.left()) >= 2)
    assert process.poll() is None
    deployment.scheduler.listen()
    deployment.until(lambda: deployment.store.dags() == {"a"})


STRAY = (
    "# dag tradewind\nimport os, time\n"
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1000)\n    os._exit(0)\n"
)


def test_a_daemon_that_a_dag_file_starts_is_killed(deployment: Deployment) -> None:
    deployment.write("a.py", STRAY + "os.wait()\n" + dag_text("a"))
    deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a"})
    deployment.until(lambda: len(deployment.left()) == 2)  # parser and zygote


def test_a_file_that_kills_the_zygote_does_not_affect_other_files(deployment: Deployment) -> None:
    deployment.write("killer.py", STRAY + "os.wait()\nos.kill(os.getppid(), 9)\n")
    for name in ("a", "b", "c"):
        deployment.write(f"{name}.py", dag_text(name))
    deployment.start()
    deployment.until(lambda: deployment.store.dags() == {"a", "b", "c"} and "killer.py" in deployment.store.problems)
    assert "importing it killed the process that reads DAG files (SIGKILL)" in deployment.store.problems["killer.py"]["message"]
    deployment.write("d.py", dag_text("d"))
    deployment.until(lambda: deployment.store.dags() == {"a", "b", "c", "d"})
    deployment.until(lambda: len(deployment.left()) == 2)


def test_an_idle_parser_uses_no_cpu_time(deployment: Deployment) -> None:
    for number in range(20):
        deployment.write(f"f{number}.py", dag_text(f"d{number}"))
    process = deployment.start()
    deployment.until(lambda: len(deployment.store.dags()) == 20)
    deployment.until(lambda: len(deployment.left()) == 2)

    def used() -> int:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def wakeups() -> int:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))

    calm = time.monotonic() + 1.0
    deployment.until(lambda: time.monotonic() > calm)
    before, woken = used(), wakeups()
    end = time.monotonic() + 2.0
    deployment.until(lambda: time.monotonic() > end)
    assert used() - before <= 1
    assert wakeups() - woken <= 4
