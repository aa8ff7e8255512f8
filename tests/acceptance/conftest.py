from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import dags
from tests.acceptance.harness import Standalone


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A running standalone with some DAGs, shared by the tests of a module."""
    house = Standalone(tmp_path_factory.mktemp("house") / "home")
    house.write_dag("chain.py", dags.CHAIN)
    house.write_dag("held.py", dags.HELD)
    house.write_dag("failing.py", dags.FAILING)
    with house.started():
        for dag_id in ("chain", "held", "failing"):
            house.wait_dag(dag_id)
        yield house


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Standalone]:
    """A home folder without running processes. All processes that a test starts on it are ended afterwards."""
    house = Standalone(tmp_path / "home")
    yield house
    house.close()
