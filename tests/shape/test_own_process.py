"""No test meets what another one did to the process that both run in. The order of these two is what is tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

LEFT = "TRADEWIND__CORE__PLUGINS_FOLDER"


def test_one_changes_its_process(tmp_path: Path) -> None:
    os.environ[LEFT] = str(tmp_path)
    sys.path.append(str(tmp_path))
    os.chdir(tmp_path)
    assert LEFT in os.environ


def test_the_next_one_does_not_see_it() -> None:
    assert LEFT not in os.environ
    assert not [folder for folder in (*sys.path, os.getcwd()) if "test_one_changes_its_process" in folder]
