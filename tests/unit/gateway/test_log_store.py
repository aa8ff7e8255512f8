"""Logs of remote workers: every byte is stored once, whatever is repeated or lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.gateway.log_store import LogStore, is_log_path
from tradewind.wire.gateway import LogPiece

PATH = "etl/run1/load~attempt=1.1.log"


def piece(offset: int, data: bytes, source: str = "s1") -> LogPiece:
    return LogPiece(PATH, source, offset, data)


def test_pieces_are_appended_and_repeated_ones_are_not(tmp_path: Path) -> None:
    logs = LogStore(str(tmp_path))
    assert logs.store("w", piece(0, b"one\n")).size == 4
    assert logs.store("w", piece(4, b"two\n")).size == 8
    assert logs.store("w", piece(4, b"two\n")).size == 8
    assert logs.store("w", piece(4, b"two\nthree\n")).size == 14
    assert (tmp_path / PATH).read_bytes() == b"one\ntwo\nthree\n"
    assert (tmp_path / PATH).stat().st_mode & 0o777 == 0o600


def test_a_gap_is_refused(tmp_path: Path) -> None:
    logs = LogStore(str(tmp_path))
    logs.store("w", piece(0, b"one\n"))
    answer = logs.store("w", piece(8, b"three\n"))
    assert (answer.size, answer.problem) == (4, "bytes 4 to 8 are missing")
    assert (tmp_path / PATH).read_bytes() == b"one\n"


def test_a_line_of_the_scheduler_does_not_hide_what_follows(tmp_path: Path) -> None:
    """The scheduler may write a final line while the worker is away; the worker's output comes later."""
    logs = LogStore(str(tmp_path))
    logs.store("w", piece(0, b"one\n"))
    with (tmp_path / PATH).open("ab") as file:
        file.write(b"lost\n")
    logs.store("w", piece(4, b"two\n"))
    assert (tmp_path / PATH).read_bytes() == b"one\nlost\ntwo\n"


def test_a_restarted_gateway_stores_a_piece_without_acknowledgement_once(tmp_path: Path) -> None:
    LogStore(str(tmp_path)).store("w", piece(0, b"one\n"))
    again = LogStore(str(tmp_path))
    assert again.store("w", piece(0, b"one\n")).size == 4
    assert again.store("w", piece(4, b"two\n")).size == 8
    assert (tmp_path / PATH).read_bytes() == b"one\ntwo\n"


def test_a_new_file_on_the_worker_is_appended(tmp_path: Path) -> None:
    """The worker has deleted the stored file, and its final line came afterwards."""
    logs = LogStore(str(tmp_path))
    logs.store("w", piece(0, b"one\n"))
    logs.store("w", piece(0, b"last\n", source="s2"))
    assert (tmp_path / PATH).read_bytes() == b"one\nlast\n"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x.log",
        "../run/load~attempt=1.1.log",
        "etl/../../load~attempt=1.1.log",
        "/etc/run/load~attempt=1.1.log",
        "etl/run/.ssh/load~attempt=1.1.log",
        "etl/run/authorized_keys",
        "etl//load~attempt=1.1.log",
    ],
)
def test_only_paths_of_task_logs_are_written(path: str, tmp_path: Path) -> None:
    assert not is_log_path(path)
    answer = LogStore(str(tmp_path / "logs")).store("w", LogPiece(path, "s", 0, b"x"))
    assert answer.problem.endswith("is not the path of a task log")
    assert not (tmp_path / "logs").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "etl" / "run1"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"")
    (folder / "load~attempt=1.1.log").symlink_to(tmp_path / "secret")
    assert LogStore(str(tmp_path / "logs")).store("w", piece(0, b"x")).problem
    assert (tmp_path / "secret").read_bytes() == b""
