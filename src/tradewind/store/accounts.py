"""Opens the database of accounts, and imports the file of users that earlier releases had.

`$TRADEWIND_HOME/passwords` was JSON: `{"admin": {"role": "admin", "password": "$argon2id$…", "logins": "…"}}`. Its users become
accounts once; then the file is renamed. Earlier logins stay valid.
"""

from __future__ import annotations

import hashlib
import json
import os

from tradewind.model.accounts import ROLES
from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.observe.log import Log
from tradewind.platform.private_file import exposure
from tradewind.store.factory import DatabaseOptions, connect
from tradewind.store.port.accounts import AccountStore
from tradewind.store.sql import schema
from tradewind.store.sql.accounts import SqlAccounts

_OPTIONS = DatabaseOptions(busy_timeout_ms=5_000, cache_kib=256)

_log = Log("accounts")


def open_accounts(path: str, file_of_users: str, now: int) -> AccountStore:
    """Open the accounts; create or migrate their database.

    Args:
        path: the database file; it is created with mode 0600.
        file_of_users: the file of earlier releases; it may be missing.
        now: microseconds.

    Raises:
        ConfigError: others can read one of the files, or the file of users is damaged.
        StoreError: the database cannot be opened or written.
    """
    _refuse_exposed(path)
    engine = connect(path, _OPTIONS, read_only=False)
    schema.migrate(engine, schema.ACCOUNTS)
    store = SqlAccounts(engine)
    try:
        if os.path.lexists(file_of_users):
            _refuse_exposed(file_of_users)
            with open(file_of_users, encoding="utf-8") as file:
                done = store.take_over(_entries(file.read(), file_of_users), now)
            kept = f"{file_of_users}.taken-over"
            os.replace(file_of_users, kept)
            if done:
                _log.info("the users of the file are accounts now", file=kept, accounts=path)
            else:
                _log.warning("a file of users has no effect any more; see: tradewind users list", file=kept)
    except OSError as error:
        store.close()
        raise ConfigError(f"the file of users {file_of_users} cannot be taken over: {error.strerror}") from error
    except BaseException:
        store.close()
        raise
    return store


def _refuse_exposed(path: str) -> None:
    if os.path.lexists(path):
        reason = exposure(path)
        if reason is not None:
            raise ConfigError(f"the file of accounts {path} is not private ({reason}); run: chmod 600 {path}")


def _entries(text: str, path: str) -> dict[str, tuple[str, str, str]]:
    try:
        found = {
            str(name): (str(entry["role"]), str(entry["password"]), str(entry.get("logins", "")))
            for name, entry in json.loads(text).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f'the file of users {path} is not of the form {{"name": {{"role": "viewer", "password": "$argon2id$…"}}}}; '
            "repair it, or delete it: then the next start creates a new admin"
        ) from None
    for name, (role, _, _) in found.items():
        if role not in ROLES:
            raise ConfigError(f"{path}: {name!r} has the unknown role {role!r}.{did_you_mean(role, ROLES)}")
    return {name: (role, hash, _stamp(hash, logins)) for name, (role, hash, logins) in found.items()}


def _stamp(password: str, logins: str) -> str:
    """Compute the stamp of an account as earlier releases did, so that their login tokens stay valid."""
    return hashlib.sha256((password + logins).encode()).hexdigest()[:16]
