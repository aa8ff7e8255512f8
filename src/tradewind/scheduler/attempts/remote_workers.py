"""The time until which processes of a disconnected remote worker may still run.

A worker beside the scheduler holds a lock. Of a remote worker, only the lease is known: the worker stops its tasks when its
lease has run out. So the scheduler waits until the end of the lease, and no longer:

    the gateway has lost the worker      until the end of the lease that the gateway gave it last
    the gateway is away, too             its tasks continue (`worker.outage_lease`), so they may run as long
    the gateway has come back            its workers connect again within one lease, or stop

Only one gateway makes the lease of a worker longer while no scheduler is connected: the one through which the worker was
registered last, as the *worker* knows it. The scheduler knows it only after the worker has confirmed that the answer to its
registration arrived. Until then it may be the gateway before, too, so the scheduler keeps a set of gateways for each worker
(`gateways_at_registration`, `gateways_at_confirmation`). The set is in the store before a registration is answered. So a
scheduler that takes over, or starts again, knows which gateways have to be asked about a worker that does not come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from tradewind.model.moments import SECOND
from tradewind.platform.clock import Clock
from tradewind.wire.gateway import LEASE, LEASE_GRACE

MARGIN = 2 * SECOND
"""Added to a lease: a worker looks at its lease once a second, clocks of two machines do not run equally fast, and a kill takes a
moment.
"""
GATEWAYS_MAX = 8
"""Maximum number of gateways that are kept for a worker. For one that moves more often and never confirms: `SOME_OTHER`."""
FORGOTTEN_AT_ONCE = 10
"""Maximum number of workers that are forgotten at one disconnection."""
SOME_OTHER = ""
"""Stands for gateways whose names are not kept. No gateway has this name, so it never says that it has lost a worker."""


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
        """Worker → the gateway through which it was connected to this scheduler last."""
        self._homes: dict[str, frozenset[str]] = {}
        """Worker → the gateways of which one makes its lease longer during an outage. Equal to the store."""
        self._connected: set[str] = set()
        self._absent_since: dict[str, int] = {}
        self._away: dict[tuple[str, str], int] = {}
        """(worker, gateway) → until when the worker may run tasks under the leases of this gateway, which has lost it. Monotonic
        microseconds.
        """

    # --- the gateways of a worker -------------------------------------------------------------------------------------

    def load(self, gateways: Mapping[str, frozenset[str]]) -> None:
        """Take the gateways of all workers from the store."""
        self._homes = dict(gateways)

    def gateways_at_registration(self, worker: str, gateway: str) -> frozenset[str] | None:
        """The gateways to be stored before the registration of a worker is answered; None: the same as before."""
        known = self._homes.get(worker, frozenset())
        wanted = known | {gateway}
        if len(wanted) > GATEWAYS_MAX:
            wanted = frozenset({gateway, SOME_OTHER})
        return wanted if wanted != known else None

    def gateways_at_confirmation(self, worker: str, gateway: str) -> frozenset[str] | None:
        """The gateways to be stored when a worker has received the answer to its registration; None: the same as before."""
        wanted = frozenset({gateway})
        return wanted if wanted != self._homes.get(worker) else None

    def stored(self, worker: str, gateways: frozenset[str]) -> None:
        """The gateways of a worker are in the store now."""
        self._homes[worker] = gateways

    # --- events -------------------------------------------------------------------------------------------------------

    def connected(self, worker: str, gateway: str) -> None:
        """Handle the registration of a worker. What other gateways have said about it still holds: they give it no longer lease
        before a scheduler has answered there.
        """
        self._connected.add(worker)
        self._gateway_of[worker] = gateway
        self._absent_since.pop(worker, None)
        self._away.pop((worker, gateway), None)

    def disconnected(self, worker: str) -> None:
        """Handle the end of a worker's connection."""
        self._connected.discard(worker)
        self._absent_since.pop(worker, None)  # the worker that was disconnected last comes last
        self._absent_since[worker] = self._clock.monotonic()
        self._forget_old()

    def _forget_old(self) -> None:
        """Forget workers that were disconnected so long ago that none of their processes can live. Workers in pods never come back,
        and there is one for each attempt. Without this knowledge the answer of `may_live` is the same.
        """
        before = self._clock.monotonic() - self._longest
        for worker, since in list(islice(self._absent_since.items(), FORGOTTEN_AT_ONCE)):
            if since >= before or self._began >= before:
                return
            del self._absent_since[worker]
            self._gateway_of.pop(worker, None)
            for gateway in self._homes.pop(worker, ()):
                self._away.pop((worker, gateway), None)

    @property
    def _longest(self) -> int:
        """How long the processes of a worker may run after its disconnection."""
        return max(self._outage_lease, LEASE) + LEASE_GRACE + MARGIN

    def away(self, gateway: str, worker: str, lease: int) -> int:
        """Handle a message of a gateway: the worker has disconnected; its lease lasts `lease` microseconds (0: it ended normally).
        Returns microseconds until none of its processes runs, as far as known; 0: now.
        """
        now = self._clock.monotonic()
        self._away[worker, gateway] = now + (lease + LEASE_GRACE + MARGIN if lease else 0)
        return max(0, self._end_of(worker) - now)

    def gateway_connected(self, gateway: str) -> None:
        """Handle the registration of a gateway. It says again which workers it has lost, unless it was restarted: then it has
        forgotten them, and gives long leases to those that come back before they are registered.
        """
        now = self._clock.monotonic()
        self._gateways[gateway] = now
        self._away = {key: until for key, until in self._away.items() if key[1] != gateway or until <= now}

    def gateway_disconnected(self, gateway: str) -> None:
        """Handle the end of a gateway's connection."""
        self._gateways.pop(gateway, None)

    # --- the answer -----------------------------------------------------------------------------------------------------

    def may_live(self, worker: str) -> bool:
        """Whether processes of this worker may still run."""
        return worker in self._connected or self._clock.monotonic() < self._end_of(worker)

    def _end_of(self, worker: str) -> int:
        """Until when processes of a worker that is not connected may run: the latest end under one of its gateways."""
        absent = self._absent_since.get(worker, self._began)
        latest = absent + self._longest
        ends = (self._end_under(worker, gateway, absent, latest) for gateway in self._homes.get(worker, ()))
        return max(ends, default=latest)

    def _end_under(self, worker: str, gateway: str, absent: int, latest: int) -> int:
        """Until when processes of a worker may run under the leases of one gateway."""
        away = self._away.get((worker, gateway))
        if away is not None:
            return away
        since = self._gateways.get(gateway)
        if since is None or self._gateway_of.get(worker) != gateway:
            return latest  # it may have given a long lease to this worker, and have been restarted since then
        return min(latest, max(since, absent) + LEASE + LEASE_GRACE + MARGIN)
