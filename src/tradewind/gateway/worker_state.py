"""What a gateway knows about one remote worker host, and what it decides from it: without sockets, clocks and files.

`session.Session` carries out the decisions; the simulation drives them in virtual time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.wire import gateway as g
from tradewind.wire.celery_messages import EnvelopeRefused, unseal
from tradewind.wire.messages import (
    AttemptGone,
    AttemptKey,
    CallbackOrder,
    Cancel,
    FromRunner,
    FromScheduler,
    Goodbye,
    HostHello,
    Reconcile,
    RunTriggers,
    StandbyReady,
    Submit,
    TriggerFired,
    WatcherEvent,
    WorkerAway,
    Workload,
    encode,
)
from tradewind.wire.worker_names import remote_worker, worker_of
from tradewind.wire.worker_tokens import WorkerGrant, attempt_token, proves

log = Log("gateway")

PROVEN_MAX = 100_000
"""Maximum number of attempts of one worker that are kept."""
SCHEDULER_SILENT_MAX = 25 * SECOND
"""A scheduler that has a standby and sends nothing for this time is stopped: it sends a message every 10 s."""
AWAY_MAX = 10_000
"""Maximum number of disconnected workers that are remembered for the scheduler."""

BundleVersion = tuple[str, str | None]
"""Name and version of a bundle."""


class Refused(Exception):
    """The worker host sent a message that it may not send; it is disconnected. The argument is a sentence."""


class WorkerState:
    """See the module.

    Args:
        gateway: name of the gateway.
        outage_lease: microseconds for which tasks continue while no scheduler is connected.
        now: monotonic microseconds.
        limit: end of the last lease of this worker, if a scheduler was told of it: it gives the attempts up then. So no lease is
            longer until the scheduler has answered the registration. None: no limit.
    """

    def __init__(
        self, grant: WorkerGrant, gateway: str, key: bytes, outage_lease: int, now: int, limit: int | None = None
    ) -> None:
        self._limit = limit
        self.worker = remote_worker(grant.worker)
        self.lease_until = 0
        """Until when the worker host may run tasks, monotonic microseconds."""
        self.host = ""
        """Name of the process of the worker host, after its registration."""
        self._grant = grant
        self._gateway = gateway
        self._key = key
        self._outage_lease = outage_lease
        self._outage_since: int | None = now
        """Since when no scheduler is connected, monotonic microseconds; None: a scheduler has answered."""
        self._has_standby = False
        """The scheduler is one of several, so it sends a message every few seconds while it holds its lease."""
        self._heard_at = now
        """When the last message of the scheduler came."""
        self._proven: dict[AttemptKey, None] = {}
        """Attempts that this worker was given."""
        self._warned = False

    def limit_lease(self, until: int) -> None:
        """A scheduler was told that the lease of this worker ends then. No lease is longer until a scheduler has answered."""
        self._limit = until

    # --- the scheduler ----------------------------------------------------------------------------------------------

    def scheduler_lost(self, now: int) -> None:
        """The connection to the scheduler has ended. A scheduler that was stopped before may have been superseded since then."""
        if self._outage_since is None:
            self._outage_since = self._heard_at if self._has_standby else now

    def scheduler_is_stopped(self, now: int) -> bool:
        """Whether the connected scheduler should have sent a message long ago: another one may have taken over."""
        return self._has_standby and self._outage_since is None and now - self._heard_at > SCHEDULER_SILENT_MAX

    def attempts_in(self, message: FromScheduler, now: int) -> tuple[list[AttemptKey], list[BundleVersion]]:
        """Note the attempts that a message gives to the worker. Return those that need a token, and the bundles that they use."""
        self._limit = self._outage_since = None
        self._heard_at = now
        self._has_standby = self._has_standby or isinstance(message, StandbyReady)
        keys: list[AttemptKey] = []
        bundles: list[BundleVersion] = []
        if isinstance(message, Submit):
            keys = [workload.key for workload in message.workloads]
            bundles = [(workload.bundle, workload.bundle_version) for workload in message.workloads]
        elif isinstance(message, CallbackOrder):
            work = message.workload
            keys, bundles = [work.key], [(work.bundle, work.bundle_version)]
        elif isinstance(message, RunTriggers):
            keys = [trigger.key for trigger in message.triggers]
            bundles = [(trigger.bundle, trigger.bundle_version) for trigger in message.triggers]
        elif isinstance(message, Reconcile):
            self._give(message.attempts)  # so the worker may answer that it does not have them
        elif isinstance(message, Cancel):
            self._give([message.attempt])
        self._give(keys)
        return keys, bundles

    def tokens(self, keys: Iterable[AttemptKey]) -> g.AttemptTokens:
        return g.AttemptTokens(tuple((key, attempt_token(self._key, self.worker, key)) for key in keys))

    def _give(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            self._proven[key] = None
        while len(self._proven) > PROVEN_MAX:
            del self._proven[next(iter(self._proven))]

    # --- the worker host --------------------------------------------------------------------------------------------

    def to_forward(self, document: bytes) -> bytes | None:
        """Check a message for the scheduler. Return it as the scheduler gets it; None: it is dropped.

        Raises:
            Refused: the worker host may not send it.
            msgspec.MsgspecError: it cannot be read.
        """
        message: g.FromHost = g.decode_from_host(document)
        if isinstance(message, HostHello):
            return encode(self._checked_hello(message))
        if isinstance(message, FromRunner | AttemptGone | TriggerFired | WatcherEvent):
            key = message.key if isinstance(message, TriggerFired | WatcherEvent) else message.attempt
            return document if self._may_speak_about(key) else None
        if isinstance(message, Goodbye):
            self.lease_until = 0
        return document

    def _checked_hello(self, hello: HostHello) -> HostHello:
        """Return the registration, limited to the rights of the token."""
        if worker_of(hello.host) != self.worker:
            raise Refused(f"it registers as {worker_of(hello.host)}, and its token is for {self.worker}")
        allowed, wanted = self._grant.queues, hello.queues
        unknown = [queue for queue in wanted if allowed and queue not in allowed]
        if unknown:
            raise Refused(f"its token does not allow the queue {unknown[0]}; it allows {', '.join(allowed)}")
        self.host = hello.host
        return msgspec.structs.replace(
            hello,
            queues=wanted or allowed,
            gateway=self._gateway,
            live=tuple(key for key in hello.live if key in self._proven),
            triggers=tuple(key for key in hello.triggers if key in self._proven),
        )

    def _may_speak_about(self, key: AttemptKey) -> bool:
        """Whether this worker was given the attempt. Messages about other attempts are dropped.

        A worker host that was restarted has lost the tokens of the reports in its spool. The scheduler asks for missing
        attempts, and then the worker host may answer.
        """
        if key in self._proven:
            return True
        if not self._warned:
            self._warned = True
            log.warning(
                "ignoring a worker's message about an attempt that it was not given",
                worker=self.worker,
                attempt=str(key),
            )
        return False

    def holding(self, message: g.Holding) -> None:
        """Take the proofs of the attempts that the worker host was given, perhaps by another gateway."""
        for key, token in message.tokens:
            if proves(self._key, self.worker, key, token):
                self._give([key])

    def renew(self, message: g.Renew, now: int) -> g.Renewed:
        """Give a lease. It is longer while no scheduler is connected, because a restart must not end the tasks.

        If the answer gets lost, the worker host goes on under its present lease, which may be longer.
        """
        lease = g.LEASE
        if self._outage_since is not None:
            lease = max(0, self._outage_since + max(g.LEASE, self._outage_lease) - now)
        if self._limit is not None:
            lease = max(0, min(lease, self._limit - now))
        self.lease_until = now + max(lease, message.left)  # the worker host counts from its request, which is earlier
        return g.Renewed(message.number, lease, self._gateway)

    def claimed(self, message: g.Claim) -> tuple[str, Workload | None]:
        """Check an attempt from a broker for the worker, and give it the attempt. The key that signed it never leaves the machines
        of the scheduler and the gateways. Return the reason of a refusal or "", and the attempt.
        """
        try:
            workload = unseal(message.envelope, self._key)
        except EnvelopeRefused as refused:
            return str(refused), None
        if self._grant.queues and workload.queue not in self._grant.queues:
            allowed = ", ".join(self._grant.queues)
            return f"the token of this worker does not allow the queue {workload.queue}; it allows {allowed}", None
        self._give([workload.key])
        return "", workload


class _Away(NamedTuple):
    """A worker that has disconnected."""

    host: str
    """Its process."""
    at: int
    """When it has disconnected, monotonic microseconds."""
    until: int
    """The end of its lease, monotonic microseconds; 0: it ended normally."""


class DisconnectedWorkers:
    """The workers that have disconnected from a gateway, and what each connected scheduler was told about them."""

    def __init__(self) -> None:
        self._away: dict[str, _Away] = {}
        self._announced: set[str] = set()
        """Workers in `_away` of whose end a scheduler was told."""

    def limit(self, worker: str) -> int | None:
        """The end of the last lease of a worker that connects again, if a scheduler was told of it."""
        away = self._away.get(worker)
        return away.until if away is not None and away.until and worker in self._announced else None

    def disconnected(self, state: WorkerState, now: int) -> None:
        before = self._away.get(state.worker)
        if not state.host and (not state.lease_until or (before is not None and before.until >= state.lease_until)):
            return  # it had not registered here, so what was told about its last end still holds
        self._away.pop(state.worker, None)
        self._announced.discard(state.worker)
        self._away[state.worker] = _Away(state.host, now, state.lease_until)
        while len(self._away) > AWAY_MAX:
            oldest = next(iter(self._away))
            del self._away[oldest]
            self._announced.discard(oldest)

    def news(self, announced: dict[str, object], sessions: Mapping[str, WorkerState], now: int) -> list[WorkerAway]:
        """Return what a scheduler does not know yet.

        Args:
            announced: what this scheduler has received; extended.
            sessions: the connected workers. A new scheduler must not be told of the earlier end of a worker that is registered.
        """
        found = []
        for worker, away in self._away.items():
            state = sessions.get(worker)
            if (state is None or not state.host) and announced.get(worker) != away:
                announced[worker] = away
                self._announced.add(worker)
                until = away.until if state is None else max(away.until, state.lease_until)
                if state is not None:
                    state.limit_lease(until)
                # a lease that has just run out is not a normal end: the tasks may still be ending
                left = max(1, until - now) if until else 0
                found.append(WorkerAway(worker, away.host, left, now - away.at))
        return found
