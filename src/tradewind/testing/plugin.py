"""The pytest plugin: fixtures for tests of DAGs. It imports no other module of Tradewind before a test uses a fixture.

Fixtures: `dagbag`, `frozen_clock`, `fake_variables`, `fake_connections`. The folder of `dagbag` is `--dags-folder`, or the ini
option `dags_folder`, or `dags` beside the ini file.

Test files may import `airflow`: the first such import makes the `airflow` namespace available.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from tradewind.testing.dag_folder import DagFolder
    from tradewind.testing.frozen_clock import FrozenClock
    from tradewind.testing.secrets import FakeConnections, FakeVariables


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of DAG files."""
    group = parser.getgroup("tradewind")
    group.addoption("--dags-folder", default=None, metavar="FOLDER", help="the DAG files that the fixture `dagbag` reads")
    parser.addini("dags_folder", "the DAG files that the fixture `dagbag` reads, relative to the ini file", default="dags")


class AirflowFinder:
    """Makes the `airflow` namespace available when a test file imports `airflow` for the first time (`MetaPathFinder`)."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """The spec of `airflow`, unless a genuine Airflow is installed."""
        if name != "airflow":
            return None
        from tradewind.airflow.finder import StrictFinder, activate  # lazy import: most test runs do not import airflow

        sys.meta_path.remove(cls)
        return StrictFinder.find_spec(name) if activate() else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Watch for the first `import airflow`: the first `conftest.py` may have it."""
    _watch()


def pytest_configure() -> None:
    """Watch for the first `import airflow`, where a `conftest.py` loads this plugin."""
    _watch()


def _watch() -> None:
    if "airflow" not in sys.modules and AirflowFinder not in sys.meta_path:
        sys.meta_path.insert(0, AirflowFinder)


def pytest_unconfigure() -> None:
    """Stop watching."""
    if AirflowFinder in sys.meta_path:
        sys.meta_path.remove(AirflowFinder)


@pytest.fixture(scope="session")
def dagbag(pytestconfig: pytest.Config) -> DagFolder:
    """All DAGs of the folder; `dagbag.check()` checks the integrity of the files."""
    from tradewind.testing.dag_folder import DagFolder

    given = pytestconfig.getoption("--dags-folder")
    return DagFolder.read(Path(given) if given else pytestconfig.rootpath / pytestconfig.getini("dags_folder"))


@pytest.fixture
def frozen_clock() -> Iterator[FrozenClock]:
    """Freezes the time. `frozen_clock.move_to(…)` and `.tick(…)` move it; waiting takes no real time."""
    from tradewind.testing.frozen_clock import frozen

    with frozen() as clock:
        yield clock


@pytest.fixture
def fake_variables() -> Iterator[FakeVariables]:
    """A mapping of the variables that exist in this test."""
    from tradewind.testing.secrets import fake_variables

    with fake_variables() as values:
        yield values


@pytest.fixture
def fake_connections() -> Iterator[FakeConnections]:
    """A mapping of the connections that exist in this test, as URIs or mappings."""
    from tradewind.testing.secrets import fake_connections

    with fake_connections() as values:
        yield values
