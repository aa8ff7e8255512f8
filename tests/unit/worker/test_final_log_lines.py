"""Who writes the last line of a log, and who says that logs cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from tradewind.wire.messages import Accepted, LastLine, Refused
from tradewind.worker.attempt import Attempt
from tradewind.worker.final_log_lines import FinalLogLines
from tradewind.worker.log_capture import LogCapture

KEY = (1, 0, 1)
LINE = LastLine("info", "Marking task as SUCCESS.", "d/r/other.log")


class Ran:
    """An attempt as far as the ends of logs are concerned."""

    class Work:
        log = "d/r/a.log"

    def __init__(self, folder: Path) -> None:
        self.key = KEY
        self.workload = Ran.Work()
        self.killing: str | None = None
        self.kill_reason = ""
        self.ended = False
        self.log = LogCapture(folder / self.workload.log, lambda: 0, 10_000, 1_000)

    def end(self, ends: FinalLogLines) -> None:
        ends.ends(cast(Attempt, self))
        self.ended = True
        self.log.close()
        ends.closed(self.log)


class Case:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.messages: list[str] = []
        self.ends = FinalLogLines(str(folder), lambda: 0, self.messages.append)
        self.ran = Ran(folder)
        self.ends.reported(cast(Attempt, self.ran))

    def answered(self, answer: Accepted | Refused, *, lives: bool) -> None:
        self.ends.answered(KEY, answer, cast(Attempt, self.ran) if lives else None)

    def lines(self, name: str = "d/r/a.log") -> list[Any]:
        path = self.folder / name
        return [json.loads(line)["event"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "logs")


def test_the_line_comes_behind_what_the_process_still_says(case: Case) -> None:
    case.answered(Accepted(1, last=LINE), lives=True)
    case.ran.log.feed(b"an exit function\n")
    case.ran.end(case.ends)
    assert case.lines() == ["an exit function", LINE.text]


def test_an_answer_that_comes_after_the_process_has_ended_is_appended(case: Case) -> None:
    case.ran.log.feed(b"hello\n")
    case.ran.end(case.ends)
    assert case.lines() == ["hello"], "nothing is decided yet"
    case.answered(Accepted(1, last=LINE), lives=False)
    assert case.lines() == ["hello", LINE.text]


def test_a_host_that_was_started_again_takes_the_path_from_the_answer(case: Case) -> None:
    fresh = FinalLogLines(str(case.folder), lambda: 0, case.messages.append)
    fresh.answered(KEY, Accepted(1, last=LINE), None)
    assert case.lines(LINE.log) == [LINE.text]


@pytest.mark.parametrize("lives", [True, False])
def test_a_success_that_wrote_nothing_gets_no_file(case: Case, lives: bool) -> None:
    if lives:
        case.answered(Accepted(1, last=LINE), lives=True)
    case.ran.end(case.ends)
    if not lives:
        case.answered(Accepted(1, last=LINE), lives=False)
    assert not case.folder.exists()
    assert case.messages == []


def test_a_failure_that_wrote_nothing_says_so(case: Case) -> None:
    case.ran.end(case.ends)
    case.answered(Accepted(1, last=LastLine("error", "Marking task as FAILED: x.")), lives=False)
    assert case.lines() == ["Marking task as FAILED: x."]


def test_a_result_that_is_refused_is_said_to_be(case: Case) -> None:
    case.ran.end(case.ends)
    case.answered(Refused(1, "attempt 2 is the current one"), lives=False)
    assert case.lines() == ["The result of this attempt does not count: attempt 2 is the current one."]


def test_a_stopped_attempt_has_one_last_line(case: Case) -> None:
    case.ran.killing, case.ran.kill_reason = "cancelled", "it was cleared"
    case.ran.end(case.ends)
    case.answered(Refused(1, "too late"), lives=False)
    assert case.lines() == ["The attempt was stopped, and its result does not count: it was cleared."]


def test_a_folder_that_cannot_be_written_is_said_once_and_when_it_is_over(case: Case) -> None:
    case.folder.touch()  # a file stands in its place
    case.ran.log.feed(b"lost\n")
    case.ran.end(case.ends)
    case.answered(Accepted(1, last=LINE), lives=False)
    case.ends.probe()
    assert len(case.messages) == 1
    assert "cannot be written" in case.messages[0]
    case.folder.unlink()
    case.ends.append("d/r/a.log", LINE)
    assert case.messages[1:] == [""]
    assert case.ends.trouble == ""


def test_the_folder_is_looked_at_before_anything_is_written(tmp_path: Path) -> None:
    received: list[str] = []
    folder = tmp_path / "logs"
    folder.touch()
    ends = FinalLogLines(str(folder), lambda: 0, received.append)
    ends.probe()
    assert received == [f"the log folder {folder} cannot be created: File exists"]
    folder.unlink()
    ends.probe()
    assert received[1:] == [""]
    assert folder.is_dir()
