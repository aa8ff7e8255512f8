"""Hashes passwords, generates passwords, and creates the account of the first start."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

from tradewind.api.auth import airflow_passwords
from tradewind.model.errors import Unreachable
from tradewind.model.phrases import english, phrase
from tradewind.store.port.accounts import AccountStore

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_PASSWORD_BYTES = 15
"""Random bytes of a generated password: 20 characters, 120 bits."""

_MEMORY_KIB, _PASSES = 19 * 1024, 2
"""Argon2id with the parameters that OWASP recommends for little memory: a login must not double the memory of the process."""


class PasswordCheck:
    """Verifies passwords, one at a time: Argon2 takes much memory on purpose."""

    def __init__(self) -> None:
        self._hashing = threading.Lock()
        self._decoy: str | None = None

    def is_right(self, stored: str | None, password: str) -> bool:
        """Whether the password has this hash. Without a hash (None) the result is False, after an equally long check.

        Raises:
            Unreachable: the memory for the check is missing.
        """
        with self._hashing:
            if self._decoy is None:
                self._decoy = hash_password(secrets.token_hex(8))
            right = _verify(self._decoy if stored is None else stored, password)
        return right and stored is not None


def ensure_admin(accounts: AccountStore, now: int) -> str | None:
    """Create the user `admin`, unless there are accounts.

    Returns:
        The generated password, to be shown once. None: there were accounts.
    """
    if accounts.accounts():
        return None
    password = new_password()
    accounts.create_account("admin", "admin", stamp=new_stamp(), at=now, actor="first start", password=hash_password(password))
    return password


def new_password() -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def new_stamp() -> str:
    """See `Account.stamp`."""
    return secrets.token_hex(8)


def hash_password(password: str) -> str:
    """The hash of a password, as the accounts store it."""
    return _hasher().hash(password)


def weakness(password: str, name: str, min_length: int) -> str | None:
    """The reason, in words, why a new password of this user is refused; None if it is accepted."""
    if len(password) < min_length:
        return english(phrase("error_password_short", count=len(password), least=min_length))
    if name.lower() in password.lower():
        return english(phrase("error_password_name"))
    return None


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # lazy import: only a login needs it

    return PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=1)


def _verify(stored: str, password: str) -> bool:
    if airflow_passwords.is_airflow_hash(stored):
        return airflow_passwords.verify(stored, password)
    from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError  # lazy import: as above

    try:
        return _hasher().verify(stored, password)
    except (VerifyMismatchError, InvalidHashError):
        return False
    except VerificationError as error:  # most likely there is no memory; the password may be right
        raise Unreachable(f"The password cannot be checked now: {error}") from error
