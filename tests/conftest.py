"""Fixtures of `tradewind.testing` (users get them through its entry point), and isolation of the tests from each other."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator

import pytest

from tests.postgres_server import PostgresServer, private_server

pytest_plugins = ["tradewind.testing.plugin"]

SETTINGS = ("TRADEWIND_", "AIRFLOW_")

try:
    import hypothesis
except ImportError:  # the environment of the provider packages does not have it, and runs no property tests
    pass
else:
    # an example has no time limit: the suite runs several processes, and the code is not at fault if the machine is busy
    hypothesis.settings.register_profile("suite", deadline=None)
    hypothesis.settings.load_profile("suite")


RUNTIME_DIR = tempfile.mkdtemp(prefix="tradewind-tests-", dir="/tmp")
"""Holds the sockets of homes with long paths, which would be left in /tmp otherwise."""


def pytest_configure() -> None:
    """Remove the settings of the shell in which the suite was started."""
    for name in [name for name in os.environ if name.startswith(SETTINGS)]:
        del os.environ[name]
    os.environ["XDG_RUNTIME_DIR"] = RUNTIME_DIR


def pytest_unconfigure() -> None:
    """Remove the folder of the sockets."""
    shutil.rmtree(RUNTIME_DIR, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, and exclude the collected objects from later garbage collections.

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
    """Restore the environment, `sys.path` and the current folder after each test, and remove rows of the process.

    Commands that run user code change them, because normally their process ends after the command.
    """
    environment, path, folder = dict(os.environ), list(sys.path), os.getcwd()
    yield
    if os.environ != environment:
        os.environ.clear()
        os.environ.update(environment)
    sys.path[:] = path
    os.chdir(folder)
    if (rows := sys.modules.get("tradewind.execution.local_database")) is not None:
        rows.close_database()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A private PostgreSQL server, for all tests of this process."""
    with private_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_database(postgres_server: PostgresServer) -> str:
    """The URL of a database with Tradewind's tables."""
    from tradewind.store.factory import open_store

    url = postgres_server.create_database()
    open_store(url).close()
    return url


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """The URL of a database with Tradewind's tables as they are after the migrations. One test uses it at a time."""
    postgres_server.empty(postgres_database)
    return postgres_database
