"""A progress bar on stderr for long work; nothing is drawn if stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WORTH_A_BAR = 20
"""Smallest number of parts for which a bar is drawn; less work is finished too soon."""


class Bar:
    """Counts finished parts, and draws a bar on a terminal."""

    def __init__(self, drawn: Any = None, task: Any = None) -> None:
        self.done = 0
        self._drawn, self._task = drawn, task

    @property
    def drawn(self) -> bool:
        """Whether the bar is visible. If not, the caller need not count."""
        return self._drawn is not None

    def advance(self, count: int = 1) -> None:
        self.done += count
        if self._drawn is not None:
            self._drawn.advance(self._task, count)

    def set(self, done: int, total: int, title: str) -> None:
        """Set the number of finished parts, the number of all parts, and the title."""
        self.done = done
        if self._drawn is not None:
            self._drawn.update(self._task, completed=done, total=total, description=title)


@contextmanager
def progress(title: str, total: int | None, *, slow: bool = False) -> Iterator[Bar]:
    """A bar for `total` parts (None: unknown), which disappears when the work is finished.

    Args:
        slow: draw the bar also for few parts, because each may take long.
    """
    if not sys.stderr.isatty() or (total is not None and total < _WORTH_A_BAR and not slow):
        yield Bar()
        return
    from rich.console import Console  # lazy import: takes 60 ms, only needed for long work on a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        yield Bar(drawn, drawn.add_task(title, total=total))
