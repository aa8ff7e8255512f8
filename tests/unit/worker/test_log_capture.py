"""From bytes to log lines: whole, stamped, masked, and bounded in memory and on disk."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tradewind.worker.log_capture import LogCapture
from tradewind.worker.log_records import RECORD_MARK


class Time:
    """Moves a second with each look."""

    def __init__(self) -> None:
        self.at = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.at += 1_000_000
        return self.at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "attempt.log"


def capture(path: Path, file_max: int = 10_000, line_max: int = 1_000) -> LogCapture:
    return LogCapture(path, Time(), file_max, line_max)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def events(path: Path) -> list[str]:
    return [line["event"] for line in lines(path)]


def test_a_silent_task_costs_no_file(path: Path) -> None:
    capture(path).close()
    assert not path.parent.exists()


def test_lines_are_whole_however_they_arrive(path: Path) -> None:
    log = capture(path)
    for piece in (b"on", b"e\ntw", b"o\r\n\nlast"):
        log.feed(piece)
    assert events(path) == ["one", "two", ""]
    log.close()
    assert events(path) == ["one", "two", "", "last"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_records_of_logging_keep_their_level(path: Path) -> None:
    log = capture(path)
    log.feed(RECORD_MARK + b'{"level":"warning","event":"careful","logger":"me"}\n' + RECORD_MARK + b"no record\n")
    log.close()
    first, second = lines(path)
    assert (first["level"], first["event"], first["logger"]) == ("warning", "careful", "me")
    assert second["event"] == "no record"


def test_secrets_are_masked_longest_first_and_short_texts_are_not(path: Path) -> None:
    log = capture(path)
    log.mask(["hunter2", "hunter2-and-more", "abc"])
    log.feed(b"hunter2-and-more hunter2 abc\n")
    log.note("info", "ours: hunter2")
    log.close()
    assert events(path) == ["*** *** abc", "ours: ***"]


def test_a_secret_learnt_late_is_masked_in_the_tail_too(path: Path) -> None:
    log = capture(path, file_max=400)
    log.feed(b"x" * 300 + b"\n")
    log.feed(b"the secret is hunter2\n")
    log.mask(["hunter2"])
    log.close()
    assert events(path)[-1] == "the secret is ***"


def test_a_line_without_end_is_cut(path: Path) -> None:
    log = capture(path, line_max=10)
    log.feed(b"0123456789abc")
    log.feed(b"defg\nnext\n")
    log.close()
    assert events(path) == ["0123456789 … (7 more bytes in this line)", "next"]


def test_bytes_that_are_no_text_are_shown(path: Path) -> None:
    log = capture(path)
    log.feed(b"a\xff\xfe\x00b\n")
    log.close()
    assert events(path) == ["a\\xff\\xfe\x00b"]


def test_beginning_and_end_of_a_long_log_are_kept_in_order(path: Path) -> None:
    log = capture(path, file_max=4_000)
    for number in range(5_000):
        log.feed(b"line %d\n" % number)
    log.note("warning", "The task is stopped: enough.")
    log.feed(b"last words")
    log.close()
    found = events(path)
    assert path.stat().st_size < 5_000
    (gap,) = [i for i, event in enumerate(found) if "bytes of output are left out here" in event]
    head, tail = found[:gap], found[gap + 1 :]
    assert head == [f"line {number}" for number in range(len(head))]
    assert tail[-2:] == ["The task is stopped: enough.", "last words"]
    assert tail[:-2] == [f"line {number}" for number in range(5_000 - len(tail) + 2, 5_000)]
    assert len(tail) > 10
    moments = [line["timestamp"] for line in lines(path)]
    assert moments == [*sorted(moments[:gap]), moments[gap], *sorted(moments[gap + 1 :])]


def test_nothing_is_missing_where_everything_fits(path: Path) -> None:
    log = capture(path, file_max=3_000)
    for number in range(25):
        log.feed(b"line %d\n" % number)
    log.close()
    assert events(path) == [f"line {number}" for number in range(25)]


def test_much_output_needs_little_memory(path: Path) -> None:
    log = capture(path, file_max=64 * 1024 * 1024, line_max=1024)
    log._head_max = 1_000
    block = b"a line of some length, as programs print them\n" * 1_400
    log.feed(block)
    tracemalloc.start()
    for _ in range(2_000):  # 130 MB
        log.feed(block)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    log.close()
    assert most < 3_000_000


def test_a_log_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = capture(tmp_path / "file" / "attempt.log")
    log.feed(b"lost\n")
    log.close()
    assert log.problem is not None
    assert "cannot be written" in log.problem


def test_secrets_in_json_are_masked_as_json_writes_them(path: Path) -> None:
    """A secret that looks like JSON's own signs must not break the document."""
    log = capture(path)
    log.mask(['pass"word', '": "'])
    document = json.dumps({"command": 'curl -u me:pass"word', "b": "2"}).encode()
    assert json.loads(log.masked_json(document)) == {"command": "curl -u me:***", "b": "2"}
    assert log.masked('say pass"word') == "say ***"


def test_output_that_could_not_be_written_is_counted_where_it_is_missing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    log = capture(blocked / "attempt.log")
    log.feed(b"lost\n")
    assert log.problem is not None
    assert not log.has_written
    blocked.unlink()
    log.feed(b"kept\n")
    log.close()
    first, second = events(blocked / "attempt.log")
    assert first.startswith("… ")
    assert "bytes of the log are missing here" in first
    assert second == "kept"


@pytest.mark.parametrize("full_lines", [1, 10])
def test_a_last_note_stands_behind_output_without_a_line_end(path: Path, full_lines: int) -> None:
    """What was decided is the last line, also where the task ended in the midst of a line and where the log's head is full."""
    log = capture(path, file_max=1_000)
    log.feed(b"a line\n" * full_lines + b"and no end")
    log.feed(b" of this one")
    log.end_line()
    log.note("info", "Marking task as SUCCESS.")
    log.close()
    assert events(path)[-2:] == ["and no end of this one", "Marking task as SUCCESS."]
