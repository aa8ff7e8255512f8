"""`tradewind celery`: workers of the CeleryExecutor."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.cli.worker_hosts import check_name, may_live
from tradewind.model.counts import counted
from tradewind.model.errors import ConfigError, NotFound
from tradewind.settings import Settings, load
from tradewind.wire.worker_names import remote_worker

DRAIN = "TRADEWIND__RUNNER__DRAIN_TIMEOUT"
LONGEST_DRAIN = 30 * 86_400
"""Seconds: a warm shutdown of Celery waits until all tasks have ended."""


@click.group("celery", cls=CommandGroup)
def celery() -> None:
    """Run and stop workers of the CeleryExecutor."""


class Autoscale(click.ParamType[tuple[int, int]]):
    """`MAX,MIN`, as Celery writes it."""

    name = "max,min"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        try:
            highest, lowest = (int(part) for part in value.split(","))
        except ValueError:
            highest, lowest = 0, 0
        if not 0 < lowest <= highest:
            self.fail(f"{value!r} is not MAX,MIN with 0 < MIN <= MAX, such as 16,4", param, ctx)
        return highest, lowest


@celery.command("worker")
@click.option("-q", "--queues", default="default", show_default=True, help="Queues to consume, separated by commas.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 10_000), help="Tasks at a time. [setting: celery.worker_concurrency]"
)
@click.option("-a", "--autoscale", type=Autoscale(), metavar="MAX,MIN", help="Let Celery change the number of tasks at a time.")
@click.option("--name", "-H", "--celery-hostname", "name", help="Name of the worker, unique in this home folder.")
@click.option(
    "--gateway", metavar="URL", help="On another machine than the scheduler: address of a gateway.  [setting: worker.gateway]"
)
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False), help="File with the token for the gateway.")
@click.option("--without-gossip", is_flag=True, help="Do not follow the events of other workers.")
@click.option("--without-mingle", is_flag=True, help="Do not ask other workers at the start.")
@without_num_runs
@background_options
def worker(
    queues: str,
    concurrency: int | None,
    autoscale: tuple[int, int] | None,
    name: str | None,
    gateway: str | None,
    token_file: str | None,
    without_gossip: bool,
    without_mingle: bool,
    background: Background,
) -> None:
    """Run a Celery worker until Ctrl-C or SIGTERM. The worker takes tasks from the broker and runs them on this machine. It
    uses the home folder of the scheduler on the same machine. The only setting that it needs is the broker
    (TRADEWIND__CELERY__BROKER_URL). SIGTERM: running tasks end first (`tradewind celery stop` sends it). Ctrl-C or SIGQUIT:
    they are stopped at once.

    With --gateway the worker may be on another machine: it takes messages from the broker, and everything else goes through the
    gateway, as with `tradewind worker`. Its name is that of the token.
    """
    served = tuple(one.strip() for one in queues.split(",") if one.strip())
    if not served:
        raise click.UsageError("--queues: name at least one queue")

    def run(settings: Settings) -> None:
        _run_worker(settings, served, concurrency, autoscale, name, without_gossip, without_mingle)

    given = {"WORKER__GATEWAY": gateway, "WORKER__TOKEN": None if token_file is None else _read(token_file)}
    service = background._replace(pid=background.pid or _pid_file(load()))
    run_service("celery-worker", run, service, {key: value for key, value in given.items() if value is not None})


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").strip()


def _pid_file(settings: Settings) -> str:
    return os.path.join(settings.home, "tradewind-celery-worker.pid")


def _run_worker(
    settings: Settings,
    queues: tuple[str, ...],
    concurrency: int | None,
    autoscale: tuple[int, int] | None,
    name: str | None,
    without_gossip: bool,
    without_mingle: bool,
) -> None:
    broker = broker_url(settings)
    from celery.signals import setup_logging
    from celery.utils.nodenames import host_format

    from tradewind.worker.celery_pool import HostCommand, HostPool, make_app

    setup_logging.connect(_keep_logging)
    slots = autoscale[0] if autoscale else concurrency or settings.celery.worker_concurrency
    own = _own_name(settings, name)
    socket_path = settings.paths.socket(f"c{hashlib.sha256(own.encode()).hexdigest()[:12]}.sock")
    environment = dict(os.environ)
    if settings.explain("runner.drain_timeout").source == "default":
        environment[DRAIN] = str(LONGEST_DRAIN)
    words = [sys.executable, "-m", "tradewind.cli.celery_host", own, str(slots), socket_path, ",".join(queues)]
    HostPool.command = HostCommand(words, environment, socket_path)
    app = make_app(broker, queues)
    controller = app.Worker(
        hostname=host_format(f"{own.partition('@')[0]}@%h"),
        concurrency=slots,
        autoscale=f"{autoscale[0]},{autoscale[1]}" if autoscale else None,
        loglevel=settings.logging.level,
        without_gossip=without_gossip,
        without_mingle=without_mingle,
        quiet=True,
    )
    click.echo(f"Celery worker {own}: queues {', '.join(queues)}, {counted(slots, 'task')} at a time")
    controller.start()
    if controller.exitcode:
        raise SystemExit(controller.exitcode)


def _keep_logging(**given: object) -> None:
    """Keep Celery from setting up logging: this process has set it up."""


def _own_name(settings: Settings, name: str | None) -> str:
    """The name of the worker: on another machine the name in its token, otherwise the given name, or the first free name.

    Raises:
        ConfigError: a name was given for a worker with a token, or it is not valid.
    """
    if not settings.worker.gateway:
        return check_name(name.rpartition("@")[0] or name) if name else _free_name(settings)
    from tradewind.cli.compose.worker_host import name_in_token

    if name:
        raise ConfigError(f"--name {name}: a worker with a gateway has the name of its token; leave the option out")
    return remote_worker(name_in_token(settings.worker.token))


def _free_name(settings: Settings) -> str:
    """The first name of celery, celery2, … that no running worker has."""
    number = 1
    while may_live(settings, name := "celery" if number == 1 else f"celery{number}"):
        number += 1
    return name


def broker_url(settings: Settings) -> str:
    """The URL of the broker.

    Raises:
        ConfigError: it is not set, or Celery is not installed.
    """
    from tradewind.cli.compose.scheduler import require_celery

    require_celery()
    broker: str | None = settings.celery.broker_url
    if not broker:
        raise ConfigError("the broker is missing; set TRADEWIND__CELERY__BROKER_URL, for example redis://localhost:6379/0")
    return broker


@celery.command("stop")
@click.option("--pid", type=click.Path(dir_okay=False), help="The pid file of the worker.  [default: as of `celery worker`]")
def stop(pid: str | None) -> None:
    """Stop the Celery worker of this machine: it takes no new tasks, and ends when its running tasks have ended."""
    path = pid or _pid_file(load())
    try:
        with open(path, encoding="utf-8") as file:
            number = int(file.read().strip())
        os.kill(number, signal.SIGTERM)
    except (FileNotFoundError, ValueError):
        raise NotFound(f"there is no Celery worker: no process id in {path}") from None
    except ProcessLookupError:
        raise NotFound(f"there is no Celery worker: process {number} of {path} does not exist") from None
    click.echo(f"Process {number} was asked to stop; it ends when its running tasks have ended.")


@celery.command("flower", context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def flower(options: tuple[str, ...]) -> None:
    """Run flower, a web page about Celery workers, if it is installed. OPTIONS are those of flower, such as --port=5555."""
    import importlib.util

    broker = broker_url(load())
    if importlib.util.find_spec("flower") is None:
        raise ConfigError("flower is not installed. Install it: pip install flower")
    os.environ["CELERY_BROKER_URL"] = (
        broker  # a password is not put on the command line, where every user of the machine could read it
    )
    os.execv(sys.executable, [sys.executable, "-m", "celery", "flower", *options])
