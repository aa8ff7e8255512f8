"""Looking for files, for the sensor and for the trigger that waits in its place."""

from __future__ import annotations

import glob
import os
from datetime import UTC, datetime


def found_at(pattern: str, recursive: bool) -> str | None:
    """A sentence about the first match that counts: a file, or a folder that has a file somewhere inside. None: there is none."""
    for found in glob.iglob(pattern, recursive=recursive):
        if os.path.isfile(found):
            modified = datetime.fromtimestamp(os.path.getmtime(found), tz=UTC)
            return f"Found file {found}, last modified {modified.isoformat(timespec='seconds')}"
        if any(files for _, _, files in os.walk(found)):
            return f"Found folder {found} with files inside"
    return None
