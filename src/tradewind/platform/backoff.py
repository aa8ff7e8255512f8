"""Exponential backoff with jitter: the wait before the next try grows after each failure, up to a maximum.

The caller passes the source of random numbers (`rng` returns a float in [0, 1), like `random.Random(seed).random`), so that a
simulation is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable


def backoff_us(
    failures: int, *, first_us: int, cap_us: int, rng: Callable[[], float], factor: float = 2.0, jitter: float = 0.5
) -> int:
    """The wait in µs after the `failures`-th failure in a row (1 = the first).

    The wait without jitter is `first_us × factor^(failures−1)`, at most `cap_us`. `jitter` is the random share of it, so the result
    is in ((1 − jitter) × wait, wait]. No failures: 0.

    Raises:
        ValueError: cap below first, factor below 1, jitter outside 0 … 1, or a negative count.
    """
    if failures < 0 or first_us <= 0 or cap_us < first_us or factor < 1.0 or not 0.0 <= jitter <= 1.0:
        raise ValueError(
            f"not a valid backoff: failures={failures}, first_us={first_us}, cap_us={cap_us}, factor={factor}, jitter={jitter}"
        )
    if failures == 0:
        return 0
    try:
        plain = min(first_us * factor ** (failures - 1), cap_us)
    except OverflowError:  # the float is above 2^1024, far above the cap
        plain = cap_us
    return max(1, round(plain * (1.0 - jitter * rng())))


class Backoff:
    """Counts consecutive failures and computes the wait after each.

    Args:
        first_us, cap_us: the first and the longest wait, without jitter, in µs.
        rng: returns a float in [0, 1).
        factor: growth from one wait to the next.
        jitter: random share of each wait, 0 … 1.
    """

    __slots__ = ("_cap_us", "_factor", "_failures", "_first_us", "_jitter", "_rng")

    def __init__(
        self, first_us: int, cap_us: int, rng: Callable[[], float], *, factor: float = 2.0, jitter: float = 0.5
    ) -> None:
        backoff_us(0, first_us=first_us, cap_us=cap_us, rng=rng, factor=factor, jitter=jitter)  # checks the arguments
        self._first_us = first_us
        self._cap_us = cap_us
        self._rng = rng
        self._factor = factor
        self._jitter = jitter
        self._failures = 0

    @property
    def failures(self) -> int:
        """Number of failures since the last `succeeded`."""
        return self._failures

    def failed(self) -> int:
        """Count a failure. Returns the wait in µs before the next try."""
        self._failures += 1
        return backoff_us(
            self._failures,
            first_us=self._first_us,
            cap_us=self._cap_us,
            rng=self._rng,
            factor=self._factor,
            jitter=self._jitter,
        )

    def succeeded(self) -> None:
        """Reset the count after a success."""
        self._failures = 0
