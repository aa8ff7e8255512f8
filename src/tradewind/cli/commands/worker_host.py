"""`tradewind worker-host`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.cli.worker_hosts import check_name, process_kind
from tradewind.wire.worker_names import FIRST_WORKER


@click.command("worker-host")
@click.option("--name", default=FIRST_WORKER, show_default=True, help="Name of the worker host, unique in this home folder.")
@click.option("-q", "--queues", help="Run only tasks of these queues, separated by commas.  [default: all queues]")
@without_num_runs
@background_options
def worker_host(name: str, queues: str | None, background: Background) -> None:
    """Run a worker host, which runs the tasks, until Ctrl-C or SIGTERM.

    Several worker hosts can run on one home folder. Give each its own name, for example `tradewind worker-host --name w2`.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once.
    """
    from tradewind.cli import compose

    worker = check_name(name)
    served = tuple(one.strip() for one in (queues or "").split(",") if one.strip())
    run_service(process_kind(worker), lambda settings: compose.run_host(settings, worker=worker, queues=served), background)
