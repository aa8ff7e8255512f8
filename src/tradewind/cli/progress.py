"""How far long work has come: a bar on stderr where somebody looks, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WORTH_A_BAR = 20
"""Work of fewer parts is over before a bar is read."""


class Bar:
    """Counts; draws where there is something to draw on."""

    def __init__(self, drawn: Any = None, task: Any = None) -> None:
        self.done = 0
        self._drawn, self._task = drawn, task

    @property
    def drawn(self) -> bool:
        """Does anybody look? Else nothing has to be counted."""
        return self._drawn is not None

    def advance(self, count: int = 1) -> None:
        self.done += count
        if self._drawn is not None:
            self._drawn.advance(self._task, count)

    def set(self, done: int, total: int, title: str) -> None:
        """How far it is, out of how much, and what it is called now."""
        self.done = done
        if self._drawn is not None:
            self._drawn.update(self._task, completed=done, total=total, description=title)


@contextmanager
def progress(title: str, total: int | None, *, slow: bool = False) -> Iterator[Bar]:
    """A bar for `total` parts (None: nobody knows how many), gone when the work is done.

    Args:
        slow: few parts may take long, too.
    """
    if not sys.stderr.isatty() or (total is not None and total < _WORTH_A_BAR and not slow):
        yield Bar()
        return
    from rich.console import Console  # lazy door: 60 ms that only long work on a terminal needs
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        yield Bar(drawn, drawn.add_task(title, total=total))
