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
    hidden: bool = False
    """An older spelling: works, and is not listed."""


def take_verbose(command: click.Command) -> None:
    """Let a command take Airflow's `-v/--verbose`: what goes wrong is shown with the place it comes from, as with `--debug`."""
    taken = {name for parameter in command.params for name in parameter.opts}
    names = [name for name in ("-v", "--verbose") if name not in taken]
    if "--verbose" in names:
        command.params.append(click.Option(names, is_flag=True, hidden=True, expose_value=False))


def take_folder(command: click.Command) -> None:
    """Let commands about a DAG take Airflow's options that name its folder, and say that they change nothing here."""

    def say(context: click.Context, parameter: click.Parameter, given: str | None) -> None:
        if given is not None and not context.resilient_parsing:
            name = parameter.opts[0]
            click.echo(f"{name} changes nothing: DAG files are read by the parser, commands ask the database.", err=True)

    if not any(isinstance(parameter, click.Argument) and parameter.name == "dag_id" for parameter in command.params):
        return
    taken = {name for parameter in command.params for name in parameter.opts}
    for names in (["-S", "--subdir"], ["-B", "--bundle-name"]):
        free = [name for name in names if name not in taken]
        if names[1] in free:
            command.params.append(click.Option(free, hidden=True, expose_value=False, callback=say))


class HelpfulGroup(click.Group):
    """A group that names the nearest command when one is misspelt."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None and not isinstance(command, click.Group):
            take_verbose(command)
            take_folder(command)
        if command is None and not name.startswith("-"):
            names = self.list_commands(ctx)
            hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
            raise click.UsageError(f"{ctx.command_path} has no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """See the module."""

    lazy: Mapping[str, Lazy] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*(name for name, entry in self.lazy.items() if not entry.hidden), *sorted(self.commands)]

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
            if not entry.hidden:
                headings.setdefault(entry.heading, []).append((name, entry.help))
        for name in sorted(self.commands):
            if not self.commands[name].hidden:
                headings.setdefault("Commands", []).append((name, self.commands[name].get_short_help_str(70)))
        for rows in headings.values() if self.commands else ():
            rows.sort()
        width = max(len(name) for rows in headings.values() for name, _ in rows) + 2
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])
