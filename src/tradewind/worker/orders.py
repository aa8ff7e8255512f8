"""What the worker host tells the processes that run tasks. Apart, so that the host need not import what they import."""

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
    """What a fresh interpreter is told on its stdin: run this attempt."""

    workload: Workload
    limits: TaskLimits


class TriggererLimits(msgspec.Struct, frozen=True):
    """What one trigger may do to the others. Seconds and bytes."""

    event_max: int = 64 * 1024 * 1024
    """Of what it fires; `core.xcom_max_bytes`."""
    log_max: int = 10 * 1024 * 1024
    """Of what it prints and logs."""
    blocked_shown: float = 5.0
    """Without a turn of the event loop: then the log of the trigger that runs says so."""
    blocked_max: float = 60.0
    """Then this trigger fails."""
    end_within: float = 30.0
    """For its cleanup, and for obeying when nobody waits any more."""


class BecomeTriggerer(msgspec.Struct, frozen=True, tag="triggerer"):
    """Order to the base image: run triggers. Descriptors: orders, questions, the shared page."""

    limits: TriggererLimits


class TriggerSaid(msgspec.Struct, frozen=True, tag="said"):
    """A trigger logged or printed something."""

    key: AttemptKey
    level: str
    event: str
    logger: str


class TriggerAsks(msgspec.Struct, frozen=True, tag="asks"):
    """A trigger's code asks a question."""

    key: AttemptKey
    question: RunnerRequest


encode_order = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(MakeTemplate | RunDirect | BecomeTriggerer).decode
decode_from_triggerer = msgspec.msgpack.Decoder(TriggerFired | WatcherEvent | TriggerSaid | TriggerAsks).decode
decode_triggerer_limits = msgspec.json.Decoder(TriggererLimits).decode
decode_fresh_order = msgspec.msgpack.Decoder(FreshOrder).decode
