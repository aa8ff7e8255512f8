"""`tradewind version`."""

from __future__ import annotations

import click


@click.command()
def version() -> None:
    """Show the version."""
    import tradewind

    click.echo(tradewind.__version__)
