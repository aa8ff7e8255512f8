"""Jobs: the running services as the scheduler sees them, as in Airflow's `job` table. No decision depends on them.

The scheduler's own job begins and ends with its process. The job of another service is its connection to the scheduler: a
service sends a goodbye when it stops normally. A connection that breaks without a goodbye is a failed job, until the same
process connects again.
"""

from __future__ import annotations

from tradewind.model.errors import StoreError
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewJob
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.store.port import Store

log = Log("jobs")

SCHEDULER, HOST, PARSER, API = "SchedulerJob", "LocalExecutorJob", "DagProcessorJob", "ApiServerJob"
"""Airflow's job types; the last one is Tradewind's own."""

HEARTBEAT = 10 * SECOND
LOST_AFTER = 60 * SECOND
"""A service that an earlier scheduler knew and that has not connected for this time counts as failed."""


class JobRegistry:
    """Writes the jobs of services. If the store fails, the next heartbeat tries again.

    Args:
        own: the job of this scheduler.
    """

    def __init__(self, store: Store, clock: Clock, own: NewJob) -> None:
        self._store = store
        self._clock = clock
        self._own = own
        self.unixname = own.unixname
        """The user that all services of a home folder run as."""
        self._here: dict[str, NewJob] = {own.service_id: own}
        """This scheduler and the connected services: process identifier (`service_id`) → job."""
        self._noted: set[str] = set()
        """Process identifiers whose job the store has as running."""
        self._has_failed = False
        """The store has failed since it was last written; this was logged."""

    def begin(self) -> None:
        """Begin the job of this scheduler, and end those of earlier schedulers: none of them is alive."""
        now = self._clock.wall()
        try:
            self._store.end_lost_jobs(now + 1, now, "it ended without a goodbye, and another scheduler started", SCHEDULER)
        except StoreError as error:
            self._failed(error)
        self._note()

    def service_connected(self, job: NewJob) -> None:
        """Begin the job of a service that has connected."""
        self._here[job.service_id] = job
        self._note()

    def service_disconnected(self, service_id: str, reason: str | None) -> None:
        """End the job of a service whose connection is closed.

        Args:
            reason: why it failed; None: it had said goodbye before.
        """
        if self._here.pop(service_id, None) is None:
            return
        self._noted.discard(service_id)
        self._end(service_id, reason)

    def end(self, reason: str | None) -> None:
        """End the job of this scheduler.

        Args:
            reason: why it failed; None: it stops normally.
        """
        self._end(self._own.service_id, reason)

    def beat(self) -> None:
        """Write a heartbeat for this scheduler and all connected services."""
        now = self._clock.wall()
        self._note()
        try:
            self._store.write_heartbeats(sorted(self._noted), now)
            self._store.end_lost_jobs(now - LOST_AFTER, now, "it ended without a goodbye")
            self._has_failed = False
        except StoreError as error:
            self._failed(error)

    def _note(self) -> None:
        for service_id, job in self._here.items():
            if service_id not in self._noted:
                try:
                    self._store.begin_job(job, self._clock.wall())
                    self._noted.add(service_id)
                except StoreError as error:
                    self._failed(error)

    def _end(self, service_id: str, reason: str | None) -> None:
        try:
            self._store.end_job(service_id, reason is None, self._clock.wall(), reason)
        except StoreError as error:
            self._failed(error)

    def _failed(self, error: StoreError) -> None:
        """Log that the store failed: once, although each service that disconnects meanwhile fails to be written, too."""
        if not self._has_failed:
            log.warning("jobs of services cannot be written now", error=str(error))
        self._has_failed = True


class Heartbeat:
    """The duty that writes heartbeats."""

    name = "heartbeat"
    interval = HEARTBEAT

    def __init__(self, jobs: JobRegistry) -> None:
        self._jobs = jobs

    def run_once(self) -> bool:
        self._jobs.beat()
        return False
