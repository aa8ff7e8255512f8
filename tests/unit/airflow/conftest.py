"""The `airflow` namespace is served before test files are imported; a test can have its own runtime for its task."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.execution.world import World, installed
from tradewind.airflow.finder import activate

activate()


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        yield found
