"""The id of the running boot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.platform import boot


def test_two_processes_of_one_boot_agree() -> None:
    other = subprocess.run(
        [sys.executable, "-c", "from tradewind.platform.boot import boot_id; print(boot_id())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == boot.boot_id()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the Linux kernel's boot id")
def test_on_linux_it_is_the_kernels_own() -> None:
    assert boot.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_without_proc_the_boot_time_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(boot, "_LINUX_BOOT_ID", str(tmp_path / "missing"))
    monkeypatch.setattr(boot, "_known", None)
    monkeypatch.setattr(boot, "_macos", lambda: None)
    assert boot.boot_id().startswith("boot-time-")
    assert int(boot.boot_id().removeprefix("boot-time-")) > 0


def test_an_empty_boot_id_is_none(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("\n")
    assert boot._linux(str(tmp_path / "boot_id")) is None
