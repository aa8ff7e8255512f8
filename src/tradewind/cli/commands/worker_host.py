"""`tradewind worker-host`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.cli.worker_hosts import check_name, chosen_executors, process_kind
from tradewind.settings import Settings
from tradewind.wire.worker_names import FIRST_WORKER


@click.command("worker-host")
@click.option("--name", default=FIRST_WORKER, show_default=True, help="Name of the worker host, unique in this home folder.")
@click.option("-q", "--queues", help="Run only tasks of these queues, separated by commas.  [default: all queues]")
@click.option(
    "--executor",
    "executors",
    metavar="NAMES",
    help="Run only tasks of these executors, separated by commas.  [default: all executors of core.executor]",
)
@without_num_runs
@background_options
def worker_host(name: str, queues: str | None, executors: str | None, background: Background) -> None:
    """Run a worker host, which runs the tasks, until Ctrl-C or SIGTERM.

    Several worker hosts can run on one home folder. Give each its own name, for example `tradewind worker-host --name w2`.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once.
    """
    from tradewind.cli.compose.worker_host import run_host

    worker = check_name(name)
    served = tuple(one.strip() for one in (queues or "").split(",") if one.strip())

    def run(settings: Settings) -> None:
        taken = chosen_executors(executors, settings.core.executor)
        run_host(settings, worker=worker, queues=served, executors=taken)

    run_service(process_kind(worker), run, background)
