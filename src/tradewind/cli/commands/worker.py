"""`tradewind worker`."""

from __future__ import annotations

from pathlib import Path

import click

from tradewind.cli.daemon import Background, background_options, run_service, without_num_runs
from tradewind.settings import Settings, load
from tradewind.wire.worker_names import remote_worker


@click.command("worker")
@click.option("--gateway", metavar="URL", help="Address, such as wss://gateway.example.com:8974. [setting: worker.gateway]")
@click.option("--token", help="Token of this worker (better in the environment or a file). [setting: worker.token]")
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False), help="File that contains the token.")
@click.option("-q", "--queues", help="Run only tasks of these queues, separated by commas.  [default: those of the token]")
@click.option(
    "-c", "--concurrency", type=click.IntRange(0, 100_000), help="Tasks at a time; 0: unlimited.  [setting: core.parallelism]"
)
@click.option("--single-attempt", is_flag=True, help="Run one attempt, then end: the command of the KubernetesExecutor's pods.")
@without_num_runs
@background_options
def worker(
    gateway: str | None,
    token: str | None,
    token_file: str | None,
    queues: str | None,
    concurrency: int | None,
    single_attempt: bool,
    background: Background,
) -> None:
    """Run a worker on another machine than the scheduler, until Ctrl-C or SIGTERM.

    It connects to a gateway with a token that `tradewind workers token NAME` has made on the machine of the scheduler. It needs no
    access to the database and no shared folder: the gateway sends the DAG files.

    At SIGTERM running tasks get time to finish (setting runner.drain_timeout); Ctrl-C or a second SIGTERM stops them at once.
    """
    from tradewind.cli.compose.worker_host import name_in_token

    if token_file is not None:
        token = Path(token_file).read_text(encoding="utf-8").strip()
    settings = load()
    name = name_in_token(token or settings.worker.token)
    served = tuple(one.strip() for one in (queues or "").split(",") if one.strip())
    given = {"WORKER__GATEWAY": gateway, "WORKER__TOKEN": token}

    def run(settings: Settings) -> None:
        from tradewind.cli.compose.worker_host import gateway_config, run_host

        config, slots = gateway_config(settings), 1 if single_attempt else concurrency
        run_host(
            settings,
            worker=remote_worker(name),
            queues=served,
            executors=(),
            gateway=config,
            slots=slots,
            is_single=single_attempt,
        )

    run_service("worker", run, background, {name: value for name, value in given.items() if value is not None})
