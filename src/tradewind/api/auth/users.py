"""The people who may log in, in one private file.

`$TRADEWIND_HOME/passwords` is JSON: `{"admin": {"role": "admin", "password": "$argon2id$…"}}`. The first start makes it with
one generated password, which is shown once and kept only as its hash. A change of the file counts from the next request on. A
random text `logins` in an entry ends, whenever it changes, all tokens that were given before.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from typing import TYPE_CHECKING, NamedTuple

from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.platform.private_file import create_private_file, exposure

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ROLES = ("viewer", "user", "op", "admin")
"""Each may what those before it may, and more; see `auth.policy`."""

_PASSWORD_BYTES = 15
"""Random bytes of a generated password: 20 characters, 120 bits."""

_MEMORY_KIB, _PASSES = 19 * 1024, 2
"""Argon2id as OWASP recommends for little memory: one login must not double what the process weighs."""


class User(NamedTuple):
    name: str
    role: str
    stamp: str
    """Changes with the password and with `users logout`: tokens carry it, so that both end old logins."""


class Users:
    """Reads the file of users; keeps it in memory until it changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read_as: tuple[int, int, int] | None = None
        self._hashes: dict[str, str] = {}
        self._users: dict[str, User] = {}
        self._hashing = threading.Lock()
        self._decoy: str | None = None

    def find(self, name: str) -> User | None:
        """Raises ConfigError: the file is missing, open to others or unreadable."""
        self._refresh()
        return self._users.get(name)

    def login(self, name: str, password: str) -> User | None:
        """The user, when the password is right. Takes as long for names that do not exist.

        Raises:
            ConfigError: as `find`.
        """
        user = self.find(name)
        with self._hashing:  # one at a time: hashing is meant to take memory
            if self._decoy is None:
                self._decoy = _hasher().hash(secrets.token_hex(8))
            right = _verify(self._hashes[name] if user is not None else self._decoy, password)
        return user if right else None

    def _refresh(self) -> None:
        try:
            found = os.stat(self._path)
            reason = exposure(self._path)
        except OSError as error:
            raise ConfigError(f"Nobody can log in: the file of users {self._path} cannot be read ({error.strerror}).") from None
        if reason is not None:
            raise ConfigError(f"Nobody can log in: the file of users {self._path} is not private ({reason}). Run: chmod 600")
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen == self._read_as:
            return
        with open(self._path, encoding="utf-8") as file:
            hashes, users = _parse(file.read(), self._path)
        self._hashes, self._users, self._read_as = hashes, users, seen


def ensure_admin(path: str) -> str | None:
    """Make the file of users with one admin, unless it exists.

    Returns:
        The generated password, to be shown once; None when the file was there.

    Raises:
        OSError: the file cannot be made.
    """
    if os.path.lexists(path):
        return None
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    entry = {"admin": {"role": "admin", "password": hash_password(password)}}
    return password if create_private_file(path, (json.dumps(entry, indent=2) + "\n").encode()) else None


def hash_password(password: str) -> str:
    """What the file of users keeps of a password."""
    return _hasher().hash(password)


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # lazy door: only a login needs it

    return PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=1)


def _verify(stored: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError  # lazy door: as above

    try:
        return _hasher().verify(stored, password)
    except (Argon2Error, InvalidHashError):
        return False


def _parse(text: str, path: str) -> tuple[dict[str, str], dict[str, User]]:
    try:
        entries = json.loads(text)
        hashes = {str(name): str(entry["password"]) for name, entry in entries.items()}
        roles = {str(name): str(entry["role"]) for name, entry in entries.items()}
        logins = {str(name): str(entry.get("logins", "")) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f'Nobody can log in: {path} is not of the form {{"name": {{"role": "viewer", "password": "$argon2id$…"}}}}.'
        ) from None
    for name, role in roles.items():
        if role not in ROLES:
            raise ConfigError(f"{path}: {name!r} has the unknown role {role!r}.{did_you_mean(role, ROLES)}")
    stamps = {name: hashlib.sha256((hashes[name] + logins[name]).encode()).hexdigest()[:16] for name in roles}
    users = {name: User(name, role, stamps[name]) for name, role in roles.items()}
    return hashes, users
