"""The lease of the active scheduler, for databases that several schedulers can reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol


class Holder(NamedTuple):
    """The holder of the lease.

    Attributes:
        pid: the process on the machine `hostname`.
        address: address of the gateway beside the scheduler; empty: other machines cannot reach it.
    """

    epoch: int
    hostname: str
    pid: int
    address: str = ""


def is_held(holder: str, is_valid: bool, has_lock: bool, is_connected: Callable[[], bool]) -> bool:
    """Whether the holder of the lease is still the active scheduler, so that another one must not take over.

    Args:
        holder: the random text of the holder; empty: nobody holds the lease.
        is_valid: the lease has not expired.
        has_lock: whether the asking scheduler has the lock that the server frees with the connection of the holder.
        is_connected: whether the connection exists with which the holder renews its lease.
    """
    return bool(holder) and is_valid and (not has_lock or is_connected())


class Lease(Protocol):
    """The lease: at most one scheduler holds it. Used by one thread."""

    epoch: int
    """The epoch of this scheduler; 0: it does not hold the lease."""

    def try_acquire(self) -> Holder | None:
        """Acquire the lease if it is free, has expired, or its holder has lost its connection. Otherwise return its holder.

        Raises:
            StoreBusy: a transaction of the previous holder still runs; try again.
            StoreError: the database cannot be used now.
        """

    def acquire(self, timeout_seconds: float) -> None:
        """Acquire the lease, and wait at most this long for it.

        Raises:
            StoreBusy: another scheduler holds it; the message names the scheduler.
            StoreError: the database cannot be used now.
        """

    def renew(self) -> None:
        """Extend the lease.

        Raises:
            Stale: another scheduler has taken over.
            StoreError: the database cannot be reached. The epoch of this scheduler has ended.
        """

    def has_standby(self) -> bool:
        """Whether another scheduler stands by: it is connected and waits for the lease.

        Raises:
            StoreError: the database cannot be reached.
        """

    def release(self) -> None:
        """Release the lease, so that a standby scheduler need not wait. Raises no errors."""
