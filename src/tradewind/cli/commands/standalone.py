"""`tradewind standalone`: all services on this machine, until it is stopped."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from typing import TextIO, cast

import click

import tradewind.platform.light_imports  # noqa: F401 (before msgspec)
from tradewind.cli.common import isolation, reading
from tradewind.cli.compose.bundles import configured_bundles
from tradewind.cli.extras import install_command
from tradewind.cli.live_table import Lines, Screen, Table, missed_notices
from tradewind.cli.locks import home_lock, writer_lock
from tradewind.cli.notices import Follower
from tradewind.cli.process import ALIVE, PREFIX, SUPERVISOR_PIPE, main
from tradewind.cli.process_logs import CHECK_SECONDS, ChildPipe, log_file, logs_folder, open_log, rotate
from tradewind.cli.reach import reach
from tradewind.cli.supervisor import Child, Supervisor
from tradewind.cli.worker_hosts import is_host, with_worker_hosts
from tradewind.model.errors import ConfigError, StoreBusy, TradewindError
from tradewind.model.moments import SECOND
from tradewind.observe import log as observe_log
from tradewind.platform.clock import SystemClock
from tradewind.platform.forked import run_forked
from tradewind.settings import Settings, load
from tradewind.settings.load import DEFAULT
from tradewind.wire.messages import Notice

WRITER_TIMEOUT_SECONDS = 15.0
"""How long to wait for the writer lock: a scheduler whose supervisor was killed needs some time to stop."""

START_ORDER = ("api", "scheduler", "host", "parser", "gateway", "uploads")
"""The order of starting: the web server first, because it takes longest to start. All worker hosts take the place of `host`."""
STOP_ORDER = ("host", "gateway", "parser", "uploads", "api", "scheduler")
"""The order of stopping: tasks end first, so that the scheduler gets their reports; the scheduler stops last."""


@click.command(short_help="Run all services on this machine.")
@click.option("--host", help="Address of the web server; 0.0.0.0 = all interfaces. [setting: api.host]")
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), help="Port of the web server; 0 = any free port. [setting: api.port]"
)
@click.option("--examples/--no-examples", default=None, help="Show the shipped example DAGs.  [default: examples]")
@click.option(
    "--executor",
    metavar="NAME",
    help="LocalExecutor, SequentialExecutor, CeleryExecutor or KubernetesExecutor, or several with commas. "
    "[setting: core.executor]",
)
@click.option("--install-extra", "extras", multiple=True, metavar="NAME", help="Install an extra after the start, e.g. plots.")
@click.option("--plain", is_flag=True, help="Print a line for each run instead of the live table.")
def standalone(
    host: str | None, port: int | None, examples: bool | None, executor: str | None, extras: tuple[str, ...], plain: bool
) -> int:
    """Run scheduler, worker host, parser and web server until Ctrl-C or SIGTERM.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C stops them at once.
    """
    os.umask(0o077)
    overrides = {
        "TRADEWIND__API__HOST": host,
        "TRADEWIND__API__PORT": None if port is None else str(port),
        "TRADEWIND__CORE__EXECUTOR": executor,
        "TRADEWIND__CORE__LOAD_EXAMPLES": None if examples is None else str(examples).lower(),
    }
    environment = {**os.environ, **{name: value for name, value in overrides.items() if value is not None}}
    settings = load(environment)
    if settings.explain("core.load_examples").source == "default":
        environment["TRADEWIND__CORE__LOAD_EXAMPLES"] = "true"
        settings = load(environment)
    commands = [install_command(extra) for extra in extras]
    configured_bundles(settings)  # a mistake is shown before any process starts
    settings.paths.prepare()
    lock = home_lock(settings)
    lock.acquire(1.0)  # a command may hold the lock for a moment, to check whether a standalone is running
    listener, address = reserve_address(settings)
    with listener:
        lock.write_note(address)
        environment["TRADEWIND__API__PORT"] = str(listener.getsockname()[1])
        _wait_for_writer(settings)
        return Standalone(settings, environment, address, commands, plain or not sys.stdout.isatty()).run()


def reserve_address(settings: Settings) -> tuple[socket.socket, str]:
    """Reserve the port of the web server: (a bound socket that does not listen, "http://…").

    The web server can bind the same port later, because both sockets set SO_REUSEADDR; a server that listens there already is found
    before any process is started.

    Raises:
        ConfigError: the address cannot be bound.
    """
    host, port = settings.api.host, settings.api.port
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, port))
    except OSError as error:
        holder.close()
        user = _listener_on(port)
        raise ConfigError(
            f"the web server cannot use {host} port {port} ({error.strerror}{user}). "
            "Choose another port with --port (0 = any free port) or the setting api.port"
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return holder, f"http://{shown}:{holder.getsockname()[1]}"


def _listener_on(port: int) -> str:
    """Which process listens on a port, in words; "" if that is unknown."""
    import psutil  # lazy import: only needed for this error message

    try:
        for one in psutil.net_connections("inet"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
                return f": used by process {one.pid}, {psutil.Process(one.pid).name()}"
    except (psutil.Error, OSError):
        pass
    return ""


def _wait_for_writer(settings: Settings) -> None:
    """Wait until no other process holds the writer lock: a previous scheduler may be stopping.

    Raises:
        StoreBusy: another process holds the lock for too long.
    """
    lock = writer_lock(settings)
    try:
        lock.acquire()
    except StoreBusy:
        click.echo("Waiting for another process that is still using this home folder ...", err=True)
        lock.acquire(WRITER_TIMEOUT_SECONDS)
    lock.release()


def _chosen(kinds: Sequence[str], settings: Settings) -> list[str]:
    """These process kinds without those that the settings leave out."""
    wanted = {"gateway": settings.gateway.enabled, "uploads": settings.logging.remote_logging}
    return [kind for kind in kinds if wanted.get(kind, True)]


class _ScreenStream:
    """A stream that prints the supervisor's own log records on the screen."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line

    def write(self, text: str) -> None:
        if text.strip():
            self._print_line(text.rstrip())

    def flush(self) -> None:
        """Do nothing: each line is printed at once."""


def chosen_servers(settings: Settings) -> list[str]:
    """The lines of the header about the database and the executor, if they are not the default ones. A user of Airflow may not
    expect that variables of Airflow choose them.
    """
    values = {"database.url": ("Database", settings.store_name), "core.executor": ("Executor", settings.core.executor)}
    return [
        f"  {title:<12}{value}   (from {settings.explanations[name].source})"
        for name, (title, value) in values.items()
        if settings.explanations[name].source != DEFAULT
    ]


def _first_admin(settings: Settings) -> str | None:
    """At the first start: create the user `admin`. Returns the generated password, or None if there were accounts.

    A child does that: the code of the database would take 5 MB in this process, as long as it lives.
    """

    def create() -> bytes:
        from tradewind.cli.accounts import create_first_admin  # lazy import: opens a database

        return (create_first_admin(settings) or "").encode()

    password = run_forked(create)
    return (create() if password is None else password).decode() or None


class Standalone:
    """The supervisor with its output on the terminal."""

    def __init__(
        self, settings: Settings, environment: dict[str, str], address: str, extras: list[tuple[str, list[str]]], plain: bool
    ) -> None:
        self.settings = settings
        self.address = address
        self.extras = extras
        self.failed = False
        self._ready = {"scheduler": False, "api": False}
        self._environment = environment
        self._starts = with_worker_hosts(_chosen(START_ORDER, settings), settings.runner.worker_hosts)
        self._children = {name: Child(name, environment) for name in self._starts}
        stops = [
            self._children[name] for name in with_worker_hosts(_chosen(STOP_ORDER, settings), settings.runner.worker_hosts)
        ]
        self.supervisor = Supervisor(SystemClock(), main, stops, self._on_give_up, settings.core.stall_limit_us)
        for child in stops:
            child.stop_timeout += settings.runner.drain_timeout_us if is_host(child.name) else 0
        for name, child in self._children.items():
            pipe = ChildPipe(self.supervisor.loop, lambda line, name=name: self._on_line(name, line))  # type: ignore[misc]
            child.environment = {**environment, SUPERVISOR_PIPE: str(pipe.write)}
            child.inherits = (pipe.write,)
            child.output = open_log(settings.home, name)
        self.follower = Follower(
            self.supervisor.loop, settings.paths.scheduler_socket, "standalone", self._scheduler_is_up, self._on_notice
        )
        self.screen: Screen = Lines() if plain else Table(self.supervisor.loop, settings.store)

    def run(self) -> int:
        """Run until all children are stopped, and return the exit code."""
        observe_log.configure("standalone", "WARNING", cast(TextIO, _ScreenStream(self._print)))
        self._print_header()
        self.screen.start()
        self.follower.start()
        self._rotate_logs()
        try:
            self.supervisor.run([self._children[name] for name in self._starts], self._on_stop)
        finally:
            self.follower.stop()
            self._guarded(self.screen.stop)
        print("Stopped." if not self.failed else "Stopped, because a process cannot continue.", flush=True)
        return 1 if self.failed else 0

    def _rotate_logs(self) -> None:
        """Rotate the logs of the children, again and again while they run."""
        for name in START_ORDER:
            try:
                rotate(log_file(self.settings.home, name))
            except OSError as error:
                self._print(f"Cannot rotate the log of {name}: {error.strerror}.")
        self.supervisor.loop.call_later(round(CHECK_SECONDS * SECOND), self._rotate_logs)

    # --- output ---------------------------------------------------------------------------------------------------------

    def _print_header(self) -> None:
        import tradewind

        settings = self.settings
        password = _first_admin(settings)
        show = self._print_header_line
        show(f"Tradewind {tradewind.__version__}")
        show(f"  Web page    {self.address}")
        if password is not None:
            show(f"  Login       admin / {password}   (shown only once; stored as a hash in {settings.paths.accounts})")
        else:
            show("  Login       see tradewind users list; new password: tradewind users reset-password -u NAME")
        reachable = reach(settings.api.host, settings.api.base_url)
        show(f"  Reach       {reachable or 'this machine only'}")
        show(f"  DAG folder  {settings.paths.dags}" + (" and the example DAGs" if settings.core.load_examples else ""))
        show(f"  Home        {settings.home}")
        for line in chosen_servers(settings):
            show(line)
        show(f"  Logs        {settings.paths.logs} (tasks), {logs_folder(settings.home)} (these processes)")
        show(f"  Isolation   {isolation()}")

    def _print_header_line(self, line: str) -> None:
        print(line, flush=True)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run an output function. If it fails, switch to plain lines; the supervision continues."""
        try:
            work()
        except Exception as error:
            if not isinstance(self.screen, Lines):
                self.screen = Lines()
                self.screen.print_line(f"The live table failed ({type(error).__name__}: {error}); switching to plain lines.")

    def _print(self, line: str) -> None:
        self._guarded(lambda: self.screen.print_line(line))

    def _on_notice(self, notice: Notice) -> None:
        self._guarded(lambda: self.screen.notice(notice))

    def _on_line(self, name: str, line: str) -> None:
        if not line.startswith(PREFIX):
            self._print(line)
        elif line == ALIVE:
            self.supervisor.record_progress(self._children[name])
        elif line.startswith(f"{PREFIX}address ") and name == "gateway":
            self._print(f"Gateway for workers on other machines: {line.removeprefix(f'{PREFIX}address ')}")
        elif line.startswith(f"{PREFIX}address "):
            self._is_up("api")

    def _on_stop(self, at_once: bool) -> None:
        drain_seconds = self.settings.runner.drain_timeout
        if at_once or not drain_seconds:
            self._print("Stopping: running tasks are stopped first ...")
        else:
            self._print(f"Stopping: running tasks get {drain_seconds:g} s to finish (Ctrl-C stops them now) ...")

    # --- events -----------------------------------------------------------------------------------------------------------

    def _scheduler_is_up(self) -> None:
        self._is_up("scheduler")
        self._guarded(self._catch_up)

    def _catch_up(self) -> None:
        """Show changes from before the connection: a scheduler that ends does not send its last notices."""
        open_runs = self.screen.open_runs()
        if isinstance(self.screen, Lines) and not open_runs:
            return  # no run is shown as unfinished; so this process need not import the store
        try:
            with reading(self.settings) as store:
                found = missed_notices(store, open_runs)
        except TradewindError:
            return  # the database is busy; the next notices have the later changes
        for notice in found:
            self.screen.notice(notice)

    def _is_up(self, name: str) -> None:
        if self._ready[name]:
            return
        self._ready[name] = True
        if all(self._ready.values()):
            self._print(f"Ready: {self.address}   (Ctrl-C stops everything)")
            if self.settings.core.load_examples:
                self._read_examples()
            self._install_next()

    def _read_examples(self) -> None:
        """Parse the examples in another process: user code never runs in this one."""

        def ended(code: int) -> None:
            if code and not self.supervisor.stopping:
                self._print(f"The example DAGs could not be parsed (see {log_file(self.settings.home, 'examples')}).")

        command = [sys.executable, "-m", "tradewind.cli.process", "examples", str(os.getpid())]
        self._run_in_background("examples", command, ended)

    def _install_next(self) -> None:
        if not self.extras:
            return
        name, command = self.extras.pop(0)
        self._print(f"Installing the extra {name} in the background ...")

        def ended(code: int) -> None:
            if self.supervisor.stopping:
                return
            if code == 0:
                self._print(f"The extra {name} is installed.")
                if self.settings.core.load_examples:
                    self._read_examples()
            else:
                self._print(f"The extra {name} could not be installed (see {log_file(self.settings.home, 'install')}).")
            self._install_next()

        self._run_in_background("install", command, ended)

    def _run_in_background(self, name: str, command: list[str], ended: Callable[[int], None]) -> None:
        output = open_log(self.settings.home, name)
        try:
            self.supervisor.run_in_background(command, self._environment, output, ended)
        except OSError as error:
            self._print(f"{command[0]}: {error.strerror}.")
            ended(127)
        finally:
            os.close(output)

    def _on_give_up(self, child: Child) -> None:
        self.failed = True
        self._print(f"The {child.name} process cannot continue; see its log: {log_file(self.settings.home, child.name)}")
        self.supervisor.stop()
