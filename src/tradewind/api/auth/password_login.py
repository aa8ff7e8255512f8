"""A login with name and password: the throttle, the check, the entry in the audit log. The same for forms, tokens and basic
authentication."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradewind.api.auth.accounts import Accounts
from tradewind.api.auth.login_log import FAILED, LOGIN, LoginLog
from tradewind.api.auth.throttle import Throttle
from tradewind.model.accounts import Account

Directory = Callable[[str, str], Account | None]
"""Checks a name and a password in another system, and returns the account that belongs to them."""


class LoginAnswer(NamedTuple):
    """The answer to a login: a time to wait, or the account, or neither (the name or the password is wrong)."""

    wait: int
    """Seconds; the password was not checked."""
    account: Account | None


class PasswordLogin:
    """Safe for several threads.

    Args:
        directory: checks names that have no password in this database.
    """

    def __init__(self, accounts: Accounts, throttle: Throttle, logins: LoginLog, directory: Directory | None = None) -> None:
        self._accounts = accounts
        self._throttle = throttle
        self._logins = logins
        self._directory = directory

    def check(self, name: str, password: str, address: str, device: str = "") -> LoginAnswer:
        """Check a password.

        Args:
            device: the secret of the browser's cookie, from an earlier login.

        Raises:
            Unreachable: the directory does not answer, or the memory to check the password is missing.
        """
        known = self._accounts.knows_device(name, device)
        wait = self._throttle.admit(address, name, device if known else "")
        account = None if wait else self._check(name, password)
        self._logins.note(FAILED if account is None else LOGIN, name, address)
        if account is not None:
            self._throttle.succeeded(address, name, device if known else "")
        return LoginAnswer(wait, account)

    def _check(self, name: str, password: str) -> Account | None:
        known = self._accounts.store.account(name)
        if self._directory is not None and (known is None or known.source == "ldap"):
            return self._directory(name, password)
        return self._accounts.check_password(name, password)
