"""Names of Python's standard library that Airflow 2 provided for older versions of Python."""

from __future__ import annotations

import json
import os
from functools import cache, cached_property
from subprocess import PIPE, STDOUT, Popen
from tempfile import TemporaryDirectory
from typing import Literal, ParamSpec, Protocol, Self, TypedDict, TypeGuard, runtime_checkable

__all__ = [
    "PIPE",
    "STDOUT",
    "Literal",
    "ParamSpec",
    "Popen",
    "Protocol",
    "Self",
    "TemporaryDirectory",
    "TypeGuard",
    "TypedDict",
    "cache",
    "cached_property",
    "json",
    "mkdirs",
    "runtime_checkable",
]


def mkdirs(path: str, mode: int = 0o777) -> None:
    """Create a folder and its missing parent folders."""
    os.makedirs(path, mode=mode, exist_ok=True)
