from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.parser.rig import Rig


@pytest.fixture
def rigs(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Creates parsers on one folder, and closes them at the end."""
    folder = tmp_path / "dags"
    folder.mkdir()
    made: list[Rig] = []

    def make(store: Any = None, at: Path = folder, **config: Any) -> Rig:
        made.append(Rig(at, store, **config))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def rig(rigs: Callable[..., Rig]) -> Rig:
    return rigs()
