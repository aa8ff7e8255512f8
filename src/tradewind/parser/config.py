"""What the parser has to be told."""

from __future__ import annotations

import msgspec

from tradewind.model.bundles import Scope
from tradewind.model.definition import DefinitionDefaults


class ParserConfig(msgspec.Struct, frozen=True):
    """Everything the parser needs. Durations are microseconds, sizes bytes."""

    folder: str
    """Absolute path of the DAG folder."""
    plugins_folder: str = ""
    """Absolute path of the plugins folder; empty: nothing is said about plugins."""
    bundle: str = "dags-folder"
    """The folder's name in the store."""
    only: str = ""
    """A file or folder in it, with forward slashes: nothing else is read, and what is known of other files stays. Empty: all."""
    scheduler_socket: str = ""
    processes: int = 2
    """Files parsed at the same time."""
    timeout: int = 30_000_000
    """Longest time one file may take."""
    memory_limit: int = 2048 * 1024 * 1024
    """Address space of a parse child; 0 is no limit."""
    rescan_interval: int = 300_000_000
    """Safety net: a full look at the folder."""
    dynamic_interval: int = 60_000_000
    """Files whose DAGs may change although the file does not, and broken files, are read again this often."""
    max_tasks_per_dag: int = 200_000
    defaults: DefinitionDefaults = DefinitionDefaults()
    """What the configuration says about everything that a DAG file leaves open."""
    user_settings: dict[str, str] = {}
    """`section.key` → text, for user code that reads settings. Never a secret."""

    def covers(self, file: str) -> bool:
        """Is the file (path inside the folder) to be read?"""
        return Scope(only=self.only).covers_file(self.bundle, file)
