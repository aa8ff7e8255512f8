"""Arguments and options that name the DAG, task and run of a command."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tradewind.cli.completers import complete_dags, complete_runs, complete_tasks

T = TypeVar("T")

dag_argument = click.argument("dag_id", shell_complete=complete_dags)
task_argument = click.argument("task_id", shell_complete=complete_tasks)
run_argument = click.argument("run", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs)

store_option = click.option(
    "--store/--no-store",
    default=True,
    show_default=True,
    help="Read variables, connections and XComs from the database of the home folder.",
)
"""For commands that run user code in their own process; passed to the command as `store`."""


def optional_run_argument(command: Callable[..., T]) -> Callable[..., T]:
    """Accept a run as the last argument, as Airflow does, or as `--run-id`. The command gets it as `run`; None if not given."""

    @click.argument("run", metavar="[RUN_ID_OR_DATE]", required=False, shell_complete=complete_runs)
    @click.option(
        "-r", "--run-id", "named", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs, help="Same as the argument."
    )
    @functools.wraps(command)
    def with_run(*args: Any, run: str | None, named: str | None, **more: Any) -> T:
        if run is not None and named is not None and run != named:
            raise click.UsageError(f"two different runs are given: {run} and --run-id {named}")
        return command(*args, run=named if run is None else run, **more)

    return with_run


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """The JSON object that an option gives, decoded; None if the option was not given.

    Raises:
        click.BadParameter: the text is not a JSON object.
    """
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint=option) from None
    if not isinstance(found, dict):
        raise click.BadParameter(f'must be a JSON object like {{"name": 1}}, not {text!r}', param_hint=option)
    return found
