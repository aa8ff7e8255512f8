"""The triggerer as a real process, with the test in the place of its host: what one trigger may not do to the others."""

from __future__ import annotations

import os
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
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.sdk.load import module_of
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import AttemptKey, DropTriggers, RunTriggers, TriggerFired, TriggerOrder, encode
from tradewind.worker.orders import TriggererLimits, TriggerSaid, decode_from_triggerer
from tradewind.worker.trigger_heartbeat import make_page, read_page

SOURCE = """
import asyncio
import os
import sys
import threading
import time

from tradewind.triggers.base import BaseTrigger, TriggerEvent


class Does(BaseTrigger):
    def __init__(self, what="", path=""):
        super().__init__()
        self.what = what
        self.path = path

    def serialize(self):
        return "does.Does", {"what": self.what, "path": self.path}

    async def run(self):
        await asyncio.sleep(0)
        if self.what == "wait":
            while not os.path.exists(self.path):
                await asyncio.sleep(0.02)
        elif self.what == "block":
            time.sleep(600)
        elif self.what == "block below":
            await asyncio.create_task(self.blocks())
        elif self.what == "stubborn":
            print("begun")
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    print("no")
        elif self.what == "exit":
            sys.exit(3)
        elif self.what == "exit below":
            await asyncio.create_task(self.exits())
        elif self.what == "end process":
            os._exit(9)
        elif self.what == "cancel itself":
            raise asyncio.CancelledError
        elif self.what == "much":
            print("x" * 3_000_000)
            for _ in range(50):
                print("y" * 10_000)
        elif self.what == "print":
            print("one", 2, end="")
            print(" three")
            sys.stdout.write("no end")
        elif self.what == "huge":
            yield TriggerEvent("x" * 200_000)
        elif self.what == "thread":
            threading.Thread(target=lambda: time.sleep(600)).start()
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
        yield TriggerEvent(self.what)

    async def blocks(self):
        time.sleep(600)

    async def exits(self):
        sys.exit(3)

    async def cleanup(self):
        if self.what == "cleanup fails":
            raise RuntimeError("no broom")
        if self.what == "cleanup lasts":
            await asyncio.sleep(600)
        if self.what == "wait" and not os.path.exists(self.path):
            print("cleaned")


class Coroutine(BaseTrigger):
    async def run(self):
        return TriggerEvent(1)
"""


SAYS = """
from tradewind.triggers.base import BaseTrigger, TriggerEvent


class Says(BaseTrigger):
    async def run(self):
        yield TriggerEvent({!r})
"""


class Host:
    """One triggerer, and what it said."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.folder = folder
        pairs = [socket.socketpair() for _ in range(2)]
        self.line, self.questions = pairs[0][0], pairs[1][0]
        self.page = make_page()
        theirs = [pairs[0][1].fileno(), pairs[1][1].fileno(), self.page]
        wanted = TriggererLimits(**limits)
        self.process = subprocess.Popen(
            [
                sys.executable,
                *("-m", "tradewind.worker.triggerer", *map(str, theirs), str(os.getpid())),
                msgspec.json.encode(wanted).decode(),
            ],
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
        )
        for pair in pairs:
            pair[1].close()
        self.fired: dict[AttemptKey, TriggerEnd] = {}
        self.said: list[TriggerSaid] = []
        self._reader = FrameReader()

    def run(self, number: int, what: str = "", classpath: str = "does.Does", file: str = "", **kwargs: Any) -> AttemptKey:
        key = (1, number, 1)
        arguments = {"what": what, **kwargs} if classpath.endswith("Does") else kwargs
        order = TriggerOrder(key, TriggerWait(classpath, encode_xcom(arguments)), "dags", "t", "", file, str(self.folder))
        self.line.sendall(frame(encode(RunTriggers((order,)))))
        return key

    def drop(self, key: AttemptKey) -> None:
        self.line.sendall(frame(encode(DropTriggers((key,)))))

    def hear(self, until: Callable[[], object], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not until():
            self.line.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.line.recv(1 << 16)
            except TimeoutError:
                raise AssertionError(
                    f"it did not come; fired: {self.fired}; said: {[one.event[:200] for one in self.said]}"
                ) from None
            if not data:
                assert until(), f"the triggerer is gone; fired: {self.fired}; said: {self.said}"
                return
            for document in self._reader.feed(data):
                message = decode_from_triggerer(document)
                if isinstance(message, TriggerFired):
                    assert message.key not in self.fired
                    self.fired[message.key] = message.end
                elif isinstance(message, TriggerSaid):
                    self.said.append(message)

    def end_of(self, key: AttemptKey) -> TriggerEnd:
        self.hear(lambda: key in self.fired)
        return self.fired[key]

    def event_of(self, key: AttemptKey) -> Any:
        end = self.end_of(key)
        assert end.error is None, end.error
        return decode_xcom(end.event)

    def texts(self, key: AttemptKey) -> list[str]:
        return [one.event for one in self.said if one.key == key]

    def close(self) -> None:
        self.line.close()
        self.questions.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        os.close(self.page)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    (tmp_path / "does.py").write_text(SOURCE)
    found = Host(tmp_path, event_max=100_000, log_max=1_000_000, blocked_shown=0.3, blocked_max=1.0, end_within=0.3)
    yield found
    found.close()


def _others_go_on(host: Host, number: int = 99) -> None:
    assert host.event_of(host.run(number, "fine")) == "fine"
    assert host.process.poll() is None


@pytest.mark.parametrize("how", ["block", "block below"])
def test_one_that_blocks_the_loop_is_shown_and_then_fails(host: Host, how: str) -> None:
    _others_go_on(host)
    key = host.run(1, how)
    error = host.end_of(key).error or ""
    assert "blocked the event loop of all triggers" in error
    assert "time.sleep(600)" in error
    warning = next(text for text in host.texts(key) if "holds up all others" in text)
    assert "time.sleep(600)" in warning
    assert host.process.wait(10) == 1, "the process ends; the host starts another one with the others"
    assert read_page(host.page)[0] == key


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("exit", "SystemExit"),
        ("exit below", "SystemExit(3)"),
        ("cancel itself", "CancelledError"),
        ("huge", "core.xcom_max_bytes=100000"),
    ],
)
def test_one_that_ends_badly_fails_alone(host: Host, how: str, sentence: str) -> None:
    assert sentence in (host.end_of(host.run(1, how)).error or "")
    _others_go_on(host)


def test_a_run_that_is_no_generator_is_named(host: Host) -> None:
    assert "asynchronous generator" in (host.end_of(host.run(1, classpath="does.Coroutine")).error or "")
    _others_go_on(host)


def test_what_the_process_ended_in_stands_in_the_page(host: Host) -> None:
    _others_go_on(host)
    key = host.run(1, "end process")
    assert host.process.wait(10) == 9
    assert read_page(host.page)[0] == key


def test_an_event_counts_whatever_becomes_of_the_cleanup(host: Host) -> None:
    fails, lasts = host.run(1, "cleanup fails"), host.run(2, "cleanup lasts")
    assert host.event_of(fails) == "cleanup fails"
    assert host.event_of(lasts) == "cleanup lasts"
    host.hear(lambda: any("no broom" in text for text in host.texts(fails)))
    host.hear(lambda: any("took longer than 0.3 seconds" in text for text in host.texts(lasts)))
    _others_go_on(host)


def test_one_that_is_dropped_cleans_up(host: Host) -> None:
    key = host.run(1, "wait", path=str(host.folder / "never"))
    _others_go_on(host)
    host.drop(key)
    host.hear(lambda: "cleaned" in host.texts(key))
    assert key not in host.fired


def test_one_that_ignores_being_cancelled_is_told_again_and_named(host: Host) -> None:
    key = host.run(1, "stubborn")
    host.hear(lambda: "begun" in host.texts(key))
    host.drop(key)
    host.hear(lambda: host.texts(key).count("no") >= 3)
    assert any("it catches CancelledError" in text for text in host.texts(key))
    _others_go_on(host)
    assert key not in host.fired


def test_what_is_printed_comes_in_lines_and_not_without_end(host: Host) -> None:
    key = host.run(1, "print")
    assert host.event_of(key) == "print"
    assert host.texts(key) == ["one 2 three", "no end"]
    key = host.run(2, "much")
    assert host.event_of(key) == "much"
    assert sum(map(len, host.texts(key))) < 1_200_000
    assert "left out" in host.texts(key)[-1]


def test_it_ends_with_its_line_whatever_its_threads_do(host: Host) -> None:
    assert host.event_of(host.run(1, "thread")) == "thread"
    host.line.close()
    assert host.process.wait(10) == 0


def test_a_module_that_never_ends_its_import_fails_alone(host: Host) -> None:
    (host.folder / "slow.py").write_text("import time\ntime.sleep(600)\n")
    key = host.run(1, classpath="slow.Thing")
    assert "could not be made" in (host.end_of(key).error or "")
    assert host.process.wait(10) == 1


def test_modules_are_found_beside_the_file_and_read_again_when_they_change(host: Host) -> None:
    team = host.folder / "team"
    team.mkdir()
    source = SAYS
    (team / "says.py").write_text(source.format("first"))
    assert host.event_of(host.run(1, classpath="says.Says", file="team/dag.py")) == "first"
    (team / "says.py").write_text(source.format("second one"))
    assert host.event_of(host.run(2, classpath="says.Says", file="team/dag.py")) == "second one"
    other = host.folder / "other"
    other.mkdir()
    (other / "says.py").write_text(source.format("another team's"))
    assert host.event_of(host.run(3, classpath="says.Says", file="other/dag.py")) == "another team's"
    assert host.event_of(host.run(4, classpath="team.says.Says", file="dag.py")) == "second one"


def test_a_trigger_may_stand_in_the_dag_file_itself(host: Host) -> None:
    (host.folder / "sub").mkdir()
    (host.folder / "sub" / "my_dag.py").write_text(SAYS.format("in the file"))
    name = f"{module_of('sub/my_dag.py')}.Says"
    assert host.event_of(host.run(1, classpath=name, file="sub/my_dag.py")) == "in the file"
    (host.folder / "sub" / "my_dag.py").write_text(SAYS.format("changed since"))
    assert host.event_of(host.run(2, classpath=name, file="sub/my_dag.py")) == "changed since"


def test_many_wait_at_once(host: Host) -> None:
    path = host.folder / "here"
    keys = [host.run(number, "wait", path=str(path)) for number in range(300)]
    _others_go_on(host, 999)
    path.touch()
    host.hear(lambda: all(key in host.fired for key in keys))
