"""`tradewind workers`."""

from __future__ import annotations

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.worker_hosts import check_name
from tradewind.model.errors import ConfigError
from tradewind.model.moments import DAY
from tradewind.settings import load
from tradewind.wire.worker_names import attempt_of_pod, remote_worker


@click.group("workers", cls=CommandGroup)
def workers() -> None:
    """Make tokens for workers on other machines."""


@workers.command("token")
@click.argument("name")
@click.option("-q", "--queues", help="The worker may run only tasks of these queues, separated by commas.  [default: all]")
@click.option("--days", type=click.IntRange(1, 3650), help="The token expires after this many days.  [default: never]")
def token(name: str, queues: str | None, days: int | None) -> None:
    """Print a token for the worker NAME. Give each worker its own name and its own token.

    A token lets its holder run the tasks that the scheduler gives to this worker, and read what these tasks may read. Keep it like
    a password. To revoke all tokens, delete the file worker.key in the home folder and restart the gateways.
    """
    from tradewind.cli.compose.gateway import worker_key
    from tradewind.platform.clock import SystemClock
    from tradewind.wire.worker_tokens import WorkerGrant, sign_grant

    if attempt_of_pod(remote_worker(name)) is not None:
        raise ConfigError(f"{name}: such names are those of pods of the KubernetesExecutor, which makes their tokens itself")
    settings = load()
    settings.paths.prepare()
    allowed = tuple(one.strip() for one in (queues or "").split(",") if one.strip())
    now = SystemClock().wall()
    grant = WorkerGrant(check_name(name), allowed, now, now + days * DAY if days else 0)
    click.echo(sign_grant(grant, worker_key(settings)))
