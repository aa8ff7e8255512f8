"""`db backup` while services run, and `db restore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dags import CHAIN
from tests.acceptance.harness import Standalone


@pytest.fixture
def backed_up(fresh: Standalone, tmp_path: Path) -> Path:
    """A home folder with one finished run and a secret, and its backup, made while everything ran. Nothing runs any more."""
    fresh.write_dag("chain.py", CHAIN)
    fresh.start()
    fresh.wait_dag("chain")
    fresh.cli("dags", "unpause", "chain")
    fresh.cli("variables", "set", "api_key", "canary-7731")
    fresh.wait_run("chain", fresh.trigger("chain", run_id="kept"))
    fresh.cli("db", "backup", str(tmp_path / "copy.db"))
    fresh.wait_run("chain", fresh.trigger("chain", run_id="after"))
    return tmp_path / "copy.db"


def test_a_restored_deployment_continues_from_the_backup(fresh: Standalone, backed_up: Path) -> None:
    living = fresh.run("db", "restore", str(backed_up), "-y")
    assert living.returncode == 1, "refused while a scheduler lives"
    fresh.stop()
    result = fresh.cli("db", "restore", str(backed_up), "-y")
    assert f"restored from {backed_up}" in result
    (kept,) = fresh.home.glob("tradewind.db.replaced-*")
    assert kept.name in result
    assert fresh.cli("variables", "get", "api_key").strip() == "canary-7731"
    assert [row["run_id"] for row in fresh.json("dags", "list-runs", "chain")] == ["kept"]
    fresh.start()
    fresh.wait_run("chain", fresh.trigger("chain", run_id="again"))


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ("missing", "db backup FILE"),
        ("no database", "not a backup of a Tradewind database"),
        ("newer", "use the release that wrote it"),
    ],
)
def test_restoring_a_wrong_file_changes_nothing(fresh: Standalone, tmp_path: Path, what: str, hint: str) -> None:
    fresh.cli("variables", "set", "there", "still")
    copy = tmp_path / "copy.db"
    if what == "no database":
        copy.write_bytes(b"hello" * 1000)
    elif what == "newer":
        import sqlite3

        fresh.cli("db", "backup", str(copy))
        with sqlite3.connect(copy) as db:
            db.execute("UPDATE meta SET value = '9999' WHERE key = 'schema'")
    done = fresh.run("db", "restore", str(copy), "-y")
    assert (done.returncode, hint in done.stderr) == (1, True)
    assert fresh.cli("variables", "get", "there").strip() == "still"
    assert list(fresh.home.glob("tradewind.db.replaced-*")) == []


def test_a_backup_under_another_key_is_refused(fresh: Standalone, tmp_path: Path) -> None:
    """Found later, every task that needs a secret would fail."""
    fresh.cli("variables", "set", "api_key", "canary-7731")
    fresh.cli("db", "backup", str(tmp_path / "copy.db"))
    (fresh.home / "fernet.key").unlink()
    fresh.cli("db", "reset", "-y")
    fresh.cli("variables", "set", "other", "x")
    done = fresh.run("db", "restore", str(tmp_path / "copy.db"), "-y")
    assert done.returncode == 1
    assert "key" in done.stderr
    assert fresh.cli("variables", "get", "other").strip() == "x"
