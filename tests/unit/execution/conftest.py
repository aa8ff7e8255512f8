"""Every test has its own runtime for its task."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.execution.world import World, installed


@pytest.fixture
def world() -> Iterator[World]:
    with installed() as found:
        yield found
