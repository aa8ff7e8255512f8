"""Password hashes that `tradewind import-airflow` takes over: those of Werkzeug, which Airflow's Flask-AppBuilder stores.

    pbkdf2:sha256:260000$TeUSWad4x9jrgIoc$01a552ab…
    scrypt:32768:8:1$9yN0zFTtUVkWJcFE$5c1a…

They are replaced by Tradewind's hashes at the first login.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

_DIGESTS = ("sha256", "sha512")
_ITERATIONS_MAX = 5_000_000
_SCRYPT_BYTES_MAX = 128 * 1024 * 1024
"""Limits: the check of an imported hash must not take the web server more than about a second."""


class _Hash(NamedTuple):
    method: list[str]
    salt: bytes
    digest: str


def is_airflow_hash(stored: str) -> bool:
    """Whether a password can be compared with this hash."""
    return _parsed(stored) is not None


def verify(stored: str, password: str) -> bool:
    """Whether the password has this hash."""
    parsed = _parsed(stored)
    if parsed is None:
        return False
    name, *numbers = parsed.method
    if name == "pbkdf2":
        found = hashlib.pbkdf2_hmac(numbers[0], password.encode(), parsed.salt, int(numbers[1]))
    else:
        n, r, p = map(int, numbers)
        found = hashlib.scrypt(password.encode(), salt=parsed.salt, n=n, r=r, p=p, maxmem=_SCRYPT_BYTES_MAX + 1024 * 1024)
    return hmac.compare_digest(found.hex(), parsed.digest)


def _parsed(stored: str) -> _Hash | None:
    method, _, rest = stored.partition("$")
    salt, _, digest = rest.partition("$")
    name, *numbers = method.split(":")
    if not salt or not digest or not all(number.isdecimal() for number in numbers[name == "pbkdf2" :]):
        return None
    if name == "pbkdf2" and len(numbers) == 2:
        usable = numbers[0] in _DIGESTS and 0 < int(numbers[1]) <= _ITERATIONS_MAX
    elif name == "scrypt" and len(numbers) == 3:
        n, r, p = map(int, numbers)
        usable = n > 1 and n & (n - 1) == 0 and r > 0 and 0 < p <= 16 and 128 * n * r <= _SCRYPT_BYTES_MAX
    else:
        return None
    return _Hash([name, *numbers], salt.encode(), digest) if usable else None
