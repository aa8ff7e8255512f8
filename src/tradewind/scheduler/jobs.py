"""Jobs: which services live, as the scheduler sees them. They are for people; nothing is decided from them.

The scheduler's own job begins and ends with its process. The others' are the connections to it: a service says goodbye when it ends
in order; a connection that breaks without a goodbye is a failure, until the same life of the service connects again.
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
"""Airflow's job types; the last one is ours."""

HEARTBEAT = 10 * SECOND
LOST_AFTER = 60 * SECOND
"""A service that an earlier scheduler knew, and that has not connected for so long, is dead."""


class JobRegistry:
    """Writes down what services do. A store that cannot be written now is tried again with the next heartbeat.

    Args:
        own: the scheduler's job.
    """

    def __init__(self, store: Store, clock: Clock, own: NewJob) -> None:
        self._store = store
        self._clock = clock
        self._own = own
        self.unixname = own.unixname
        """The user that all services of a home folder run as."""
        self._here: dict[str, NewJob] = {own.life: own}
        """Services that are connected, and this one, by life."""
        self._noted: set[str] = set()
        """Those that the store knows as running."""

    def begin(self) -> None:
        """This scheduler begins: no earlier one is alive."""
        now = self._clock.wall()
        try:
            self._store.end_lost_jobs(now + 1, now, "it ended without a word, and another scheduler began", SCHEDULER)
        except StoreError as error:
            log.warning("jobs cannot be written now", error=str(error))
        self._note()

    def came(self, job: NewJob) -> None:
        """A service has connected."""
        self._here[job.life] = job
        self._note()

    def gone(self, life: str, reason: str | None) -> None:
        """A service's connection is closed; `reason` None: it said goodbye before."""
        if self._here.pop(life, None) is None:
            return
        self._noted.discard(life)
        self._end(life, reason)

    def end(self, reason: str | None) -> None:
        """This scheduler ends; `reason` None: in order."""
        self._end(self._own.life, reason)

    def beat(self) -> None:
        """All that is here is alive."""
        now = self._clock.wall()
        self._note()
        try:
            self._store.beat_jobs(sorted(self._noted), now)
            self._store.end_lost_jobs(now - LOST_AFTER, now, "it ended without a word")
        except StoreError as error:
            log.warning("jobs cannot be written now", error=str(error))

    def _note(self) -> None:
        for life, job in self._here.items():
            if life not in self._noted:
                try:
                    self._store.begin_job(job, self._clock.wall())
                    self._noted.add(life)
                except StoreError as error:
                    log.warning("jobs cannot be written now", error=str(error))

    def _end(self, life: str, reason: str | None) -> None:
        try:
            self._store.end_job(life, reason is None, self._clock.wall(), reason)
        except StoreError as error:
            log.warning("the end of a job cannot be written", error=str(error))


class Heartbeat:
    """The duty that keeps heartbeats young."""

    name = "heartbeat"
    interval = HEARTBEAT

    def __init__(self, jobs: JobRegistry) -> None:
        self._jobs = jobs

    def run_once(self) -> bool:
        self._jobs.beat()
        return False
