"""The configuration of a gateway."""

from __future__ import annotations

import msgspec

from tradewind.bundles.specs import VersionedBundle


class Config(msgspec.Struct, frozen=True):
    """Everything a `Gateway` needs. Durations are microseconds, folders and files absolute."""

    name: str
    """Name of this gateway. It stays the same after a restart, because the scheduler waits for the workers of a disconnected
    gateway.
    """
    host: str
    port: int
    """0: any free port."""
    scheduler_socket: str
    key: bytes
    """The key that signs the tokens of workers and attempts."""
    log_folder: str
    xcom_folder: str
    outage_lease: int
    dags_folder: str = ""
    """The DAG folder, whose files are sent to workers. Empty: no files are sent."""
    bundles: dict[str, str] = {}
    """Folders of bundles other than the DAG folder, by name."""
    versioned: dict[str, VersionedBundle] = {}
    """Bundles that have versions, by name."""
    bundle_store: str = ""
    """The folder for snapshots of these folders."""
    certificate: str = ""
    """File with the certificate chain; empty: no TLS."""
    private_key: str = ""
