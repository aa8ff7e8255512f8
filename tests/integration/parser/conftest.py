from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.parser.running_parser import RunningParser


@pytest.fixture
def rigs(tmp_path: Path) -> Iterator[Callable[..., RunningParser]]:
    """Creates parsers on one folder, and closes them at the end."""
    folder = tmp_path / "dags"
    folder.mkdir()
    made: list[RunningParser] = []

    def make(store: Any = None, at: Path = folder, **config: Any) -> RunningParser:
        made.append(RunningParser(at, store, **config))
        return made[-1]

    yield make
    for running in made:
        running.close()


@pytest.fixture
def running(rigs: Callable[..., RunningParser]) -> RunningParser:
    return rigs()
