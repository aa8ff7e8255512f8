"""A function in a forked child."""

from __future__ import annotations

import sys

from tradewind.platform.forked import run_forked


def test_the_result_comes_back_and_the_imports_do_not() -> None:
    def work() -> bytes:
        sys.modules["tradewind_only_in_the_child"] = sys
        return b"done" * 50_000

    assert run_forked(work) == b"done" * 50_000
    assert "tradewind_only_in_the_child" not in sys.modules


def test_a_failure_is_none() -> None:
    def work() -> bytes:
        raise ValueError

    assert run_forked(work) is None
    assert run_forked(lambda: sys.exit(0)) is None
