"""`tradewind api-server`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.cli.reach import reach
from tradewind.settings import Settings


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
@without_num_runs
@background_options
def api_server(host: str | None, port: int | None, background: Background) -> None:
    """Run the web server until Ctrl-C or SIGTERM."""
    from tradewind.cli.accounts import create_first_admin
    from tradewind.cli.compose.api_server import run_api

    given = {"API__HOST": host, "API__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        password = create_first_admin(settings)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only once)")
        reachable = reach(settings.api.host, settings.api.base_url)
        if reachable:
            click.echo(reachable)
        run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    run_service("api", serve, background, {name: value for name, value in given.items() if value is not None})
