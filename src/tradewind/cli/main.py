"""`tradewind`, also called `tw`: the command line's root.

Each group of commands is a file of its own, imported when it is used. Results go to stdout, everything else to stderr. An
error is one line, and the exit code says which kind: 1 it could not be done, 2 it was not asked rightly, 130 it was interrupted.
`--debug` (or TRADEWIND_DEBUG=1, or Airflow's `-v` after a command) shows where an error comes from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tradewind.cli.lazy import Lazy, LazyGroup
from tradewind.model.errors import TradewindError

COMPLETE = "_TRADEWIND_COMPLETE"
"""The environment variable by which a shell asks for completions; the same under both names of the command."""

_RUN, _LOOK, _HOUSE = "Run it", "Work with it", "Look after it"

COMMANDS = {
    "standalone": Lazy("standalone:standalone", "Everything on this machine: scheduler, worker, parser, web page.", _RUN),
    "scheduler": Lazy("services:scheduler", "Only the scheduler, in the foreground.", _RUN),
    "worker-host": Lazy("services:worker_host", "Only the worker host, in the foreground.", _RUN),
    "dag-processor": Lazy("services:dag_processor", "Only the parser of DAG files, in the foreground.", _RUN),
    "api-server": Lazy("services:api_server", "Only the web server, in the foreground.", _RUN),
    "dags": Lazy("dags:dags", "List, show, trigger, pause and test DAGs.", _LOOK),
    "tasks": Lazy("tasks:tasks", "List tasks, see their states and logs, clear them.", _LOOK),
    "assets": Lazy("assets:assets", "What tasks produce: list it, say that it was updated, have it made.", _LOOK),
    "backfill": Lazy("backfill:backfill", "Runs for a span of the past.", _LOOK),
    "xcom": Lazy("xcom:xcom", "What tasks have pushed for others.", _LOOK),
    "why": Lazy("why:why", "Say why a task, or a run, is not running.", _LOOK),
    "waits": Lazy("waits:waits", "What waits without a slot: for whom, since when, and what can never come.", _LOOK),
    "callbacks": Lazy("callbacks:callbacks", "Callbacks and mails that wait, and those that failed.", _LOOK),
    "pools": Lazy("pools:pools", "Limits shared by tasks.", _LOOK),
    "variables": Lazy("variables:variables", "Values that tasks read by name.", _LOOK),
    "connections": Lazy("connections:connections", "Addresses and credentials that tasks use.", _LOOK),
    "db": Lazy("db:db", "The database: bring it up to date, check it.", _HOUSE),
    "rotate-fernet-key": Lazy("db_upkeep:rotate_fernet_key", "Encrypt all secrets with the newest key.", _HOUSE),
    "users": Lazy("users:users", "Who may log in.", _HOUSE),
    "roles": Lazy("users:roles", "What users may.", _HOUSE),
    "config": Lazy("config:config", "Settings: what is in force, and where it comes from.", _HOUSE),
    "jobs": Lazy("jobs:jobs", "Which processes live.", _HOUSE),
    "plugins": Lazy("plugins:plugins", "What plugins add, and which are broken.", _HOUSE),
    "providers": Lazy("providers:providers", "Airflow's provider packages beside us.", _HOUSE),
    "info": Lazy("info:info", "Paths, versions, and what is running.", _HOUSE),
    "version": Lazy("about:version", "The release.", _HOUSE),
    "cheat-sheet": Lazy("about:cheat_sheet", "All commands on one page.", _HOUSE),
    "completion": Lazy("about:completion", "Completion of commands for your shell.", _HOUSE),
}


class Root(LazyGroup):
    """Commands that Airflow has and we have not, or under another name, are answered with a sentence."""

    lazy = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            from tradewind.cli import airflow_only_commands  # lazy door: only for names that are not ours

            if cmd_name in airflow_only_commands.SENTENCES:
                return airflow_only_commands.absent(cmd_name)
            if cmd_name in airflow_only_commands.OLD_NAMES and not ctx.resilient_parsing:
                raise click.UsageError(f"{cmd_name!r} is now: tradewind {airflow_only_commands.OLD_NAMES[cmd_name]}", ctx)
        return found


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start here: tradewind standalone",
)
@click.option("--debug", is_flag=True, help="Show where errors come from.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Tradewind runs workflows: DAG files in, finished runs out."""
    context.meta["tradewind.debug"] = debug


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. See the module."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words[:1] or os.environ.get("TRADEWIND_DEBUG", "") not in ("", "0")
    debug = debug or any(word in ("-v", "--verbose") for word in words[2:])
    try:
        result = cli.main(args=words, prog_name="tradewind", complete_var=COMPLETE, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except BrokenPipeError:  # `tradewind … | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except click.Abort as abort:
        if isinstance(abort.__cause__, KeyboardInterrupt):
            click.echo("tradewind: interrupted", err=True)
            return 130
        click.echo("tradewind: cancelled; nothing was changed (-y answers yes)", err=True)
        return 1
    except Exception as error:
        if debug and not isinstance(error, click.UsageError):
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    if isinstance(error, click.UsageError):
        where = f" See: {error.ctx.command_path} --help" if error.ctx is not None else ""
        click.echo(f"tradewind: {error.format_message()}{where}", err=True)
        return 2
    if isinstance(error, click.ClickException):
        click.echo(f"tradewind: {error.format_message()}", err=True)
    elif isinstance(error, TradewindError):
        click.echo(f"tradewind: {error}", err=True)
    elif isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        click.echo(f"tradewind: {name}{error.strerror}", err=True)
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        click.echo(f"tradewind: something unexpected happened ({text}). Run it again with --debug to see where", err=True)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
