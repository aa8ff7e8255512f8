"""Runs the unit tests of one provider package's source distribution in a separate process, and counts their outcomes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PREFIX = "apache_airflow_providers_"
TIME_LIMIT_S = 1500


class Case(NamedTuple):
    """A test that did not pass."""

    name: str
    """`unit.ssh.hooks.test_ssh.TestSSHHook::test_tunnel`"""
    kind: str
    """failed, error (also: a file that cannot be collected)"""
    message: str
    needs_database: bool = False
    """Airflow marks the test with `db_test`."""


class Outcome(NamedTuple):
    """The outcomes of the tests of one package."""

    package: str
    version: str
    passed: int
    skipped: Counter[str]
    """Reason → tests."""
    bad: list[Case]
    output: str
    """The end of pytest's output."""
    passed_with_database: int = 0
    """Those of the passed tests that Airflow marks with `db_test`."""

    @property
    def share(self) -> float:
        """Share of passed tests among those that ran, 0 … 1."""
        ran = self.passed + len(self.bad)
        return self.passed / ran if ran else 0.0


def folders(root: Path) -> dict[str, Path]:
    """Package → its unpacked source distribution, for those that contain unit tests; `ssh` → `…_ssh-7.0.1`."""
    return {
        folder.name.removeprefix(PREFIX).rpartition("-")[0].replace("_", "-"): folder
        for folder in sorted(root.glob(f"{PREFIX}*-*/"))
        if (folder / "tests" / "unit").is_dir()
    }


def environment() -> dict[str, str]:
    """The environment of the tests' process. `tests_common` is imported from the folder of this file."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_CA_BUNDLE") and not name.startswith(("AIRFLOW_", "TRADEWIND_"))
    }
    environ["PYTHONPATH"] = str(HERE)
    return environ


def run(package: str, folder: Path, *arguments: str, limit: float = TIME_LIMIT_S) -> Outcome:
    """Run a package's unit tests.

    Args:
        arguments: more words for pytest, such as a test's name.
        limit: seconds, after which the tests are stopped and count as one error.
    """
    with tempfile.TemporaryDirectory(prefix="provider-suite-") as home:
        report = Path(home, "report.xml")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(HERE / "pytest.ini"), "--rootdir", "."]
        command += ["-q", f"--junitxml={report}", *(arguments or ("tests/unit",))]
        environ = {**environment(), "HOME": home, "TRADEWIND_HOME": home, "TMPDIR": home}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environ, capture_output=True, text=True, errors="replace", timeout=limit, check=False
            )
            output = (done.stdout + done.stderr)[-6000:]
        except subprocess.TimeoutExpired as error:
            output = f"stopped after {limit} s: {(error.stdout or b'')[-3000:]!r}"
        version = folder.name.rpartition("-")[2]
        if not report.exists():
            return Outcome(package, version, 0, Counter(), [Case(package, "error", "pytest wrote no report")], output)
        return _read(report, package, version, output)


def _read(report: Path, package: str, version: str, output: str) -> Outcome:
    passed, with_database, skipped, bad = 0, 0, Counter[str](), []
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname') or ''}::{case.get('name')}"
        ends = {child.tag: child for child in case}
        end = ends.get("failure", ends.get("error"))
        needs_database = case.find("properties/property[@name='db_test']") is not None
        if end is not None:
            bad.append(Case(name, "failed" if "failure" in ends else "error", _message(end), needs_database))
        elif "skipped" in ends:
            skipped[next(iter((ends["skipped"].get("message") or "").splitlines()), "")[:120]] += 1
        else:
            passed += 1
            with_database += needs_database
    return Outcome(package, version, passed, skipped, bad, output, with_database)


def _message(end: ET.Element) -> str:
    """The reason why a test did not pass, on one line."""
    first = next(iter((end.get("message") or end.text or "").splitlines()), "")
    if "collection failure" not in first:
        return first
    return next((line for line in reversed((end.text or "").splitlines()) if line.startswith("E ")), first)
