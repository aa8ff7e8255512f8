"""The time until which processes of a disconnected remote worker may still run.

A worker beside the scheduler holds a lock. Of a remote worker, only the lease is known: the worker stops its tasks when its
lease has run out. So the scheduler waits until the end of the lease, and no longer:

    the gateway has lost the worker      until the end of the lease that the gateway gave it last
    the gateway is away, too             its tasks continue (`worker.outage_lease`), so they may run as long
    the gateway has come back            its workers connect again within one lease, or stop
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.moments import SECOND
from tradewind.platform.clock import Clock
from tradewind.wire.gateway import LEASE, LEASE_GRACE

MARGIN = 2 * SECOND
"""Added to a lease: a worker looks at its lease once a second, clocks of two machines do not run equally fast, and a kill takes a
moment.
"""


class _DisconnectedWorker(NamedTuple):
    """The message of a gateway about a worker that has disconnected."""

    gateway: str
    until: int
    """Monotonic microseconds."""


class RemoteWorkers:
    """See the module.

    Args:
        outage_lease: microseconds for which tasks continue while a gateway or the scheduler is unavailable.
    """

    def __init__(self, clock: Clock, outage_lease: int) -> None:
        self._clock = clock
        self._outage_lease = outage_lease
        self._began = clock.monotonic()
        self._gateways: dict[str, int] = {}
        """Connected gateway → the time since when it is connected."""
        self._gateway_of: dict[str, str] = {}
        """Worker → the gateway through which it was connected last."""
        self._connected: set[str] = set()
        self._absent_since: dict[str, int] = {}
        self._away: dict[str, _DisconnectedWorker] = {}

    def connected(self, worker: str, gateway: str) -> None:
        """Handle the registration of a worker."""
        self._connected.add(worker)
        self._gateway_of[worker] = gateway
        self._absent_since.pop(worker, None)
        self._away.pop(worker, None)

    def disconnected(self, worker: str) -> None:
        """Handle the end of a worker's connection."""
        self._connected.discard(worker)
        self._absent_since[worker] = self._clock.monotonic()

    def away(self, gateway: str, worker: str, lease: int, ago: int = 0) -> int:
        """Handle a message of a gateway: the worker has disconnected; its lease lasts `lease` microseconds (0: it ended normally).
        Returns microseconds until none of its processes runs; 0: the message is out of date.

        Args:
            ago: microseconds since it has disconnected. Since then it may have connected through another gateway, which may be
                away now, too. A scheduler knows this only of the time since its own start.
        """
        now = self._clock.monotonic()
        if self._gateway_of.get(worker) != gateway and (
            worker in self._connected or now - ago < self._absent_since.get(worker, self._began)
        ):
            return 0
        rest = lease + LEASE_GRACE + MARGIN if lease else 0
        until, before = now + rest, self._away.get(worker)
        if before is not None and before.gateway != gateway:
            until = max(until, before.until)
        self._away[worker] = _DisconnectedWorker(gateway, until)
        return until - now

    def gateway_connected(self, gateway: str) -> None:
        """Handle the registration of a gateway."""
        self._gateways[gateway] = self._clock.monotonic()

    def gateway_disconnected(self, gateway: str) -> None:
        """Handle the end of a gateway's connection."""
        self._gateways.pop(gateway, None)

    def may_live(self, worker: str) -> bool:
        """Whether processes of this worker may still run."""
        if worker in self._connected:
            return True
        now = self._clock.monotonic()
        away = self._away.get(worker)
        if away is not None:
            return now < away.until
        absent = self._absent_since.get(worker, self._began)
        end = absent + max(self._outage_lease, LEASE) + LEASE_GRACE + MARGIN
        since = self._gateways.get(self._gateway_of.get(worker, ""))
        if since is not None:
            end = min(end, max(since, absent) + LEASE + LEASE_GRACE + MARGIN)
        return now < end
