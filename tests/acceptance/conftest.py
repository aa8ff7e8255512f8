from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import dags
from tests.acceptance.harness import Standalone


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A running standalone with some DAGs, shared by the tests of a module."""
    standalone = Standalone(tmp_path_factory.mktemp("standalone") / "home")
    standalone.write_dag("chain.py", dags.CHAIN)
    standalone.write_dag("held.py", dags.HELD)
    standalone.write_dag("failing.py", dags.FAILING)
    with standalone.started():
        for dag_id in ("chain", "held", "failing"):
            standalone.wait_dag(dag_id)
        yield standalone


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Standalone]:
    """A home folder without running processes. All processes that a test starts on it are ended afterwards."""
    standalone = Standalone(tmp_path / "home")
    yield standalone
    standalone.close()
