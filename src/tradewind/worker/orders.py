"""The messages between the worker host and the processes that run tasks and triggers.

A separate module, so that the host need not import the modules of these processes.
"""

from __future__ import annotations

import msgspec

from tradewind.wire.messages import AttemptKey, RunnerRequest, TriggerFired, WatcherEvent, Workload
from tradewind.worker.config import TaskLimits


class MakeTemplate(msgspec.Struct, frozen=True, tag="template"):
    """Order to the base image: become the template of this file. Descriptor: the template's own link."""

    folder: str
    """Absolute path of the bundle's files."""
    file: str
    limits: TaskLimits


class RunDirect(msgspec.Struct, frozen=True, tag="direct"):
    """Order to the base image: import the file and run this attempt. Descriptors: channel, log."""

    workload: Workload
    limits: TaskLimits


class FreshOrder(msgspec.Struct, frozen=True):
    """Message to a fresh interpreter on its stdin: run this attempt."""

    workload: Workload
    limits: TaskLimits


class TriggererLimits(msgspec.Struct, frozen=True):
    """Limits for each trigger, so that it cannot harm the other triggers. Seconds and bytes."""

    event_max: int = 64 * 1024 * 1024
    """Size of an event; from `core.xcom_max_bytes`."""
    log_max: int = 10 * 1024 * 1024
    """Size of its log."""
    blocked_shown: float = 5.0
    """If the event loop makes no progress for this time, the log of the running trigger gets a warning."""
    blocked_max: float = 60.0
    """If the event loop makes no progress for this time, the running trigger fails."""
    end_within: float = 30.0
    """Time for the cleanup of a trigger, and between two cancellations of a trigger that was dropped."""


class BecomeTriggerer(msgspec.Struct, frozen=True, tag="triggerer"):
    """Order to the base image: run triggers. Descriptors: the sockets for orders and for requests, and the shared page."""

    limits: TriggererLimits


class TriggerSaid(msgspec.Struct, frozen=True, tag="said"):
    """A trigger logged or printed something."""

    key: AttemptKey
    level: str
    event: str
    logger: str


class TriggerAsks(msgspec.Struct, frozen=True, tag="asks"):
    """The code of a trigger sends a request to the scheduler."""

    key: AttemptKey
    question: RunnerRequest


encode_order = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(MakeTemplate | RunDirect | BecomeTriggerer).decode
decode_from_triggerer = msgspec.msgpack.Decoder(TriggerFired | WatcherEvent | TriggerSaid | TriggerAsks).decode
decode_triggerer_limits = msgspec.json.Decoder(TriggererLimits).decode
decode_fresh_order = msgspec.msgpack.Decoder(FreshOrder).decode
