from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.commands import answer_with
from tradewind.parser.outbox import BATCH_FILES, Batch, Outbox
from tradewind.parser.parse_result import FileOutcome, ReadDag
from tradewind.platform.clock import ManualClock
from tradewind.platform.loop import Loop
from tradewind.wire.commands import Command, ForgetFiles, RegisterFiles
from tradewind.wire.messages import CommandResult


def outcome(file: str, size: int = 10, version: str = "v") -> FileOutcome:
    return FileOutcome("b", file, "h", (ReadDag(file, b"x" * size, version, "s", file),), None, 1, False, 0)


class Line:
    """Records the commands that were sent, and answers them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.loop = Loop(self.clock)
        self.sent: list[tuple[Command[Any], Callable[[CommandResult], None]]] = []
        self.answered: list[tuple[Batch, list[str]]] = []
        self.busy = False
        self.outbox = Outbox(
            "b",
            self.loop,
            lambda command, done: self.sent.append((command, done)),
            lambda: self.busy,
            lambda batch, touched: self.answered.append((batch, touched)),
        )

    def files(self, number: int = -1) -> list[str]:
        command = self.sent[number][0]
        assert isinstance(command, ForgetFiles | RegisterFiles)
        return command.files if isinstance(command, ForgetFiles) else [one.file for one in command.files]

    def hash_of_first_dag(self) -> str:
        """In the command that was sent last."""
        command = self.sent[-1][0]
        assert isinstance(command, RegisterFiles)
        return command.files[0].dags[0].hash

    def answer(self, value: dict[str, Any] | None = None, error: str | None = None) -> None:
        command, done = self.sent[-1]
        nothing: dict[str, Any] = {"gone": []} if isinstance(command, ForgetFiles) else {"changed": []}
        done(answer_with("op", value or nothing, error, "why"))

    def pass_time(self, micros: int) -> None:
        self.clock.advance(micros)
        self.loop.turn(0)


def test_while_one_batch_is_sent_the_next_one_is_collected() -> None:
    line = Line()
    for number in range(BATCH_FILES + 11):
        line.outbox.put(f"f{number}", outcome(f"f{number}"))
    assert line.files() == ["f0"]
    line.answer({"changed": ["f0"]})
    assert len(line.files()) == BATCH_FILES
    line.answer({"changed": []})
    assert len(line.files()) == 10
    line.answer({"changed": []})
    assert len(line.outbox) == 0
    assert len(line.sent) == 3
    assert line.answered[0][1] == ["f0"]


def test_a_newer_message_about_a_file_replaces_a_waiting_one() -> None:
    line = Line()
    line.outbox.put("a", outcome("a"))
    line.outbox.put("b", outcome("b", version="1"))
    line.outbox.put("b", outcome("b", version="2"))
    line.answer({})
    assert line.hash_of_first_dag() == "2"
    assert len(line.sent) == 2


def test_a_batch_waits_a_limited_time_for_other_files() -> None:
    line = Line()
    line.busy = True
    line.outbox.put("a", outcome("a"))
    line.outbox.put("b", outcome("b"))
    assert line.sent == []
    line.pass_time(1_000_000)
    assert line.files() == ["a", "b"]


def test_deleted_files_keep_their_position_in_the_order() -> None:
    line = Line()
    line.outbox.put("x", outcome("x"))
    line.outbox.put("old", None)
    line.outbox.put("new", outcome("new"))
    line.answer({})
    assert line.sent[-1][0] == ForgetFiles("b", ["old"])
    line.answer({"gone": ["d"]})
    assert line.files() == ["new"]
    assert line.answered[1] == ({"old": None}, ["d"])


def test_a_large_definition_is_sent_alone() -> None:
    line = Line()
    for name in ("x", "a", "b"):
        line.outbox.put(name, outcome(name, size=6_000_000))
    line.answer({})
    assert line.files() == ["a"]


def test_after_a_temporary_error_a_message_is_sent_again_unless_there_is_a_newer_one() -> None:
    line = Line()
    line.outbox.put("a", outcome("a", version="1"))
    line.answer(error="StoreBusy")
    line.outbox.put("a", outcome("a", version="2"))
    assert len(line.sent) == 1
    line.pass_time(20_000_000)
    assert line.hash_of_first_dag() == "2"
    line.answer({})
    assert len(line.outbox) == 0


def test_a_rejected_file_does_not_affect_others() -> None:
    line = Line()
    line.outbox.put("x", outcome("x"))
    for name in ("a", "poison", "b"):
        line.outbox.put(name, outcome(name))
    line.answer({})
    line.answer(error="Conflict")
    for _ in range(3):
        line.answer(error="Conflict" if line.files() == ["poison"] else None, value={})
    assert [sorted(batch) for batch, _ in line.answered] == [["x"], ["a"], ["b"]]
    assert len(line.outbox) == 0
