"""`tradewind cheat-sheet`: all commands on one page."""

from __future__ import annotations

import click


@click.command("cheat-sheet")
def cheat_sheet() -> None:
    """List all commands on one page."""
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
