"""The triggerer of a real worker host, with the test as the scheduler: how it ends, and which trigger counts as the cause."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.model.moments import SECOND
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.platform import HAVE_LINUX
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    HostHello,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    Welcome,
    decode_to_scheduler,
    encode,
)
from tradewind.worker.config import HostConfig, TaskLimits

pytestmark = pytest.mark.skipif(not HAVE_LINUX, reason="processes are looked up in /proc")

SOURCE = """
import asyncio
import os
import re
import threading

from tradewind.triggers.base import BaseTrigger, TriggerEvent


class Does(BaseTrigger):
    def __init__(self, what="", path=""):
        super().__init__()
        self.what = what
        self.path = path

    def serialize(self):
        return "does.Does", {"what": self.what, "path": self.path}

    async def run(self):
        print("begun in", os.getpid())
        await asyncio.sleep(0)
        if self.what == "wait":
            while not os.path.exists(self.path):
                await asyncio.sleep(0.02)
        elif self.what == "end process":
            os._exit(9)
        elif self.what == "end process in a thread":
            threading.Timer(0.05, os._exit, (9,)).start()
            await asyncio.sleep(600)
        elif self.what == "keep the interpreter":
            re.match("(a+)+$", "a" * 64 + "b")
        yield TriggerEvent(self.what)
"""

HOST = """
import sys

import msgspec

from tradewind.worker import trigger_manager
from tradewind.worker import trigger_suspects
from tradewind.worker.config import HostConfig
from tradewind.worker.host import WorkerHost
from tradewind.worker.orders import TriggererLimits
from tradewind.platform.clock import SystemClock

trigger_manager.IDLE = 200_000
trigger_suspects.PROBATION = 500_000
trigger_manager.STUCK_MORE = 0.3
trigger_manager.RESTART_AFTER_MS = (1, 20)
host = WorkerHost(msgspec.json.decode(sys.argv[1], type=HostConfig), SystemClock())
host.triggers._limits = TriggererLimits(blocked_shown=0.2, blocked_max=1.0, end_within=0.3)
host.run()
"""


class Scheduler:
    """The test as a scheduler, as seen by the host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("spool", "logs", "plugins", "dags"):
            (folder / name).mkdir()
        (folder / "dags" / "does.py").write_text(SOURCE)
        address = str(folder / "s.sock")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        listener.settimeout(30)
        config = HostConfig(
            home_mark=str(folder),
            scheduler_socket=address,
            dags_folder=str(folder / "dags"),
            spool_folder=str(folder / "spool"),
            log_folder=str(folder / "logs"),
            slots=0,
            task_start="template",
            malloc="default",
            template_max=4,
            template_idle=60 * SECOND,
            dynamic_template_max_age=60 * SECOND,
            start_retry=5 * SECOND,
            kill_grace=SECOND,
            stop_grace=SECOND,
            drain_timeout=0,
            overtime=SECOND,
            verdict_resend=SECOND // 10,
            log_max=1_000_000,
            log_line_max=10_000,
            limits=TaskLimits(str(folder / "xcom"), 1000, 100_000, 0, 1024, 4096),
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, msgspec.json.encode(config).decode()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TRADEWIND_HOME": str(folder)},
        )
        self.line, _ = listener.accept()
        listener.close()
        self.fired: dict[AttemptKey, TriggerEnd] = {}
        self._reader = FrameReader()
        self._hello = False
        self.hear(lambda: self._hello)
        self.line.sendall(frame(encode(Welcome(1))))

    def run(self, number: int, what: str = "", classpath: str = "does.Does", **kwargs: Any) -> AttemptKey:
        key = (1, number, 1)
        arguments = {"what": what, **kwargs} if classpath == "does.Does" else kwargs
        wait = TriggerWait(classpath, encode_xcom(arguments))
        order = TriggerOrder(key, wait, "dags", "t", f"{number}.log", "dag.py")
        self.line.sendall(frame(encode(RunTriggers((order,)))))
        return key

    def drop(self, *keys: AttemptKey) -> None:
        self.line.sendall(frame(encode(DropTriggers(keys))))

    def hear(self, until: Callable[[], object], what: str = "it", seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, f"{what} did not come; fired: {self.fired}; logs: {self.logs()}"
            self.line.settimeout(0.02)  # not every awaited event is a message
            try:
                data = self.line.recv(1 << 16)
            except TimeoutError:
                continue
            assert data, "the host is gone"
            for document in self._reader.feed(data):
                message = decode_to_scheduler(document)
                if isinstance(message, TriggerFired):
                    self.fired[message.key] = message.end
                elif isinstance(message, HostHello):
                    self._hello = True

    def end_of(self, key: AttemptKey) -> TriggerEnd:
        self.hear(lambda: key in self.fired, f"the end of {key}")
        return self.fired[key]

    def event_of(self, key: AttemptKey) -> Any:
        end = self.end_of(key)
        assert end.error is None, end.error
        return decode_xcom(end.event)

    def log(self, key: AttemptKey) -> list[str]:
        path = self.folder / "logs" / f"{key[1]}.log"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [msgspec.json.decode(line)["event"] for line in lines]

    def logs(self) -> dict[str, str]:
        return {path.name: path.read_text()[-2000:] for path in (self.folder / "logs").glob("*.log")}

    def begun(self, key: AttemptKey) -> list[str]:
        """Pids of the processes in which the trigger started."""
        return [text.split()[-1] for text in self.log(key) if text.startswith("begun in")]

    def descriptors(self) -> int:
        """Number of open files of the host."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def triggerers(self) -> list[int]:
        return [pid for pid in self.descendants() if _comm(pid) == "tw-triggerer"]

    def descendants(self) -> list[int]:
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    children = [int(word) for word in tasks.read_text().split()]
                except OSError:
                    continue
                found += children
                todo += children
        return found

    def close(self) -> None:
        before = self.descendants()
        ends = [os.pidfd_open(pid) for pid in before if _comm(pid)]
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
            left = [
                end for end in ends if not select.select([end], [], [], 30)[0]
            ]  # they were killed; their end takes a moment
            assert not left, f"left behind: {[_comm(pid) for pid in before]}"
        finally:
            for end in ends:
                os.close(end)
            self.process.kill()
            self.line.close()


def _comm(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return "" if stat.rpartition(")")[2].split()[0] == "Z" else stat.partition("(")[2].rpartition(")")[0]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    found = Scheduler(tmp_path)
    yield found
    found.close()


def _other(scheduler: Scheduler) -> AttemptKey:
    """Start a trigger that waits for a file."""
    key = scheduler.run(99, "wait", path=str(scheduler.folder / "here"))
    scheduler.hear(lambda: scheduler.begun(key), "its beginning")
    return key


def _goes_on(scheduler: Scheduler, other: AttemptKey) -> None:
    """A new trigger runs, in another process than the first one."""
    scheduler.hear(lambda: len(scheduler.begun(other)) >= 2, "another beginning")
    assert other not in scheduler.fired
    (scheduler.folder / "here").touch()
    assert scheduler.event_of(other) == "wait"


def test_an_idle_triggerer_ends_and_the_next_trigger_starts_a_new_one(scheduler: Scheduler) -> None:
    first = scheduler.run(1, "fine")
    assert scheduler.event_of(first) == "fine"
    (pid,) = scheduler.triggerers()
    descriptors = scheduler.descriptors()
    scheduler.drop(first)
    scheduler.hear(lambda: not _comm(pid), "the end of the triggerer")
    scheduler.hear(lambda: scheduler.descriptors() <= descriptors - 4, "two lines, the page and the log are closed")
    second = scheduler.run(2, "fine")
    assert scheduler.event_of(second) == "fine"
    assert scheduler.begun(second) != [str(pid)]
    assert scheduler.descriptors() == descriptors
    scheduler.drop(second)
    scheduler.hear(lambda: scheduler.descriptors() <= descriptors - 4, "nothing piles up")
    assert scheduler.triggerers() == []


def test_a_trigger_within_the_idle_time_keeps_the_triggerer(scheduler: Scheduler) -> None:
    first = scheduler.run(1, "fine")
    scheduler.event_of(first)
    scheduler.drop(first)
    other = scheduler.run(99, "wait", path=str(scheduler.folder / "here"))
    third = scheduler.run(3, "fine")
    scheduler.event_of(third)
    scheduler.drop(third)
    (scheduler.folder / "here").touch()
    assert scheduler.event_of(other) == "wait"
    assert scheduler.begun(first) == scheduler.begun(other) == scheduler.begun(third)


def test_a_trigger_that_kills_the_triggerer_three_times_fails_alone(scheduler: Scheduler) -> None:
    other = _other(scheduler)
    key = scheduler.run(1, "end process")
    assert "ended 3 times" in (scheduler.end_of(key).error or "")
    assert len(set(scheduler.begun(key))) == 3
    _goes_on(scheduler, other)


def test_a_trigger_whose_thread_kills_the_triggerer_is_found(scheduler: Scheduler) -> None:
    """No trigger code was recorded as running at this time."""
    others = [scheduler.run(number, "wait", path=str(scheduler.folder / "here")) for number in range(2, 7)]
    other = _other(scheduler)
    key = scheduler.run(1, "end process in a thread")
    assert "a thread of it" in (scheduler.end_of(key).error or "")
    assert [one for one in scheduler.fired if one != key] == []
    _goes_on(scheduler, other)
    assert [scheduler.event_of(one) for one in others] == ["wait"] * 5


def test_the_host_stops_code_that_blocks_the_interpreter(scheduler: Scheduler) -> None:
    other = _other(scheduler)
    key = scheduler.run(1, "keep the interpreter")
    error = scheduler.end_of(key).error or ""
    assert "was stopped with its process" in error, "by the host: the triggerer's own watch cannot run"
    assert any("The trigger failed: " in text for text in scheduler.log(key))
    _goes_on(scheduler, other)
    assert len(scheduler.begun(key)) == 1


def test_a_hanging_triggerer_is_replaced_and_no_trigger_fails(scheduler: Scheduler) -> None:
    other = _other(scheduler)
    (pid,) = scheduler.triggerers()
    os.kill(pid, signal.SIGSTOP)
    _goes_on(scheduler, other)
    assert not _comm(pid)


def test_triggers_come_from_the_plugins_folder_too(scheduler: Scheduler) -> None:
    source = "from tradewind.triggers.base import BaseTrigger, TriggerEvent\n\n\nclass Says(BaseTrigger):\n"
    source += "    async def run(self):\n        yield TriggerEvent({!r})\n"
    module = scheduler.folder / "plugins" / "standalone_triggers.py"
    module.write_text(source.format("from the plugins folder"))
    assert scheduler.event_of(scheduler.run(1, classpath="standalone_triggers.Says")) == "from the plugins folder"
    module.write_text(source.format("changed since then"))
    assert scheduler.event_of(scheduler.run(2, classpath="standalone_triggers.Says")) == "changed since then"
