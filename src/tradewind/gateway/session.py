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
from tradewind.gateway.worker_state import Refused, WorkerState
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.storage.local_spills import LocalSpills
from tradewind.wire import gateway as g
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import decode_from_scheduler
from tradewind.wire.worker_tokens import WorkerGrant

log = Log("gateway")

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Pauses between two attempts to connect to the scheduler. The last pause repeats."""
READ_SIZE = 256 * 1024
SPILL_MAX = 2 * 1024 * 1024 * 1024
"""Size of the largest XCom that a worker may send, bytes."""


class Session:
    """See the module. `run` returns when the WebSocket is closed."""

    def __init__(
        self,
        socket: ServerConnection,
        grant: WorkerGrant,
        config: Config,
        logs: LogStore,
        files: BundleFiles | None,
        limit: int | None = None,
    ) -> None:
        self.state = WorkerState(grant, config.name, config.key, config.outage_lease, _now(), limit)
        self.worker = self.state.worker
        self._socket = socket
        self._config = config
        self._logs = logs
        self._spills = LocalSpills(config.xcom_folder)
        self._incoming: dict[str, bytearray] = {}
        self._upstream: asyncio.StreamWriter | None = None
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
                await self._send(g.SchedulerOpen(self._config.name))
                await self._pass_on(reader)
            except OSError:
                pass  # the scheduler has ended
            finally:
                self._upstream = None
                self.state.scheduler_lost(_now())
                writer.close()
            await self._send(g.SchedulerClosed())

    async def _pass_on(self, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        while data := await reader.read(READ_SIZE):
            for document in frames.feed(data):
                await self._from_scheduler(document)

    async def _from_scheduler(self, document: bytes) -> None:
        keys, bundles = self.state.attempts_in(decode_from_scheduler(document), _now())
        if bundles and self._bundles is not None:
            await self._bundles.announce(bundles)
        if keys:
            await self._send(self.state.tokens(keys))
        await self._socket.send(bytes((g.SCHEDULER,)) + document)

    # --- the worker host --------------------------------------------------------------------------------------------

    async def _from_host(self, document: bytes) -> None:
        """Check a message for the scheduler, and forward it. Without a scheduler it is dropped: the worker host sends it again."""
        checked, upstream = self.state.to_forward(document), self._upstream
        if checked is not None and upstream is not None:
            try:
                upstream.write(frame(checked))
                await upstream.drain()
            except OSError:
                pass  # `_keep_scheduler` notices the end

    # --- the gateway's own messages -----------------------------------------------------------------------------------

    async def _for_gateway(self, document: bytes) -> None:
        message: g.ToGateway = g.decode_to_gateway(document)
        if isinstance(message, g.Renew):
            if self._upstream is not None and self.state.scheduler_is_stopped(_now()):
                self._upstream.close()
            await self._send(self.state.renew(message, _now()))
        elif isinstance(message, g.Holding):
            self.state.holding(message)
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
        """Check an attempt from a broker for the worker."""
        problem, workload = self.state.claimed(message)
        if workload is not None:
            if self._bundles is not None:
                await self._bundles.announce([(workload.bundle, workload.bundle_version)])
            await self._send(self.state.tokens([workload.key]))
        await self._send(g.Claimed(message.id, problem))

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
