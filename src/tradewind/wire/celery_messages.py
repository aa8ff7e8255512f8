"""Messages over the broker of a CeleryExecutor, and between a Celery worker and the worker host beside it.

    scheduler ─▶ broker ─▶ Celery worker ─▶ worker host ─▶ scheduler
       an envelope (text)       Offer          Start, Report, … as always

An envelope contains the workload of one attempt, and a signature, so that a person with access to the broker cannot create
tasks. The worker host asks the scheduler for the start, so a lost, repeated or delayed message only costs time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from tradewind.model.errors import TradewindError
from tradewind.wire.messages import AttemptKey, Workload, decode_workload, encode

TASK_NAME = "tradewind.attempt"
"""Name of the Celery task."""
_PREFIX = "twa1"


class EnvelopeRefused(TradewindError):
    """A message of the broker does not contain an attempt of this deployment."""


def seal(workload: Workload, key: bytes) -> str:
    """Return the envelope of a workload."""
    document = base64.b64encode(encode(workload)).decode()
    return f"{_PREFIX}.{document}.{_signature(document, key)}"


def unseal(envelope: str, key: bytes) -> Workload:
    """Return the workload of an envelope.

    Raises:
        EnvelopeRefused: it is damaged, or another key signed it.
    """
    document, signature = _parts(envelope)
    if not hmac.compare_digest(signature.encode(), _signature(document, key).encode()):
        raise EnvelopeRefused("the message was signed with another key: does another deployment use the same broker?")
    return _workload(document)


def unchecked_workload(envelope: str) -> Workload:
    """Return the workload of an envelope whose signature was checked before.

    Raises:
        EnvelopeRefused: it is damaged.
    """
    return _workload(_parts(envelope)[0])


def _parts(envelope: str) -> tuple[str, str]:
    """(document, signature)."""
    prefix, _, rest = envelope.partition(".")
    document, _, signature = rest.partition(".")
    if prefix != _PREFIX or not signature:
        raise EnvelopeRefused("the message is not an attempt")
    return document, signature


def _workload(document: str) -> Workload:
    try:
        workload: Workload = decode_workload(base64.b64decode(document, validate=True))
    except (binascii.Error, msgspec.MsgspecError) as error:
        raise EnvelopeRefused(f"the message cannot be read: {error}") from None
    return workload


def _signature(document: str, key: bytes) -> str:
    return hmac.new(key, f"{_PREFIX}.{document}".encode(), hashlib.sha256).hexdigest()


def task_id(attempt: AttemptKey) -> str:
    """The id of the Celery task of an attempt."""
    return "tradewind-{}-{}-{}".format(*attempt)


# --- Celery worker ⇄ worker host -----------------------------------------------------------------------------------------


class Offer(msgspec.Struct, frozen=True, tag="offer"):
    """An attempt from the broker. Answered by `OfferState`, several times."""

    id: str
    """Id of the Celery task."""
    envelope: str


class StopOffer(msgspec.Struct, frozen=True, tag="stop"):
    """The Celery task was revoked: stop the attempt."""

    id: str


class OfferState(msgspec.Struct, frozen=True, omit_defaults=True, tag="state"):
    """The state of an offer."""

    id: str
    state: str
    """`started`: the scheduler has accepted the start; `ended`; `refused`: there is nothing to run; `busy`: another worker must
    take it."""
    ok: bool = True
    reason: str = ""
    pid: int = 0


decode_from_pool = msgspec.msgpack.Decoder(Offer | StopOffer).decode
decode_offer_state = msgspec.msgpack.Decoder(OfferState).decode
