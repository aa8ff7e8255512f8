"""Counts the lines of Tradewind's code that a piece of work executes.

Other processes do not change this number. If code visits all objects of a kind, the number grows with the objects. Work inside
SQLite and inside functions written in C is not counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import tradewind

_PACKAGE = os.path.dirname(tradewind.__file__) + os.sep

Trace = Callable[[FrameType, str, Any], Any]


def lines_of(work: Callable[[], object]) -> Counter[str]:
    """The number of lines that `work` executes in this thread, by "file:function". Each iteration of a loop counts."""
    found: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: object) -> Trace | None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return None
        name = f"{code.co_filename.removeprefix(_PACKAGE)}:{code.co_qualname}"

        def line(frame: FrameType, event: str, argument: object) -> Trace:
            if event == "line":
                found[name] += 1
            return line

        return line

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return found
