"""`airflow.cli.cli_config`: classes that describe commands of provider packages. Tradewind's command line does not show them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "ActionCommand",
    "AirflowHelpFormatter",
    "Arg",
    "CLICommand",
    "DefaultHelpParser",
    "GroupCommand",
    "lazy_load_command",
    "positive_int",
]


class Arg:
    """An argument of a command: its flags, and keyword arguments for `argparse`."""

    def __init__(self, flags: Iterable[str] = (), **kwargs: Any) -> None:
        self.flags = tuple(flags)
        self.kwargs = kwargs

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        """Add the argument to a parser."""
        parser.add_argument(*self.flags, **{name: value for name, value in self.kwargs.items() if value is not None})


class ActionCommand(NamedTuple):
    """A command without subcommands."""

    name: str
    help: str
    func: Callable[..., Any]
    args: Iterable[Arg]
    description: str | None = None
    epilog: str | None = None
    hide: bool = False


class GroupCommand(NamedTuple):
    """A command with subcommands."""

    name: str
    help: str
    subcommands: Iterable[Any]
    description: str | None = None
    epilog: str | None = None


CLICommand = ActionCommand | GroupCommand


class DefaultHelpParser(argparse.ArgumentParser):
    """The argument parser of commands."""


class AirflowHelpFormatter(argparse.HelpFormatter):
    """The formatter of the help of commands."""


def lazy_load_command(import_path: str) -> Callable[..., Any]:
    """A function that imports another one when it is called."""
    module, _, name = import_path.rpartition(".")

    def command(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    command.__name__ = name
    return command


def positive_int(*, allow_zero: bool) -> Callable[[str], int]:
    """A type of argument: a positive integer; zero only with `allow_zero`."""

    def read(value: str) -> int:
        number = int(value)
        if number < 0 or (number == 0 and not allow_zero):
            raise argparse.ArgumentTypeError(f"invalid positive int value: {value!r}")
        return number

    return read


def __getattr__(name: str) -> Arg:
    """A common argument, `ARG_VERBOSE`.

    Raises:
        AttributeError: the name does not begin with `ARG_`.
    """
    if not name.startswith("ARG_"):
        raise AttributeError(name)
    return Arg((f"--{name.removeprefix('ARG_').lower().replace('_', '-')}",))
