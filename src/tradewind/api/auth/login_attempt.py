"""A login at an identity provider that has begun. The browser keeps its data in an encrypted cookie until the provider sends
the browser back. So any process of this server can complete a login that another process began, and a login can be completed
only in the browser in which it began.
"""

from __future__ import annotations

import base64
import json
import secrets
from typing import NamedTuple

ATTEMPT_SECONDS = 600
"""How long a login at the provider may take."""


class LoginAttempt(NamedTuple):
    """See the module."""

    state: str
    """The parameter `state` of OpenID Connect. The provider repeats it in the address, which proves that the answer belongs to
    this attempt.
    """
    nonce: str
    """The provider repeats it in the ID token, which proves that the token was made for this attempt."""
    verifier: str
    """The code verifier of PKCE. It proves to the provider that both requests come from this server."""
    redirect_uri: str
    next: str
    """Path of this server to open after the login."""


def new_attempt(redirect_uri: str, next: str) -> LoginAttempt:
    return LoginAttempt(
        secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48), redirect_uri=redirect_uri, next=next
    )


def seal(attempt: LoginAttempt, key: bytes, now: int) -> str:
    """Encrypt an attempt. `key`: 32 bytes; `now`: microseconds."""
    from cryptography.fernet import Fernet  # lazy import: only logins at an identity provider

    return Fernet(base64.urlsafe_b64encode(key)).encrypt_at_time(json.dumps(attempt).encode(), now // 1_000_000).decode()


def unseal(text: str, key: bytes, now: int) -> LoginAttempt | None:
    """The attempt. None: this server did not encrypt the text, or the attempt is too old."""
    from cryptography.fernet import Fernet, InvalidToken  # lazy import: as above

    try:
        found = Fernet(base64.urlsafe_b64encode(key)).decrypt_at_time(text.encode(), ATTEMPT_SECONDS, now // 1_000_000)
        return LoginAttempt(*json.loads(found))
    except (InvalidToken, ValueError, TypeError):
        return None
