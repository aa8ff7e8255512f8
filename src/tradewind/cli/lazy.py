"""Groups whose commands are imported when they are used: `--help` shows all of them and imports none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click

from tradewind.model.errors import did_you_mean


class Lazy(NamedTuple):
    """A command elsewhere: `module:attribute` below `tradewind.cli`, its line in the list, its heading there."""

    target: str
    help: str
    heading: str = "Commands"


class HelpfulGroup(click.Group):
    """A group that names the nearest command when one is misspelt."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None and not name.startswith("-"):
            names = self.list_commands(ctx)
            hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
            raise click.UsageError(f"{ctx.command_path} has no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """See the module."""

    lazy: Mapping[str, Lazy] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(f"tradewind.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        headings: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.lazy.items():
            headings.setdefault(entry.heading, []).append((name, entry.help))
        width = max(len(name) for name in self.lazy) + 2
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])
