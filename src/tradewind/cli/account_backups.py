"""The accounts in backups: `db backup FILE` copies them to `FILE.accounts`, and `db restore FILE` takes them from there.

If there are accounts already, a restore keeps them, because an old copy would bring back users, tokens and rights that were
removed after the backup. So the accounts are replaced only on request. Restored sessions and login tokens are always ended.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

from tradewind.cli.accounts import accounts_of, now
from tradewind.model.errors import StoreError, TradewindError
from tradewind.platform.private_file import sync_folder
from tradewind.settings import Settings
from tradewind.store.accounts import open_accounts
from tradewind.store.backups import check_accounts
from tradewind.store.file import SIDE_FILES

ENDING = ".accounts"
"""Ending of the file beside a backup that contains the accounts."""


def back_up_accounts(settings: Settings, file: str) -> str | None:
    """Copy the accounts beside a backup. Returns the path; None: there are no accounts yet. Raises StoreError."""
    if not os.path.exists(settings.paths.accounts):
        return None
    target = file + ENDING
    if os.path.lexists(target):
        raise StoreError(f"{target} exists; a backup does not overwrite files")
    with accounts_of(settings) as store:
        before = os.umask(0o077)
        try:
            store.back_up(target)
        finally:
            os.umask(before)
    return target


def check_copy(settings: Settings, file: str, replace: bool) -> None:
    """Check the accounts beside a backup, if they will be used, before anything is replaced. Raises as `restore_accounts`."""
    if os.path.exists(file + ENDING) and (replace or not os.path.exists(settings.paths.accounts)):
        check_accounts(file + ENDING)


def restore_accounts(settings: Settings, file: str, replace: bool) -> list[str]:
    """Restore the accounts from the file beside a backup, if there are no accounts or if `replace` is set. Returns sentences
    for the user.

    Raises:
        StoreError: the copy is damaged, or is not a copy of accounts.
        StoreMismatch: a newer release wrote it.
    """
    source, target = file + ENDING, settings.paths.accounts
    if not os.path.exists(source):
        return [f"The accounts stay as they are: there is no file {source}."] if replace else []
    if os.path.exists(target) and not replace:
        return [f"The accounts of this machine stay as they are. To replace them, too: tradewind db restore {file} --accounts"]
    draft = f"{target}.restoring-{os.getpid()}"
    try:
        _write_draft(source, draft)
        kept = None
        if os.path.exists(target):
            kept = f"{target}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
            # the file itself is moved last: after an interruption, a second restore finds the file and completes the move
            for ending in (*SIDE_FILES, ""):
                if os.path.exists(target + ending):
                    os.rename(target + ending, kept + ending)
        os.rename(draft, target)
    except BaseException:
        for ending in ("", *SIDE_FILES):
            if os.path.exists(draft + ending):
                os.unlink(draft + ending)
        raise
    sync_folder(os.path.dirname(target))
    said = [f"The accounts are restored from {source}. Everybody has to log in again; restart a web server that still runs."]
    return said if kept is None else [*said, f"The previous accounts are now in {kept}; delete it when you no longer need it."]


def _write_draft(source: str, draft: str) -> None:
    """Copy the accounts to a private file, end all logins in the copy, and migrate the copy to the schema of this release."""
    from tradewind.api.auth.passwords import new_stamp  # lazy import: imports the API's packages

    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(source, "rb") as reading, os.fdopen(descriptor, "wb") as writing:
        shutil.copyfileobj(reading, writing)
        writing.flush()
        os.fsync(writing.fileno())
    store = open_accounts(draft, f"{draft}.no-file-of-users", now())
    try:
        for account in store.accounts():
            store.end_logins(account.name, new_stamp(), at=now(), actor="db restore")
    except TradewindError as error:
        raise StoreError(f"the accounts {source} cannot be restored: {error}") from error
    finally:
        store.close()
    for ending in SIDE_FILES:
        if os.path.exists(draft + ending):  # SQLite removes these files when the last connection ends
            raise StoreError(f"{draft}{ending} is still in use; try again")
