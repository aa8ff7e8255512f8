"""The settings of the parser."""

from __future__ import annotations

import msgspec

from tradewind.bundles.specs import VersionedBundle
from tradewind.model.bundles import Scope, folder_of
from tradewind.model.definition import DefinitionDefaults


class ParserConfig(msgspec.Struct, frozen=True):
    """All settings of the parser. Durations are microseconds, sizes bytes."""

    folder: str
    """Absolute path of the DAG folder."""
    plugins_folder: str = ""
    """Absolute path of the plugins folder; empty: plugins are not read."""
    bundle: str = "dags-folder"
    """The name of the folder in the database."""
    version: str | None = None
    """Version of the bundle whose files are in `folder`. None: the bundle has no versions, and its folder may change."""
    versioned: dict[str, VersionedBundle] = {}
    """The bundles that have versions, by name."""
    bundles: dict[str, str] = {}
    """Absolute paths of the folders of all configured bundles, by name: their custom timetables are asked here, too."""
    all_bundles: dict[str, str] = {}
    """The bundles that this parser reads, by name, with their folders (not used for one with versions). Empty: only `bundle`."""
    reports_plugins: bool = True
    """Tell the scheduler which plugins there are."""
    refresh_interval: int = 60_000_000
    """Time between two fetches of a bundle with versions."""
    fetch_timeout: int = 300_000_000
    """Maximum duration of one fetch."""
    bundle_bytes_max: int | None = None
    """Disk space of each bundle with versions; None: no limit."""
    only: str = ""
    """A file or folder inside, with forward slashes: only this is read, and other files keep their state. Empty: everything."""
    scheduler_socket: str = ""
    processes: int = 2
    """Number of files that are parsed at the same time."""
    timeout: int = 30_000_000
    """Maximum duration of reading one file."""
    memory_limit: int = 2048 * 1024 * 1024
    """Maximum address space of a parse child; 0 means no limit."""
    rescan_interval: int = 300_000_000
    """Time between full scans of the folder, in case a change notification was lost."""
    dynamic_interval: int = 60_000_000
    """Files whose DAGs may change although the file does not, and files with a problem, are read again at this interval."""
    max_tasks_per_dag: int = 200_000
    defaults: DefinitionDefaults = DefinitionDefaults()
    """Defaults for everything that a DAG file does not set."""
    find_connections: bool = False
    """Report the connection ids of the operators, too."""
    user_settings: dict[str, str] = {}
    """`section.key` → string, for user code that reads settings. Never a secret."""

    def folder_of(self, bundle: str, version: str | None = None) -> str:
        """The absolute path of a bundle's files on this machine."""
        if version is not None and bundle in self.versioned:
            return self.versioned[bundle].files(version)
        return self.folder if bundle == self.bundle else folder_of(bundle, self.bundles, self.folder)

    def covers(self, file: str) -> bool:
        """True if this file (path inside the folder) is to be read."""
        return Scope(only=self.only).covers_file(self.bundle, file)
