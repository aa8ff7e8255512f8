"""The link of a remote worker host to the scheduler, through a gateway.

It replaces the socket of a worker host that runs beside the scheduler. In addition:

* The **lease**: the tasks are stopped after 30 s without an answer of a gateway, because the scheduler is about to give them
  to another worker. While the machine of the gateway answers and only the gateway is unavailable (it is being restarted), the
  tasks continue for `worker.outage_lease`. The scheduler waits equally long for a worker whose gateway is disconnected. With
  several gateways, this holds for the gateway through which this worker was registered last: when that gateway is back, the
  scheduler expects that its workers register again within one lease, or stop. What another gateway without a scheduler answers
  does not make the lease longer. The worker confirms each registration that was answered: then the scheduler asks no
  earlier gateway about it.
* **Logs** are sent while they are written, and deleted on this machine when the gateway has stored them (`log_shipper`).
* **Large XComs** are sent before the report that names them, and fetched after the answer that names them.
* **DAG files** come from the gateway, unless they are kept on this machine (`bundle_fetcher`).
* **Tokens** of attempts are kept. After a new connection they prove which attempts this worker was given.
"""

from __future__ import annotations

import hashlib
import os
import random
import ssl
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tradewind.bundles.unpacked import UnpackedBundles
from tradewind.client.gateway_line import Closed, GatewayAddress, GatewayLine, parse_address
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.backoff import Backoff
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop
from tradewind.storage.local_spills import SPILL_GRACE_SECONDS, LocalSpills
from tradewind.wire import gateway as g
from tradewind.wire.messages import AttemptKey, FromRunner, Report, Unlisted, XComs, encode
from tradewind.worker.bundle_fetcher import BundleFetcher
from tradewind.worker.config import GatewayConfig
from tradewind.worker.log_shipper import LogShipper

log = Log("host")

FIRST_RETRY, LONGEST_RETRY = SECOND // 5, 5 * SECOND
REFUSED_RETRY = 30 * SECOND
"""Pause after a refused token: an administrator has to act."""
NO_SCHEDULER_MAX = 10 * SECOND
"""After this time at a gateway without a scheduler, the next gateway is tried."""
CHECK_EVERY = SECOND
SHIP_EVERY = SECOND // 2
CLEAN_EVERY = 600 * SECOND
"""Interval between two searches for large XComs that no task has used for an hour."""
SPILL_WITHIN = 60 * SECOND
"""Timeout for a large XCom. The XCom is requested again when the task repeats its request."""


class LinkOwner(Protocol):
    """The interface of the worker host that the link uses."""

    def gateway_opened(self) -> None:
        """A scheduler is connected: register."""

    def gateway_closed(self) -> None:
        """No scheduler is connected any more."""

    def on_scheduler_document(self, document: bytes) -> None:
        """Handle a message of the scheduler."""

    def lease_ended(self, reason: str, grace: int) -> None:
        """Stop all tasks, and kill them after `grace` microseconds."""

    def held_attempts(self) -> Collection[AttemptKey]:
        """Attempts of this worker host: running, waiting, or with a report that was not acknowledged."""
        ...

    def open_logs(self) -> Collection[str]:
        """Paths of logs that are being written, relative to the log folder."""
        ...

    def local_folder(self, bundle: str) -> str:
        """Absolute path of a bundle's files on this machine, used if the gateway sends no files."""
        ...

    def used_folders(self) -> Collection[str]:
        """Folders of the DAG files that running attempts use."""
        ...

    def files_ready(self) -> None:
        """DAG files have arrived: attempts that wait for them may begin."""

    def is_busy(self) -> bool:
        """Whether a task is running."""
        ...


class Line(Protocol):
    """The interface of a connection to a gateway: `client.gateway_line.GatewayLine`."""

    @property
    def is_open(self) -> bool: ...

    def connect(self) -> None: ...

    def send(self, message: bytes) -> None: ...

    def close(self, reason: str) -> None: ...


MakeLine = Callable[
    [
        GatewayAddress,
        str,
        Loop,
        ssl.SSLContext | None,
        Callable[[], None],
        Callable[[bytes], None],
        Callable[[Closed], None],
    ],
    Line,
]
"""See `GatewayLine`. A simulation passes another one."""


class _Claim(NamedTuple):
    """An attempt from a broker that no gateway has checked yet."""

    envelope: str
    done: Callable[[str], None]


class RemoteLink:
    """See the module. It has the interface of `wire.connection.Connection` that the worker host uses: `send` and `closed`."""

    def __init__(
        self,
        owner: LinkOwner,
        config: GatewayConfig,
        log_folder: str,
        xcom_folder: str,
        clock: Clock,
        loop: Loop,
        rng: Callable[[], float] = random.random,
        make_line: MakeLine = GatewayLine,
    ) -> None:
        self._owner = owner
        self._config = config
        self._clock = clock
        self._loop = loop
        self._rng = rng
        self._make_line = make_line
        self._addresses = [parse_address(one) for one in config.addresses]
        self._next_address = 0
        self._home: int | None = None
        """Index of the address of the gateway through which this worker was registered last; None: it was not registered yet."""
        self._home_name = ""
        """Name of that gateway. Behind one address there may be several."""
        self._gateway = ""
        """Name of the present gateway; empty: it has not said it."""
        self._is_known = False
        """A scheduler knows that this worker is connected through the present gateway."""
        self._was_open = False
        """The gateway has accepted the present connection."""
        self._is_lost = False
        """The gateway fell silent, so it may have told the scheduler when the lease of this worker ends. That it is restarted later
        changes nothing.
        """
        self._without_scheduler_since = 0
        self._line: Line | None = None
        self._waits = Backoff(FIRST_RETRY, LONGEST_RETRY, rng)
        self._tls = self._tls_context()
        self.closed = True
        """No scheduler is connected."""
        self._stopped = False
        self._sent_at: dict[int, int] = {}
        """Number of an unanswered `Renew` → when it was sent."""
        self._number = 0
        self._asked_at = 0
        """When the last `Renew` was sent."""
        self._heard_at = 0
        self._lease_until = clock.monotonic() + g.LEASE
        self._outage_until = self._lease_until
        self._outage_lease = config.outage_lease
        self._expired = False
        self._tokens: dict[AttemptKey, str] = {}
        self._claims: dict[str, _Claim] = {}
        self._spills = LocalSpills(xcom_folder)
        self._xcom_folder = Path(xcom_folder)
        self._stored_spills: set[str] = set()
        """Large XComs that the gateway has stored, and whose reports are not acknowledged yet."""
        self._cleaned_at = clock.monotonic()
        self._incoming: dict[str, bytearray] = {}
        self._waiting: dict[str, list[Callable[[str], None]]] = {}
        """Large XCom → functions to call when it has arrived. Their argument is the reason of a failure, or ""."""
        self._shipper = LogShipper(log_folder, os.urandom(4).hex(), self._send_gateway, clock)
        self.files = self._make_fetcher(config.bundle_folder) if config.bundle_folder else None
        """None: the DAG files on this machine are used."""

    def _make_fetcher(self, folder: str) -> BundleFetcher:
        owner = self._owner
        return BundleFetcher(
            UnpackedBundles(folder), owner.local_folder, self._send_gateway, owner.files_ready, owner.used_folders
        )

    def _tls_context(self) -> ssl.SSLContext | None:
        if not any(address.tls for address in self._addresses):
            return None
        return ssl.create_default_context(cafile=self._config.ca_file or None)

    # --- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._lease_until = self._clock.monotonic() + g.LEASE
        self._outage_until = self._lease_until
        self._loop.call_later(CHECK_EVERY, self._check)
        self._loop.call_later(SHIP_EVERY, self._ship)
        self._connect()

    def stop(self) -> None:
        """Connect no more."""
        self._stopped = True
        if self._line is not None:
            self._line.close("the worker host stops")

    @property
    def unshipped(self) -> bool:
        """Whether there are logs that the gateway has not stored."""
        return self._shipper.is_behind

    @property
    def is_connected(self) -> bool:
        """Whether a gateway is connected."""
        return self._line is not None and self._line.is_open

    @property
    def _address_index(self) -> int:
        return self._next_address % len(self._addresses)

    @property
    def _is_at_home(self) -> bool:
        """Whether the present gateway is the one which the scheduler knows, as far as it can be said."""
        is_other = self._gateway and self._home_name and self._gateway != self._home_name
        return self._home in (None, self._address_index) and not is_other

    def _connect(self) -> None:
        if self._stopped or self._line is not None:
            return
        address = self._addresses[self._address_index]
        if self.files is not None:
            address = address._replace(url=f"{address.url}?{g.FILES_QUERY}")
        self._was_open = False
        self._gateway = ""
        self._line = self._make_line(
            address, self._config.token, self._loop, self._tls, self._on_open, self._on_message, self._on_close
        )
        self._line.connect()

    def _on_open(self) -> None:
        log.info("connected to the gateway", address=self._addresses[self._address_index].url)
        self._waits.succeeded()
        self._was_open = True
        self._heard_at = self._without_scheduler_since = self._clock.monotonic()
        self._sent_at.clear()
        held = self._owner.held_attempts()
        self._tokens = {key: token for key, token in self._tokens.items() if key in held}
        self._send_gateway(g.Holding(tuple(self._tokens.items())))
        self._renew()
        for number, claim in self._claims.items():
            self._send_gateway(g.Claim(number, claim.envelope))
        self._shipper.connected()
        if self.files is not None:
            self.files.on_connected()

    def _on_close(self, closed: Closed) -> None:
        now = self._clock.monotonic()
        self._line = None
        self._is_known = False
        self._incoming.clear()
        if not self.closed:
            self.closed = True
            self._owner.gateway_closed()
        if self._was_open and not closed.reached:
            self._is_lost = True
        if closed.reached and not (closed.refused or self._was_open or self._is_lost) and self._is_at_home:
            # the machine answers, so only the gateway is unavailable, not the network
            self._lease_until = max(self._lease_until, min(now + g.LEASE, self._outage_until))
        if self._stopped:
            return
        wait = REFUSED_RETRY if closed.refused else self._waits.failed()
        if self._waits.failures <= 1 or closed.refused:
            log.warning("no connection to the gateway; trying again", why=closed.reason)
        self._next_address += 1
        self._loop.call_later(wait, self._connect)

    # --- the lease --------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        self._number += 1
        now = self._sent_at[self._number] = self._asked_at = self._clock.monotonic()
        self._send_gateway(g.Renew(self._number, max(0, self._lease_until - now)))

    def _check(self) -> None:
        now = self._clock.monotonic()
        if self.is_connected and now - self._heard_at > g.SILENT_MAX:
            assert self._line is not None
            self._line.close(f"the gateway has been silent for {g.SILENT_MAX // SECOND} s")
        elif self.is_connected and self.closed and self._is_elsewhere_better(now):
            assert self._line is not None
            self._line.close("this gateway has no scheduler; another one may have one")
        elif self.is_connected and now - self._asked_at >= g.RENEW_EVERY:
            self._renew()
        if now > self._lease_until and not self._expired:
            self._expired = True
            if self._owner.is_busy():
                log.error("the lease of this worker has run out: no gateway has answered in time; its tasks are stopped")
            reason = f"its worker had no contact with a gateway for {g.LEASE // SECOND} seconds or longer"
            self._owner.lease_ended(reason, g.LEASE_GRACE)
        self._loop.call_later(CHECK_EVERY, self._check)

    def _is_elsewhere_better(self, now: int) -> bool:
        may_reach_another = len(self._addresses) > 1 or not self._is_at_home
        return may_reach_another and now - self._without_scheduler_since > NO_SCHEDULER_MAX

    def _renewed(self, message: g.Renewed) -> None:
        now, sent = self._clock.monotonic(), self._sent_at.pop(message.number, None)
        if sent is None:
            return
        for number in [one for one in self._sent_at if one < message.number]:
            del self._sent_at[number]
        self._gateway = message.gateway
        if not self._is_at_home:
            return
        if not self._is_known:  # an outage counts from the last contact with a scheduler
            self._lease_until = min(sent + message.lease, self._outage_until)
        else:
            self._lease_until = sent + message.lease
            self._outage_until = max(sent + self._outage_lease, self._lease_until)
        if now < self._lease_until:
            self._expired = False

    # --- messages ---------------------------------------------------------------------------------------------------

    def send(self, document: bytes) -> None:
        """Send a message to the scheduler."""
        if self._line is not None and not self.closed:
            self._line.send(bytes((g.SCHEDULER,)) + document)

    def close(self) -> None:
        self.stop()

    def _send_gateway(self, message: object) -> None:
        if self._line is not None:
            self._line.send(bytes((g.GATEWAY,)) + g.encode(message))

    def _on_message(self, data: bytes) -> None:
        self._heard_at = self._clock.monotonic()
        if data[:1] == bytes((g.SCHEDULER,)):
            if not self._is_known:  # the scheduler has answered the registration
                self._is_known, self._is_lost = True, False
                self._home, self._home_name = self._address_index, self._gateway
                self._renew()
                self.send(encode(Unlisted(())))
            self._owner.on_scheduler_document(data[1:])
            return
        try:
            message: g.FromGateway = g.decode_from_gateway(data[1:])
        except msgspec.MsgspecError as error:
            log.error("a message of the gateway cannot be read", error=str(error))
            return
        if isinstance(message, g.Renewed):
            self._renewed(message)
        elif isinstance(message, g.AttemptTokens):
            self._tokens.update(message.tokens)
        elif isinstance(message, g.SchedulerOpen):
            self.closed = False
            self._is_known = False
            self._gateway = message.gateway
            self._owner.gateway_opened()
        elif isinstance(message, g.SchedulerClosed):
            if not self.closed:
                self.closed, self._is_known = True, False
                self._without_scheduler_since = self._clock.monotonic()
                self._owner.gateway_closed()
        elif isinstance(message, g.LogStored):
            self._shipper.stored(message)
        elif isinstance(message, g.SpillStored):
            self._stored_spills.add(message.name)
        elif isinstance(message, g.Claimed):
            claim = self._claims.pop(message.id, None)
            if claim is not None:
                claim.done(message.problem)
        elif isinstance(message, g.SpillPiece):
            self._on_spill_piece(message)
        elif self.files is None:
            return  # this worker host did not request files
        elif isinstance(message, g.BundleAt):
            self.files.on_bundle_at(message)
        elif isinstance(message, g.Manifest):
            self.files.on_manifest(message)
        else:
            self.files.on_content(message)

    def claim(self, id: str, envelope: str, done: Callable[[str], None]) -> None:
        """Let a gateway check an attempt from a broker. Without a gateway the attempt waits.

        Args:
            done: called with the reason why the attempt must not run, or with "".
        """
        self._claims[id] = _Claim(envelope, done)
        self._send_gateway(g.Claim(id, envelope))

    def token(self, key: AttemptKey) -> str:
        """The token of an attempt; empty: there is none."""
        return self._tokens.get(key, "")

    def take_over(self, tokens: dict[AttemptKey, str]) -> None:
        """Use the tokens of an earlier process. Without them, its reports of attempts that were given up would stay for ever."""
        self._tokens.update(tokens)

    def forget(self, key: AttemptKey) -> None:
        """Forget an attempt that has ended and whose report is acknowledged."""
        self._tokens.pop(key, None)

    # --- logs -------------------------------------------------------------------------------------------------------

    def _ship(self) -> None:
        if self.is_connected:
            self._shipper.ship(self._owner.open_logs())
        if not self._owner.is_busy() and self._clock.monotonic() - self._cleaned_at > CLEAN_EVERY:
            self._cleaned_at = self._clock.monotonic()
            for name, used in list(self._spills.entries()):
                if used < time.time() - SPILL_GRACE_SECONDS:
                    self._spills.remove(name, used + 1)
        self._loop.call_later(SHIP_EVERY, self._ship)

    def ship_now(self) -> None:
        """Send what was written to logs, without waiting for the next turn."""
        if self.is_connected:
            self._shipper.ship(self._owner.open_logs())

    # --- large XComs ------------------------------------------------------------------------------------------------

    def prepare(self, message: object) -> None:
        """Send the large XComs that a report names, before the report. The gateway handles messages in order."""
        if not isinstance(message, FromRunner) or not isinstance(message.body, Report):
            return
        for xcom in message.body.xcoms:
            if xcom.spill is not None and xcom.spill not in self._stored_spills:
                self._put_spill(xcom.spill)

    def _put_spill(self, name: str) -> None:
        try:
            data = self._spills.read(name)
        except OSError as error:
            log.error("a large XCom cannot be read, so its report cannot be sent completely", name=name, error=error.strerror)
            return
        for start in range(0, max(len(data), 1), g.PIECE):
            self._send_gateway(g.PutSpill(name, data[start : start + g.PIECE], start + g.PIECE >= len(data)))

    def acknowledged(self, report: Report) -> None:
        """Forget the large XComs of a report that is committed."""
        for xcom in report.xcoms:
            if xcom.spill is not None:
                self._stored_spills.discard(xcom.spill)
                self._spills.remove(xcom.spill, float("inf"))

    def with_spills(self, answer: XComs, then: Callable[[str], None]) -> None:
        """Fetch the missing large XComs of an answer. Then call `then` with the reason of a failure, or with "". A value stays
        on this machine until the worker host cleans its folder, so several tasks that read it fetch it once.
        """
        wanted = {name for _, _, _, name in answer.values if name is not None}
        names = {name for name in wanted if not (self._xcom_folder / os.path.basename(name)).exists()}
        if not names:
            then("")
            return
        left = set(names)
        problems: list[str] = []

        def came(name: str) -> Callable[[str], None]:
            def one(problem: str) -> None:
                left.discard(name)
                problems.extend([problem] if problem else [])
                if not left:
                    then("; ".join(problems))

            return one

        for name in names:
            is_first = name not in self._waiting
            self._waiting.setdefault(name, []).append(came(name))
            if is_first:
                self._send_gateway(g.GetSpill(name))
                late = "the gateway did not send a large XCom in time"
                self._loop.call_later(SPILL_WITHIN, partial(self._spill_done, name, late))

    def _on_spill_piece(self, message: g.SpillPiece) -> None:
        if message.problem:
            self._incoming.pop(message.name, None)
            self._spill_done(message.name, message.problem)
            return
        data = self._incoming.setdefault(message.name, bytearray())
        data += message.data
        if not message.last:
            return
        del self._incoming[message.name]
        if hashlib.sha256(data).hexdigest() != message.name:
            self._spill_done(message.name, "a large XCom was damaged during the transfer")
            return
        try:
            self._spills.write(bytes(data))
        except OSError as error:
            self._spill_done(message.name, f"a large XCom cannot be stored on the worker: {error.strerror}")
            return
        self._spill_done(message.name, "")

    def _spill_done(self, name: str, problem: str) -> None:
        for call in self._waiting.pop(name, ()):
            call(problem)
