"""The unit tests that provider packages bring in their source distributions, run unmodified.

Set PROVIDER_SDISTS to a folder with unpacked source distributions (`pip download --no-deps --no-binary :all: …`), in an
environment where the packages and the libraries of their tests (requests-mock, pytest-asyncio, …) are installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SDISTS = os.environ.get("PROVIDER_SDISTS", "")
REQUIRED = {"ssh": 0.98, "slack": 0.98, "http": 0.98, "standard": 0.98}
"""Package → share of its tests without a database that must pass."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("package", sorted(REQUIRED))
def test_the_tests_of_a_package_pass(package: str) -> None:
    if not SDISTS:
        pytest.skip("PROVIDER_SDISTS names no folder with source distributions of provider packages")
    folder = next(Path(SDISTS).glob(f"apache_airflow_providers_{package}-*/"), None)
    if folder is None:
        pytest.skip(f"{SDISTS} has no source distribution of {package}")
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_CA_BUNDLE")}
    environ["PYTHONPATH"] = str(Path(__file__).parent)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-o",
        "asyncio_mode=auto",
        "tests/unit",
    ]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=800, check=False)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout.splitlines()[-1])}
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    assert passed
    assert passed / (passed + failed) >= REQUIRED[package], done.stdout[-4000:]
