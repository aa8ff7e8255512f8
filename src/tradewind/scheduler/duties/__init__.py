"""Background duties: each a small file of one shape. A `Duty` has a name, an interval and `run_once`, which may be called at any
time, does a bounded amount of work and says whether more is left.
"""

from __future__ import annotations

from typing import Protocol


class Duty(Protocol):
    """One background duty."""

    name: str
    interval: int
    """Microseconds between two turns when nothing is left."""

    def run_once(self) -> bool:
        """One bounded step; True when another one should follow soon."""
        ...
