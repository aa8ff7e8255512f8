"""Single processes in the foreground, for whoever has a supervisor of their own (systemd, a container)."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from tradewind.settings import Settings, load


def _run(component: str, work: Callable[[Settings], None], settings: Settings | None = None) -> None:
    from tradewind.cli import compose

    os.umask(0o077)
    settings = settings if settings is not None else load()
    compose.start_log(settings, component)
    settings.paths.prepare()
    work(settings)


@click.command()
@click.option("--executor", metavar="NAME", help="LocalExecutor or SequentialExecutor. [setting: core.executor]")
def scheduler(executor: str | None) -> None:
    """The scheduler, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    environment = dict(os.environ)
    if executor is not None:
        environment["TRADEWIND__CORE__EXECUTOR"] = executor
    _run("scheduler", compose.run_scheduler, load(environment))


@click.command("worker-host")
def worker_host() -> None:
    """The worker host, which runs the tasks, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    _run("host", compose.run_host)


@click.command("dag-processor")
def dag_processor() -> None:
    """The parser of DAG files, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    _run("parser", compose.run_parser)


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
def api_server(host: str | None, port: int | None) -> None:
    """The web server, until Ctrl-C or SIGTERM."""
    from tradewind.api.auth.users import ensure_admin
    from tradewind.cli import compose

    environment = dict(os.environ)
    if host is not None:
        environment["TRADEWIND__API__HOST"] = host
    if port is not None:
        environment["TRADEWIND__API__PORT"] = str(port)

    def serve(settings: Settings) -> None:
        password = ensure_admin(settings.paths.passwords)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only now)")
        compose.run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    _run("api", serve, load(environment))
