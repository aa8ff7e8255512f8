"""Verdicts on disk: whatever was cut off while it was written, everything whole is found, and what comes later too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.model.states import Outcome
from tradewind.wire.messages import Report
from tradewind.worker.spool import Spool


def report(number: int) -> Report:
    return Report(number, Outcome.SUCCESS, reason=f"report {number}", ended=number)


def test_what_was_added_is_found_by_the_next_life(tmp_path: Path) -> None:
    Spool(str(tmp_path)).add([((1, 0, 1), report(1)), ((1, 1, 1), report(2))])
    Spool(str(tmp_path)).add([((2, 0, 1), report(3))])
    assert Spool(str(tmp_path)).load() == {(1, 0, 1): report(1), (1, 1, 1): report(2), (2, 0, 1): report(3)}


def test_the_proof_for_a_gateway_is_kept(tmp_path: Path) -> None:
    """Without it, a gateway drops the report of an attempt that was given up meanwhile, and the report stays for ever."""
    Spool(str(tmp_path)).add([((1, 0, 1), report(1), "token"), ((1, 1, 1), report(2))])
    spool = Spool(str(tmp_path))
    spool.load()
    assert spool.tokens == {(1, 0, 1): "token"}


def test_the_last_word_on_an_attempt_counts(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    spool.add([((1, 0, 1), report(1))])
    spool.add([((1, 0, 1), report(2))])
    assert spool.load() == {(1, 0, 1): report(2)}


def test_a_record_torn_at_any_byte_hides_nothing_written_behind_it(tmp_path: Path) -> None:
    spool, file = Spool(str(tmp_path)), tmp_path / "verdicts"
    spool.add([((1, 0, 1), report(1))])
    first = file.read_bytes()
    spool.add([((2, 0, 1), report(2))])
    whole = file.read_bytes()
    for end in range(len(first), len(whole)):
        file.write_bytes(whole[:end])
        assert spool.load() == {(1, 0, 1): report(1)}
        spool.add([((3, 0, 1), report(3))])
        assert spool.load() == {(1, 0, 1): report(1), (3, 0, 1): report(3)}


@pytest.mark.parametrize("rubbish", [b"\xff" * 100, b"\x00\x00\x00\x03abc", b"\x00"])
def test_rubbish_is_no_verdict_and_no_obstacle(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / "verdicts").write_bytes(rubbish)
    spool = Spool(str(tmp_path))
    assert spool.load() == {}
    spool.add([((1, 0, 1), report(1))])
    assert Spool(str(tmp_path)).load() == {(1, 0, 1): report(1)}


def test_nothing_is_left_after_all_counted(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    spool.clear()
    spool.add([((1, 0, 1), report(1))])
    spool.clear()
    assert spool.load() == {}
    assert list(tmp_path.iterdir()) == []
