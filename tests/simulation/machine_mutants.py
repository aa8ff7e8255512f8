"""Bugs of the protocol between machines, put back into production: the simulation of several machines has to find each of them."""

from __future__ import annotations

from contextlib import ExitStack

from tests.simulation.mutants import Mutant, replace, rewrite
from tradewind.executors.celery import CeleryExecutor
from tradewind.executors.local import LocalExecutor
from tradewind.gateway.worker_state import DisconnectedWorkers, WorkerState
from tradewind.scheduler.attempts.attempt_handler import AttemptHandler
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.attempts.worker_liveness import WorkerLiveness
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.sql.runs import RunOperations
from tradewind.worker.local_lease import LocalLease
from tradewind.worker.remote_link import RemoteLink


def _foreign_words_count(stack: ExitStack) -> None:
    replace(WorkerState, "_may_speak_about", lambda self, key: True)(stack)
    rewrite((ActiveRun, "accepts_report_from", (" and may_report_for(worker_of(host), worker_of(holder.host))", "")))(stack)


MACHINE_MUTANTS = [
    Mutant(
        "a remote worker ignores the end of its lease",
        "its tasks go on beside their next attempts",
        rewrite((RemoteLink, "_check", ("if now > self._lease_until and not self._expired:", "if False:"))),
        0,
    ),
    Mutant(
        "a lease counts from the answer",
        "a slow network makes it longer than the gateway believes",
        rewrite(
            (RemoteLink, "_renewed", ("else:\n        self._lease_until = sent", "else:\n        self._lease_until = now")),
        ),
        0,
    ),
    Mutant(
        "a closed connection makes every lease longer",
        "a cut network counts as a gateway that is being restarted",
        rewrite((RemoteLink, "_on_close", ("if closed.reached and not (", "if True or not ("))),
        0,
    ),
    Mutant(
        "every gateway makes the lease longer",
        "also one that no scheduler is connected to",
        replace(RemoteLink, "_is_at_home", True),
        0,
    ),
    Mutant(
        "an outage begins again with each connection",
        "the scheduler counts from the first one",
        rewrite((RemoteLink, "_renewed", ("if not self._is_known:", "if False:"))),
        0,
    ),
    Mutant(
        "the scheduler does not wait for the end of a lease",
        "a worker that is away counts as gone",
        rewrite((RemoteWorkers, "away", ("lease + LEASE_GRACE + MARGIN if lease else 0", "0"))),
        0,
    ),
    Mutant(
        "the scheduler does not wait for the kill",
        "a lease has run out, and the tasks are still ending",
        rewrite((RemoteWorkers, "away", ("lease + LEASE_GRACE + MARGIN if lease else 0", "lease"))),
        0,
    ),
    Mutant(
        "an old end of a connection counts",
        "a gateway tells a new scheduler of it, and the worker has moved to another gateway",
        rewrite(
            (
                RemoteWorkers,
                "away",
                ("worker in self._connected or now - ago < self._absent_since.get(worker, self._began)", "False"),
            )
        ),
        0,
    ),
    Mutant(
        "the lease of an outage is forgotten",
        "a gateway dies, and its workers count as gone after a short lease",
        rewrite((RemoteWorkers, "may_live", ("max(self._outage_lease, LEASE)", "LEASE"))),
        0,
    ),
    Mutant(
        "a gateway remembers no lease",
        "what it tells the scheduler looks like a normal end",
        rewrite((WorkerState, "renew", ("self.lease_until = now + max(lease, message.left)", "pass"))),
        0,
    ),
    Mutant(
        "a gateway makes a lease longer of which the scheduler was told",
        "the scheduler gives the attempts up at its former end",
        replace(DisconnectedWorkers, "limit", lambda self, worker: None),
        0,
    ),
    Mutant(
        "a gateway lets every worker speak about every attempt, and the scheduler believes it",
        "the loss that a foreign worker reports ends a running attempt",
        _foreign_words_count,
        0,
    ),
    Mutant(
        "a takeover gives up the tasks of the other machine at once",
        "its worker host has 30 seconds to learn that it is cut off",
        rewrite((WorkerLiveness, "may_live", ("return self._clock.monotonic() < self._loaded + LOST_AFTER", "return False"))),
        0,
    ),
    Mutant(
        "a worker host beside a scheduler has no lease",
        "nobody tells it that another scheduler stands by",
        replace(LocalExecutor, "standby_is_ready", lambda self: None),
        0,
    ),
    Mutant(
        "a worker host ignores the end of its lease",
        "its machine is cut off, and its tasks go on",
        rewrite((LocalLease, "_check", ("elif now > self._until:", "elif False:"))),
        0,
    ),
    Mutant(
        "the machine of the database answers for a stopped scheduler",
        "another scheduler has taken over meanwhile",
        rewrite((LocalLease, "_take_answers", (" and not self._owner.has_scheduler()", ""))),
        0,
    ),
    Mutant(
        "a superseded scheduler writes on",
        "its lease has ended while it was stopped, and epochs are not looked at",
        rewrite((RunOperations, "_check_epoch", ("row[0] > epoch", "False"))),
        0,
    ),
    Mutant(
        "a lost message of the broker is not sent again",
        "its attempt stays queued",
        replace(CeleryExecutor, "_is_lost", lambda self, known: False),
        0,
    ),
    Mutant(
        "a started attempt counts as waiting in the broker",
        "its queue seems to be full for ever",
        replace(CeleryExecutor, "_forget", lambda self, task: self._published.pop(task, None) is not None),
        0,
    ),
    Mutant(
        "a repeated message of the broker runs again",
        "another process of the attempt may start [celery redelivery, #4976]",
        rewrite((AttemptHandler, "start", ("known.nonce == start.nonce and ", ""))),
        0,
    ),
    Mutant(
        "an attempt is published beside its former process",
        "the next attempt runs on another Celery worker before the former one has ended",
        rewrite((CeleryExecutor, "_offer", ("and self._is_left_on(former, workload)", "and False"))),
        0,
    ),
]
