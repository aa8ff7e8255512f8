"""The fixtures of `tradewind.testing`, as users' suites have them by its entry point; and no test meets another's leftovers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

pytest_plugins = ["tradewind.testing.plugin"]

SETTINGS = ("TRADEWIND_", "AIRFLOW_")


def pytest_configure() -> None:
    """Settings of the shell that the suite was started from are not the suite's."""
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        del os.environ[name]


@pytest.fixture(autouse=True)
def _own_process() -> Iterator[None]:
    """What code in the test's own process did to it ends with the test.

    Commands that run users' code set the environment and `sys.path`, because their process ends with them.
    """
    environment, path, folder = dict(os.environ), list(sys.path), os.getcwd()
    yield
    if os.environ != environment:
        os.environ.clear()
        os.environ.update(environment)
    sys.path[:] = path
    os.chdir(folder)
