"""`tradewind completion`: the completion script for a shell."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for your shell. For bash: eval "$(tradewind completion bash)"."""
    from click.shell_completion import get_completion_class

    from tradewind.cli.main import COMPLETE, cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"completion is not supported for {shell}")
    for name in ("tradewind", "tw"):
        click.echo(kind(cli, {}, name, COMPLETE).source())
