"""`tradewind scheduler`."""

from __future__ import annotations

import os

import click

from tradewind.cli.daemon import Background, background_options, run_service, subdir_option
from tradewind.settings import Settings


@click.command()
@click.option(
    "--executor",
    metavar="NAME",
    help="LocalExecutor, SequentialExecutor, CeleryExecutor or KubernetesExecutor, or several with commas. "
    "[setting: core.executor]",
)
@click.option(
    "-n",
    "--num-runs",
    "--num_runs",
    type=int,
    default=-1,
    show_default=True,
    help="Stop after every DAG file was read this many times and all due tasks were started; -1: never.",
)
@click.option("-p", "--do-pickle", "--do_pickle", is_flag=True, help="Has no effect: code is not pickled.")
@click.option("-d", "--dag-id", "--dag_id", help="Schedule only this DAG.")
@click.option("--no-dag-processor", is_flag=True, help="Do not start a parser; run `tradewind dag-processor` separately.")
@click.option("--no-worker-host", is_flag=True, help="Do not start a worker host; run `tradewind worker-host` separately.")
@subdir_option
@background_options
def scheduler(
    executor: str | None,
    num_runs: int,
    do_pickle: bool,
    dag_id: str | None,
    no_dag_processor: bool,
    no_worker_host: bool,
    background: Background,
    subdir: str | None,
) -> None:
    """Run the scheduler, with a parser of the DAG files and a worker host for the tasks, until Ctrl-C or SIGTERM.

    If a parser or worker host already runs on this home folder, no second one is started. At SIGTERM running tasks get time to
    finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once. At SIGQUIT the scheduler writes the stacks
    of its threads to its log.

    With --num-runs the parser reads every DAG file that many times, changed or not. The scheduler creates the runs that are due and
    starts their tasks. Then the service stops with exit code 0, as at SIGTERM: running tasks get time to finish, and tasks that
    wait for them are left to the next scheduler. This also happens if there is nothing to do.
    """
    from tradewind.cli.compose.bundles import DAG_ID
    from tradewind.cli.compose.scheduler import run_scheduler

    if num_runs < -1 or num_runs == 0:
        raise click.BadParameter(
            f"give at least 1 (one pass over the DAG files), or -1 for unlimited, not {num_runs}", param_hint="--num-runs"
        )
    if num_runs > 0 and no_dag_processor:
        raise click.UsageError(
            "--num-runs counts the passes of the parser, but --no-dag-processor starts no parser; leave out one of them"
        )
    passes = num_runs if num_runs > 0 else None
    parts = frozenset(name for name, left_out in (("parser", no_dag_processor), ("host", no_worker_host)) if not left_out)
    if do_pickle:
        click.echo("--do-pickle has no effect: code is not pickled.", err=True)
    if dag_id is not None:
        os.environ[DAG_ID] = dag_id

    def work(settings: Settings) -> None:
        if not parts:
            run_scheduler(settings)
            return
        from tradewind.cli.scheduler_service import SchedulerService  # lazy import: only this service supervises processes

        code = SchedulerService(settings, dict(os.environ), parts, passes).run()
        if code:
            raise click.ClickException("the service stopped because of an error; see its log")

    run_service("scheduler", work, background, {"CORE__EXECUTOR": executor} if executor is not None else {}, subdir)
