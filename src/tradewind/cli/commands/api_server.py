"""`tradewind api-server`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.settings import Settings


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
@without_num_runs
@background_options
def api_server(host: str | None, port: int | None, background: Background) -> None:
    """Run the web server until Ctrl-C or SIGTERM."""
    from tradewind.api.auth.users import ensure_admin
    from tradewind.cli import compose

    given = {"API__HOST": host, "API__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        password = ensure_admin(settings.paths.passwords)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only once)")
        compose.run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    run_service("api", serve, background, {name: value for name, value in given.items() if value is not None})
