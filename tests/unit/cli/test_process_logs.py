"""Log files of services are rotated while the processes and their children write to them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tradewind.cli import process_logs
from tradewind.cli.process_logs import ROTATED_FILES_KEPT, RotatingFiles, open_log, rotate


def test_a_log_is_rotated_while_processes_write_to_it(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.log"
    writer = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = os.dup(writer)
    for number in range(ROTATED_FILES_KEPT + 3):
        os.write(writer if number % 2 else child, f"{number}".encode() * 10)
        assert rotate(str(path), at=10)
        assert path.stat().st_size == 0
        os.write(child, b"short")
        assert not rotate(str(path), at=10)
        os.truncate(path, 0)
    os.close(writer)
    os.close(child)
    kept = sorted(tmp_path.iterdir())
    assert [one.name for one in kept] == [
        "scheduler.log",
        *(f"scheduler.log.{age}" for age in range(1, ROTATED_FILES_KEPT + 1)),
    ]
    assert [one.read_text()[:1] for one in kept[1:]] == [str(ROTATED_FILES_KEPT + 2 - age) for age in range(ROTATED_FILES_KEPT)]
    assert kept[1].stat().st_mode & 0o777 == 0o600


def test_a_missing_log_is_not_rotated(tmp_path: Path) -> None:
    assert rotate(str(tmp_path / "none.log")) is False


def test_a_large_log_of_an_earlier_process_is_rotated_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_logs, "ROTATE_AT", 10)
    for _ in range(2):
        file = open_log(str(tmp_path), "host")
        os.write(file, b"x" * 20)
        os.close(file)
    assert (tmp_path / "logs" / "processes" / "host.log.1").stat().st_size == 20


def test_a_service_rotates_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_logs, "ROTATE_AT", 10)
    path = tmp_path / "scheduler.err"
    path.write_bytes(b"x" * 20)
    handler = RotatingFiles([str(path), str(path)])
    record = logging.makeLogRecord({"msg": "something"})
    handler.emit(record)
    assert (path.stat().st_size, (tmp_path / "scheduler.err.1").stat().st_size) == (0, 20)
    path.write_bytes(b"x" * 20)
    handler.emit(record)
    assert path.stat().st_size == 20, "sizes are looked at now and then, not at each record"
