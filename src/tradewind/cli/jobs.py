"""`tradewind jobs …`: the lives of our services, those that have ended too, and whether one is alive now."""

from __future__ import annotations

import socket
from typing import Any

import click

from tradewind.cli.common import reading
from tradewind.cli.lazy import HelpfulGroup
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


@click.group(cls=HelpfulGroup)
def jobs() -> None:
    """Which services live, and have lived."""


_job_type = click.option(
    "--job-type",
    help="SchedulerJob, LocalExecutorJob (worker host; TriggererJob is the same), DagProcessorJob or ApiServerJob.",
)


@jobs.command("list")
@_job_type
@click.option("--state", type=click.Choice(["running", "success", "failed"]), help="Only those.")
@click.option("--hostname", help="Only on this host.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many, the latest first.")
@columns_option
@output_option
def list_jobs(
    job_type: str | None, state: str | None, hostname: str | None, limit: int, columns: str | None, output: str
) -> None:
    """The lives of all services: scheduler, worker hosts, parsers and web servers, those that have ended too.

    A service that ended in order is a success; one that was killed, or broke off, has failed. The heartbeat is its last one.
    """
    wanted = None if job_type is None else _known_type(job_type)
    rows = known_jobs(load(), job_type=wanted, state=state, hostname=hostname, limit=limit)
    shown = [*_COLUMNS, *(["reason"] if any(row["reason"] for row in rows) else [])]
    show(rows, output, shown, chosen=columns, empty="There are no such jobs.")


@jobs.command()
@_job_type
@click.option("--hostname", help="Only on this host.")
@click.option("--local", is_flag=True, help="Only on this host: the one where you are.")
@click.option("--limit", type=click.IntRange(0), default=1, show_default=True, help="At most so many; 0 is all.")
@click.option("--allow-multiple", is_flag=True, help="More than one is no error.")
@output_option
def check(job_type: str | None, hostname: str | None, local: bool, limit: int, allow_multiple: bool, output: str) -> None:
    """Is a scheduler alive, and does it answer? The exit code is 1 when none is."""
    if allow_multiple and limit == 1:
        raise click.UsageError("--allow-multiple needs --limit 0, or one greater than 1")
    if local and hostname:
        raise click.UsageError("--hostname and --local exclude each other")
    wanted, where = _known_type(job_type or "SchedulerJob"), socket.gethostname() if local else hostname
    found = living_jobs(load(), wanted, where)
    if not found:
        raise click.ClickException(f"no {_TYPES[wanted]} is alive{f' on {where}' if where else ''}")
    if limit > 1 and not allow_multiple and len(found) > 1:
        raise click.ClickException(f"{len(found)} are alive; --allow-multiple says that this is right")
    if output == "table":
        click.echo(f"{len(found)} {_TYPES[wanted]}{'s are' if len(found) > 1 else ' is'} alive.")
    else:
        show(found[: limit or None], output, _COLUMNS)


def _known_type(name: str) -> str:
    """A job type as it is stored."""
    if name not in _TYPES:
        raise click.BadParameter(f"there is no job type {name!r}.{did_you_mean(name, _TYPES)}", param_hint="--job-type")
    return {"TriggererJob": "LocalExecutorJob"}.get(name, name)


def known_jobs(settings: Settings, *, limit: int | None = None, **chosen: str | None) -> list[dict[str, Any]]:
    """The jobs that the database knows, the latest first; `chosen` as in `ServiceReads.list_jobs`."""
    import time

    import msgspec

    with reading(settings) as store:
        found = store.list_jobs(now=time.time_ns() // 1000, limit=limit, order_by=("-id",), **chosen)  # type: ignore[arg-type]
    return [msgspec.to_builtins(view) for view in found.rows]


def living_jobs(settings: Settings, job_type: str, hostname: str | None) -> list[dict[str, Any]]:
    """Those that are alive now: the scheduler answers, and what is connected to it is alive.

    Where no scheduler answers, other services are alive whose last heartbeat is young; it was their scheduler's last word of them.
    """
    import time

    import msgspec

    from tradewind.client.control import ControlClient

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            scheduler = control.call("ping", timeout=5)["pid"]
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
    rows = [msgspec.to_builtins(view) for view in found.rows if not _stands_still(settings, job_type, view.pid)]
    return [row for row in rows if job_type != "SchedulerJob" or row["pid"] == scheduler]


_PROGRESS = {"SchedulerJob": "scheduler", "LocalExecutorJob": "host", "DagProcessorJob": "parser", "ApiServerJob": "api"}
"""Job type → the name under which a service of this machine says that its loop turns."""


def _stands_still(settings: Settings, job_type: str, pid: int) -> bool:
    """Is this the service of this machine, and has its loop not turned for too long?"""
    found = read_progress(settings.paths.progress(_PROGRESS[job_type]), SystemClock())
    return found is not None and found.pid == pid and found.age > unhealthy_after(settings.core.stall_limit_us)
