"""Names that Airflow 2 took from Python's standard library for older Pythons."""

from __future__ import annotations

import json
from functools import cache, cached_property
from tempfile import TemporaryDirectory
from typing import Literal, ParamSpec, Protocol, Self, TypedDict, TypeGuard, runtime_checkable

__all__ = [
    "Literal",
    "ParamSpec",
    "Protocol",
    "Self",
    "TemporaryDirectory",
    "TypeGuard",
    "TypedDict",
    "cache",
    "cached_property",
    "json",
    "runtime_checkable",
]
