"""Opens the store for the services and for commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tradewind.cli.lost_database import database_exists, record_database_path, refuse_lost
from tradewind.platform.clock import SystemClock

if TYPE_CHECKING:
    from tradewind.settings import Settings
    from tradewind.store.crypto import Vault
    from tradewind.store.port import FullStore, Reader, Store

from tradewind.cli.compose.bundles import bundle_folders
from tradewind.cli.compose.user_code import use_secret_names

SCHEDULER_LOCK_TIMEOUT_SECONDS = 1.0
"""How long a statement of the scheduler waits for a lock on the database. The scheduler retries by itself, and answers status
requests in between."""


def open_store(settings: Settings, lock_timeout: float | None = None, holder: str = "") -> FullStore:
    """Open the store for writing. The caller holds the writer lock.

    Args:
        holder: see `factory.DatabaseOptions`.
        lock_timeout: seconds that a statement waits for a lock, if less than `database.busy_timeout`.
    """
    from tradewind.store import factory

    database = settings.database
    return factory.open_store(
        settings.store,
        busy_timeout_ms=round(min(database.busy_timeout, lock_timeout or database.busy_timeout) * 1000),
        synchronous=database.synchronous,
        max_page_count=database.max_page_count,
        holder=holder,
    )


def open_reader(settings: Settings, *, allow_older: bool = False) -> Reader:
    """Open the store for reading only.

    Args:
        allow_older: see `factory.open_reader`.

    Raises:
        NotFound: there is no database yet.
        StoreLost: the database was deleted or moved.
    """
    from tradewind.model.errors import NotFound
    from tradewind.store import factory

    use_secret_names(settings)
    paths = settings.paths
    if not database_exists(settings):
        refuse_lost(settings)
        raise NotFound(f"there is no database yet ({paths.database}). Start: tradewind standalone (or: tradewind db migrate)")
    paths.close_to_others()
    busy_ms = round(settings.database.busy_timeout * 1000)
    store = factory.open_reader(settings.store, allow_older=allow_older, busy_timeout_ms=busy_ms)
    store.dags_folder, store.bundle_folders = paths.dags, bundle_folders(settings)
    return store


def is_new(settings: Settings) -> bool:
    """Whether there is no database file yet, or the database of a server has no tables of Tradewind."""
    from tradewind.store import factory

    if settings.database.url is None:
        return not os.path.exists(settings.paths.database)
    return factory.is_empty(settings.store)


def open_prepared(settings: Settings, *, create_new: bool = False, holder: str = "") -> tuple[FullStore, Vault]:
    """Open the store for writing, migrate it, and open the vault that encrypts its secrets. The caller holds the writer lock.

    Args:
        create_new: create a new database even if there are signs of an older one.
        holder: see `factory.DatabaseOptions`.

    Raises:
        StoreLost: the database is missing or empty, but there are signs of an older one.
    """
    from tradewind.store.crypto import open_vault

    paths = settings.paths
    fresh = is_new(settings)
    if not create_new:
        refuse_lost(settings, is_empty=fresh)
    store = open_store(settings, SCHEDULER_LOCK_TIMEOUT_SECONDS, holder)
    record_database_path(settings)
    if fresh:
        set_default_pool(store, settings)
    create = fresh or not (os.path.exists(paths.fernet_key) or store.variables() or store.connections())
    return store, open_vault(settings.secrets.fernet_key, paths.fernet_key, create=create)


def set_default_pool(store: Store, settings: Settings) -> None:
    """Give the default pool of a new database its configured size."""
    from tradewind.model.rows import PoolRow

    pool = PoolRow("default_pool", settings.core.default_pool_slots, "Default pool", False)
    store.set_pool(pool, "setup", SystemClock().wall())
