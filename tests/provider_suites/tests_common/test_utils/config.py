"""Sets settings for the duration of a test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def conf_vars(overrides: dict[tuple[str, str], Any]) -> Iterator[None]:
    """Set settings by environment variables; None removes a variable."""
    before = dict(os.environ)
    for (section, option), value in overrides.items():
        name = f"AIRFLOW__{section.replace('.', '_').upper()}__{option.upper()}"
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def env_vars(overrides: dict[str, str]) -> Iterator[None]:
    """Set environment variables."""
    before = dict(os.environ)
    os.environ.update(overrides)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
