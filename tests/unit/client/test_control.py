"""Commands over the scheduler's socket: typed results, repetition under the same op, timeouts."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tradewind.client.control import ControlClient
from tradewind.model.errors import NotFound, TradewindError, Unreachable, WireError
from tradewind.wire.commands import DeletePool, KnownFiles, SetPaused, SetPausedResult, Trigger, receive, result_for
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    ClientHello,
    CommandRequest,
    CommandResult,
    FromScheduler,
    Notice,
    Welcome,
    decode_to_scheduler,
    encode,
)

Answer = Callable[[CommandRequest, "Peer"], FromScheduler | None]


class Peer:
    """The scheduler's end of one connection."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.reader = FrameReader()

    def send(self, message: FromScheduler) -> None:
        self.link.sendall(frame(encode(message)))

    def messages(self) -> Iterator[object]:
        while True:
            try:
                data = self.link.recv(65536)
            except OSError:
                return
            if not data:
                return
            for document in self.reader.feed(data):
                yield decode_to_scheduler(document)


class FakeScheduler:
    """Accepts all clients and answers commands with a function. `None`: no answer."""

    def __init__(self, path: str, answer: Answer, welcome: Welcome | None = None) -> None:
        self.path = path
        self.answer = answer
        self.welcome = welcome or Welcome(epoch=3)
        self.commands: list[CommandRequest] = []
        self.hellos: list[ClientHello] = []
        self.peers: list[Peer] = []
        self.greeted = threading.Event()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(path)
        self.socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            peer = Peer(link)
            self.peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: Peer) -> None:
        for message in peer.messages():
            if isinstance(message, ClientHello):
                self.hellos.append(message)
                peer.send(self.welcome)
                self.greeted.set()
            elif isinstance(message, CommandRequest):
                self.commands.append(message)
                reply = self.answer(message, peer)
                if reply is not None:
                    peer.send(reply)

    def stop(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        os.unlink(self.path)
        for peer in self.peers:
            try:
                peer.link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the client has closed it


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.sock")


def echo(command: CommandRequest, peer: Peer) -> CommandResult:
    """Answer a command with a result of its type."""
    asked = receive(command).command
    if isinstance(asked, SetPaused):
        return result_for(command.op, SetPausedResult(asked.dag_id, asked.is_paused, changed=True))
    return result_for(command.op, None)


def test_a_command_has_a_typed_result_and_an_actor(path: str) -> None:
    scheduler = FakeScheduler(path, echo)
    with ControlClient(path, "cli", 5) as client:
        assert client.call(SetPaused("sales", True)) == SetPausedResult("sales", True, True)
        assert client.call(DeletePool("p"), actor="ann") is None
    assert [(receive(c).command, c.actor) for c in scheduler.commands] == [
        (SetPaused("sales", True), "cli"),
        (DeletePool("p"), "ann"),
    ]
    assert len({c.op for c in scheduler.commands}) == 2
    assert [(h.name, h.pid, h.follow) for h in scheduler.hellos] == [("cli", os.getpid(), False)], "one connection for both"
    scheduler.stop()


@pytest.mark.parametrize(
    ("error", "kind", "says"), [("NotFound", NotFound, "no such"), ("ValueError", TradewindError, "ValueError: no such")]
)
def test_errors_are_raised_with_their_own_class(path: str, error: str, kind: type[Exception], says: str) -> None:
    scheduler = FakeScheduler(path, lambda command, peer: CommandResult(command.op, error=error, message="no such thing"))
    with ControlClient(path, "cli", 5) as client, pytest.raises(kind, match=says):
        client.call(Trigger("x"))
    scheduler.stop()


def test_without_a_scheduler_a_call_fails_at_once(path: str) -> None:
    with pytest.raises(Unreachable, match=r"no live scheduler at .*s\.sock"):
        ControlClient(path, "cli", 60).call(DeletePool("p"))
    with pytest.raises(Unreachable, match="no live scheduler"):
        next(ControlClient(path, "cli", 60).follow())


def test_a_call_times_out_if_the_scheduler_does_not_answer(path: str) -> None:
    scheduler = FakeScheduler(path, lambda command, peer: None)
    client = ControlClient(path, "cli", 0.5)
    with pytest.raises(Unreachable, match=r"did not answer the command 'delete_pool' within 0\.5 s"):
        client.call(DeletePool("p"))
    scheduler.answer = echo
    assert client.call(SetPaused("sales", True), timeout=5).changed, (
        "a late answer of the old connection is not taken for the new"
    )
    scheduler.stop()


def test_a_command_is_repeated_under_the_same_op_after_a_lost_answer(path: str) -> None:
    times: dict[str, int] = {}

    def first_time_hang_up(command: CommandRequest, peer: Peer) -> CommandResult | None:
        times[command.op] = times.get(command.op, 0) + 1
        if times[command.op] == 1:
            peer.link.shutdown(socket.SHUT_RDWR)
            return None
        return result_for(command.op, {"a.py": ("stored", False)})

    scheduler = FakeScheduler(path, first_time_hang_up)
    with ControlClient(path, "cli", 10) as client:
        assert client.call(KnownFiles("dags"))["a.py"].file_hash == "stored"
    assert list(times.values()) == [2]
    scheduler.stop()


def test_a_restarted_scheduler_gets_the_command_under_the_same_op(path: str) -> None:
    second: list[FakeScheduler] = []

    def die(command: CommandRequest, peer: Peer) -> None:
        first.stop()
        second.append(FakeScheduler(path, echo))

    first = FakeScheduler(path, die)
    with ControlClient(path, "cli", 10) as client:
        assert client.call(SetPaused("sales", True)).dag_id == "sales"
    assert first.commands[0].op == second[0].commands[0].op
    second[0].stop()


def test_the_client_reconnects_after_a_restart_between_calls(path: str) -> None:
    first = FakeScheduler(path, echo)
    client = ControlClient(path, "cli", 5)
    client.call(DeletePool("p"))
    first.stop()
    with pytest.raises(Unreachable, match="no live scheduler"):
        client.call(DeletePool("p"), timeout=60)
    second = FakeScheduler(path, echo)
    assert client.call(DeletePool("p")) is None
    second.stop()


def test_a_refused_hello_is_raised(path: str) -> None:
    scheduler = FakeScheduler(path, echo, Welcome(refused="speak protocol 2"))
    with pytest.raises(WireError, match="speak protocol 2"):
        ControlClient(path, "cli", 5).call(DeletePool("p"))
    scheduler.stop()


def test_follow_yields_notices_until_the_connection_closes(path: str) -> None:
    scheduler = FakeScheduler(path, echo)
    notices = ControlClient(path, "ui", 5).follow()
    received: list[Notice] = []
    listener = threading.Thread(daemon=True, target=lambda: received.extend(notices))
    listener.start()
    assert scheduler.greeted.wait(5)
    scheduler.peers[0].send(Notice("run", "sales", "r1", "success"))
    scheduler.peers[0].send(Notice("run", "sales", "r2", "failed"))
    scheduler.peers[0].link.shutdown(socket.SHUT_RDWR)
    listener.join(5)
    assert [(n.run_id, n.state) for n in received] == [("r1", "success"), ("r2", "failed")]
    assert scheduler.hellos[0].follow
    scheduler.stop()


def test_other_messages_before_an_answer_are_skipped(path: str) -> None:
    def chatty(command: CommandRequest, peer: Peer) -> CommandResult:
        peer.send(Notice("run", "sales"))
        peer.send(result_for("another-op", {}))
        return result_for(command.op, {"yours": ("h", False)})

    scheduler = FakeScheduler(path, chatty)
    with ControlClient(path, "cli", 5) as client:
        assert [client.call(KnownFiles("dags")) for _ in range(3)] == [{"yours": ("h", False)}] * 3
    scheduler.stop()


def test_threads_take_turns(path: str) -> None:
    scheduler = FakeScheduler(path, echo)
    client = ControlClient(path, "api", 10)
    wrong: list[int] = []

    def ask(n: int) -> None:
        for i in range(50):
            if client.call(SetPaused(f"{n}.{i}", False)).dag_id != f"{n}.{i}":
                wrong.append(n)

    threads = [threading.Thread(daemon=True, target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not wrong
    assert len(scheduler.commands) == 200
    assert len(scheduler.hellos) == 1
    client.close()
    scheduler.stop()
