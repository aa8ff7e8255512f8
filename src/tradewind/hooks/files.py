"""Search for files, for the file sensor and the file trigger."""

from __future__ import annotations

import glob
import os
from datetime import UTC, datetime


def find_file(pattern: str, recursive: bool) -> str | None:
    """A message about the first match: a file, or a folder that contains a file at any depth. None if there is no match."""
    for found in glob.iglob(pattern, recursive=recursive):
        if os.path.isfile(found):
            modified = datetime.fromtimestamp(os.path.getmtime(found), tz=UTC)
            return f"Found file {found}, last modified {modified.isoformat(timespec='seconds')}"
        if any(files for _, _, files in os.walk(found)):
            return f"Found folder {found} with files inside"
    return None
