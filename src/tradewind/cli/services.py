"""Single processes in the foreground, for whoever has a supervisor of their own (systemd, a container)."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from tradewind.cli.daemon import Background, background_options, run_as_asked, subdir_option, without_rounds
from tradewind.settings import Settings, load


def _run(
    component: str,
    work: Callable[[Settings], None],
    how: Background,
    changes: dict[str, str] | None = None,
    subdir: str | None = None,
) -> None:
    """Do a process's work as it was asked for; `changes` are settings that the command line gave."""
    from tradewind.cli import compose

    for name, value in (changes or {}).items():
        os.environ[f"TRADEWIND__{name}"] = value
    if subdir is not None:
        os.environ[compose.SUBDIR] = os.path.abspath(subdir)
    settings = load()

    def start() -> None:
        os.umask(0o077)
        compose.start_log(settings, component)
        settings.paths.prepare()
        work(settings)

    run_as_asked(component, how, start)


@click.command()
@click.option("--executor", metavar="NAME", help="LocalExecutor or SequentialExecutor. [setting: core.executor]")
@click.option(
    "-n",
    "--num-runs",
    "--num_runs",
    type=int,
    default=-1,
    show_default=True,
    help="End in order when every DAG file was read so many times and what was due is dispatched; -1: never.",
)
@click.option("-p", "--do-pickle", "--do_pickle", is_flag=True, help="Accepted; DAGs travel as data, no code is pickled.")
@click.option("-d", "--dag-id", "--dag_id", help="Look after this DAG only.")
@click.option("--no-dag-processor", is_flag=True, help="Start no parser: `tradewind dag-processor` runs by itself.")
@click.option("--no-worker-host", is_flag=True, help="Start no worker host: `tradewind worker-host` runs by itself.")
@subdir_option
@background_options
def scheduler(
    executor: str | None,
    num_runs: int,
    do_pickle: bool,
    dag_id: str | None,
    no_dag_processor: bool,
    no_worker_host: bool,
    how: Background,
    subdir: str | None,
) -> None:
    """The scheduler, with the parser of the DAG files and the worker host for their tasks, until Ctrl-C or SIGTERM.

    Where a parser or worker host runs on this home folder already, none is started. At SIGTERM running tasks get time to finish
    (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once. SIGQUIT makes the scheduler write into its log
    what each of its threads is doing.

    With --num-runs the parser reads every DAG file so many times, one pass after the other, changed or not. The scheduler makes
    the runs that are due and starts their tasks. Then the service ends with status 0 as at SIGTERM: running tasks get time to
    finish. Tasks that wait for them stay for the next scheduler. A service with nothing to do ends as well.
    """
    from tradewind.cli import compose

    if num_runs < -1 or num_runs == 0:
        raise click.BadParameter(
            f"at least one pass over the DAG files, or -1 for no end, not {num_runs}", param_hint="--num-runs"
        )
    if num_runs > 0 and no_dag_processor:
        raise click.UsageError(
            "--num-runs counts what the parser reads, and --no-dag-processor starts none; leave one of them out"
        )
    passes = num_runs if num_runs > 0 else None
    parts = frozenset(name for name, left_out in (("parser", no_dag_processor), ("host", no_worker_host)) if not left_out)
    if do_pickle:
        click.echo("--do-pickle changes nothing: DAGs travel as data, no code is pickled.", err=True)
    if dag_id is not None:
        os.environ[compose.DAG_ID] = dag_id

    def work(settings: Settings) -> None:
        if not parts:
            compose.run_scheduler(settings)
            return
        from tradewind.cli.scheduler_service import SchedulerService  # lazy door: only this service supervises others

        code = SchedulerService(settings, dict(os.environ), parts, passes).run()
        if code:
            raise click.ClickException("the service could not do its work; its log says why")

    _run("scheduler", work, how, {"CORE__EXECUTOR": executor} if executor is not None else {}, subdir)


@click.command("worker-host")
@without_rounds
@background_options
def worker_host(how: Background) -> None:
    """The worker host, which runs the tasks, until Ctrl-C or SIGTERM.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once.
    """
    from tradewind.cli import compose

    _run("host", compose.run_host, how)


@click.command("dag-processor")
@click.option("-B", "--bundle-name", hidden=True)
@without_rounds
@subdir_option
@background_options
def dag_processor(bundle_name: str | None, how: Background, subdir: str | None) -> None:
    """The parser of DAG files, until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    if bundle_name not in (None, compose.DAGS_BUNDLE):
        raise click.UsageError(f"there is one folder to be watched, {compose.DAGS_BUNDLE}; leave --bundle-name out")
    _run("parser", compose.run_parser, how, {}, subdir)


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
@without_rounds
@background_options
def api_server(host: str | None, port: int | None, how: Background) -> None:
    """The web server, until Ctrl-C or SIGTERM."""
    from tradewind.api.auth.users import ensure_admin
    from tradewind.cli import compose

    given = {"API__HOST": host, "API__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        password = ensure_admin(settings.paths.passwords)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only now)")
        compose.run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    _run("api", serve, how, {name: value for name, value in given.items() if value is not None})
