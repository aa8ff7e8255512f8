"""`tradewind gateway`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.settings import Settings


@click.command("gateway")
@click.option("-H", "--host", help="Address to listen on. [setting: gateway.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: gateway.port]")
@without_num_runs
@background_options
def gateway(host: str | None, port: int | None, background: Background) -> None:
    """Run a gateway until Ctrl-C or SIGTERM. Workers on other machines connect to it (see `tradewind worker`).

    It runs on the machine of the scheduler, with the same home folder. `standalone` and `scheduler` start one if the setting
    gateway.enabled is true.
    """
    from tradewind.cli.compose.gateway import run_gateway

    given = {"GATEWAY__HOST": host, "GATEWAY__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        run_gateway(settings, lambda address: click.echo(f"Ready: {address}"))

    run_service("gateway", serve, background, {name: value for name, value in given.items() if value is not None})
