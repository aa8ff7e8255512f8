"""The socket of a running scheduler."""

from __future__ import annotations

import os
from pathlib import Path

from tradewind.settings.paths import paths_below


def scheduler_socket(home: Path) -> str:
    """Path of the socket. It is not always below the home folder: socket paths are limited, and test folders have long paths."""
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", "")
    return paths_below(str(home), dags="", plugins="", database="", logs="", runtime_dir=runtime_dir).scheduler_socket
