"""Messages between a remote worker host and a gateway.

Each WebSocket message is binary. Its first byte says which conversation the msgpack document belongs to:

    SCHEDULER   the messages of `wire.messages`, the same as on the socket of a worker host beside the scheduler
    GATEWAY     the messages below: leases, logs, large XComs and DAG files

The gateway sends `SchedulerOpen` when it has a connection to the scheduler for this worker host; then the worker host
registers. From `SchedulerClosed` to the next `SchedulerOpen` no scheduler is connected; the WebSocket stays open.

**DAG files.** A worker host that connects with `?files=1` is told the version of a bundle (`BundleAt`) before each message that
names this bundle. It requests the manifest and the missing content. An older gateway ignores the query and sends no
`BundleAt`.

**Lease.** The worker host sends `Renew` every `RENEW_EVERY`. A lease runs from the moment at which the worker host *sent* the
request, so a slow network never makes the lease longer than the gateway believes. When the lease has run out, the worker host
stops its tasks.
"""

from __future__ import annotations

import msgspec

from tradewind.model.moments import SECOND
from tradewind.wire.bundle_manifest import BundleFile
from tradewind.wire.messages import (
    AttemptGone,
    AttemptKey,
    CallbackDone,
    Draining,
    FromRunner,
    Goodbye,
    HostHello,
    LogTrouble,
    TriggerFired,
    Unlisted,
    WatcherEvent,
    Withdrawn,
)

SCHEDULER, GATEWAY = 0, 1
"""The first byte of a message."""
PATH = "/worker"
"""Path of the WebSocket in the address of a gateway."""

SCHEDULER_PATH = "/scheduler"
"""Path for standby schedulers on other machines. Their connections are forwarded to the scheduler's socket."""

FILES_QUERY = "files=1"
"""Query of that path: the worker host wants the DAG files from the gateway."""

MESSAGE_MAX = 64 * 1024 * 1024
"""Size of the largest message in either direction, bytes."""
PIECE = 256 * 1024
"""Maximum size of a part of a log or file in one message, bytes."""
RENEW_EVERY = 5 * SECOND
SILENT_MAX = 15 * SECOND
"""A peer that has sent nothing for this time is disconnected."""
LEASE = 30 * SECOND
"""A worker host stops its tasks after this time without an answer of a gateway."""
LEASE_GRACE = 5 * SECOND
"""A task that is stopped because the lease has run out is killed after this time."""


# --- worker host → gateway --------------------------------------------------------------------------------------------


class Renew(msgspec.Struct, frozen=True, omit_defaults=True, tag="renew"):
    """Ask for a new lease. Answered by `Renewed` with the same number."""

    number: int
    left: int = 0
    """How long the present lease lasts, microseconds. It may be longer than the next one, and the answer may get lost. A worker
    host of an older release sends 0.
    """


class Holding(msgspec.Struct, frozen=True, tag="holding"):
    """The worker host holds these attempts, and proves it with their tokens. Sent before its registration."""

    tokens: tuple[tuple[AttemptKey, str], ...]


class LogPiece(msgspec.Struct, frozen=True, tag="log"):
    """A part of a log file. Answered by `LogStored`."""

    path: str
    """Relative to the log folder, with forward slashes (`wire.log_paths`)."""
    source: str
    """Identifies the file on the worker: a file that was deleted and created again has another value."""
    offset: int
    """Position of the data in that file."""
    data: bytes


class PutSpill(msgspec.Struct, frozen=True, tag="put_spill"):
    """A part of a large XCom that a later report names. Parts arrive in order; after the last one the value is stored."""

    name: str
    """SHA-256 of the whole value, in hexadecimal digits."""
    data: bytes
    last: bool


class GetSpill(msgspec.Struct, frozen=True, tag="get_spill"):
    """Ask for a large XCom. Answered by `SpillPiece`."""

    name: str


class Claim(msgspec.Struct, frozen=True, tag="claim"):
    """Ask the gateway to check the signature of an attempt from a broker, so that the worker host may send messages about it.

    Answered by `Claimed`, after the token and the bundle of the attempt.
    """

    id: str
    """Chosen by the worker host."""
    envelope: str
    """`wire.celery_messages`."""


class GetManifest(msgspec.Struct, frozen=True, tag="get_manifest"):
    """Ask for the files of a version that `BundleAt` named. Answered by `Manifest`."""

    version: str


class GetContent(msgspec.Struct, frozen=True, tag="get_content"):
    """Ask for the content of a file that a manifest named. Answered by `ContentPiece`."""

    sha256: str


# --- gateway → worker host --------------------------------------------------------------------------------------------


class Renewed(msgspec.Struct, frozen=True, omit_defaults=True, tag="renewed"):
    """The lease that begins when `Renew` was sent."""

    number: int
    lease: int
    """Microseconds."""
    gateway: str = ""
    """Name of the gateway: behind one address there may be several. A gateway of an older release sends none."""


class AttemptTokens(msgspec.Struct, frozen=True, tag="tokens"):
    """Tokens of the attempts of the message that follows. The worker host keeps each one until the attempt has ended."""

    tokens: tuple[tuple[AttemptKey, str], ...]


class SchedulerOpen(msgspec.Struct, frozen=True, omit_defaults=True, tag="open"):
    """The gateway is connected to the scheduler: register."""

    gateway: str = ""
    """Name of the gateway, as in `Renewed`."""


class SchedulerClosed(msgspec.Struct, frozen=True, tag="closed"):
    """The gateway has lost the connection to the scheduler."""


class LogStored(msgspec.Struct, frozen=True, omit_defaults=True, tag="log_stored"):
    """The log is stored up to this position."""

    path: str
    source: str
    size: int
    problem: str = ""
    """Why the part was not stored; empty: it was stored."""


class SpillStored(msgspec.Struct, frozen=True, tag="spill_stored"):
    """A large XCom is stored."""

    name: str


class SpillPiece(msgspec.Struct, frozen=True, omit_defaults=True, tag="spill"):
    """A part of a large XCom. `problem`: why there is none."""

    name: str
    data: bytes = b""
    last: bool = True
    problem: str = ""


class Claimed(msgspec.Struct, frozen=True, omit_defaults=True, tag="claimed"):
    """The answer to `Claim`. `problem`: why the attempt must not run here; empty: it may."""

    id: str
    problem: str = ""


class BundleAt(msgspec.Struct, frozen=True, omit_defaults=True, tag="bundle_at"):
    """From now on the attempts of this bundle use this version."""

    bundle: str
    version: str = ""
    """Hash of the list of the files."""
    problem: str = ""
    """If set, the files cannot be sent. A sentence whose subject is the bundle."""
    bundle_version: str = ""
    """Set: these are the files of this version of the bundle, for example of a commit. Empty: the files as they are now."""


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True, tag="manifest"):
    """The files of a version. None: the gateway does not have the version any more."""

    version: str
    files: tuple[BundleFile, ...] | None = None


class ContentPiece(msgspec.Struct, frozen=True, omit_defaults=True, tag="content"):
    """A part of the content of a file. `problem`: why there is none."""

    sha256: str
    data: bytes = b""
    last: bool = True
    problem: str = ""


ToGateway = Renew | Holding | LogPiece | PutSpill | GetSpill | Claim | GetManifest | GetContent
FromGateway = (
    Renewed
    | AttemptTokens
    | SchedulerOpen
    | SchedulerClosed
    | LogStored
    | SpillStored
    | SpillPiece
    | Claimed
    | BundleAt
    | Manifest
    | ContentPiece
)
FromHost = (
    HostHello
    | Draining
    | Withdrawn
    | Unlisted
    | LogTrouble
    | Goodbye
    | FromRunner
    | AttemptGone
    | CallbackDone
    | TriggerFired
    | WatcherEvent
)
"""The messages that a worker host may send to the scheduler. Commands are excluded: a worker is not an administrator."""

encode = msgspec.msgpack.Encoder().encode
decode_to_gateway = msgspec.msgpack.Decoder(ToGateway).decode
decode_from_gateway = msgspec.msgpack.Decoder(FromGateway).decode
decode_from_host = msgspec.msgpack.Decoder(FromHost).decode
