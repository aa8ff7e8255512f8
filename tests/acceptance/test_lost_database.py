"""A database that is deleted, replaced, emptied or cut must not be followed by an empty one: that would run every catch-up anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.acceptance.test_private_files import run


def refused(standalone: Standalone, *words: str) -> str:
    done = standalone.run(*words)
    assert done.returncode == 1
    return done.stderr


def test_a_scheduler_stops_when_its_database_is_deleted(fresh: Standalone) -> None:
    fresh.start()
    fresh.cli("variables", "set", "kept", "value")
    for path in fresh.home.glob("tradewind.db*"):
        path.unlink()
    fresh.wait_line("was deleted while it was in use", 30)
    fresh.wait_line("Stopped, because a process cannot continue", 60)
    (saved,) = fresh.home.glob("tradewind.db.saved-*")
    assert saved.stat().st_mode & 0o777 == 0o600
    result = refused(fresh, "db", "migrate")
    assert "tradewind db reset -y" in result
    assert f"mv {saved} {fresh.home / 'tradewind.db'}" in result
    os.rename(saved, fresh.home / "tradewind.db")
    assert fresh.cli("variables", "get", "kept").strip() == "value"


@pytest.mark.parametrize("size", [None, 0])
def test_no_empty_database_replaces_a_lost_one(fresh: Standalone, size: int | None) -> None:
    run(fresh, 0o077, "db", "migrate")
    database = fresh.home / "tradewind.db"
    database.unlink()
    if size is not None:
        database.touch()
    for words in (("db", "migrate"), ("variables", "set", "a", "b"), ("variables", "list"), ("scheduler", "-n", "1")):
        result = refused(fresh, *words)
        assert "tradewind db reset -y" in result
        assert "db migrate" not in result
        assert not database.exists() or database.stat().st_size == 0
    run(fresh, 0o077, "db", "reset", "-y")
    fresh.cli("variables", "list")


def test_keys_and_task_logs_are_signs_of_a_database_too(fresh: Standalone, tmp_path: Path) -> None:
    """Of a home folder that an older release made, or whose setting database.path leads elsewhere now."""
    run(fresh, 0o077, "db", "migrate")
    (fresh.home / "logs" / "dag_id=hello").mkdir()
    (fresh.home / "database.path").unlink()
    fresh.environment["TRADEWIND__DATABASE__PATH"] = str(tmp_path / "elsewhere.db")
    assert "fernet.key" in refused(fresh, "db", "migrate")


def test_the_start_after_a_reset_creates_a_database(fresh: Standalone) -> None:
    run(fresh, 0o077, "db", "migrate")
    (fresh.home / "logs" / "dag_id=hello").mkdir()
    run(fresh, 0o077, "db", "reset", "-y", "--skip-init")
    run(fresh, 0o077, "db", "migrate")


def test_a_truncated_database_is_reported_as_damaged(fresh: Standalone) -> None:
    run(fresh, 0o077, "db", "migrate")
    for size, words in ((9000, ("dags", "list")), (4096, ("db", "migrate")), (100, ("db", "check"))):
        os.truncate(fresh.home / "tradewind.db", size)
        result = refused(fresh, *words)
        assert "is damaged" in result
        assert "db migrate" not in result
