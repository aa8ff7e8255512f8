"""Renews the lease of the active scheduler, and stops the scheduler when the lease is lost."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.errors import Stale, StoreError
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.loop import Loop
from tradewind.store.port.lease import Lease

log = Log("scheduler")

EVERY = 2 * SECOND
"""Interval of renewals: a fifth of the lease. The renewal is a timer of the scheduler's loop, so a loop that makes no progress
loses its lease.
"""

TELL_EVERY = 2
"""Number of renewals after which the worker hosts hear from the scheduler. Their lease of 30 s has to outlast this time and a
statement of the scheduler on a database that hangs (20 s).
"""


class LeaseRenewal:
    """See the module.

    Args:
        is_connected: whether the connection with which the scheduler writes is usable.
        stop: stops the scheduler at once, without another statement.
        standby_is_ready: called with every second renewal, while another scheduler stands by. The worker hosts are told: as long as
            they hear from this scheduler, nobody has taken over.

    Attributes:
        lost: why the epoch has ended; None: it has not ended.
    """

    def __init__(
        self,
        lease: Lease,
        loop: Loop,
        is_connected: Callable[[], bool],
        stop: Callable[[], None],
        standby_is_ready: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._loop = loop
        self._is_connected = is_connected
        self._stop = stop
        self._standby_is_ready = standby_is_ready
        self._has_standby = False
        """Another scheduler has stood by."""
        self._renewals = 0
        self.lost: str | None = None

    def start(self) -> None:
        """Renew the lease as soon as the loop runs, then regularly. The first lease is long, because the scheduler loads its
        state meanwhile.
        """
        self._loop.call_later(0, self._renew)

    def _renew(self) -> None:
        try:
            if self._is_connected():
                self._lease.renew()
                had_standby, self._has_standby = self._has_standby, self._has_standby or self._lease.has_standby()
                self._renewals += 1
                if self._has_standby and (not had_standby or self._renewals % TELL_EVERY == 0):
                    self._standby_is_ready()
            else:
                self.lost = "the connection to the database was lost"
        except (Stale, StoreError) as error:
            self.lost = str(error)
        if self.lost is None:
            self._loop.call_later(EVERY, self._renew)
            return
        log.error("the epoch of this scheduler has ended; it stops", epoch=self._lease.epoch, why=self.lost)
        self._stop()
