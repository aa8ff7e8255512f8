"""Made-up provider packages, and code that runs in a process of its own where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HEAD = "import tradewind.airflow, warnings\nwarnings.simplefilter('ignore')\n"


def install(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of packages: path below `folder` → text. Every folder but `airflow` and `airflow/providers` is a package."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        package = file.parent
        while package not in (folder, folder / "airflow", folder / "airflow" / "providers"):
            (package / "__init__.py").touch()
            package = package.parent
    return folder


def run(packages: Path, code: str, head: str = "", environment: Mapping[str, str] | None = None) -> None:
    """Run `head` and `code`, where the packages of a folder are installed; it must not fail."""
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", HEAD + head + code],
        env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
