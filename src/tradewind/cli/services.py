"""`tradewind scheduler`, `worker-host`, `dag-processor` and `api-server`: single services, for systemd or containers."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from tradewind.cli.daemon import Background, background_options, run_service, subdir_option, without_num_runs
from tradewind.cli.worker_hosts import check_name, process_kind
from tradewind.settings import Settings, load
from tradewind.wire.worker_names import FIRST_WORKER


def _run(
    component: str,
    work: Callable[[Settings], None],
    background: Background,
    changes: dict[str, str] | None = None,
    subdir: str | None = None,
) -> None:
    """Run a service with its background options; `changes` are settings from the command line (`SECTION__OPTION` → value)."""
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

    run_service(component, background, start)


@click.command()
@click.option("--executor", metavar="NAME", help="LocalExecutor or SequentialExecutor. [setting: core.executor]")
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
    from tradewind.cli import compose

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
        os.environ[compose.DAG_ID] = dag_id

    def work(settings: Settings) -> None:
        if not parts:
            compose.run_scheduler(settings)
            return
        from tradewind.cli.scheduler_service import SchedulerService  # lazy import: only this service supervises processes

        code = SchedulerService(settings, dict(os.environ), parts, passes).run()
        if code:
            raise click.ClickException("the service stopped because of an error; see its log")

    _run("scheduler", work, background, {"CORE__EXECUTOR": executor} if executor is not None else {}, subdir)


@click.command("worker-host")
@click.option("--name", default=FIRST_WORKER, show_default=True, help="Its name; each further worker host needs one.")
@click.option("-q", "--queues", help="Run only tasks of these queues, separated by commas.  [default: all queues]")
@without_num_runs
@background_options
def worker_host(name: str, queues: str | None, background: Background) -> None:
    """Run a worker host, which runs the tasks, until Ctrl-C or SIGTERM.

    Several worker hosts can run beside each other on one home folder: give each further one a name, for example
    `tradewind worker-host --name w2`.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once.
    """
    from tradewind.cli import compose

    worker = check_name(name)
    served = tuple(one.strip() for one in (queues or "").split(",") if one.strip())
    _run(process_kind(worker), lambda settings: compose.run_host(settings, worker=worker, queues=served), background)


@click.command("dag-processor")
@click.option("-B", "--bundle-name", hidden=True)
@without_num_runs
@subdir_option
@background_options
def dag_processor(bundle_name: str | None, background: Background, subdir: str | None) -> None:
    """Run the parser of DAG files until Ctrl-C or SIGTERM."""
    from tradewind.cli import compose

    if bundle_name not in (None, compose.DAGS_BUNDLE):
        raise click.UsageError(f"there is only one bundle to parse, {compose.DAGS_BUNDLE}; leave out --bundle-name")
    _run("parser", compose.run_parser, background, {}, subdir)


@click.command("api-server")
@click.option("-H", "--host", help="Address to listen on. [setting: api.host]")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port to listen on. [setting: api.port]")
@without_num_runs
@background_options
def api_server(host: str | None, port: int | None, background: Background) -> None:
    """Run the web server until Ctrl-C or SIGTERM."""
    from tradewind.api.auth.users import ensure_admin
    from tradewind.cli import compose

    given = {"API__HOST": host, "API__PORT": None if port is None else str(port)}

    def serve(settings: Settings) -> None:
        password = ensure_admin(settings.paths.passwords)
        if password is not None:
            click.echo(f"Login: admin / {password}   (shown only once)")
        compose.run_api(settings, lambda address: click.echo(f"Ready: {address}"))

    _run("api", serve, background, {name: value for name, value in given.items() if value is not None})
