"""Everything on the page docs/how-to/write-a-deferrable-operator.md runs, as a file of somebody who copied it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.shape.source import ROOT

PAGE = ROOT / "docs" / "how-to" / "write-a-deferrable-operator.md"


def test_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "test_page.py").write_text("\n\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
