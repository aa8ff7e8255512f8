"""Encryption of the values of variables and connections.

A stored value is `fernet:<key id>:<Fernet token>`. The key id is the first eight hex digits of the key's SHA-256, so that an error
message can name the missing key. Plain Fernet tokens, as Airflow stores them, can be read too. There may be several keys, the
newest first: the first one encrypts, all of them decrypt, and `rotate` encrypts a value again with the first one.

There is no plain-text mode: without the right key a value can be neither written nor read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.model.errors import ConfigError
from tradewind.platform.private_file import create_private_file, private_folder

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_SETTING = "secrets.fernet_key (TRADEWIND__SECRETS__FERNET_KEY)"
_PREFIX = "fernet:"
_STORED = re.compile(r"fernet:([0-9a-f]{8}):(.+)", re.DOTALL)


class Vault:
    """Encrypts and decrypts with one or more keys; `open_vault` creates it.

    Args:
        keys: Fernet keys (32 bytes as URL-safe base64), newest first.
        origin: where the keys come from, for messages.

    Raises:
        ConfigError: there is no key, or one of them is not a Fernet key. Messages never show a key.
    """

    def __init__(self, keys: Sequence[str], origin: str) -> None:
        if not keys:
            raise ConfigError(
                f"{origin[0].upper()}{origin[1:]} holds no key; create one with "
                "python -c 'from tradewind.store.crypto import generate_key; print(generate_key())'"
            )
        self._origin = origin
        self._keys: dict[str, str] = {}
        for place, key in enumerate(keys, start=1):
            self._keys.setdefault(_key_id(key, f"Key {place} of {origin}"), key)
        self._fernets: dict[str, Fernet] = {}

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the keys, newest first; safe to show."""
        return tuple(self._keys)

    def encrypt(self, plain: str) -> str:
        """Return the encrypted text to store."""
        first = next(iter(self._keys))
        return f"{_PREFIX}{first}:{self._fernet(first).encrypt(plain.encode()).decode('ascii')}"

    def decrypt(self, stored: str, what: str) -> str:
        """Return the plain text of a stored value.

        Args:
            what: the owner of the value, for messages: "variable 'api_token'".

        Raises:
            ConfigError: the value was encrypted with another key, or was changed.
        """
        match = _STORED.fullmatch(stored)
        if match is not None:
            key_id, token = match.groups()
            if key_id not in self._keys:
                raise ConfigError(
                    f"The value of {what} was encrypted with key {key_id}, but {self._origin} holds "
                    f"{_names(self.key_ids)}. Add the old key behind the new one in {_SETTING}, or set the value again"
                )
            candidates: Sequence[str] = (key_id,)
        else:
            token, candidates = stored, self.key_ids

        from cryptography.fernet import InvalidToken  # lazy import: 20 ms; only reading a secret needs it

        for key_id in candidates:
            try:
                return self._fernet(key_id).decrypt(token.encode()).decode()
            except InvalidToken:
                continue
        raise ConfigError(
            f"The value of {what} cannot be decrypted with {_names(self.key_ids)} of {self._origin}: "
            "it was encrypted with another key, or changed. Set the value again, or add the right key to " + _SETTING
        )

    def needs_rotation(self, stored: str) -> bool:
        """Whether the value was encrypted with another key than the newest one."""
        return not stored.startswith(f"{_PREFIX}{next(iter(self._keys))}:")

    def rotate(self, stored: str, what: str) -> str:
        """Return the value encrypted with the newest key; unchanged if it already is.

        Raises:
            ConfigError: as `decrypt`.
        """
        return self.encrypt(self.decrypt(stored, what)) if self.needs_rotation(stored) else stored

    def __repr__(self) -> str:
        return f"Vault({_names(self.key_ids)} of {self._origin})"

    def _fernet(self, key_id: str) -> Fernet:
        if key_id not in self._fernets:
            from cryptography.fernet import Fernet  # lazy import: 20 ms; only secrets need it

            self._fernets[key_id] = Fernet(self._keys[key_id])
        return self._fernets[key_id]


def open_vault(setting: str | None, key_file: str, *, create: bool = False) -> Vault:
    """Return the vault of an installation.

    Args:
        setting: value of the setting secrets.fernet_key: keys separated by commas, the newest first; None: use the file.
        key_file: one key on each line, the newest first; blank lines and lines that begin with # are ignored.
        create: if the file is missing, create it with a new key. Only for a database without encrypted values: a new key in
            place of a lost one would hide the loss.

    Raises:
        ConfigError: the key is missing, unreadable, readable by others, or not a key.
    """
    if setting is not None:
        return Vault([key.strip() for key in setting.split(",") if key.strip()], f"the setting {_SETTING}")
    if create and not os.path.lexists(key_file):
        try:
            private_folder(os.path.dirname(key_file))
            create_private_file(key_file, (generate_key() + "\n").encode("ascii"))
        except OSError as error:
            raise ConfigError(f"Cannot create the key file {key_file}: {error.strerror}") from error
    return Vault(_read(key_file), f"the key file {key_file}")


def generate_key() -> str:
    """Return a new random Fernet key."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode("ascii")


def _read(key_file: str) -> list[str]:
    try:
        with open(key_file, encoding="ascii") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        raise ConfigError(
            f"The key file {key_file} is missing; without it variables and connections can be neither read nor "
            f"written. Restore it from your backup, or set the key in {_SETTING}. If another home folder uses the same database, "
            "for example that of the other scheduler, copy fernet.key and worker.key from there"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The key file {key_file} cannot be read: {error}") from error
    if mode & 0o027:  # the group may read it (mounted secrets), others have no access
        raise ConfigError(f"The key file {key_file} has mode {mode:04o}, which gives others access; run: chmod 600 {key_file}")
    return [line for line in lines if line and not line.startswith("#")]


def _key_id(key: str, where: str) -> str:
    try:
        raw = base64.b64decode(key.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raw = b""
    if len(raw) != 32:
        raise ConfigError(f"{where} is not a Fernet key: it must be 32 bytes as URL-safe base64 (44 characters)")
    return hashlib.sha256(raw).hexdigest()[:8]


def _names(key_ids: Sequence[str]) -> str:
    return ("key " if len(key_ids) == 1 else "keys ") + ", ".join(key_ids)
