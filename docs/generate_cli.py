"""Writes `reference/cli.md` from the commands, so that no command and no option is missing.

python docs/generate_cli.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tradewind.cli.main import COMMANDS, cli

PAGE = Path(__file__).parent / "reference" / "cli.md"

INTRODUCTION = """\
# Commands

<!-- Written by docs/generate_cli.py from the commands of tradewind/cli. Edit those, then run `make docs`. -->

`tradewind`, or `tw` for short. Results go to stdout, all other text to stderr. `-o json` (or yaml, plain, table) chooses the output
format; fields have Airflow's names. An error is one line; `--debug` before a command (or `TRADEWIND_DEBUG=1`) shows a traceback.
A command that names an unknown DAG while DAG files are still being read waits for its file, for at most 30 seconds; with
`--no-wait` before the command it fails at once.
Exit codes: 0 success, 1 the command failed, 2 wrong usage, 130 interrupted.

The running scheduler executes commands that change something, and answers after its commit. If no scheduler is running, the command
acquires the writer lock and makes the change itself.
"""


def shown_help(parameter: click.Option) -> str:
    """The help text of an option on one line, with its choices and default."""
    text = " ".join((parameter.help or "").split())
    if isinstance(parameter.type, click.Choice) and parameter.type.choices:
        text += " One of " + ", ".join(f"`{choice}`" for choice in parameter.type.choices) + "."
    default = parameter.default
    if parameter.show_default and isinstance(default, str | int | float) and not isinstance(default, bool):
        text += f" Default: `{default}`."
    return text.replace("|", "\\|").replace("<", "&lt;")


def about(command: click.Command, words: list[str]) -> Iterator[str]:
    """The lines about one command: usage, help text, options."""
    context = click.Context(command, info_name=" ".join(words))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"### `{' '.join(words)}`"
    yield ""
    yield f"    {usage}"
    yield ""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", (command.help or command.short_help or "").replace("\b", "").strip())
    yield text
    yield ""
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if options:
        yield "| option | meaning |"
        yield "|---|---|"
        for option in options:
            names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
            yield f"| {names} | {shown_help(option)} |"
        yield ""


def commands(command: click.Command, words: list[str]) -> Iterator[tuple[click.Command, list[str]]]:
    """Every command below a group with its words, in the order of `--help`."""
    if not isinstance(command, click.Group):
        yield command, words
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from commands(inner, [*words, name])


def page() -> str:
    """The text of the page."""
    lines = [INTRODUCTION]
    heading = ""
    context = click.Context(cli)
    for name, entry in COMMANDS.items():
        if entry.heading != heading:
            heading = entry.heading
            lines += [f"## {heading}", ""]
        found = cli.get_command(context, name)
        assert found is not None
        for command, words in commands(found, ["tradewind", name]):
            lines += about(command, words)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
