"""Bugs of the protocol between machines, put back into production: the simulation of several machines has to find each of them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack

from tests.simulation.mutants import Mutant, replace, rewrite
from tradewind.executors.celery import CeleryExecutor
from tradewind.gateway.worker_state import WorkerState
from tradewind.scheduler.attempts.attempt_handler import AttemptHandler
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.attempts.worker_liveness import WorkerLiveness
from tradewind.scheduler.runs.active_run import ActiveRun
from tradewind.store.sql.store import SqlStore
from tradewind.worker.remote_link import RemoteLink


def _foreign_words_count(stack: ExitStack) -> None:
    replace(WorkerState, "_may_speak_about", lambda self, key: True)(stack)
    rewrite((ActiveRun, "accepts_report_from", (" and may_report_for(worker_of(host), worker_of(holder.host))", "")))(stack)


_record_worker_gateways = SqlStore.record_worker_gateways


def _store_the_first(self: SqlStore, worker: str, gateways: Collection[str], at: int, epoch: int) -> None:
    if worker not in self.worker_gateways():
        _record_worker_gateways(self, worker, gateways, at, epoch)


MACHINE_MUTANTS = [
    Mutant(
        "a remote worker ignores the end of its lease",
        "its tasks go on beside their next attempts",
        rewrite((RemoteLink, "_check", ("if now > self._lease_until and not self._expired:", "if False:"))),
        1,
    ),
    Mutant(
        "a closed connection makes every lease longer",
        "a cut network counts as a gateway that is being restarted",
        rewrite((RemoteLink, "_on_close", ("if closed.reached and not (", "if True or not ("))),
        1,
    ),
    Mutant(
        "the scheduler does not wait for the end of a lease",
        "a worker that is away counts as gone",
        rewrite((RemoteWorkers, "away", ("lease + LEASE_GRACE + MARGIN if lease else 0", "0"))),
        0,
    ),
    Mutant(
        "an old end of a connection counts",
        "a gateway tells a new scheduler of it, and the worker has moved to another gateway",
        rewrite(
            (
                RemoteWorkers,
                "_end_of",
                ("self._homes.get(worker, ())", "{one for name, one in self._away if name == worker}"),
            )
        ),
        1,
    ),
    Mutant(
        "the gateway of a worker is not stored",
        "a new scheduler believes the gateway before, which lost the worker long ago",
        replace(SqlStore, "record_worker_gateways", _store_the_first),
        1,
    ),
    Mutant(
        "an answer that was sent counts as received",
        "the worker goes on under the lease of its former gateway",
        rewrite((RemoteWorkers, "gateways_at_registration", ("known | {gateway}", "frozenset({gateway})"))),
        8,
    ),
    Mutant(
        "a gateway remembers no lease",
        "what it tells the scheduler looks like a normal end",
        rewrite((WorkerState, "renew", ("self.lease_until = now + max(lease, message.left)", "pass"))),
        0,
    ),
    Mutant(
        "a gateway lets every worker speak about every attempt, and the scheduler believes it",
        "the loss that a foreign worker reports ends a running attempt",
        _foreign_words_count,
        1,
    ),
    Mutant(
        "a takeover gives up the tasks of the other machine at once",
        "its worker host has 30 seconds to learn that it is cut off",
        rewrite((WorkerLiveness, "may_live", ("return self._clock.monotonic() < self._loaded + LOST_AFTER", "return False"))),
        1,
    ),
    Mutant(
        "a started attempt counts as waiting in the broker",
        "its queue seems to be full for ever",
        replace(CeleryExecutor, "_forget", lambda self, task: self._published.pop(task, None) is not None),
        3,
    ),
    Mutant(
        "a repeated message of the broker runs again",
        "another process of the attempt may start [celery redelivery, #4976]",
        rewrite((AttemptHandler, "start", ("known.nonce == start.nonce and ", ""))),
        0,
    ),
]
