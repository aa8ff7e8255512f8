"""Which installed packages offer entry points of a group, read without `importlib.metadata`, whose import alone takes 20 ms.

All answers are kept for the life of the process and its forks: a package that is installed later counts after a restart. A process
that is forked often reads the files once, before the forks: `read_entry_points`.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

_OURS = (b"[airflow.", b"[tradewind.")
"""The prefixes of the groups that are read here. Most packages have only other groups."""


@functools.cache
def read_entry_points() -> tuple[tuple[Path, bytes], ...]:
    """Path and content of each `entry_points.txt` of an installed package with groups of Airflow or Tradewind."""
    found = []
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                text = _read(path := Path(folder, name, "entry_points.txt"))
                if any(group in text for group in _OURS):
                    found.append((path, text))
    return tuple(found)


def packages_offering(*groups: str) -> tuple[Path, ...]:
    """The `entry_points.txt` of the installed packages that have entry points of one of these groups."""
    words = [f"[{group}]".encode() for group in groups]
    return tuple(path for path, text in read_entry_points() if any(word in text for word in words))


@functools.cache
def package_sources(groups: tuple[str, ...], words: tuple[bytes, ...]) -> tuple[Path, ...]:
    """The modules that installed packages offer as entry points of these groups, if their source contains one of the words.

    The source of a module is not always beside the metadata of its package: an editable installation keeps them apart. Such a
    module may contain a word, so the `entry_points.txt` stands for it.
    """
    found: list[Path] = []
    offering = set(packages_offering(*groups))
    for path, text in read_entry_points():
        for module in _modules(text, groups) if path in offering else ():
            base = path.parent.parent.joinpath(*module.split("."))
            source = next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)
            if source is None or mentions(source, words):
                found.append(source or path)
    return tuple(found)


def mentions(path: Path, words: tuple[bytes, ...]) -> bool:
    """True if the file exists and contains one of the words."""
    text = _read(path)
    return any(word in text for word in words)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _modules(text: bytes, groups: tuple[str, ...]) -> list[str]:
    """Names of the modules of a package's entry points: `ours.plugin` of `name = ours.plugin:OurPlugin`."""
    from configparser import ConfigParser, Error  # lazy import: 5 ms, and few packages have plugins

    points = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    try:
        points.read_string(text.decode())
    except (UnicodeDecodeError, Error):
        return []
    return [
        value.partition(":")[0].strip() for group in groups if points.has_section(group) for _, value in points.items(group)
    ]
