"""Every test of the page docs/how-to/test-your-dags.md passes, as a file of somebody who copied it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.shape.source import ROOT

PAGE = ROOT / "docs" / "how-to" / "test-your-dags.md"


def test_the_page_runs(tmp_path: Path) -> None:
    """All of its code in one file, in a project with a DAG folder."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "test_page.py").write_text("\n\n".join(blocks), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "dags").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tradewind.testing.plugin", "test_page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) == sum(block.count("\ndef test_") + block.startswith("def test_") for block in blocks)


def test_the_plugin_costs_other_peoples_runs_nothing() -> None:
    """Loading it imports no other module of ours, and no library but pytest."""
    code = (
        "import sys, pytest; before = set(sys.modules); import tradewind.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["tradewind", "tradewind.lazy_names", "tradewind.testing", "tradewind.testing.plugin"]
