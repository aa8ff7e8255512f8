"""Sets settings for the duration of a test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any


def _variable(section: str, option: str) -> str:
    """The environment variable of a setting."""
    return f"AIRFLOW__{section.replace('.', '_').upper()}__{option.upper()}"


@contextlib.contextmanager
def conf_vars(overrides: dict[tuple[str, str], Any]) -> Iterator[None]:
    """Set settings by environment variables; None removes a variable."""
    with _changed({_variable(*name): None if value is None else str(value) for name, value in overrides.items()}):
        yield


@contextlib.contextmanager
def env_vars(overrides: dict[str, str]) -> Iterator[None]:
    """Set environment variables."""
    with _changed(overrides):
        yield


@contextlib.contextmanager
def _changed(values: Mapping[str, str | None]) -> Iterator[None]:
    """Change these variables, and no others: a fixture that is used inside sets others for the whole test."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
