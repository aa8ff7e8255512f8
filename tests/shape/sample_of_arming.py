"""Sample of how tests set failpoints. test_hygiene.py reads this file and does not run it."""

from __future__ import annotations

from collections.abc import Callable


def sample(start: Callable[..., None], setenv: Callable[[str, str], None]) -> None:
    """Every way to set failpoints."""
    start(env={"TRADEWIND_FAILPOINTS": "a.b=kill9@3"})
    setenv("TRADEWIND_FAILPOINTS", "c.d=hang")
    start(TRADEWIND_DROP_WAKEUPS="x,y")
