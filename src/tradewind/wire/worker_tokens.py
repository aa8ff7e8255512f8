"""Signed tokens, which prove the name of a remote worker and the attempts that it was given.

    worker token    tww1.<claims>.<signature>     made by `tradewind workers token`, sent when the worker connects to a gateway
    attempt token   <signature>                   one for each attempt that a gateway passed to a worker
    relay token     tws1.<moment>.<signature>     made by a standby scheduler, which has the key, for one connection

The signature is an HMAC with SHA-256. The key stays on the machines of the scheduler and the gateways; workers only store tokens.
A worker proves with attempt tokens which attempts it holds when it connects again, perhaps to another gateway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

import msgspec

from tradewind.model.errors import TradewindError
from tradewind.wire.messages import AttemptKey

PREFIX = "tww1"
"""First part of a worker token, by which people and secret scanners recognise it."""
RELAY_PREFIX = "tws1"
RELAY_SECONDS = 300
"""How long a relay token is valid, and how much the clocks of two machines may differ."""
KEY_BYTES = 32
_ATTEMPT_TOKEN_BYTES = 16


class TokenRefused(TradewindError):
    """A worker token is not valid."""


class WorkerGrant(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rights of the holder of a worker token."""

    worker: str
    """Name of the worker."""
    queues: tuple[str, ...] = ()
    """Queues whose tasks it may run; empty: all."""
    issued: int = 0
    """Microseconds UTC."""
    expires: int = 0
    """Microseconds UTC; 0: never."""


_decode_grant = msgspec.json.Decoder(WorkerGrant).decode


def sign_grant(grant: WorkerGrant, key: bytes) -> str:
    """Return the worker token for these claims."""
    claims = _text(msgspec.json.encode(grant))
    return f"{PREFIX}.{claims}.{_text(_signature(key, f'{PREFIX}.{claims}'.encode()))}"


def read_grant(token: str, key: bytes, now: int) -> WorkerGrant:
    """Check a worker token, and return its claims.

    Args:
        now: microseconds UTC.

    Raises:
        TokenRefused: it is no worker token, another key signed it, or it has expired.
    """
    grant = unchecked_grant(token)
    signed, _, signature = token.strip().rpartition(".")
    if not hmac.compare_digest(signature.encode(), _text(_signature(key, signed.encode())).encode()):
        raise TokenRefused("the worker token was signed with another key; make a new one: tradewind workers token")
    if grant.expires and grant.expires <= now:
        raise TokenRefused(f"the worker token of {grant.worker} has expired; make a new one: tradewind workers token")
    return grant


def unchecked_grant(token: str) -> WorkerGrant:
    """Return the claims of a worker token without checking its signature, for the worker itself.

    Raises:
        TokenRefused: it is no worker token.
    """
    parts = token.strip().split(".")
    if len(parts) != 3 or parts[0] != PREFIX:
        raise TokenRefused(f"this is no worker token: a worker token begins with {PREFIX}. (make one: tradewind workers token)")
    try:
        grant: WorkerGrant = _decode_grant(_bytes(parts[1]))
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise TokenRefused("the worker token is damaged: it was not copied completely") from None
    return grant


def attempt_token(key: bytes, worker: str, attempt: AttemptKey) -> str:
    """Return the token that proves that this worker was given this attempt."""
    run, slot, fence = attempt
    return _text(_signature(key, f"attempt/{worker}/{run}/{slot}/{fence}".encode())[:_ATTEMPT_TOKEN_BYTES])


def proves(key: bytes, worker: str, attempt: AttemptKey, token: str) -> bool:
    """Whether this is the token of the attempt for this worker."""
    return hmac.compare_digest(attempt_token(key, worker, attempt).encode(), token.encode())


def relay_token(key: bytes, now: int) -> str:
    """Return a token with which a standby scheduler connects to the active scheduler through the gateway.

    Args:
        now: microseconds UTC.
    """
    signed = f"{RELAY_PREFIX}.{now}"
    return f"{signed}.{_text(_signature(key, signed.encode()))}"


def check_relay_token(token: str, key: bytes, now: int) -> None:
    """Check a relay token.

    Raises:
        TokenRefused: another key signed it, or it is too old.
    """
    signed, _, signature = token.strip().rpartition(".")
    prefix, _, moment = signed.partition(".")
    if prefix != RELAY_PREFIX or not moment.isdecimal():
        raise TokenRefused("only a standby scheduler may connect here, with a token that it makes itself")
    if not hmac.compare_digest(signature.encode(), _text(_signature(key, signed.encode())).encode()):
        raise TokenRefused(
            "the standby scheduler has another worker.key; copy the file from the home folder of the other scheduler"
        )
    if abs(now - int(moment)) > RELAY_SECONDS * 1_000_000:
        raise TokenRefused(f"the clocks of the two machines differ by more than {RELAY_SECONDS} s")


def _signature(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
