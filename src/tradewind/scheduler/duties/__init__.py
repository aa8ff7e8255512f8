"""Background duties of the scheduler, one per module.

A duty has a name, an interval and `run_once`. `run_once` may be called at any time, does a limited amount of work and returns
whether more work is left.
"""

from __future__ import annotations

from typing import Protocol


class Duty(Protocol):
    """One background duty."""

    name: str
    interval: int
    """Microseconds between two calls when no work is left."""

    def run_once(self) -> bool:
        """Do one limited step, and return whether another one should follow soon."""
        ...
