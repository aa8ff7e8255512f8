"""Files with data or keys are private, whatever the umask and whichever command created them."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.harness import COMMAND, Standalone

DAG = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator
with DAG("hello", schedule=None, start_date=datetime(2026, 1, 1)):
    BashOperator(task_id="greet", bash_command="echo hello")
"""

FIRST_COMMANDS = [
    ("db", "migrate"),
    ("db", "reset", "-y"),
    ("variables", "set", "a", "b"),
    ("users", "create", "-u", "ann", "-r", "viewer", "-p", "correct-horse-battery"),
]


def run(standalone: Standalone, umask: int, *words: str) -> None:
    done = subprocess.run(
        [*COMMAND, *words], env=standalone.environment, umask=umask, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def open_to_others(home: Path) -> list[str]:
    """Everything that other users can reach and use; what lies in a closed folder they cannot reach."""
    found = []

    def look(path: Path) -> None:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode & 0o077:
            found.append(f"{mode:04o} {path.relative_to(home.parent)}")

    look(home)
    for folder, folders, files in os.walk(home):
        if Path(folder) == home:
            folders[:] = [name for name in folders if name not in ("dags", "plugins")]
        for name in (*folders, *files):
            look(Path(folder) / name)
    return found


@pytest.mark.parametrize(("umask", "words"), [(0o022, FIRST_COMMANDS[0]), *((0, words) for words in FIRST_COMMANDS[1:])])
def test_a_command_creates_a_private_home_folder(fresh: Standalone, umask: int, words: tuple[str, ...]) -> None:
    os.chmod(fresh.home, 0o755)
    run(fresh, umask, *words)
    assert open_to_others(fresh.home) == []


def test_a_command_repairs_the_permissions_of_a_home_folder(fresh: Standalone) -> None:
    run(fresh, 0o077, "variables", "set", "a", "b")
    guarded = [fresh.home, *(fresh.home / name for name in ("run", "logs", "xcom", "spool", "tradewind.db", "fernet.key"))]
    for words in (("variables", "list"), ("db", "migrate"), ("variables", "set", "a", "b")):
        for path in guarded:
            os.chmod(path, 0o777 if path.is_dir() else 0o666)
        run(fresh, 0o000, *words)
        assert [str(path) for path in guarded if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_services_create_only_private_files(fresh: Standalone) -> None:
    """Sockets, logs of tasks and of processes, keys, spool, database."""
    fresh.write_dag("hello.py", DAG)
    before = os.umask(0)
    try:
        fresh.start()
    finally:
        os.umask(before)
    fresh.wait_dag("hello")
    fresh.cli("dags", "unpause", "hello")
    assert fresh.wait_run("hello", fresh.trigger("hello")) == "success"
    fresh.get("/api/v2/version")
    assert open_to_others(fresh.home) == []
