"""Distributions written into a folder, as pip would install them."""

from __future__ import annotations

import base64
import hashlib
import importlib
from pathlib import Path


def install_package(folder: Path, name: str, version: str, files: dict[str, str], entry_points: str = "") -> None:
    """Write a distribution: its files, METADATA, RECORD and entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    record = []
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(text)}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: A package\n")
    (info / "RECORD").write_text("\n".join([*record, f"{info.name}/METADATA,,", f"{info.name}/RECORD,,", ""]))
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points)
    # Python remembers a folder's distributions until its modification time changes: two packages may be written within one tick.
    importlib.invalidate_caches()
