"""Login tokens: JWTs signed with a key that only this machine has.

HS256 with 256 random bits in a 0600 file: whoever verifies is whoever signs. A token says who (sub), for whom (aud, iss),
until when (exp), which password it was given for (stamp), and has a name of its own (jti).
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import ConfigError
from tradewind.platform.clock import Clock
from tradewind.platform.private_file import create_private_file, exposure

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

ISSUER, AUDIENCE = "tradewind", "tradewind-api"
_ALGORITHM = "HS256"
_KEY_BYTES = 32
_LONGEST = 4096
"""Characters of a token; ours have some 400."""


class BadToken(Exception):
    """Not a token of ours, or not one any more. The reason is for the log, not for whoever sent it."""


class Tokens:
    """Gives and checks tokens.

    Args:
        key_file: made with a new key where it is missing; a new key ends all logins.
        seconds: life of a token.
    """

    def __init__(self, key_file: str, seconds: int, clock: Clock) -> None:
        self._key_file = key_file
        self._seconds = seconds
        self._clock = clock
        self._key: OctKey | None = None

    def give(self, name: str, stamp: str) -> str:
        """A token for this user.

        Raises:
            ConfigError: the key file cannot be read, or others can.
        """
        from joserfc import jwt  # lazy door: 9 MB that only a login needs

        now = self._clock.wall() // 1_000_000
        claims = {
            "sub": name,
            "stamp": stamp,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "nbf": now,
            "exp": now + self._seconds,
            "jti": secrets.token_hex(16),
        }
        return jwt.encode({"alg": _ALGORITHM}, claims, self._signing_key(), algorithms=[_ALGORITHM])

    def check(self, token: str) -> dict[str, Any]:
        """The claims of a token that is good now.

        Raises:
            BadToken: it is not.
            ConfigError: as `give`.
        """
        from joserfc import jwt  # lazy door: as above
        from joserfc.errors import JoseError

        if len(token) > _LONGEST:
            raise BadToken("too long")
        rules = jwt.JWTClaimsRegistry(
            now=self._clock.wall() // 1_000_000,
            iss={"essential": True, "value": ISSUER},
            aud={"essential": True, "value": AUDIENCE},
            exp={"essential": True},
            iat={"essential": True},
            nbf={"essential": True},
            sub={"essential": True},
            jti={"essential": True},
            stamp={"essential": True},
        )
        key = self._signing_key()
        try:
            found = jwt.decode(token, key, algorithms=[_ALGORITHM])
            rules.validate(found.claims)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadToken(str(error)) from None
        return dict(found.claims)

    def _signing_key(self) -> OctKey:
        if self._key is None:
            from joserfc.jwk import OctKey  # lazy door: as above

            self._key = OctKey.import_key(_read_key(self._key_file))
        return self._key


def _read_key(path: str) -> bytes:
    try:
        if not os.path.lexists(path):
            create_private_file(path, secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n")
        reason = exposure(path)
        if reason is not None:
            raise ConfigError(f"The key that signs logins, {path}, is not private: {reason}. Remove it: a new one is made.")
        with open(path, "rb") as file:
            key = bytes.fromhex(file.read().decode("ascii").strip())
    except OSError as error:
        raise ConfigError(f"The key that signs logins, {path}, cannot be read: {error.strerror}.") from error
    except ValueError:
        key = b""
    if len(key) < _KEY_BYTES:
        raise ConfigError(f"{path} does not hold {_KEY_BYTES} bytes as hexadecimal digits. Remove it: a new key is made.")
    return key
