"""How commands are told which DAG, task and run they are about."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tradewind.cli.completion import complete_dags, complete_runs, complete_tasks

T = TypeVar("T")

dag_argument = click.argument("dag_id", shell_complete=complete_dags)
task_argument = click.argument("task_id", shell_complete=complete_tasks)
run_argument = click.argument("run", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs)

store_option = click.option(
    "--store/--no-store",
    default=True,
    show_default=True,
    help="Whether variables, connections and XComs of the home folder are read.",
)
"""Of commands that run users' code in their own process; handed over as `store`."""


def any_run_argument(command: Callable[..., T]) -> Callable[..., T]:
    """A run as the last argument, as in Airflow, or after `--run-id`, as where several runs are meant; else `run` is None."""

    @click.argument("run", metavar="[RUN_ID_OR_DATE]", required=False, shell_complete=complete_runs)
    @click.option(
        "-r", "--run-id", "named", metavar="RUN_ID_OR_DATE", shell_complete=complete_runs, help="The run, said as an option."
    )
    @functools.wraps(command)
    def told(*args: Any, run: str | None, named: str | None, **more: Any) -> T:
        if run is not None and named is not None and run != named:
            raise click.UsageError(f"Two runs are given: {run} and --run-id {named}.")
        return command(*args, run=named if run is None else run, **more)

    return told
