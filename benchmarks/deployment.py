"""An installed Tradewind in its own home folder.

It starts `standalone`, or on request only a scheduler and a worker host; then it registers the DAG files itself. All settings have
their defaults, and DAGs are unpaused by a command.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.dagfiles import Marks
from benchmarks.measure import Process, Span, tree

REPOSITORY = Path(__file__).resolve().parent.parent
FINISHED = 2
"""Codes of run states from this one on are final; 2 is success."""


def have_standalone() -> bool:
    return find_spec("tradewind.cli.main") is not None and find_spec("tradewind.cli.supervisor") is not None


def stock_environment(home: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment without settings of Tradewind, Airflow and byte code, and with this home folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRADEWIND", "AIRFLOW")) and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, "TRADEWIND_HOME": str(home), **extra}


def template_environment() -> dict[str, str]:
    """The variables that the worker host adds to the environment of its templates by default: settings of the allocator."""
    from tradewind.settings import load
    from tradewind.worker.templates import MALLOC_SETTINGS

    return dict(MALLOC_SETTINGS.get(load().runner.malloc, {}))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Deployment:
    """A running Tradewind. Use as a context manager.

    Args:
        files: DAG files by name, in place before the start.
        extra: environment of every process (settings that a measurement varies).
        examples: with the shipped examples (standalone only).
        keep: do not delete the home folder at the end.
        database_url: of an empty PostgreSQL database that is used instead of SQLite.
    """

    def __init__(
        self,
        files: Mapping[str, str] = {},
        *,
        extra: Mapping[str, str] = {},
        standalone: bool | None = None,
        examples: bool = False,
        keep: bool = False,
        database_url: str | None = None,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="twb-"))
        self.dags = self.home / "dags"
        self.dags.mkdir(mode=0o700)
        self.marks = Marks(self.home / "marks")
        self.standalone = have_standalone() if standalone is None else standalone
        self.environment = stock_environment(self.home, extra)
        self.database_url = database_url
        if database_url is not None:
            self.environment["TRADEWIND__DATABASE__URL"] = database_url
        self.extra = extra
        self.examples = examples
        self.keep = keep
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._client: object = None
        self._files = dict(files)

    @property
    def roots(self) -> list[int]:
        return [process.pid for process in self.processes]

    def members(self) -> list[Process]:
        return tree(self.roots)

    def span(self) -> Span:
        return Span(self.roots)

    # --- life -------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Deployment:
        try:
            self._write_files()
            if not self.standalone and self._files:
                self._register_before_start()
            self.start()
            if self.standalone and self._files:
                self._unpause_all()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if not self.keep:
            shutil.rmtree(self.home, ignore_errors=True)

    @contextmanager
    def unready(self) -> Iterator[Deployment]:
        """Like `with deployment:`, but without waiting after the start; the caller waits for the event that it measures."""
        try:
            self.spawn()
            yield self
        finally:
            self.__exit__(None, None, None)

    @contextmanager
    def unstarted(self) -> Iterator[Deployment]:
        """Like `with deployment:`, but it only registers the DAG files and starts no process."""
        try:
            self._write_files()
            self._register_before_start()
            yield self
        finally:
            self.__exit__(None, None, None)

    def start(self) -> None:
        """Start, and wait until it accepts work."""
        self.spawn()
        self.wait_ready()

    def spawn(self) -> None:
        """Start without waiting."""
        log = open(self.home / "processes.log", "ab")  # noqa: SIM115
        if self.standalone:
            commands = [[*tradewind_command(), "standalone", "--port", str(self.port)]]
            if not self.examples:
                commands[0].append("--no-examples")
        else:
            commands = [[sys.executable, "-m", "tradewind.cli.process", kind, "0"] for kind in ("scheduler", "host")]
        for command in commands:
            self.processes.append(
                subprocess.Popen(
                    command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=self.home,
                )
            )
        log.close()

    def wait_ready(self, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args!r} ended with {process.returncode}: {self.log_tail()}")
            try:
                if self.call("ping").get("workers"):
                    return
            except Exception:
                self._drop_client()
            time.sleep(0.02)
        raise RuntimeError(f"not ready after {timeout:g} s: {self.log_tail()}")

    def log_tail(self) -> str:
        try:
            return (self.home / "processes.log").read_text()[-2000:]
        except OSError:
            return ""

    def stop(self) -> None:
        self._drop_client()
        members = self.members()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for member in members:
            _end_leftover(member)
        self.processes.clear()

    # --- talking ----------------------------------------------------------------------------------------------------

    def call(self, command: str, **arguments: Any) -> dict[str, object]:
        """Send one command to the scheduler."""
        import msgspec

        from tradewind.client.control import ControlClient
        from tradewind.wire.commands import build

        if self._client is None:
            self._client = ControlClient(str(self.home / "run" / "scheduler.sock"), "benchmark", timeout=120)
        assert isinstance(self._client, ControlClient)
        found: dict[str, object] = msgspec.to_builtins(self._client.call(build(command, arguments)))
        return found

    def _drop_client(self) -> None:
        from tradewind.client.control import ControlClient

        if isinstance(self._client, ControlClient):
            self._client.close()
        self._client = None

    def healthy(self) -> bool:
        """True if the API reports that database and scheduler are healthy, and the parser is healthy or unknown."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v2/monitor/health", timeout=1) as answer:
                parts = json.load(answer)
        except (OSError, urllib.error.URLError, ValueError):
            return False
        healthy = all(parts[name]["status"] == "healthy" for name in ("metadatabase", "scheduler"))
        return healthy and parts["dag_processor"]["status"] in ("healthy", None)

    def database(self) -> sqlite3.Connection:
        """A read-only connection to the SQLite database."""
        return sqlite3.connect(f"file:{self.home / 'tradewind.db'}?mode=ro", uri=True, isolation_level=None)

    def _states(self) -> RunStates:
        if self.database_url is None:
            return RunStates(self.database(), "?")
        import psycopg

        return RunStates(psycopg.connect(self.database_url, autocommit=True, options="-c search_path=tradewind"), "%s")

    def trigger(self, dag_id: str) -> int:
        """Create a run. Returns its number."""
        run = self.call("trigger", dag_id=dag_id)["id"]
        assert isinstance(run, int)
        return run

    def wait(self, run: int, timeout: float = 90.0, every: float = 0.01) -> int:
        """Wait until the run has ended. Returns the code of its state (2: success)."""
        deadline = time.monotonic() + timeout
        with closing(self._states()) as states:
            while time.monotonic() < deadline:
                state = states.of(run)
                if state is not None and state >= FINISHED:
                    return state
                time.sleep(every)
        raise RuntimeError(f"run {run} has not ended after {timeout:g} s; {self.log_tail()}")

    # --- DAG files --------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        for name, text in self._files.items():
            (self.dags / name).write_text(text)

    def add_file(self, name: str, text: str) -> None:
        """Add a DAG file before the start."""
        self._files[name] = text

    def _register_before_start(self) -> None:
        """Without a parser: register the DAG files in the store."""
        code = "import sys; from benchmarks.deployment import register_folder; register_folder(sys.argv[1])"
        subprocess.run([sys.executable, "-c", code, str(self.dags)], env=self.environment, cwd=REPOSITORY, check=True)

    def _unpause_all(self, timeout: float = 120.0) -> None:
        """Wait until the parser has registered every file, then unpause the DAGs."""
        deadline = time.monotonic() + timeout
        wanted = len(self._files)
        database = self.database()
        try:
            while time.monotonic() < deadline:
                found = database.execute("SELECT dag_id FROM dag").fetchall()
                if len(found) >= wanted:
                    for (dag_id,) in found:
                        self.call("set_paused", dag_id=dag_id, is_paused=False)
                    return
                time.sleep(0.05)
        finally:
            database.close()
        raise RuntimeError(f"only {len(found)} of {wanted} DAGs are known after {timeout:g} s: {self.log_tail()}")


class RunStates:
    """The states of runs, by a connection to whichever database.

    Args:
        mark: stands for a parameter in a statement of this driver.
    """

    def __init__(self, connection: Any, mark: str) -> None:
        self._connection = connection
        self._statement = f"SELECT state FROM dag_run WHERE id = {mark}"

    def of(self, run: int) -> int | None:
        """The code of the state of a run; None: there is no such run."""
        row = self._connection.execute(self._statement, (run,)).fetchone()
        return None if row is None else int(row[0])

    def close(self) -> None:
        self._connection.close()


def tradewind_command() -> list[str]:
    """The `tradewind` command beside this interpreter, as a user starts it."""
    script = Path(sys.executable).parent / "tradewind"
    return [str(script)] if script.exists() else [sys.executable, "-m", "tradewind"]


def register_folder(folder: str) -> None:
    """Register all DAG files of the folder in the store of $TRADEWIND_HOME. No scheduler may be running."""
    from tradewind.cli.compose.database import open_store, set_default_pool
    from tradewind.model.definition import DefinitionDefaults, encode_definition, version_hash
    from tradewind.model.rows import ParsedDag, ParsedFile
    from tradewind.sdk.definition import to_definition
    from tradewind.sdk.load import load_file
    from tradewind.settings import load

    settings = load()
    settings.paths.prepare()
    store = open_store(settings)
    set_default_pool(store, settings)
    for path in sorted(Path(folder).glob("*.py")):
        found = []
        for dag in load_file(folder, path.name).dags.values():
            definition = encode_definition(to_definition(dag, path.name, DefinitionDefaults()))
            found.append(ParsedDag(dag.dag_id, definition, version_hash(definition)))
        now = time.time_ns() // 1000
        store.register_file(
            ParsedFile("dags-folder", path.name, "", tuple(found), None, 1, False, now), paused_at_creation=False
        )
    store.close()


def _end_leftover(member: Process) -> None:
    """Check that no process of a deployment is left, because it would disturb the next measurement."""
    try:
        with open(f"/proc/{member.pid}/stat", "rb") as file:
            data = file.read().decode(errors="replace")
        if data[data.index("(") + 1 : data.rindex(")")] == member.name:
            os.kill(member.pid, signal.SIGKILL)
    except (OSError, ValueError):
        pass
