"""`tradewind jobs …`: running and finished services, and whether one is alive now."""

from __future__ import annotations

import socket
from typing import Any

import click

from tradewind.cli.airflow_output import is_airflow
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import reading
from tradewind.cli.output import columns_option, output_option, show
from tradewind.model.errors import TradewindError, did_you_mean
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import read_progress, unhealthy_after
from tradewind.settings import Settings, load

_TYPES = {
    "SchedulerJob": "scheduler",
    "LocalExecutorJob": "worker host",
    "TriggererJob": "worker host",
    "DagProcessorJob": "parser",
    "ApiServerJob": "web server",
}
_COLUMNS = ("job_type", "state", "hostname", "pid", "start_date", "end_date", "latest_heartbeat")


@click.group(cls=CommandGroup)
def jobs() -> None:
    """List the services and check that they are alive."""


_job_type = click.option(
    "--job-type",
    help="SchedulerJob, LocalExecutorJob (worker host; TriggererJob is the same), DagProcessorJob or ApiServerJob.",
)


@jobs.command("list")
@_job_type
@click.option("--state", type=click.Choice(["running", "success", "failed"]), help="Only jobs in this state.")
@click.option("--hostname", help="Only jobs on this host.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Show at most this many, the latest first."
)
@columns_option
@output_option
def list_jobs(
    job_type: str | None, state: str | None, hostname: str | None, limit: int, columns: str | None, output: str
) -> None:
    """List running and finished services: schedulers, worker hosts, parsers and web servers.

    The state of a service that stopped normally is success; of one that was killed or crashed, failed.
    """
    wanted = None if job_type is None else _known_type(job_type)
    rows = known_jobs(load(), job_type=wanted, state=state, hostname=hostname, limit=limit)
    shown = [*_COLUMNS, *(["reason"] if any(row["reason"] for row in rows) else [])]
    show(rows, output, shown, chosen=columns, empty="There are no such jobs.")


@jobs.command()
@_job_type
@click.option("--hostname", help="Only jobs on this host.")
@click.option("--local", is_flag=True, help="Only jobs on this machine.")
@click.option("--limit", type=click.IntRange(0), default=1, show_default=True, help="Show at most this many; 0 = all.")
@click.option("--allow-multiple", is_flag=True, help="Do not fail if more than one job is alive.")
@output_option
def check(job_type: str | None, hostname: str | None, local: bool, limit: int, allow_multiple: bool, output: str) -> None:
    """Check that a scheduler (or another service, see --job-type) is alive. The exit code is 1 if none is alive."""
    if allow_multiple and limit == 1:
        raise click.UsageError("--allow-multiple needs --limit 0 or a --limit above 1")
    if local and hostname:
        raise click.UsageError("--hostname and --local exclude each other")
    wanted, where = _known_type(job_type or "SchedulerJob"), socket.gethostname() if local else hostname
    found = living_jobs(load(), wanted, where)
    if not found:
        if is_airflow():
            raise click.ClickException("No alive jobs found.")
        raise click.ClickException(f"no {_TYPES[wanted]} is alive{f' on {where}' if where else ''}")
    if limit > 1 and not allow_multiple and len(found) > 1:
        raise click.ClickException(f"{len(found)} jobs are alive; allow this with --allow-multiple")
    if is_airflow():
        click.echo("Found one alive job." if len(found) == 1 else f"Found {len(found)} alive jobs.")
    elif output == "table":
        click.echo(f"{len(found)} {_TYPES[wanted]}{'s are' if len(found) > 1 else ' is'} alive.")
    else:
        show(found[: limit or None], output, _COLUMNS)


def _known_type(name: str) -> str:
    """The job type as it is stored."""
    if name not in _TYPES:
        raise click.BadParameter(f"there is no job type {name!r}.{did_you_mean(name, _TYPES)}", param_hint="--job-type")
    return {"TriggererJob": "LocalExecutorJob"}.get(name, name)


def known_jobs(settings: Settings, *, limit: int | None = None, **chosen: str | None) -> list[dict[str, Any]]:
    """The jobs in the database, the latest first; `chosen` are filters of `ServiceReads.list_jobs`."""
    import time

    import msgspec

    with reading(settings) as store:
        found = store.list_jobs(now=time.time_ns() // 1000, limit=limit, order_by=("-id",), **chosen)  # type: ignore[arg-type]
    return [msgspec.to_builtins(view) for view in found.rows]


def living_jobs(settings: Settings, job_type: str, hostname: str | None) -> list[dict[str, Any]]:
    """The jobs that are alive now: the scheduler answers, and the other services are connected to it.

    If no scheduler answers, other services count as alive while their last recorded heartbeat is recent.
    """
    import time

    import msgspec

    from tradewind.client.control import ControlClient
    from tradewind.wire.commands import Ping

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            scheduler = control.call(Ping(), timeout=5).pid
    except TradewindError:
        scheduler = None
    with reading(settings) as store:
        found = store.list_jobs(
            now=time.time_ns() // 1000,
            is_alive=True if scheduler is None else None,
            state="running",
            job_type=job_type,
            hostname=hostname,
            limit=None,
        )
    rows = [msgspec.to_builtins(view) for view in found.rows if not _is_stalled(settings, job_type, view.pid)]
    return [row for row in rows if job_type != "SchedulerJob" or row["pid"] == scheduler]


_PROGRESS = {"SchedulerJob": "scheduler", "LocalExecutorJob": "host", "DagProcessorJob": "parser", "ApiServerJob": "api"}
"""Job type → kind of process in the progress files of this machine."""


def _is_stalled(settings: Settings, job_type: str, pid: int) -> bool:
    """Whether this process of this machine has reported no progress for too long."""
    found = read_progress(settings.paths.progress(_PROGRESS[job_type]), SystemClock())
    return found is not None and found.pid == pid and found.age > unhealthy_after(settings.core.stall_limit_us)
