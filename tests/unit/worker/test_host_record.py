"""How a worker host ended, as the next one tells it: from a note that a killed host could not change any more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tradewind.platform import linux
from tradewind.platform.clock import ManualClock
from tradewind.worker import host_record
from tradewind.worker.host_record import HostRecord, how_it_ended

NOTE: dict[str, Any] = {"name": "one", "pid": 7, "boot": "b1", "oom_kills": 3, "ended": None}


@pytest.mark.parametrize(
    ("changed", "oom_kills", "expected"),
    [
        ({}, 3, "the worker host that ran it (process 7) was killed"),
        ({}, None, "the worker host that ran it (process 7) was killed"),
        ({"oom_kills": None}, 3, "the worker host that ran it (process 7) was killed"),
        ({}, 4, "the machine ran out of memory, and the worker host that ran it (process 7) was killed"),
        ({"boot": "b0"}, 0, "the machine was restarted while it ran"),
        ({"ended": "stopped"}, 4, "the worker host that ran it was stopped"),
    ],
)
def test_the_end_of_a_host_is_told_in_words(changed: dict[str, Any], oom_kills: int | None, expected: str) -> None:
    assert how_it_ended({**NOTE, **changed}, "b1", oom_kills) == expected


def test_the_next_life_finds_the_note_of_the_one_before(tmp_path: Path) -> None:
    first = HostRecord(str(tmp_path), "one", ManualClock(0))
    first.begin()
    assert (first.previous_process, first.previous_end) == ("", "")
    second = HostRecord(str(tmp_path), "two", ManualClock(0))
    second.begin()
    assert (second.previous_process, second.previous_end) == (
        "one",
        f"the worker host that ran it (process {os.getpid()}) was killed",
    )
    second.end()
    third = HostRecord(str(tmp_path), "three", ManualClock(0))
    third.begin()
    assert (third.previous_process, third.previous_end) == ("two", "the worker host that ran it was stopped")
    assert (tmp_path / "host-record.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", "{", '"text"'])
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "host-record.json").write_text(text, encoding="utf-8")
    life = HostRecord(str(tmp_path), "one", ManualClock(0))
    life.begin()
    assert life.previous_process == ""
    assert json.loads((tmp_path / "host-record.json").read_text(encoding="utf-8"))["name"] == "one"


def test_a_process_that_the_kernel_killed_for_want_of_memory_is_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([3, 3, 4, 4, 4])
    monkeypatch.setattr(host_record, "_count_oom_kills", lambda: next(counts))
    clock = ManualClock(0)
    life = HostRecord(str(tmp_path), "one", clock)
    assert life.out_of_memory() is None, "it has not begun"
    life.begin()
    assert life.out_of_memory() is False
    assert life.out_of_memory() is True
    assert life.out_of_memory() is True, "another one that ended at the same time"
    clock.advance(60_000_000)
    assert life.out_of_memory() is False
    assert json.loads((tmp_path / "host-record.json").read_text(encoding="utf-8"))["oom_kills"] == 4


def test_the_kernel_counts_what_it_killed_for_want_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "vmstat"
    path.write_text("pgfault 12\noom_kill 5\nother 1\n", encoding="ascii")
    assert linux.oom_kills(str(path)) == 5
    path.write_text("pgfault 12\n", encoding="ascii")
    assert linux.oom_kills(str(path)) is None
    assert linux.oom_kills(str(tmp_path / "missing")) is None
