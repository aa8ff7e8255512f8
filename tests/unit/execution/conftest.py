"""Every test has its own runtime for its task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.execution.world import World, installed
from tradewind.sdk import entry_points, import_paths, plugins


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plugins folder of this process, whose modules are removed at the end of the test."""
    before, path = set(sys.modules), list(sys.path)
    monkeypatch.setenv(import_paths.PLUGINS_FOLDER, str(tmp_path))
    _forget_plugins()
    yield tmp_path
    _forget_plugins()
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def _forget_plugins() -> None:
    for known in (plugins.plugins_of_process, entry_points.read_entry_points, entry_points.package_sources):
        known.cache_clear()
