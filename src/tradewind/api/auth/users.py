"""The users who may log in, in one private file.

`$TRADEWIND_HOME/passwords` is JSON: `{"admin": {"role": "admin", "password": "$argon2id$…"}}`. The first start creates it with
one generated password, which is shown once and stored only as a hash. A change of the file takes effect at the next request. An
entry may have a random text `logins`: when it changes, all earlier tokens of the user become invalid.
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
"""Each role has the permissions of the roles before it, and more; see `auth.policy`."""

_PASSWORD_BYTES = 15
"""Random bytes of a generated password: 20 characters, 120 bits."""

_MEMORY_KIB, _PASSES = 19 * 1024, 2
"""Argon2id with the parameters that OWASP recommends for little memory: a login must not double the memory of the process."""


class User(NamedTuple):
    name: str
    role: str
    stamp: str
    """A fingerprint that changes with the password and with `users logout`. Tokens hold it, so both invalidate old tokens."""


class Users:
    """Reads the user file and keeps it in memory until the file changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file_version: tuple[int, int, int] | None = None
        self._hashes: dict[str, str] = {}
        self._users: dict[str, User] = {}
        self._hashing = threading.Lock()
        self._decoy: str | None = None

    def find(self, name: str) -> User | None:
        """The user of this name. Raises ConfigError: the file is missing, not private or cannot be read."""
        self._refresh()
        return self._users.get(name)

    def login(self, name: str, password: str) -> User | None:
        """The user, if the password is right. It takes as long for a name that does not exist.

        Raises:
            ConfigError: as `find`.
        """
        user = self.find(name)
        with self._hashing:  # one at a time: Argon2 takes much memory on purpose
            if self._decoy is None:
                self._decoy = _hasher().hash(secrets.token_hex(8))
            right = _verify(self._hashes[name] if user is not None else self._decoy, password)
        return user if right else None

    def _refresh(self) -> None:
        try:
            found = os.stat(self._path)
            reason = exposure(self._path)
        except OSError as error:
            raise ConfigError(f"Nobody can log in: the user file {self._path} cannot be read ({error.strerror}).") from None
        if reason is not None:
            raise ConfigError(f"Nobody can log in: the user file {self._path} is not private ({reason}). Run: chmod 600")
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen == self._file_version:
            return
        with open(self._path, encoding="utf-8") as file:
            hashes, users = _parse(file.read(), self._path)
        self._hashes, self._users, self._file_version = hashes, users, seen


def ensure_admin(path: str) -> str | None:
    """Create the user file with one admin, unless it exists.

    Returns:
        The generated password, to be shown once. None: the file existed.

    Raises:
        OSError: the file cannot be created.
    """
    if os.path.lexists(path):
        return None
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    entry = {"admin": {"role": "admin", "password": hash_password(password)}}
    return password if create_private_file(path, (json.dumps(entry, indent=2) + "\n").encode()) else None


def hash_password(password: str) -> str:
    """The hash of a password, as the user file stores it."""
    return _hasher().hash(password)


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # lazy import: only a login needs it

    return PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=1)


def _verify(stored: str, password: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError  # lazy import: as above

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
