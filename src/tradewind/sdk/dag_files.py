"""Which files are DAG files: those with certain words, and zip archives of the DAG folder, as Airflow loads them.

The Python files at the root of the archive are DAG files, if they contain the words that other DAG files contain, too. They import
further modules and packages of the archive. The archive counts as one DAG file.
"""

from __future__ import annotations

import importlib
import re
import sys
import zipfile
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

ENDING = ".zip"


_DAG = re.compile(rb"dag", re.IGNORECASE)
_ORCHESTRATOR = re.compile(rb"airflow|tradewind", re.IGNORECASE)


def may_hold_dags(text: bytes) -> bool:
    """Airflow's safe mode: a file is imported only if it contains "dag" and the name of an orchestrator."""
    return _DAG.search(text) is not None and _ORCHESTRATOR.search(text) is not None


class ZippedFile(NamedTuple):
    """A Python file at the root of an archive."""

    name: str
    text: bytes


def is_zipped(path: str) -> bool:
    """Whether this is the path of a zip archive. A file that only has the name of one is none."""
    return path.endswith(ENDING) and zipfile.is_zipfile(path)


def files_of(path: str) -> Iterator[ZippedFile]:
    """The Python files at the root of an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".py") and "/" not in name and name != "__init__.py":
                yield ZippedFile(name, archive.read(name))


def content_mark(path: str) -> bytes:
    """Names, sizes and checksums of everything in an archive: equal for equal content."""
    with zipfile.ZipFile(path) as archive:
        return repr([(one.filename, one.file_size, one.CRC) for one in archive.infolist()]).encode()


def source_text(path: str) -> str:
    """The text of the Python files at the root of an archive, each under its name."""
    return "\n".join(f"# {name}\n{text.decode(errors='replace')}" for name, text in files_of(path))


def import_files(path: str, names: list[str]) -> list[ModuleType]:
    """Import files of an archive as modules of their own names.

    Raises:
        BaseException: any exception of a file.
    """
    sys.path.insert(0, path)
    importlib.invalidate_caches()
    found = []
    for name in names:
        module = name.removesuffix(".py")
        sys.modules.pop(module, None)
        found.append(importlib.import_module(module))
    return found
