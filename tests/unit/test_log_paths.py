"""Log paths: ids from people become exactly one segment each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.wire.log_paths import callbacks_log_path, earlier_log_path, is_log, log_path, segment


@pytest.mark.spec("S16")
def test_a_plain_id_stays_readable() -> None:
    assert log_path("sales", "manual__2026", "group.load", -1, 2, 7) == "sales/manual__2026/group.load~attempt=2.7.log"
    assert log_path("bi.bi_all", "r", "t", -1, 1, 1) == "bi.bi_all/r/t~attempt=1.1.log"
    assert log_path("sales", "r", "t", 3, 1, 9) == "sales/r/t~map_index=3~attempt=1.9.log"


@pytest.mark.parametrize(
    "bad", ["..", ".", "../../etc/passwd", "/etc", "a/b", "a\\b", "a\0b", "", "%2e%2e", "ü" * 300, "x" * 5000]
)
def test_no_id_leaves_its_folder(bad: str) -> None:
    parts = log_path(bad, bad, bad, -1, 1, 1).split("/")
    assert len(parts) == 3
    for part in parts:
        assert part not in ("", ".", "..")
        assert not set(part) & set('/\\\0:*?"<>|')
        assert len(part.encode()) <= 255


@given(st.text(max_size=300), st.text(max_size=300))
def test_different_ids_never_share_a_segment(one: str, other: str) -> None:
    assert (segment(one) == segment(other)) == (one == other)


def test_long_ids_that_begin_alike_differ() -> None:
    assert segment("x" * 400 + "a") != segment("x" * 400 + "b")


def test_only_our_own_logs_are_known_as_such() -> None:
    """What retention deletes: not the logs that Airflow wrote into the same folder, nor anything else."""
    for path in (
        log_path("d", "r", "t", -1, 1, 1),
        log_path("d", "r", "t", 7, 12, 34),
        earlier_log_path("d", "r", "t", 7, 12, 34),
        callbacks_log_path("d", "r"),
    ):
        assert is_log(path.rpartition("/")[2]), path
    for name in ("attempt=1.log", "triggers.log", "scheduler.log", "t.log", "notes~attempt=1.1.log.txt"):
        assert not is_log(name), name
