"""Summaries of runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tradewind.kernel.run_summary import (
    ABSENT,
    WORST_FIRST,
    decode_summary,
    encode_summary,
    expanded,
    stretches,
    summarise,
    summarise_plain,
    worst,
)
from tradewind.model.states import TaskState

SUCCESS, FAILED, RUNNING = TaskState.SUCCESS.code, TaskState.FAILED.code, TaskState.RUNNING.code


@given(st.binary(max_size=300))
def test_stretches_are_reversible(codes: bytes) -> None:
    found = stretches(codes)
    assert expanded(found) == codes
    assert all(a != b for a, b in zip(found[1::2], found[3::2], strict=False)), "neighbours differ"


def test_every_state_has_a_rank() -> None:
    assert set(WORST_FIRST) == set(TaskState)
    assert len(WORST_FIRST) == len(TaskState)


def test_the_worst_state_stands_for_all() -> None:
    assert worst(bytes((SUCCESS, RUNNING, FAILED, SUCCESS))) == FAILED
    assert worst(bytes((ABSENT, SUCCESS))) == SUCCESS
    assert worst(b"") == ABSENT


def test_mapped_tasks_count_their_instances() -> None:
    rows = [("a", SUCCESS), ("m", SUCCESS), ("m", FAILED), ("m", SUCCESS), ("gone", TaskState.REMOVED.code)]
    found = summarise(7, {"a": 0, "m": 1, "new": 2}, rows)
    assert expanded(found.states) == bytes((SUCCESS, FAILED, ABSENT))
    assert found.mapped == {1: ((SUCCESS, 2), (FAILED, 1))}
    assert found.counts == ((SUCCESS, 3), (FAILED, 1), (TaskState.REMOVED.code, 1))
    assert decode_summary(encode_summary(found)) == found


def test_a_run_without_mapped_tasks_is_summarised_from_its_states() -> None:
    codes = bytes((SUCCESS, SUCCESS, FAILED))
    assert summarise_plain(3, codes) == summarise(3, {"a": 0, "b": 1, "c": 2}, list(zip("abc", codes, strict=True)))
