"""Fixtures of `tradewind.testing` (users get them through its entry point), and isolation of the tests from each other."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator

import pytest

pytest_plugins = ["tradewind.testing.plugin"]

SETTINGS = ("TRADEWIND_", "AIRFLOW_")


def pytest_configure() -> None:
    """Remove the settings of the shell in which the suite was started."""
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        del os.environ[name]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, and keep what was collected out of every later one.

    Collection creates about a million objects that live to the end, and the garbage collector would visit them again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _own_process() -> Iterator[None]:
    """Restore the environment, `sys.path` and the current folder after each test.

    Commands that run user code change them, because normally their process ends after the command.
    """
    environment, path, folder = dict(os.environ), list(sys.path), os.getcwd()
    yield
    if os.environ != environment:
        os.environ.clear()
        os.environ.update(environment)
    sys.path[:] = path
    os.chdir(folder)
