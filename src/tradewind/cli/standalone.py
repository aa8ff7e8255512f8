"""`tradewind standalone`: everything on this machine, until it is told to stop."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import TextIO, cast

import click

import tradewind.platform.light_imports  # noqa: F401 (before msgspec)
from tradewind.cli.common import home_lock, isolation, reading
from tradewind.cli.extras import install_command
from tradewind.cli.follow import Follower
from tradewind.cli.live_table import Lines, Screen, Table, missed
from tradewind.cli.lock import HomeLock, WriterLock
from tradewind.cli.process import ALIVE, SIGN, TELL
from tradewind.cli.process_logs import LOOK_SECONDS, TellPipe, log_file, logs_folder, open_log, rotate
from tradewind.cli.supervisor import Child, Supervisor
from tradewind.model.errors import ConfigError, StoreBusy, TradewindError
from tradewind.model.moments import SECOND
from tradewind.observe import log as observe_log
from tradewind.platform.clock import SystemClock
from tradewind.settings import Settings, load
from tradewind.wire.messages import Notice

PATIENCE_SECONDS = 15.0
"""A scheduler whose supervisor was killed needs a moment to put things in order."""

STARTS = ("api", "scheduler", "host", "parser")
"""The web server first: it takes longest to come up."""
STOPS = ("host", "parser", "api", "scheduler")
"""Tasks end first; the scheduler hears of it and goes last."""


@click.command(short_help="Everything on this machine.")
@click.option("--host", help="Address of the web page; 0.0.0.0 is every interface. [setting: api.host]")
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), help="Port of the web page; 0 is any free one. [setting: api.port]"
)
@click.option("--examples/--no-examples", default=None, help="Show the shipped example DAGs.  [default: examples]")
@click.option("--executor", metavar="NAME", help="LocalExecutor or SequentialExecutor. [setting: core.executor]")
@click.option(
    "--install-extra", "extras", multiple=True, metavar="NAME", help="Install an extra once the page is up, e.g. plots."
)
@click.option("--plain", is_flag=True, help="A line for each run instead of the live table.")
def standalone(
    host: str | None, port: int | None, examples: bool | None, executor: str | None, extras: tuple[str, ...], plain: bool
) -> int:
    """Start scheduler, worker host, parser and web page; stay up until Ctrl-C or SIGTERM.

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
    settings.paths.prepare()
    lock = HomeLock(home_lock(settings))
    lock.take(1.0)  # a command may look for a moment whether we are there
    listener, address = reserve_address(settings)
    with listener:
        lock.note(address)
        environment["TRADEWIND__API__PORT"] = str(listener.getsockname()[1])
        _wait_for_writer(settings)
        return Standalone(settings, environment, address, commands, plain or not sys.stdout.isatty()).run()


def reserve_address(settings: Settings) -> tuple[socket.socket, str]:
    """Hold the web page's port for its process: (a bound socket that does not listen, "http://…").

    The API's own socket may bind the same port beside it; nobody else may, and a port that is taken is known before anything
    was started.

    Raises:
        ConfigError: the address cannot be had.
    """
    host, port = settings.api.host, settings.api.port
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, port))
    except OSError as error:
        holder.close()
        who = _listener_on(port)
        raise ConfigError(
            f"the web page cannot have {host} port {port} ({error.strerror}{who}). "
            "Choose another with --port (0 is any free one) or the setting api.port"
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return holder, f"http://{shown}:{holder.getsockname()[1]}"


def _listener_on(port: int) -> str:
    """Which process of ours listens there, in words; empty when that cannot be seen."""
    import psutil  # lazy door: only for the sentence about a port that is taken

    try:
        for one in psutil.net_connections("inet"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
                return f": process {one.pid}, {psutil.Process(one.pid).name()}, listens there"
    except (psutil.Error, OSError):
        pass
    return ""


def _wait_for_writer(settings: Settings) -> None:
    """Nobody may write the database when we start; a scheduler that is just ending gets the time to end."""
    lock = WriterLock(settings.paths.lock)
    try:
        lock.take()
    except StoreBusy:
        click.echo("Waiting for another process that still writes to this home folder ...", err=True)
        lock.take(PATIENCE_SECONDS)
    lock.release()


class _Voice:
    """A stream that the supervisor's own records go to: the screen."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def write(self, text: str) -> None:
        if text.strip():
            self._say(text.rstrip())

    def flush(self) -> None:
        """Each line is out already."""


class Standalone:
    """The supervisor, and what people see of it."""

    def __init__(
        self, settings: Settings, environment: dict[str, str], address: str, extras: list[tuple[str, list[str]]], plain: bool
    ) -> None:
        self.settings = settings
        self.address = address
        self.extras = extras
        self.failed = False
        self._ready = {"scheduler": False, "api": False}
        self._environment = environment
        self._children = {name: Child(name, environment) for name in STARTS}
        self.supervisor = Supervisor(
            SystemClock(), [self._children[name] for name in STOPS], self._gave_up, settings.core.stall_limit_us
        )
        self._children["host"].stop_patience += settings.runner.drain_timeout_us
        for name, child in self._children.items():
            pipe = TellPipe(self.supervisor.loop, lambda line, name=name: self._told(name, line))  # type: ignore[misc]
            child.environment = {**environment, TELL: str(pipe.write)}
            child.inherits = (pipe.write,)
            child.output = open_log(settings.home, name)
        self.follower = Follower(
            self.supervisor.loop, settings.paths.scheduler_socket, "standalone", self._scheduler_is_up, self._noticed
        )
        self.screen: Screen = Lines() if plain else Table(self.supervisor.loop, settings.paths.database)

    def run(self) -> int:
        """Until all children are stopped; the exit code."""
        observe_log.configure("standalone", "WARNING", cast(TextIO, _Voice(self._say)))
        self._greet()
        self.screen.start()
        self.follower.start()
        self._rotate_logs()
        try:
            self.supervisor.run([self._children[name] for name in STARTS], self._on_stop)
        finally:
            self.follower.stop()
            self._guarded(self.screen.stop)
        print("Stopped." if not self.failed else "Stopped, because a process cannot go on.", flush=True)
        return 1 if self.failed else 0

    def _rotate_logs(self) -> None:
        """While the children write into them."""
        for name in STARTS:
            try:
                rotate(log_file(self.settings.home, name))
            except OSError as error:
                self._say(f"The log of {name} cannot be rotated: {error.strerror}.")
        self.supervisor.loop.call_later(round(LOOK_SECONDS * SECOND), self._rotate_logs)

    # --- what people see ------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        import tradewind
        from tradewind.api.auth.users import ensure_admin  # lazy door: needed once in the life of a home folder

        settings = self.settings
        password = ensure_admin(settings.paths.passwords)
        say = self.screen_line
        say(f"Tradewind {tradewind.__version__}")
        say(f"  Web page    {self.address}")
        if password is not None:
            say(f"  Login       admin / {password}   (shown only now; its hash is in {settings.paths.passwords})")
        else:
            say(f"  Login       as before (users are in {settings.paths.passwords})")
        say(f"  DAG folder  {settings.paths.dags}" + (" and the shipped examples" if settings.core.load_examples else ""))
        say(f"  Home        {settings.home}")
        say(f"  Logs        {settings.paths.logs} (tasks), {logs_folder(settings.home)} (these processes)")
        say(f"  Isolation   {isolation()}")

    def screen_line(self, line: str) -> None:
        print(line, flush=True)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Showing may fail; looking after processes goes on."""
        try:
            work()
        except Exception as error:
            if not isinstance(self.screen, Lines):
                self.screen = Lines()
                self.screen.say(f"The live table failed ({type(error).__name__}: {error}); plain lines from here on.")

    def _say(self, line: str) -> None:
        self._guarded(lambda: self.screen.say(line))

    def _noticed(self, notice: Notice) -> None:
        self._guarded(lambda: self.screen.notice(notice))

    def _told(self, name: str, line: str) -> None:
        if not line.startswith(SIGN):
            self._say(line)
        elif line == ALIVE:
            self.supervisor.heard_of(self._children[name])
        elif line.startswith(f"{SIGN}address "):
            self._is_up("api")

    def _on_stop(self, at_once: bool) -> None:
        patience = self.settings.runner.drain_timeout
        if at_once or not patience:
            self._say("Stopping: running tasks are ended first ...")
        else:
            self._say(f"Stopping: running tasks get {patience:g} s to finish (Ctrl-C ends them now) ...")

    # --- life -------------------------------------------------------------------------------------------------------------

    def _scheduler_is_up(self) -> None:
        self._is_up("scheduler")
        self._guarded(self._catch_up)

    def _catch_up(self) -> None:
        """Show what the scheduler did before we were connected: a scheduler that ends takes its last notices with it."""
        open_runs = self.screen.open_runs()
        if isinstance(self.screen, Lines) and not open_runs:
            return  # no line is open, and this process does without the store's modules
        try:
            with reading(self.settings) as store:
                found = missed(store, open_runs)
        except TradewindError:
            return  # the database is busy: the next notices tell what goes on
        for notice in found:
            self.screen.notice(notice)

    def _is_up(self, name: str) -> None:
        if self._ready[name]:
            return
        self._ready[name] = True
        if all(self._ready.values()):
            self._say(f"Ready: {self.address}   (Ctrl-C stops everything)")
            if self.settings.core.load_examples:
                self._read_examples()
            self._install_next()

    def _read_examples(self) -> None:
        """Beside us, once: users' code never runs in this process."""

        def ended(code: int) -> None:
            if code and not self.supervisor.stopping:
                self._say(f"The shipped examples could not be read (see {log_file(self.settings.home, 'examples')}).")

        command = [sys.executable, "-m", "tradewind.cli.process", "examples", str(os.getpid())]
        self._errand("examples", command, ended)

    def _install_next(self) -> None:
        if not self.extras:
            return
        name, command = self.extras.pop(0)
        self._say(f"Installing the extra {name} in the background ...")

        def ended(code: int) -> None:
            if self.supervisor.stopping:
                return
            if code == 0:
                self._say(f"The extra {name} is installed.")
                if self.settings.core.load_examples:
                    self._read_examples()
            else:
                self._say(f"The extra {name} could not be installed (see {log_file(self.settings.home, 'install')}).")
            self._install_next()

        self._errand("install", command, ended)

    def _errand(self, name: str, command: list[str], ended: Callable[[int], None]) -> None:
        output = open_log(self.settings.home, name)
        try:
            self.supervisor.send_background_request(command, self._environment, output, ended)
        except OSError as error:
            self._say(f"{command[0]}: {error.strerror}.")
            ended(127)
        finally:
            os.close(output)

    def _gave_up(self, child: Child) -> None:
        self.failed = True
        self._say(f"The {child.name} cannot start; its log: {log_file(self.settings.home, child.name)}")
        self.supervisor.stop()
