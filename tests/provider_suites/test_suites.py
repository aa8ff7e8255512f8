"""The unit tests that provider packages bring in their source distributions, run unmodified.

Set PROVIDER_SDISTS to a folder with unpacked source distributions (`pip download --no-deps --no-binary :all: …`), in an
environment where the packages and the libraries of their tests (requests-mock, pytest-asyncio, pytest-mock, …) are installed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.provider_suites import runner

SDISTS = os.environ.get("PROVIDER_SDISTS", "")
REQUIRED = {"ssh": 0.98, "slack": 0.98, "http": 0.98, "standard": 0.98}
"""Package → share of its tests without a database that must pass."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("package", sorted(REQUIRED))
def test_the_tests_of_a_package_pass(package: str) -> None:
    if not SDISTS:
        pytest.skip("PROVIDER_SDISTS names no folder with source distributions of provider packages")
    folder = runner.folders(Path(SDISTS)).get(package)
    if folder is None:
        pytest.skip(f"{SDISTS} has no source distribution of {package}")
    outcome = runner.run(package, folder, limit=800)
    assert outcome.share >= REQUIRED[package], outcome.bad[:20] or outcome.output
