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


def _db_arguments() -> dict[str, Arg]:
    """The arguments of commands that migrate a database."""
    found = {}
    for direction, what in (("UPGRADE", "upgrade to"), ("DOWNGRADE", "downgrade to")):
        found[f"ARG_DB_REVISION__{direction}"] = Arg(("-r", "--to-revision"), help=f"the revision to {what}")
        found[f"ARG_DB_VERSION__{direction}"] = Arg(("-n", "--to-version"), help=f"the release to {what}")
    return found


_ARGUMENTS: dict[str, Arg] = {
    "ARG_BUNDLE_NAME": Arg(("-B", "--bundle-name"), action="append", help="the name of a DAG bundle; may be given again"),
    "ARG_DAEMON": Arg(("-D", "--daemon"), action="store_true", help="run in the background"),
    "ARG_DAG_ID": Arg(("dag_id",), help="the id of the DAG"),
    "ARG_DB_FROM_REVISION": Arg(("--from-revision",), help="the revision from which SQL is printed"),
    "ARG_DB_FROM_VERSION": Arg(("--from-version",), help="the release from which SQL is printed"),
    "ARG_DB_SKIP_INIT": Arg(("-s", "--skip-init"), action="store_true", help="do not create a database"),
    "ARG_DB_SQL_ONLY": Arg(("-s", "--show-sql-only"), action="store_true", help="only print the SQL"),
    "ARG_DB_USE_MIGRATION_FILES": Arg(("-m", "--use-migration-files"), action="store_true", help="run all migrations"),
    "ARG_EXECUTION_DATE": Arg(("execution_date",), help="the logical date"),
    "ARG_LOGICAL_DATE": Arg(("logical_date",), help="the logical date"),
    "ARG_LOG_FILE": Arg(("-l", "--log-file"), help="the file of the log"),
    "ARG_OUTPUT": Arg(("-o", "--output"), choices=("table", "json", "yaml", "plain"), default="table", help="output format"),
    "ARG_OUTPUT_PATH": Arg(("-o", "--output-path"), default="[CWD]", help="the folder of generated files"),
    "ARG_PID": Arg(("--pid",), nargs="?", help="the file with the process id"),
    "ARG_SKIP_SERVE_LOGS": Arg(("-s", "--skip-serve-logs"), action="store_true", help="do not serve logs"),
    "ARG_STDERR": Arg(("--stderr",), help="the file of stderr"),
    "ARG_STDOUT": Arg(("--stdout",), help="the file of stdout"),
    "ARG_SUBDIR": Arg(("-S", "--subdir"), help="the file or folder of the DAG"),
    "ARG_VERBOSE": Arg(("-v", "--verbose"), action="store_true", help="print more"),
    "ARG_YES": Arg(("-y", "--yes"), action="store_true", help="do not ask"),
    **_db_arguments(),
}
"""Airflow's common arguments, which packages use in their commands."""


def __getattr__(name: str) -> Arg:
    """A common argument, `ARG_VERBOSE`. One that is not in the table is an option of its name.

    Raises:
        AttributeError: the name does not begin with `ARG_`.
    """
    if not name.startswith("ARG_"):
        raise AttributeError(name)
    return _ARGUMENTS.get(name) or Arg((f"--{name.removeprefix('ARG_').lower().replace('_', '-')}",))
