"""Single processes in the foreground, for whoever has a supervisor of their own (systemd, a container)."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from tradewind.cli.daemon import Background, background_options, run_as_asked, without_rounds
from tradewind.settings import Settings, load


def _run(
    component: str,
    work: Callable[[Settings], None],
    how: Background,
    subdir: str | None,
    changes: dict[str, str] | None = None,
) -> None:
    """Do a process's work as it was asked for; `changes` are settings that the command line gave."""
    from tradewind.cli import compose

    given = {f"TRADEWIND__{name}": value for name, value in (changes or {}).items()}
    if subdir is not None:
        given["TRADEWIND__CORE__DAGS_FOLDER"] = os.path.abspath(subdir)
    settings = load({**os.environ, **given})

    def start() -> None:
        os.umask(0o077)
        compose.start_log(settings, component)
        settings.paths.prepare()
        work(settings)

    run_as_asked(component, how, start)


@click.command()
@click.option("--executor", metavar="NAME", help="LocalExecutor or SequentialExecutor. [setting: core.executor]")
@click.option("-n", "--num-runs", type=int, default=-1, show_default=True, help="End in order after so many turns; -1: never.")
@background_options
def scheduler(executor: str | None, num_runs: int, how: Background, subdir: str | None) -> None:
    """The scheduler, until Ctrl-C or SIGTERM. SIGQUIT makes it write into its log what each of its threads is doing.

    A turn is one transaction in which it writes what it decided: runs made and started, task instances scheduled, handed over and
    ended, all that had happened by then. While nothing happens no turn is taken, and what commands write is none.
    """
    from tradewind.cli import compose

    if num_runs < -1 or num_runs == 0:
        raise click.BadParameter(f"at least one turn, or -1 for no end, not {num_runs}", param_hint="--num-runs")
    turns = num_runs if num_runs > 0 else None

    def work(settings: Settings) -> None:
        compose.run_scheduler(settings, turns=turns)

    _run("scheduler", work, how, subdir, {"CORE__EXECUTOR": executor} if executor is not None else {})


@click.command("worker-host")
@without_rounds
@background_options
def worker_host(how: Background, subdir: str | None) -> None:
    """The worker host, which runs the tasks, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    _run("host", compose.run_host, how, subdir)


@click.command("dag-processor")
@click.option("-B", "--bundle-name", hidden=True)
@without_rounds
@background_options
def dag_processor(bundle_name: str | None, how: Background, subdir: str | None) -> None:
    """The parser of DAG files, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    if bundle_name not in (None, compose.DAGS_BUNDLE):
        raise click.UsageError(f"there is one folder to be watched, {compose.DAGS_BUNDLE}; leave --bundle-name out")
    _run("parser", compose.run_parser, how, subdir)


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
@without_rounds
@background_options
def api_server(host: str | None, port: int | None, how: Background, subdir: str | None) -> None:
    """The web server, until Ctrl-C or SIGTERM."""
    from tradewind.api.auth.users import ensure_admin
    from tradewind.cli import compose

    given = {"API__HOST": host, "API__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        password = ensure_admin(settings.paths.passwords)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only now)")
        compose.run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    _run("api", serve, how, subdir, {name: value for name, value in given.items() if value is not None})
