"""One remote worker host at a gateway: its WebSocket, and its connection to the scheduler.

For the scheduler each remote worker host is a peer on the scheduler's socket, like a worker host on the same machine. The
gateway reads each message of the worker host before it passes the message on. A worker may send only messages of worker hosts,
only about itself, and only about attempts that it was given. So a stolen worker token gives access to the tasks of that
worker, not to the scheduler.

    WebSocket ─▶ check ─▶ Unix socket        registration, starts, reports, questions
    WebSocket ◀─ tokens ◀─ Unix socket       workloads (each with the token of its attempt), answers, cancellations

When the scheduler ends, the WebSocket stays open and the leases get longer, because a restart of the scheduler must not end
the tasks.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tradewind.gateway.bundle_files import AnnouncedBundles, BundleFiles
from tradewind.gateway.config import Config
from tradewind.gateway.log_store import LogStore
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.storage.local_spills import LocalSpills
from tradewind.wire import gateway as g
from tradewind.wire.celery_messages import EnvelopeRefused, unseal
from tradewind.wire.frames import FrameReader, frame
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
    Submit,
    TriggerFired,
    WatcherEvent,
    decode_from_scheduler,
    encode,
)
from tradewind.wire.worker_names import remote_worker, worker_of
from tradewind.wire.worker_tokens import WorkerGrant, attempt_token, proves

log = Log("gateway")

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses between two attempts to connect to the scheduler. The last pause repeats."""
READ_SIZE = 256 * 1024
SPILL_MAX = 2 * 1024 * 1024 * 1024
"""Size of the largest XCom that a worker may send, bytes."""
PROVEN_MAX = 100_000
"""Maximum number of attempts of one worker that are kept."""


class Refused(Exception):
    """The worker host sent a message that it may not send; it is disconnected. The argument is a sentence."""


class Session:
    """See the module. `run` returns when the WebSocket is closed."""

    def __init__(
        self, socket: ServerConnection, grant: WorkerGrant, config: Config, logs: LogStore, files: BundleFiles | None
    ) -> None:
        self.worker = remote_worker(grant.worker)
        self.lease_until = 0
        """Until when the worker host may run tasks, monotonic microseconds."""
        self.host = ""
        """Name of the process of the worker host, after its registration."""
        self._socket = socket
        self._grant = grant
        self._config = config
        self._logs = logs
        self._spills = LocalSpills(config.xcom_folder)
        self._incoming: dict[str, bytearray] = {}
        self._upstream: asyncio.StreamWriter | None = None
        self._outage_since = _now()
        self._proven: dict[AttemptKey, None] = {}
        """Attempts that this worker was given."""
        self._warned = False
        self._bundles = AnnouncedBundles(files, self._send) if files is not None else None
        """None: the worker host uses its own DAG files, or is of an older release."""

    async def run(self) -> None:
        """Serve the worker host until its WebSocket is closed."""
        scheduler = asyncio.create_task(self._keep_scheduler())
        try:
            while True:
                async with asyncio.timeout(g.SILENT_MAX / SECOND):
                    data = await self._socket.recv()
                if isinstance(data, str) or not data:
                    raise Refused("a message that is not binary")
                if data[0] == g.SCHEDULER:
                    await self._from_host(data[1:])
                else:
                    await self._for_gateway(data[1:])
        except ConnectionClosed:
            pass
        except TimeoutError:
            log.warning("a worker has been silent for too long and is disconnected", worker=self.worker)
        except (Refused, msgspec.MsgspecError) as problem:
            log.warning(
                "a worker is disconnected: it sent a message that it may not send", worker=self.worker, why=str(problem)
            )
            with suppress(ConnectionClosed, TimeoutError):
                async with asyncio.timeout(1):
                    await self._socket.close(1008, str(problem)[:100])
        finally:
            scheduler.cancel()
            with suppress(asyncio.CancelledError):
                await scheduler
            self.abort()

    def abort(self) -> None:
        """Close the connection at once, without a closing message: its worker has connected again."""
        if self._socket.transport is not None:
            self._socket.transport.abort()

    # --- the scheduler ----------------------------------------------------------------------------------------------

    async def _keep_scheduler(self) -> None:
        """Stay connected to the scheduler, and pass its messages on."""
        failures = 0
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(self._config.scheduler_socket)
            except OSError:
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                continue
            failures = 0
            self._upstream = writer
            try:
                await self._send(g.SchedulerOpen())
                await self._pass_on(reader)
            except OSError:
                pass  # the scheduler has ended
            finally:
                self._upstream = None
                self._outage_since = _now()
                writer.close()
            await self._send(g.SchedulerClosed())

    async def _pass_on(self, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        while data := await reader.read(READ_SIZE):
            for document in frames.feed(data):
                await self._from_scheduler(document)

    async def _from_scheduler(self, document: bytes) -> None:
        message: FromScheduler = decode_from_scheduler(document)
        keys: list[AttemptKey] = []
        bundles: list[tuple[str, str | None]] = []
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
            self._send_attempt_tokens(list(message.attempts))  # so the worker may answer that it does not have them
        elif isinstance(message, Cancel):
            self._send_attempt_tokens([message.attempt])
        if bundles and self._bundles is not None:
            await self._bundles.announce(bundles)
        if keys:
            self._send_attempt_tokens(keys)
            await self._send(g.AttemptTokens(tuple((key, attempt_token(self._config.key, self.worker, key)) for key in keys)))
        await self._socket.send(bytes((g.SCHEDULER,)) + document)

    def _send_attempt_tokens(self, keys: list[AttemptKey]) -> None:
        for key in keys:
            self._proven[key] = None
        while len(self._proven) > PROVEN_MAX:
            del self._proven[next(iter(self._proven))]

    # --- the worker host --------------------------------------------------------------------------------------------

    async def _from_host(self, document: bytes) -> None:
        """Check a message for the scheduler, and forward it. Without a scheduler it is dropped: the worker host sends it again."""
        message: g.FromHost = g.decode_from_host(document)
        if isinstance(message, HostHello):
            document = encode(self._checked_hello(message))
        elif isinstance(message, FromRunner | AttemptGone | TriggerFired | WatcherEvent):
            key = message.key if isinstance(message, TriggerFired | WatcherEvent) else message.attempt
            if not self._may_speak_about(key):
                return
        elif isinstance(message, Goodbye):
            self.lease_until = 0
        upstream = self._upstream
        if upstream is not None:
            try:
                upstream.write(frame(document))
                await upstream.drain()
            except OSError:
                pass  # `_keep_scheduler` notices the end

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
            gateway=self._config.name,
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

    # --- the gateway's own messages -----------------------------------------------------------------------------------

    async def _for_gateway(self, document: bytes) -> None:
        message: g.ToGateway = g.decode_to_gateway(document)
        if isinstance(message, g.Renew):
            await self._renew(message)
        elif isinstance(message, g.Holding):
            for key, token in message.tokens:
                if proves(self._config.key, self.worker, key, token):
                    self._send_attempt_tokens([key])
        elif isinstance(message, g.LogPiece):
            await self._send(self._logs.store(self.worker, message))
        elif isinstance(message, g.PutSpill):
            await self._put_spill(message)
        elif isinstance(message, g.GetSpill):
            await self._get_spill(message.name)
        elif isinstance(message, g.Claim):
            await self._claim(message)
        elif self._bundles is None:
            raise Refused("a request for DAG files, although its registration does not ask for them")
        elif isinstance(message, g.GetManifest):
            await self._bundles.send_manifest(message.version)
        else:
            await self._bundles.send_content(message.sha256)

    async def _claim(self, message: g.Claim) -> None:
        """Check an attempt from a broker for the worker. The key that signed it never leaves the machines of the scheduler and
        the gateways.
        """
        try:
            workload = unseal(message.envelope, self._config.key)
        except EnvelopeRefused as refused:
            await self._send(g.Claimed(message.id, str(refused)))
            return
        if self._grant.queues and workload.queue not in self._grant.queues:
            allowed = ", ".join(self._grant.queues)
            await self._send(
                g.Claimed(
                    message.id, f"the token of this worker does not allow the queue {workload.queue}; it allows {allowed}"
                )
            )
            return
        if self._bundles is not None:
            await self._bundles.announce([(workload.bundle, workload.bundle_version)])
        self._send_attempt_tokens([workload.key])
        await self._send(g.AttemptTokens(((workload.key, attempt_token(self._config.key, self.worker, workload.key)),)))
        await self._send(g.Claimed(message.id))

    async def _renew(self, message: g.Renew) -> None:
        now = _now()
        lease = g.LEASE
        if self._upstream is None:
            lease = max(g.LEASE, self._outage_since + self._config.outage_lease - now)
        self.lease_until = now + lease  # the worker host counts from the time of its request, which is earlier
        await self._send(g.Renewed(message.number, lease))

    async def _put_spill(self, message: g.PutSpill) -> None:
        data = self._incoming.setdefault(message.name, bytearray())
        if len(data) + len(message.data) > SPILL_MAX or len(self._incoming) > 16:
            raise Refused("an XCom that is too large")
        data += message.data
        if not message.last:
            return
        del self._incoming[message.name]
        if hashlib.sha256(data).hexdigest() != message.name:
            raise Refused("an XCom whose content does not match its name")
        try:
            await asyncio.to_thread(self._spills.write, bytes(data))
        except OSError as error:  # the report must not arrive without its XCom: the worker host sends both again
            raise Refused(f"a large XCom cannot be stored: {error.strerror}") from None
        await self._send(g.SpillStored(message.name))

    async def _get_spill(self, name: str) -> None:
        path = Path(self._config.xcom_folder) / os.path.basename(name)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError:
            await self._send(g.SpillPiece(name, problem="the value of a large XCom does not exist any more"))
            return
        for start in range(0, max(len(data), 1), g.PIECE):
            await self._send(g.SpillPiece(name, data[start : start + g.PIECE], start + g.PIECE >= len(data)))

    async def _send(self, message: object) -> None:
        with suppress(ConnectionClosed):
            await self._socket.send(bytes((g.GATEWAY,)) + g.encode(message))


def _now() -> int:
    return time.monotonic_ns() // 1000
