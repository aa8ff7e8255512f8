"""The options of a benchmark run, and its progress output. Every workload receives them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.measure import Result


@dataclass
class Bench:
    quick: bool = False
    """Fewer repetitions and smaller sizes: to test the benchmark, not for results."""
    full: bool = False
    """Also run the workloads that take many minutes: 100,000 tasks with processes."""
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print a line of progress."""
        sys.stderr.write(f"[{time.monotonic() - self.began:6.1f} s] {text}\n")
        sys.stderr.flush()

    def pick(self, normal: int, quick: int) -> int:
        return quick if self.quick else normal


Workload = Callable[[Bench], list[Result]]
