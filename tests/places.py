"""Where a running house is reached from outside."""

from __future__ import annotations

import os
from pathlib import Path

from tradewind.settings.paths import paths_below


def scheduler_socket(home: Path) -> str:
    """Not always below the home folder: the path of a socket is short, that of a test's folder need not be."""
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", "")
    return paths_below(str(home), dags="", plugins="", database="", logs="", runtime_dir=runtime_dir).scheduler_socket
