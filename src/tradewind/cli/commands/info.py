"""`tradewind info`: paths, versions and running processes."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.command_client import current_user
from tradewind.cli.output import output_option, show_one
from tradewind.cli.process_logs import logs_folder
from tradewind.model.errors import TradewindError, Unreachable
from tradewind.model.moments import SECOND, iso
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import read_progress, unhealthy_after
from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.wire.commands import WorkerState

PROCESS_KINDS = ("scheduler", "host", "parser", "api")


@click.command()
@click.option("--anonymize", is_flag=True, help="Leave out your user name and home folder, so that you can share the output.")
@output_option
def info(anonymize: bool, output: str) -> None:
    """Show paths, versions, the database's settings, task isolation, and running processes."""
    settings = load()
    found = {
        "versions": _versions(),
        "paths": _paths(settings),
        "running": _running(settings),
        "processes": _processes(settings),
        **_bundles(settings),
        "database": _database(settings),
        "isolation": _isolation(settings),
    }
    if anonymize:
        found = {heading: {name: _anonymous(value) for name, value in fields.items()} for heading, fields in found.items()}
    if output != "table":
        show_one(found, output)
        return
    for heading, fields in found.items():
        click.echo(heading)
        for name, value in fields.items():
            click.echo(f"  {name:<20} {'' if value is None else value}".rstrip())


def _anonymous(value: Any) -> Any:
    """A text without the user's name and home folder."""
    if not isinstance(value, str):
        return value
    return value.replace(os.path.expanduser("~"), "~").replace(current_user(), "USER") if value else value


def _versions() -> dict[str, Any]:
    import tradewind
    from tradewind.store.file import library_version

    return {
        "tradewind": tradewind.__version__,
        "python": platform.python_version(),
        **library_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _paths(settings: Settings) -> dict[str, Any]:
    paths = settings.paths
    return {
        "home": paths.home,
        "config": settings.config_file or f"none ({paths.config} does not exist)",
        "dags": paths.dags,
        "plugins": paths.plugins,
        "database": settings.store_name,
        "task logs": paths.logs,
        "process logs": logs_folder(settings.home),
        "socket": paths.scheduler_socket,
    }


def _running(settings: Settings) -> dict[str, Any]:
    """The status that the scheduler reports."""
    from tradewind.client.control import ControlClient
    from tradewind.wire.commands import Ping

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            state = control.call(Ping(), timeout=5)
    except Unreachable as error:
        return {"scheduler": f"no ({error})"}
    return {
        "scheduler": f"process {state.pid}, start number {state.epoch}",
        "executor": state.executor,
        **_worker_hosts(state.workers),
        "running runs": state.live_runs,
        "running tasks": state.live_attempts,
        "waiting tasks": state.waiting,
        "deferred tasks": f"{state.waits}, {state.triggers} of them in triggers",
        "trouble": state.trouble or "none",
        "task logs": state.log_trouble or "can be written",
    }


def _worker_hosts(workers: Sequence[WorkerState]) -> dict[str, str]:
    """A line for each connected worker host."""
    if not workers:
        return {"worker host": "none is connected: no task can run"}
    return {f"worker host {one.worker}": _worker_text(one) for one in sorted(workers, key=lambda one: one.worker)}


def _worker_text(state: WorkerState) -> str:
    slots = f" of {state.slots}" if state.slots else ""
    queues = f", queues {', '.join(state.queues)}" if state.queues else ""
    draining = ", stopping: it takes no new tasks" if state.draining else ""
    return f"process {state.pid} on {state.hostname}, {state.attempts}{slots} tasks{queues}{draining}"


def _processes(settings: Settings) -> dict[str, Any]:
    """The progress that the loop of each process reports."""
    clock, limit = SystemClock(), settings.core.stall_limit_us
    found = {}
    further = sorted(path.stem for path in Path(settings.paths.run).glob("host-*.progress"))
    for kind in (*PROCESS_KINDS, *further):
        progress = read_progress(settings.paths.progress(kind), clock)
        if progress is None:
            found[kind] = "not running"
        elif not progress.alive:
            found[kind] = f"process {progress.pid} has died"
        elif progress.age > unhealthy_after(limit):
            follows = "`standalone` restarts it soon" if limit else "core.stall_limit is 0, so it is not restarted"
            found[kind] = f"process {progress.pid} has made no progress for {progress.age // SECOND} s; {follows}"
        else:
            found[kind] = f"process {progress.pid} is running since {iso(progress.started)}"
    return found


def _bundles(settings: Settings) -> dict[str, Any]:
    """The state of each bundle that has versions; empty: there are none."""
    from tradewind.cli.compose.bundles import versioned_bundles

    versioned = versioned_bundles(settings)
    if not versioned:
        return {}
    from tradewind.bundles.report import sentence_of

    return {"bundles": {name: sentence_of(bundle) for name, bundle in versioned.items()}}


def _database(settings: Settings) -> dict[str, Any]:
    """Size and schema, and the pragmas of the scheduler's connection, which it wrote to a file when it opened the database."""
    from tradewind.cli.compose.database import open_reader
    from tradewind.cli.compose.scheduler import writer_note

    try:
        store = open_reader(settings)
    except TradewindError as error:
        return {"state": str(error)}
    try:
        found: dict[str, Any] = {
            "schema": store.schema_number(),
            "bytes": store.size(),
            **store.kind(),
        }
    finally:
        store.close()
    try:
        with open(writer_note(settings), encoding="utf-8") as file:
            note = json.load(file)
        found.update(note["pragmas"])
        found["pragmas of"] = f"the writing connection of process {note['pid']}"
    except (OSError, ValueError, KeyError):
        found["pragmas of"] = "the reading connection of this command: no scheduler has written its own"
    return found


def _isolation(settings: Settings) -> dict[str, Any]:
    from tradewind.cli.common import isolation

    return {"mode": "same user", "meaning": isolation(), "task start": settings.core.task_start}
