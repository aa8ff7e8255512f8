"""`airflow.cli.cli_parser`: the argument parser of the commands that installed provider packages describe.

Tradewind's own command line (`tradewind airflow …`) does not use it.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

from tradewind.airflow.compat.cli_config import AirflowHelpFormatter, CLICommand, DefaultHelpParser, GroupCommand
from tradewind.airflow.compat.module_loading import import_string
from tradewind.provider_packages import offers

__all__ = ["_add_command", "get_parser"]


@functools.cache
def get_parser(dag_parser: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands of installed packages.

    Args:
        dag_parser: ignored; Airflow's parser of commands that need a DAG.
    """
    del dag_parser
    parser = DefaultHelpParser(prog="airflow", formatter_class=AirflowHelpFormatter)
    groups = parser.add_subparsers(dest="subcommand", metavar="GROUP_OR_COMMAND")
    groups.required = True
    for path in offers.cli_commands():
        for command in import_string(path)():
            _add_command(groups, command)
    return parser


def _add_command(groups: Any, command: CLICommand) -> None:
    """Add a command, with its subcommands or its arguments."""
    made = groups.add_parser(
        command.name,
        help=command.help,
        description=command.description or command.help,
        epilog=command.epilog,
        formatter_class=AirflowHelpFormatter,
    )
    if isinstance(command, GroupCommand):
        inner = made.add_subparsers(dest="subcommand", metavar="COMMAND")
        inner.required = True
        for one in command.subcommands:
            _add_command(inner, one)
        return
    for argument in command.args:
        argument.add_to_parser(made)
    made.set_defaults(func=command.func)
