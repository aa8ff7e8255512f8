"""A test does not see what an earlier test changed in the process. The order of the two tests matters."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LEFT = "TRADEWIND__CORE__PLUGINS_FOLDER"


def test_first_changes_the_process(tmp_path: Path) -> None:
    os.environ[LEFT] = str(tmp_path)
    sys.path.append(str(tmp_path))
    os.chdir(tmp_path)
    assert LEFT in os.environ


def test_second_does_not_see_the_changes() -> None:
    assert LEFT not in os.environ
    assert not [folder for folder in (*sys.path, os.getcwd()) if "test_first_changes_the_process" in folder]
