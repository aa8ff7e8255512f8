"""The pytest plugin: fixtures for those who test DAGs. It imports nothing of Tradewind's before a test asks for it.

Fixtures: `dagbag`, `frozen_clock`, `fake_variables`, `fake_connections`. The folder of `dagbag` is `--dags-folder`, else the ini
option `dags_folder`, else `dags` beside the ini file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tradewind.testing.dag_folder import DagFolder
    from tradewind.testing.frozen_clock import FrozenClock
    from tradewind.testing.secrets import FakeConnections, FakeVariables


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the DAG files lie."""
    group = parser.getgroup("tradewind")
    group.addoption("--dags-folder", default=None, metavar="FOLDER", help="the DAG files that the fixture `dagbag` reads")
    parser.addini("dags_folder", "the DAG files that the fixture `dagbag` reads, relative to the ini file", default="dags")


@pytest.fixture(scope="session")
def dagbag(pytestconfig: pytest.Config) -> DagFolder:
    """Every DAG of the folder; `dagbag.check()` for the integrity of its files."""
    from tradewind.testing.dag_folder import DagFolder

    given = pytestconfig.getoption("--dags-folder")
    return DagFolder.read(Path(given) if given else pytestconfig.rootpath / pytestconfig.getini("dags_folder"))


@pytest.fixture
def frozen_clock() -> Iterator[FrozenClock]:
    """Time stands still; `frozen_clock.move_to(…)`, `.tick(…)`; waiting takes no real time."""
    from tradewind.testing.frozen_clock import frozen

    with frozen() as clock:
        yield clock


@pytest.fixture
def fake_variables() -> Iterator[FakeVariables]:
    """A mapping: what is put into it are the variables of this test."""
    from tradewind.testing.secrets import fake_variables

    with fake_variables() as values:
        yield values


@pytest.fixture
def fake_connections() -> Iterator[FakeConnections]:
    """A mapping: what is put into it are the connections of this test, as URIs or mappings."""
    from tradewind.testing.secrets import fake_connections

    with fake_connections() as values:
        yield values
