from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tradewind.client.channel import START_OP
from tradewind.model.moments import SECOND
from tradewind.parser.lookups import SCHEDULER_NOT_REACHABLE, ChildLookups, SendLookup
from tradewind.parser.lookups_child import ParsingRuntime
from tradewind.parser.parse_result import ChildReport, Problem
from tradewind.parser.scheduler_link import NO_ATTEMPT, SchedulerLink
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.wire import runtime
from tradewind.wire.connection import Connection
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import (
    LOOKUP_CHANGED,
    Failure,
    FindRuns,
    FromRunner,
    GetConnection,
    GetTaskStates,
    GetVariable,
    Lookup,
    Notice,
    RunnerAnswer,
    SetVariable,
    ToRunner,
    ToScheduler,
    Value,
    Welcome,
    XComPull,
    decode_answer,
    decode_to_scheduler,
    encode,
)


class Talk:
    """The lookups of a child; the test plays the child and the scheduler."""

    def __init__(self) -> None:
        self.loop = Loop(ManualClock())
        ours, self.child = socket.socketpair()
        self.questions: list[tuple[Lookup, object]] = []
        look_up: SendLookup = lambda question, answered: self.questions.append((question, answered))  # noqa: E731
        self.conversation = ChildLookups(ours, self.loop, look_up)

    def send(self, message: object) -> None:
        self.child.sendall(frame(encode(message)))
        self.loop.turn(0)

    def answer(self, answer: RunnerAnswer | None) -> None:
        _, answered = self.questions.pop(0)
        answered(answer)  # type: ignore[operator]

    def receive(self) -> RunnerAnswer:
        (document,) = FrameReader().feed(self.child.recv(1 << 16))
        answer: RunnerAnswer = decode_answer(document)
        return answer


@pytest.fixture
def talk() -> Iterator[Talk]:
    talk = Talk()
    yield talk
    talk.conversation.close()
    talk.child.close()
    talk.loop.close()


def test_a_request_is_forwarded_and_answered_with_its_number(talk: Talk) -> None:
    talk.send(GetVariable(7, "bucket"))
    assert [question for question, _ in talk.questions] == [GetVariable(7, "bucket")]
    talk.answer(Value(99, True, "s3://x"))
    assert talk.receive() == Value(7, True, "s3://x")
    assert not talk.conversation.is_unanswered(timed_out=True)


def test_runs_can_be_read_like_variables(talk: Talk) -> None:
    talk.send(FindRuns(7, "etl", at_most=1))
    assert [question for question, _ in talk.questions] == [FindRuns(7, "etl", at_most=1)]
    talk.answer(Value(99, True, []))
    assert talk.receive() == Value(7, True, [])


@pytest.mark.parametrize("message", [SetVariable(7, "x", "1"), XComPull(7, "d", "r", ("t",))])
def test_other_requests_are_not_forwarded(talk: Talk, message: object) -> None:
    talk.send(message)
    assert talk.questions == []
    answer = talk.receive()
    assert isinstance(answer, Failure)
    assert answer.reason == "a DAG file may read only variables, connections and runs while it is imported"


def test_without_a_scheduler_the_import_does_not_count(talk: Talk) -> None:
    talk.send(GetConnection(7, "db"))
    talk.answer(None)
    assert talk.receive() == Failure(7, SCHEDULER_NOT_REACHABLE)
    assert talk.conversation.is_unanswered(timed_out=False)


def test_a_child_that_was_stopped_while_it_waited_gets_no_answer(talk: Talk) -> None:
    talk.send(GetVariable(7, "x"))
    assert talk.conversation.is_unanswered(timed_out=True)
    assert not talk.conversation.is_unanswered(timed_out=False)  # it ended by itself, with a question that nobody waits for


def test_secrets_are_masked_in_messages(talk: Talk) -> None:
    talk.send(GetConnection(7, "db"))
    parts = {"host": "h.example", "password": "hunter22", "extra": '{"token": "abcd-efgh", "region": "north"}'}
    talk.answer(Value(7, True, parts, secret=True))
    report = ChildReport(problems=(Problem("ValueError: hunter22 at h.example", "line 3: abcd-efgh in north", 3),))
    shown = talk.conversation.without_secrets(report).problems
    assert shown == (Problem("ValueError: *** at h.example", "line 3: *** in north", 3),)
    assert talk.conversation.masked("login with hunter22") == "login with ***"


def test_an_invalid_message_closes_only_its_connection(talk: Talk) -> None:
    talk.child.sendall(frame(b"\xc1"))
    talk.loop.turn(0)
    assert talk.child.recv(1) == b""
    assert talk.questions == []


# --- the child's end --------------------------------------------------------------------------------------------------


def test_a_child_records_its_lookups() -> None:
    ours, parser = socket.socketpair()
    with ours, parser:
        asking = ParsingRuntime(ours.fileno())
        for number, found in ((1, True), (2, False), (3, True), (4, True)):
            parser.sendall(frame(encode(Value(START_OP + number, found, f"v{number}"))))
        assert asking.ask(GetVariable(0, "a")) == Value(START_OP + 1, True, "v1")
        assert asking.ask(GetConnection(0, "b")) == Value(START_OP + 2, False, "v2")
        asking.ask(GetVariable(0, "a"))
        asking.ask(FindRuns(0, "etl"))
        assert tuple(asking.lookups) == ("variable a", "connection b", "runs of etl")
        with pytest.raises(runtime.NoRuntime, match="GetTaskStates was requested while no task is running"):
            asking.ask(GetTaskStates(0, "d"))


def test_a_variable_that_a_file_sets_is_known_to_the_rest_of_the_import_only() -> None:
    ours, parser = socket.socketpair()
    with ours, parser:
        asking = ParsingRuntime(ours.fileno())
        with pytest.warns(UserWarning, match="the variable 'a' is set at the top level of the file: nothing is stored"):
            assert asking.ask(SetVariable(0, "a", "1")) == Value(0, True)
        assert asking.ask(GetVariable(0, "a")) == Value(0, True, "1")
        with pytest.warns(UserWarning, match="the variable 'a' is deleted"):
            asking.ask(SetVariable(0, "a", None))
        assert asking.ask(GetVariable(0, "a")) == Value(0, False, None)
        assert tuple(asking.lookups) == ("change of variable a",)
        parser.setblocking(False)
        with pytest.raises(BlockingIOError):  # nothing was sent to the parser
            parser.recv(1)


def test_a_forked_process_cannot_look_up_values() -> None:
    ours, parser = socket.socketpair()
    with ours, parser:
        asking = ParsingRuntime(ours.fileno())
        pid = os.fork()
        if pid == 0:
            try:
                asking.ask(GetVariable(0, "a"))
            except runtime.NoRuntime:
                os._exit(3)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


# --- the parser's line to the scheduler -------------------------------------------------------------------------------


def test_a_scheduler_that_starts_with_the_parser_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("tradewind.parser.scheduler_link.log", SimpleNamespace(warning=lambda text, **more: said.append(text)))
    clock = ManualClock()
    loop = Loop(clock)
    link = SchedulerLink(loop, str(tmp_path / "nobody"), "parser")
    link.start()
    for _ in range(9):
        clock.advance(SECOND)
        loop.turn(0)
    assert said == []
    for _ in range(9):
        clock.advance(SECOND)
        loop.turn(0)
    assert said == ["no connection to the scheduler; trying again"], "once"
    link.close()
    loop.close()


class Deployment:
    """A connection to a scheduler that the test plays."""

    def __init__(self, path: Path) -> None:
        self.loop = Loop(ManualClock())
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.changed: list[str] = []
        self.link = SchedulerLink(self.loop, str(path), "parser", on_changed=self.changed.append)
        self.received: list[ToScheduler] = []
        self.link.start()
        peer, _ = self.listener.accept()
        self.peer = Connection(
            peer, self.loop, lambda c, document: self.received.append(decode_to_scheduler(document)), lambda c: None
        )

    def say(self, message: object) -> None:
        self.peer.send(encode(message))
        self.loop.turn(0)
        self.loop.turn(0)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path / "s")
    yield deployment
    deployment.link.close()
    deployment.peer.close()
    deployment.listener.close()
    deployment.loop.close()


def test_requests_are_sent_only_while_connected(deployment: Deployment) -> None:
    answers: list[RunnerAnswer | None] = []
    deployment.link.look_up(GetVariable(2, "x"), answers.append)
    assert answers == [None]
    deployment.say(Welcome(1))
    deployment.link.look_up(GetVariable(2, "x"), answers.append)
    deployment.link.look_up(GetVariable(2, "y"), answers.append)
    deployment.loop.turn(0)
    first, second = [message for message in deployment.received if isinstance(message, FromRunner)]
    assert (first.attempt, first.body) == (NO_ATTEMPT, GetVariable(first.body.op, "x"))
    deployment.say(ToRunner(NO_ATTEMPT, Value(second.body.op, True, "of y")))
    deployment.say(ToRunner(NO_ATTEMPT, Value(first.body.op, True, "of x")))
    assert [answer.value for answer in answers[1:] if isinstance(answer, Value)] == ["of y", "of x"]


def test_open_requests_get_no_answer_after_a_disconnection(deployment: Deployment) -> None:
    deployment.say(Welcome(1))
    answers: list[RunnerAnswer | None] = []
    deployment.link.look_up(GetVariable(2, "x"), answers.append)
    deployment.peer.close()
    deployment.loop.turn(0)
    assert answers == [None]


def test_the_scheduler_reports_changed_values(deployment: Deployment) -> None:
    deployment.say(Welcome(1))
    deployment.say(Notice(LOOKUP_CHANGED, text="variable x"))
    assert deployment.changed == ["variable x"]
