"""`tradewind jobs …`: which of our processes live. Jobs are the scheduler and the worker hosts that the database knows."""

from __future__ import annotations

import socket
from typing import Any

import click

from tradewind.cli.common import reading
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import output_option, show
from tradewind.model.errors import TradewindError, did_you_mean
from tradewind.settings import Settings, load

_TYPES = {"SchedulerJob": "scheduler", "LocalExecutorJob": "worker host", "DagProcessorJob": "", "TriggererJob": "worker host"}
_COLUMNS = ("job_type", "state", "hostname", "pid", "start_date")


@click.group(cls=HelpfulGroup)
def jobs() -> None:
    """Which processes live."""


@jobs.command()
@click.option(
    "--job-type",
    help="SchedulerJob (the default), LocalExecutorJob or TriggererJob for worker hosts.",
)
@click.option("--hostname", help="Only on this host.")
@click.option("--local", is_flag=True, help="Only on this host: the one where you are.")
@click.option("--limit", type=click.IntRange(0), default=1, show_default=True, help="At most so many; 0 is all.")
@click.option("--allow-multiple", is_flag=True, help="More than one is no error.")
@output_option
def check(job_type: str | None, hostname: str | None, local: bool, limit: int, allow_multiple: bool, output: str) -> None:
    """Is a scheduler alive, and does it answer? The exit code is 1 when none is."""
    if job_type is not None and job_type not in _TYPES:
        raise click.BadParameter(f"there is no job type {job_type!r}.{did_you_mean(job_type, _TYPES)}", param_hint="--job-type")
    if job_type is not None and not _TYPES[job_type]:
        raise click.UsageError(f"{job_type} is no job here: its work is done by a child of `standalone`; see: tradewind info")
    if allow_multiple and limit == 1:
        raise click.UsageError("--allow-multiple needs --limit 0, or one greater than 1")
    if local and hostname:
        raise click.UsageError("--hostname and --local exclude each other")
    asked = job_type or "SchedulerJob"
    wanted, where = {"TriggererJob": "LocalExecutorJob"}.get(asked, asked), socket.gethostname() if local else hostname
    found = [
        row
        for row in known_jobs(load())
        if row["state"] == "running" and row["job_type"] == wanted and where in (None, row["hostname"])
    ]
    if not found:
        raise click.ClickException(f"no {_TYPES[wanted]} is alive{f' on {where}' if where else ''}")
    if limit > 1 and not allow_multiple and len(found) > 1:
        raise click.ClickException(f"{len(found)} are alive; --allow-multiple says that this is right")
    if output == "table":
        click.echo(f"{len(found)} {_TYPES[wanted]}{'s are' if len(found) > 1 else ' is'} alive.")
    else:
        show(found[: limit or None], output, _COLUMNS)


def known_jobs(settings: Settings) -> list[dict[str, Any]]:
    """The latest scheduler and the worker hosts, each with whether it lives now, as the live scheduler says."""
    from tradewind.client.control import ControlClient
    from tradewind.model.moments import iso

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            alive = control.call("ping", timeout=5)
    except TradewindError:
        alive = None
    with reading(settings) as store:
        facts = store.health_facts()
        hosts = store.engine.rows("SELECT name, hostname, pid, seen_at FROM worker_host ORDER BY name")
    rows: list[dict[str, Any]] = []

    def add(kind: str, living: bool, hostname: str | None, pid: int | None, since: int | None) -> None:
        state = "running" if living else "success"
        rows.append({"job_type": kind, "state": state, "hostname": hostname, "pid": pid, "start_date": iso(since)})

    if facts.scheduler_epoch is not None:
        living = alive is not None and alive["pid"] == facts.scheduler_pid
        add("SchedulerJob", living, facts.scheduler_hostname, facts.scheduler_pid, facts.scheduler_started_at)
    for name, hostname, pid, seen in hosts:
        add("LocalExecutorJob", alive is not None and alive["host"] == f"host {name}", hostname, pid, seen)
    return rows
