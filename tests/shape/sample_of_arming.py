"""How tests arm failpoints: read, not run, by test_hygiene.py."""

from __future__ import annotations

from collections.abc import Callable


def sample(start: Callable[..., None], setenv: Callable[[str, str], None]) -> None:
    """Every way of writing it."""
    start(env={"TRADEWIND_FAILPOINTS": "a.b=kill9@3"})
    setenv("TRADEWIND_FAILPOINTS", "c.d=hang")
    start(TRADEWIND_DROP_WAKEUPS="x,y")
