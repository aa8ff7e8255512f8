"""Opens the accounts for commands, which change them with or without running services."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tradewind.settings import Settings
from tradewind.store.accounts import open_accounts
from tradewind.store.port.accounts import AccountStore


@contextmanager
def accounts_of(settings: Settings) -> Iterator[AccountStore]:
    """The accounts of an installation. Creates their database where it is missing.

    Raises:
        ConfigError: others can read the file, or the file of users of an earlier release is damaged.
        StoreError: the database of the accounts cannot be opened.
    """
    settings.paths.prepare()
    store = open_accounts(settings.paths.accounts, settings.paths.passwords, now())
    try:
        yield store
    finally:
        store.close()


def create_first_admin(settings: Settings) -> str | None:
    """At the first start: create the user `admin`. Returns the generated password, or None if there were accounts."""
    from tradewind.api.auth.passwords import ensure_admin

    with accounts_of(settings) as store:
        return ensure_admin(store, now())


def now() -> int:
    """The current time in microseconds since 1970."""
    return time.time_ns() // 1000
