"""Login tokens: JWTs signed with a key that only this machine has.

HS256 with 256 random bits in a file with mode 0600: the same process signs and verifies. A token holds the user (sub), issuer and
audience (iss, aud), the time of expiry (exp), a fingerprint of the password (stamp), and its own id (jti).
"""

from __future__ import annotations

import hmac
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
"""Maximum number of characters of a token. Tokens of Tradewind have about 400."""


class BadToken(Exception):
    """The token was not issued by this server, or has expired. The reason is for the log, not for the client."""


class Tokens:
    """Issues and checks tokens.

    Args:
        key_file: created with a new key if it is missing. A new key invalidates all tokens.
        seconds: how long a token is valid.
    """

    def __init__(self, key_file: str, seconds: int, clock: Clock) -> None:
        self._key_file = key_file
        self._seconds = seconds
        self._clock = clock
        self._key: OctKey | None = None

    def issue(self, name: str, stamp: str) -> str:
        """A token for this user.

        Raises:
            ConfigError: the key file cannot be read, or other users can read it.
        """
        from joserfc import jwt  # lazy import: 9 MB that only a login needs

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
        """The claims of a valid token.

        Raises:
            BadToken: the token is not valid.
            ConfigError: see `issue`.
        """
        from joserfc import jwt  # lazy import: as above
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

    def key_for(self, purpose: str) -> bytes:
        """A key of 32 bytes for another purpose, derived from the key of the tokens. Raises ConfigError, as `issue`."""
        return hmac.digest(_read_key(self._key_file), f"tradewind {purpose}".encode(), "sha256")

    def _signing_key(self) -> OctKey:
        if self._key is None:
            from joserfc.jwk import OctKey  # lazy import: as above

            self._key = OctKey.import_key(_read_key(self._key_file))
        return self._key


def _read_key(path: str) -> bytes:
    try:
        if not os.path.lexists(path):
            create_private_file(path, secrets.token_bytes(_KEY_BYTES).hex().encode() + b"\n")
        reason = exposure(path)
        if reason is not None:
            raise ConfigError(f"The key that signs logins, {path}, is not private: {reason}. Delete it: a new key is created.")
        with open(path, "rb") as file:
            key = bytes.fromhex(file.read().decode("ascii").strip())
    except OSError as error:
        raise ConfigError(f"The key that signs logins, {path}, cannot be read: {error.strerror}.") from error
    except ValueError:
        key = b""
    if len(key) < _KEY_BYTES:
        raise ConfigError(f"{path} does not hold {_KEY_BYTES} bytes as hexadecimal digits. Delete it: a new key is created.")
    return key
