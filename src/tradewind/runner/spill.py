"""XComs that are too large for the database: files named by their content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def write_spill(folder: str, data: bytes) -> str:
    """Write the value durably; the name under which it is read. The same bytes give the same file.

    Raises:
        OSError: no room, or a limit on file sizes.
    """
    name = hashlib.sha256(data).hexdigest()
    target = Path(folder) / name
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}.part")
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(target)
        finally:
            partial.unlink(missing_ok=True)
    return name
