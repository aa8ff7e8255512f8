"""Command groups that import a command only when it is used: `--help` lists all commands and imports none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click

from tradewind.model.errors import did_you_mean


class LazyCommand(NamedTuple):
    """A command in another module: `module:attribute` below `cli.commands`, its help line, and its heading in the list."""

    target: str
    help: str
    heading: str = "Commands"
    hidden: bool = False
    """For an old name, which works but is not listed."""


def add_verbose_option(command: click.Command) -> None:
    """Add Airflow's `-v/--verbose` to a command: an error is shown with its traceback, as with `--debug`."""
    taken = {name for parameter in command.params for name in parameter.opts}
    names = [name for name in ("-v", "--verbose") if name not in taken]
    if "--verbose" in names:
        command.params.append(click.Option(names, is_flag=True, hidden=True, expose_value=False))


def add_folder_options(command: click.Command) -> None:
    """Add Airflow's options for the DAG folder to commands with a DAG id. They only print that they have no effect."""

    def print_no_effect(context: click.Context, parameter: click.Parameter, given: str | None) -> None:
        if given is not None and not context.resilient_parsing:
            name = parameter.opts[0]
            click.echo(f"{name} has no effect: the parser reads the DAG files, and commands read the database.", err=True)

    if not any(isinstance(parameter, click.Argument) and parameter.name == "dag_id" for parameter in command.params):
        return
    taken = {name for parameter in command.params for name in parameter.opts}
    for names in (["-S", "--subdir"], ["-B", "--bundle-name"]):
        free = [name for name in names if name not in taken]
        if names[1] in free:
            command.params.append(click.Option(free, hidden=True, expose_value=False, callback=print_no_effect))


class CommandGroup(click.Group):
    """A command group that suggests the nearest command name after a typo."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None and not isinstance(command, click.Group):
            add_verbose_option(command)
            add_folder_options(command)
        if command is None and not name.startswith("-"):
            names = self.list_commands(ctx)
            hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
            raise click.UsageError(f"{ctx.command_path} has no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """A command group that imports its commands when they are used."""

    lazy: Mapping[str, LazyCommand] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*(name for name, entry in self.lazy.items() if not entry.hidden), *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(f"tradewind.cli.commands.{module}"), attribute)
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
