"""Faults of the database: a full or read-only disk, a failing disk, a damaged file, many concurrent commands.

What needs rights that the test does not have (mount), or a C compiler, is left out there.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.world import World, until
from tests.integration.hostile.conftest import Hostile, launch, up
from tests.integration.hostile.test_store import begun, finish, scheduler_health, trouble


def mounted(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, timeout=30, check=False).returncode == 0


@contextmanager
def unmounted_at_last(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], capture_output=True, timeout=30, check=False)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Hostile]]:
    """Creates an instance, and stops it at the end (or kills it)."""
    with ExitStack() as stack:

        def make(**settings: str) -> Hostile:
            found = launch(tmp_path, {"TRADEWIND__DATABASE__BUSY_TIMEOUT": "0.5", **settings})
            stack.callback(found.world.kill_everything)
            return found

        yield make


def in_command_line(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tradewind", *arguments],
        env=world.environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def stopped_well(hostile: Hostile) -> None:
    hostile.world.stop()
    assert hostile.world.census() == []


# --- contention -------------------------------------------------------------------------------------------------------


def test_a_command_waits_for_another_process_that_holds_the_database(made: Callable[..., Hostile]) -> None:
    hostile = made()
    up(hostile)
    other = sqlite3.connect(hostile.world.home / "tradewind.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    asked: list[subprocess.CompletedProcess[str]] = []
    asking = threading.Thread(
        target=lambda: asked.append(in_command_line(hostile.world, "variables", "set", "greeting", "hello")), daemon=True
    )
    asking.start()
    until("the scheduler met the lock", 30, lambda: "is locked by another process" in trouble(hostile))
    other.execute("ROLLBACK")
    asking.join(60)
    assert [(done.returncode, done.stderr) for done in asked] == [(0, "")]
    until("the scheduler is well again", 20, lambda: hostile.world.ping() and trouble(hostile) == "")
    assert in_command_line(hostile.world, "variables", "get", "greeting").stdout.strip() == "hello"
    stopped_well(hostile)


CROWD = 8
EACH = 2


@pytest.mark.parametrize("scheduler", [True, False], ids=["beside a scheduler", "alone"])
def test_concurrent_commands_see_no_database_lock(made: Callable[..., Hostile], scheduler: bool) -> None:
    hostile = made()
    up(hostile)
    if not scheduler:
        stopped_well(hostile)
    script = "for i in $(seq {each}); do {python} -m tradewind variables set v{number}_$i {number} || exit 1; done"
    crowd = [
        subprocess.Popen(
            ["bash", "-c", script.format(each=EACH, python=sys.executable, number=number)],
            env=hostile.world.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(CROWD)
    ]
    said = [process.communicate(timeout=100) for process in crowd]
    assert [(process.returncode, errors) for process, (_, errors) in zip(crowd, said, strict=True)] == [(0, "")] * CROWD
    listed = in_command_line(hostile.world, "variables", "list", "-o", "json").stdout
    assert listed.count('"v') == CROWD * EACH
    if scheduler:
        stopped_well(hostile)


# --- a disk that takes nothing ----------------------------------------------------------------------------------------


def test_a_disk_that_is_really_full(made: Callable[..., Hostile], tmp_path: Path) -> None:
    """Database, spool, logs and XComs are on the disk: nothing can be written, and nothing is lost."""
    home = tmp_path / "home"
    home.mkdir()
    if not mounted("-t", "tmpfs", "-o", "size=24m", "tradewind-test", str(home)):
        pytest.skip("mounting is not allowed here")
    with unmounted_at_last(home):
        hostile = made()
        up(hostile)
        runs = [hostile.begin("waits") for _ in range(3)]
        until("the tasks run", 20, lambda: len(begun(hostile)) == 3)
        fillers = _fill(home)
        (hostile.notes / "go").touch()
        until("the scheduler says so", 40, lambda: trouble(hostile))
        assert "Free disk space" in trouble(hostile)
        until("health says so", 20, lambda: scheduler_health(hostile) == "unhealthy")
        assert any("Nothing can be written now" in sentence for sentence in hostile.why("waits", runs[0]))
        assert {hostile.world.run_state("waits", run) for run in runs} == {"running"}
        for filler in fillers:
            filler.unlink()
        finish(hostile, runs)
        stopped_well(hostile)


def _fill(folder: Path) -> list[Path]:
    """Fill the disk completely, at the end in small pieces."""
    made = []
    for size in (1 << 20, 1 << 12, 1):
        path = folder / f"filler-{size}"
        made.append(path)
        with path.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return made


def test_a_scheduler_that_restarts_on_a_read_only_disk(made: Callable[..., Hostile]) -> None:
    hostile = made()
    up(hostile)
    world = hostile.world
    runs = [hostile.begin("waits_quietly") for _ in range(2)]
    until("the tasks run", 20, lambda: len(begun(hostile)) == 2)
    database = world.home / "tradewind.db"
    if not mounted("--bind", str(database), str(database)):
        pytest.skip("mounting is not allowed here")
    with unmounted_at_last(database):
        if not mounted("-o", "remount,ro,bind", str(database)):
            pytest.skip("mounting read-only is not allowed here")
        world.find("scheduler")[0].kill()
        log = world.home / "logs" / "processes" / "scheduler.log"
        until("the next one says why", 30, lambda: "cannot be written" in log.read_text(encoding="utf-8"))
        (hostile.notes / "go").touch()
        until("the verdicts are on disk", 20, (world.home / "spool" / "verdicts").exists)
    until("there is a scheduler that can write", 60, lambda: (world.ping() or {}).get("workers"))
    for run in runs:
        until(f"{run} has succeeded", 30, partial(world.has_succeeded, "waits_quietly", run))
    assert sorted(begun(hostile)) == sorted(runs)
    hostile.still_works()
    stopped_well(hostile)


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(int file) {
    const char *flag = getenv("FAILING_DISK");
    char link[64], path[4096];
    if (flag == NULL || access(flag, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, "tradewind.db") != NULL;
}
ssize_t pwrite64(int file, const void *data, size_t count, off64_t at) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (fails(file)) { errno = EIO; return -1; }
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return real(file, data, count, at);
}
int fdatasync(int file) {
    static int (*real)(int);
    if (fails(file)) { errno = EIO; return -1; }
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    return real(file);
}
"""


def test_a_disk_that_fails(made: Callable[..., Hostile], tmp_path: Path) -> None:
    """Every write and every fsync of the database fails with EIO for a while."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    source, library, flag = tmp_path / "shim.c", tmp_path / "shim.so", tmp_path / "fails"
    source.write_text(SHIM, encoding="ascii")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=60)
    hostile = made(LD_PRELOAD=str(library), FAILING_DISK=str(flag))
    up(hostile)
    runs = [hostile.begin("waits") for _ in range(2)]
    until("the tasks run", 20, lambda: len(begun(hostile)) == 2)
    flag.touch()
    (hostile.notes / "go").touch()
    until("the scheduler says so", 40, lambda: "disk I/O error" in trouble(hostile))
    until("health says so", 20, lambda: scheduler_health(hostile) == "unhealthy")
    flag.unlink()
    finish(hostile, runs)
    stopped_well(hostile)


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["first page", "all but the first page"])
def test_a_damaged_database_is_reported_and_not_changed(made: Callable[..., Hostile], part: str) -> None:
    hostile = made()
    world = hostile.world
    world.start()
    world.await_ready()
    stopped_well(hostile)
    database = world.home / "tradewind.db"
    data = bytearray(database.read_bytes())
    where = slice(0, 4096) if part == "first page" else slice(4096, len(data))
    data[where] = b"\xa5" * len(data[where])
    database.write_bytes(data)
    world.start()
    assert world.process is not None
    assert world.process.wait(60) != 0
    said = (world.home / "logs" / "processes" / "scheduler.log").read_text(encoding="utf-8")
    assert f"the database {database} is damaged" in said
    assert ".recover" in said
    assert database.read_bytes() == bytes(data)
    assert world.census() == []
