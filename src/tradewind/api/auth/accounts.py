"""The accounts as the API uses them: passwords, sessions, personal tokens. Only hashes of secrets are stored.

A session is a random secret in a cookie. It ends `session_idle_seconds` after its last request and `session_seconds` after the
login, whichever comes first. A personal token looks like `tw_<id>_<secret>`. A fast hash is enough: a secret has 256 random bits.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from typing import NamedTuple

from tradewind.api.auth.airflow_passwords import is_airflow_hash
from tradewind.api.auth.passwords import PasswordCheck, hash_password, new_stamp
from tradewind.api.auth.permissions import Access, access_of
from tradewind.model.accounts import Account, AccountSession, AccountToken, lowest
from tradewind.model.moments import MINUTE, SECOND
from tradewind.platform.clock import Clock
from tradewind.store.port.accounts import AccountStore

TOKEN_PREFIX = "tw_"
SESSIONS_MAX = 50
"""Sessions of one account. A further login ends the session that was not used for the longest time."""
DEVICES_MAX = 20
DEVICE_SECONDS = 180 * 24 * 3600
"""How long a browser is known after a login."""
_SEEN_EVERY = 5 * MINUTE
"""Interval between two writes of the last use of a session or a token."""
_SECRET_BYTES = 32
_AGENT_MAX, _ADDRESS_MAX = 300, 100
_VERIFIED_MAX, _VERIFIED_FOR = 256, 5 * MINUTE


class SignedIn(NamedTuple):
    """An account that has shown a valid session or token."""

    account: Account
    access: Access
    credential: str
    """Id of the session or token."""
    expires_at: int | None
    """When the session or token expires, microseconds; None: it does not expire."""
    wants_note: bool
    """The caller has to write the last use (`note_use`)."""
    external: str = ""
    """See `AccountSession.external`."""


class Accounts:
    """Safe for several threads.

    Args:
        open_store: opens the accounts; called at the first use.
    """

    def __init__(
        self, open_store: Callable[[], AccountStore], clock: Clock, *, session_seconds: int, session_idle_seconds: int
    ) -> None:
        self._open_store = open_store
        self._clock = clock
        self._lock = threading.Lock()
        self._store: AccountStore | None = None
        self._passwords = PasswordCheck()
        self._longest, self._idle = session_seconds * SECOND, session_idle_seconds * SECOND
        self._verified: dict[bytes, int] = {}
        """Passwords of basic authentication that were recently found to be right: keyed hash → time of the check."""
        self._verified_key = secrets.token_bytes(32)

    @property
    def store(self) -> AccountStore:
        """The opened accounts. Raises ConfigError, StoreError: they cannot be opened."""
        with self._lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    # --- accounts ----------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Account | None:
        """The account with this name, unless the account is disabled."""
        account = self.store.account(name)
        return account if account is not None and account.is_active else None

    def access(self, account: Account, limit: str = "admin") -> Access:
        """What the account may do. `limit`: the role of its token."""
        store = self.store
        memberships = store.memberships(account.name)
        has_team_dags = account.role != "admin" and bool(store.team_dags())
        return access_of(account, memberships, limit=limit, has_team_dags=has_team_dags)

    def check_password(self, name: str, password: str) -> Account | None:
        """The account, if the password is right. The check takes equally long for a name that does not exist.

        A hash that was imported from Airflow is replaced by a hash of Tradewind.

        Raises:
            Unreachable: the memory for the check is missing.
        """
        account = self.find(name)
        stored = None if account is None else self.store.password(name)
        if not self._passwords.is_right(stored, password):
            return None
        if stored is not None and is_airflow_hash(stored):
            self.store.set_password(name, hash_password(password), new_stamp(), at=self._clock.wall(), actor=name)
            return self.find(name)
        return account

    def verified_lately(self, name: str, password: str) -> Account | None:
        """The account, if `check_password` found the same password right in the last minutes. Costs no Argon2."""
        account = self.find(name)
        if account is None:
            return None
        checked = self._verified.get(self._fingerprint(account, password))
        return account if checked is not None and self._clock.monotonic() - checked < _VERIFIED_FOR else None

    def remember_verified(self, account: Account, password: str) -> None:
        """Let `verified_lately` find this password for some minutes, or until the account changes it."""
        with self._lock:
            while len(self._verified) >= _VERIFIED_MAX:
                self._verified.pop(next(iter(self._verified)))
            self._verified[self._fingerprint(account, password)] = self._clock.monotonic()

    def _fingerprint(self, account: Account, password: str) -> bytes:
        text = f"{account.name}\0{account.stamp}\0{password}".encode()
        return hmac.digest(self._verified_key, text, "sha256")

    # --- sessions ----------------------------------------------------------------------------------------------------

    def log_in(self, account: Account, address: str, agent: str, external: str = "") -> tuple[str, AccountSession]:
        """Start a session. Returns the secret for the cookie, and the stored session."""
        now, secret = self._clock.wall(), secrets.token_urlsafe(_SECRET_BYTES)
        session = AccountSession(
            id=secrets.token_hex(8),
            account=account.name,
            created_at=now,
            seen_at=now,
            expires_at=now + self._longest,
            address=address[:_ADDRESS_MAX],
            agent=agent[:_AGENT_MAX],
            external=external,
        )
        self.store.create_session(session, _hash(secret), SESSIONS_MAX)
        self.store.note_login(account.name, now)
        return secret, session

    def by_session(self, secret: str) -> SignedIn | None:
        """The account that the session belongs to, if the session has not ended."""
        session = self.store.session(_hash(secret))
        if session is None or not self.is_alive(session):
            return None
        account = self.find(session.account)
        if account is None:
            return None
        stale = self._clock.wall() - session.seen_at >= min(_SEEN_EVERY, self._idle // 4)
        return SignedIn(account, self.access(account), session.id, self.ends_at(session), stale, session.external)

    def is_alive(self, session: AccountSession) -> bool:
        return self._clock.wall() < self.ends_at(session)

    def ends_at(self, session: AccountSession) -> int:
        """When the session ends if no more requests come, microseconds."""
        return min(session.expires_at, session.seen_at + self._idle)

    # --- personal tokens -----------------------------------------------------------------------------------------------

    def create_token(
        self, account: Account, label: str, role: str, seconds: int | None, actor: str
    ) -> tuple[str, AccountToken]:
        """Create a token. Returns its text, which is shown only once, and the stored row.

        Args:
            role: limits the rights of the token, which are never more than those of its account.
            seconds: how long it is valid; None: until it is revoked.
        """
        now = self._clock.wall()
        text, hashed, id = new_token()
        token = AccountToken(
            id=id,
            account=account.name,
            label=label,
            role=role,
            created_at=now,
            created_by=actor,
            expires_at=None if seconds is None else now + seconds * SECOND,
            last_used_at=None,
            last_address="",
        )
        self.store.create_token(token, hashed)
        return text, token

    def by_token(self, text: str) -> SignedIn | None:
        """The account that the token belongs to, if the token is valid."""
        parts = text.removeprefix(TOKEN_PREFIX).split("_", 1)
        found = self.store.token(parts[0]) if len(parts) == 2 else None
        if found is None or not hmac.compare_digest(found[1], _hash(text)):
            return None
        token, now = found[0], self._clock.wall()
        account = self.find(token.account)
        if account is None or (token.expires_at is not None and now >= token.expires_at):
            return None
        stale = token.last_used_at is None or now - token.last_used_at >= _SEEN_EVERY
        return SignedIn(account, self.access(account, lowest(token.role, "admin")), token.id, token.expires_at, stale)

    # --- devices -------------------------------------------------------------------------------------------------------

    def remember_device(self, account: Account, secret: str) -> str:
        """Store that the account has logged in from this browser. Returns the secret for the cookie of the browser: the
        present secret, or a new one.
        """
        now = self._clock.wall()
        secret = secret if secret and self.store.device_account(_hash(secret), now) == account.name else ""
        secret = secret or secrets.token_urlsafe(_SECRET_BYTES)
        self.store.remember_device(_hash(secret), account.name, now, now + DEVICE_SECONDS * SECOND, DEVICES_MAX)
        return secret

    def knows_device(self, name: str, secret: str) -> bool:
        """Whether this account has logged in from the browser with this secret."""
        return bool(secret) and self.store.device_account(_hash(secret), self._clock.wall()) == name


def new_token() -> tuple[str, str, str]:
    """A new personal token: (text, hash, id)."""
    id = secrets.token_hex(6)
    text = f"{TOKEN_PREFIX}{id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return text, _hash(text), id


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
