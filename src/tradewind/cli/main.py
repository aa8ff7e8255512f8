"""`tradewind`, also called `tw`: the root of the command line.

Each command group has its own file, which is imported when the group is used. Results go to stdout, all other text to stderr. An
error is one line. Exit codes: 0 success, 1 the command failed, 2 wrong usage, 130 interrupted. `--debug` (or TRADEWIND_DEBUG=1, or
Airflow's `-v` after a command) shows the traceback of an error.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence

import click

from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound, NotReadYet, StoreUnreachable, TradewindError, did_you_mean

WAIT_SECONDS = 30
"""How long a command waits for a DAG while DAG files are being read."""
POLL_SECONDS = 0.3
pause = time.sleep
"""Tests replace it."""
COMPLETE = "_TRADEWIND_COMPLETE"
"""Environment variable with which a shell requests completions; the same for `tradewind` and `tw`."""

_SERVICES, _WORKFLOWS, _ADMINISTRATION = "Services", "Workflows", "Administration"

COMMANDS = {
    "standalone": LazyCommand(
        "standalone:standalone", "Run scheduler, worker host, parser and web server on this machine.", _SERVICES
    ),
    "scheduler": LazyCommand("scheduler:scheduler", "Run the scheduler, with a parser and a worker host.", _SERVICES),
    "worker-host": LazyCommand("worker_host:worker_host", "Run a worker host, which runs the tasks.", _SERVICES),
    "celery": LazyCommand("celery:celery", "Run and stop workers of the CeleryExecutor.", _SERVICES),
    "gateway": LazyCommand("gateway:gateway", "Run a gateway, through which workers on other machines connect.", _SERVICES),
    "worker": LazyCommand("worker:worker", "Run a worker on another machine than the scheduler.", _SERVICES),
    "dag-processor": LazyCommand("dag_processor:dag_processor", "Run the parser of DAG files.", _SERVICES),
    "api-server": LazyCommand("api_server:api_server", "Run the web server.", _SERVICES),
    "dags": LazyCommand("dags:dags", "List, show, trigger, pause and test DAGs.", _WORKFLOWS),
    "tasks": LazyCommand("tasks:tasks", "List, run, clear and mark tasks; show their states and logs.", _WORKFLOWS),
    "assets": LazyCommand("assets:assets", "List assets, record asset events, run the DAGs that produce assets.", _WORKFLOWS),
    "backfill": LazyCommand("backfill:backfill", "Create and manage backfills: runs for past dates.", _WORKFLOWS),
    "xcom": LazyCommand("xcom:xcom", "Show the XComs that tasks have pushed.", _WORKFLOWS),
    "why": LazyCommand("why:why", "Explain why a task or a run is not running.", _WORKFLOWS),
    "waits": LazyCommand("waits:waits", "List deferred tasks and what they wait for.", _WORKFLOWS),
    "hitl": LazyCommand("hitl:hitl", "List and answer the questions of tasks to people.", _WORKFLOWS),
    "callbacks": LazyCommand("callbacks:callbacks", "Manage pending and failed callbacks and mails.", _WORKFLOWS),
    "pools": LazyCommand("pools:pools", "Manage pools, which limit how many tasks run at once.", _WORKFLOWS),
    "variables": LazyCommand("variables:variables", "Manage variables: values that tasks read by name.", _WORKFLOWS),
    "connections": LazyCommand(
        "connections:connections", "Manage connections: addresses and credentials that tasks use.", _WORKFLOWS
    ),
    "db": LazyCommand("db:db", "Create, migrate, check, back up and clean the database.", _ADMINISTRATION),
    "rotate-fernet-key": LazyCommand(
        "rotate_fernet_key:rotate_fernet_key", "Encrypt all variables and connections with the newest key.", _ADMINISTRATION
    ),
    "users": LazyCommand("users:users", "Manage the users who can log in.", _ADMINISTRATION),
    "roles": LazyCommand("roles:roles", "Manage the roles that users can have.", _ADMINISTRATION),
    "teams": LazyCommand("teams:teams", "Manage teams, whose DAGs only members see.", _ADMINISTRATION),
    "tokens": LazyCommand("tokens:tokens", "Manage tokens, with which programs use the API.", _ADMINISTRATION),
    "workers": LazyCommand("workers:workers", "Make tokens for workers on other machines.", _ADMINISTRATION),
    "config": LazyCommand("config:config", "Show the settings and the source of each value.", _ADMINISTRATION),
    "bundles": LazyCommand("bundles:bundles", "List the bundles that DAG files come from.", _ADMINISTRATION),
    "jobs": LazyCommand("jobs:jobs", "List the services and check that they are alive.", _ADMINISTRATION),
    "plugins": LazyCommand("plugins:plugins", "List the plugins and the plugins that cannot be loaded.", _ADMINISTRATION),
    "providers": LazyCommand("providers:providers", "List the installed provider packages of Airflow.", _ADMINISTRATION),
    "doctor": LazyCommand("doctor:doctor", "Examine DAG files that were written for Airflow.", _ADMINISTRATION),
    "import-airflow": LazyCommand(
        "import_airflow:import_airflow", "Take over an Airflow from its database: variables, runs, users …", _ADMINISTRATION
    ),
    "airflow": LazyCommand("airflow:airflow", "Execute a command line of Airflow 1.10, 2 or 3.", _ADMINISTRATION),
    "info": LazyCommand("info:info", "Show paths, versions and running processes.", _ADMINISTRATION),
    "version": LazyCommand("version:version", "Show the version.", _ADMINISTRATION),
    "cheat-sheet": LazyCommand("cheat_sheet:cheat_sheet", "List all commands on one page.", _ADMINISTRATION),
    "completion": LazyCommand("completion:completion", "Print the completion script for your shell.", _ADMINISTRATION),
}


class Root(LazyGroup):
    """Adds commands that exist only in Airflow: they answer with the alternative in Tradewind."""

    lazy = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            from tradewind.cli.commands import airflow_only  # lazy import: only for unknown command names

            return airflow_only.command_of_airflow(cmd_name)
        return found


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start here: tradewind standalone",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--no-wait", is_flag=True, help="Do not wait for a DAG while DAG files are being read.")
@click.pass_context
def cli(context: click.Context, debug: bool, no_wait: bool) -> None:
    """Schedule and run workflows that are defined in DAG files."""
    context.meta["tradewind.debug"] = debug


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see the module)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words[:2] or os.environ.get("TRADEWIND_DEBUG", "") not in ("", "0")
    debug = debug or any(word in ("-v", "--verbose") for word in words[2:])
    try:
        result = _run(words)
        sys.stdout.flush()
        return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except BrokenPipeError:  # the reader closed the pipe, as in `tradewind … | head`
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


def _run(words: list[str]) -> object:
    """Run a command. If it names a DAG whose file may not have been read yet, repeat the command until it has, or until all
    files are read; for at most `WAIT_SECONDS`.
    """
    deadline, told = time.monotonic() + WAIT_SECONDS, False
    while True:
        try:
            return cli.main(args=list(words), prog_name="tradewind", complete_var=COMPLETE, standalone_mode=False)
        except NotReadYet as error:
            if "--no-wait" in words[:2] or time.monotonic() >= deadline:
                raise
            if not told:
                seconds = f"at most {WAIT_SECONDS} s"
                click.echo(
                    f"{str(error).split(' Try again')[0]} Waiting {seconds} (tradewind --no-wait: not at all).", err=True
                )
                told = True
            pause(POLL_SECONDS)


def _explain(error: Exception) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a group without a command: the text is its whole help
        click.echo(error.format_message(), err=True)
        return 2
    if isinstance(error, click.UsageError):
        message = _usage_message(error)
        end = "" if message.endswith((".", "?", "!")) else "."
        hint = f"{end} See: {error.ctx.command_path} --help" if error.ctx is not None else ""
        click.echo(f"tradewind: {message}{hint}", err=True)
        return 2
    if isinstance(error, click.ClickException):
        click.echo(f"tradewind: {error.format_message()}", err=True)
    elif isinstance(error, TradewindError):
        click.echo(f"tradewind: {error}", err=True)
        if isinstance(error, NotFound) and error.kind == "DAG":
            _explain_missing_dag(str(error))
        elif isinstance(error, StoreUnreachable) or "psycopg" in str(error):
            _name_airflows_setting()
    elif isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        click.echo(f"tradewind: {name}{error.strerror}", err=True)
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        click.echo(f"tradewind: unexpected error: {text}. Run the command again with --debug to see the traceback", err=True)
    return 1


def _explain_missing_dag(message: str) -> None:
    """Print why a DAG may be missing: its file cannot be read, or nobody reads new files."""
    from tradewind.cli.common import reading  # lazy import: only for an error message

    try:
        with reading() as store:
            broken = len(store.import_errors(limit=None).rows)
    except TradewindError:  # there is no database yet
        broken = 0
    if broken and "cannot be read" not in message:
        click.echo(f"{counted(broken, 'DAG file')} with import errors. See: tradewind dags list-import-errors", err=True)
    if not _scheduler_runs():
        click.echo("No scheduler is running, so new DAG files are not read. Start one: tradewind standalone", err=True)


def _name_airflows_setting() -> None:
    """Print which variable of Airflow names the database server, because a user of Airflow may not expect that it is used."""
    from tradewind.settings import load  # lazy import: only for an error message

    source = load().explanations["database.url"].source
    if "AIRFLOW__" in source:
        click.echo(
            f"The {source} names this database. To use the SQLite file of the home folder: export TRADEWIND__DATABASE__URL=none",
            err=True,
        )


def _usage_message(error: click.UsageError) -> str:
    """click's message in plain words: the name of an argument in place of its list of values, and the nearest valid value."""
    if not isinstance(error, click.BadParameter):
        return error.format_message()
    if isinstance(error.param, click.Argument) and error.param_hint is None:
        error.param_hint = repr((error.param.name or "").upper())
    wrong = re.match("'(.*)' is not (one of|a valid integer( range)?|a valid float( range)?)", error.message, re.DOTALL)
    if wrong is None:
        return error.format_message()
    if wrong[2] == "one of":
        choices = error.param.type.choices if error.param and isinstance(error.param.type, click.Choice) else ()
        return f"{error.format_message()}{did_you_mean(wrong[1], [str(one) for one in choices])}"
    kind = "a whole number" if "integer" in wrong[2] else "a number"
    return error.format_message().replace(wrong[2], kind, 1).removesuffix(".")


def _scheduler_runs() -> bool:
    from tradewind.cli.command_client import CommandClient  # lazy import: only for an error message
    from tradewind.settings import load  # lazy import: only for an error message

    return CommandClient(load()).scheduler_runs()


if __name__ == "__main__":
    raise SystemExit(main())
