"""The release, all commands on one page, and completion for shells."""

from __future__ import annotations

import click


@click.command()
def version() -> None:
    """The release."""
    import tradewind

    click.echo(tradewind.__version__)


@click.command("cheat-sheet")
def cheat_sheet() -> None:
    """All commands on one page."""
    from tradewind.cli.main import cli

    with click.Context(cli, info_name="tradewind") as root:
        for name in cli.list_commands(root):
            command = cli.get_command(root, name)
            if isinstance(command, click.Group):
                with click.Context(command, info_name=name, parent=root) as inner:
                    found = [(f"{name} {one}", command.get_command(inner, one)) for one in sorted(command.list_commands(inner))]
                click.echo()
                for path, one in found:
                    _line(path, one)
            else:
                _line(name, command)


def _line(path: str, command: click.Command | None) -> None:
    if command is not None:
        click.echo(f"tradewind {path:<28} {command.get_short_help_str(90)}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Completion for your shell; for bash: eval "$(tradewind completion bash)"."""
    from click.shell_completion import get_completion_class

    from tradewind.cli.main import COMPLETE, cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"there is no completion for {shell}")
    for name in ("tradewind", "tw"):
        click.echo(kind(cli, {}, name, COMPLETE).source())
