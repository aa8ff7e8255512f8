"""How long to wait before trying again: longer after each failure, up to a cap, never all at the same moment.

The randomness is injected (`rng` returns a float in [0, 1), like `random.Random(seed).random`), so that a simulation
repeats.
"""

from __future__ import annotations

from collections.abc import Callable


def backoff_us(
    failures: int, *, first_us: int, cap_us: int, rng: Callable[[], float], factor: float = 2.0, jitter: float = 0.5
) -> int:
    """The wait in µs after the `failures`-th failure in a row (1 = the first).

    The plain wait is `first_us × factor^(failures−1)`, at most `cap_us`; `jitter` is the share of it that is drawn at
    random, so the answer lies in ((1 − jitter) × plain, plain]. Zero failures: no wait.

    Raises:
        ValueError: a wait that cannot be (cap below first, factor below 1, jitter outside 0 … 1, negative count).
    """
    if failures < 0 or first_us <= 0 or cap_us < first_us or factor < 1.0 or not 0.0 <= jitter <= 1.0:
        raise ValueError(
            f"no such backoff: failures={failures}, first_us={first_us}, cap_us={cap_us}, factor={factor}, jitter={jitter}"
        )
    if failures == 0:
        return 0
    try:
        plain = min(first_us * factor ** (failures - 1), cap_us)
    except OverflowError:  # a float ends near 2^1024; the cap was passed long before
        plain = cap_us
    return max(1, round(plain * (1.0 - jitter * rng())))


class Backoff:
    """Counts failures in a row and says how long to wait after each.

    Args:
        first_us, cap_us: the first plain wait and the longest, µs.
        rng: returns a float in [0, 1).
        factor: growth from one wait to the next.
        jitter: share of each wait that is random, 0 … 1.
    """

    __slots__ = ("_cap_us", "_factor", "_failures", "_first_us", "_jitter", "_rng")

    def __init__(
        self, first_us: int, cap_us: int, rng: Callable[[], float], *, factor: float = 2.0, jitter: float = 0.5
    ) -> None:
        backoff_us(0, first_us=first_us, cap_us=cap_us, rng=rng, factor=factor, jitter=jitter)  # refuse nonsense now
        self._first_us = first_us
        self._cap_us = cap_us
        self._rng = rng
        self._factor = factor
        self._jitter = jitter
        self._failures = 0

    @property
    def failures(self) -> int:
        """Failures in a row since the last `succeeded`."""
        return self._failures

    def failed(self) -> int:
        """One more failure: the wait in µs before the next try."""
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
        """It worked: the next failure is the first again."""
        self._failures = 0
