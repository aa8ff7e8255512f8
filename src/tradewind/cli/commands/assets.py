"""`tradewind assets …`: list assets, record asset events, materialize assets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradewind.cli.arguments import dag_argument, json_object
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import command_client, confirm, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_assets, complete_dags
from tradewind.cli.output import columns_option, output_option, show, show_one

if TYPE_CHECKING:
    from tradewind.store.port import Reader
    from tradewind.store.views import AssetView

T = TypeVar("T")

name_option = click.option("--name", default="", help="Name of the asset.")
uri_option = click.option("--uri", default="", help="URI of the asset.")


def asset_argument(command: Callable[..., T]) -> Callable[..., T]:
    """Accept an asset by name (argument, or `--name` as in Airflow) or by URI. The command gets `name` and `uri`, "" if absent."""

    @click.argument("asset", metavar="[NAME]", required=False, shell_complete=complete_assets)
    @name_option
    @uri_option
    @wraps(command)
    def with_asset(*args: Any, asset: str | None, name: str, uri: str, **more: Any) -> T:
        if asset is not None and name and asset != name:
            raise click.UsageError(f"two different names are given: {asset} and --name {name}")
        return command(*args, name=name or asset or "", uri=uri, **more)

    return with_asset


@click.group(cls=CommandGroup)
def assets() -> None:
    """List assets, record asset events, run the DAGs that produce assets."""


def _fields(view: AssetView) -> dict[str, Any]:
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(view)
    return {
        "name": row["name"],
        "uri": row["uri"],
        "group": row["group"],
        "extra": row["extra"],
        "id": row["id"],
        "produced_by": [f"{one['dag_id']}.{one['task_id']}" for one in row["producing_tasks"]],
        "read_by": [f"{one['dag_id']}.{one['task_id']}" for one in row["consuming_tasks"]],
        "schedules": [one["dag_id"] for one in row["scheduled_dags"]],
        "aliases": [one["name"] for one in row["aliases"]],
        "watchers": [_watcher_text(one) for one in row["watchers"]],
        "last_update": row["last_asset_event"]["timestamp"],
    }


def _watcher_text(one: dict[str, Any]) -> str:
    """A watcher and what its trigger does, in one line."""
    about = f"{one['name']} ({one['trigger']})"
    if one["worker"] is not None:
        does = f"runs on {one['worker']}"
    elif one["next_start"] is not None:
        does = f"is started again at {one['next_start']}"
    else:
        does = "does not run: no unpaused DAG is scheduled on the asset, or no scheduler or worker runs"
    if one["failures"]:
        lines = (one["error"] or "").strip().splitlines() or [""]
        does += f"; {one['failures']} failures in a row, the last one: {lines[-1]}"
    return f"{about}: {does}"


@assets.command("list")
@click.option("--alias", is_flag=True, help="List asset aliases instead.")
@click.option("--all", "everything", is_flag=True, help="Include assets that no DAG uses any more.")
@columns_option
@output_option
def list_assets(alias: bool, everything: bool, columns: str | None, output: str) -> None:
    """List the assets that DAGs use, and the tasks that produce them."""
    import msgspec

    with reading() as store:
        if alias:
            rows = [msgspec.to_builtins(view) for view in store.list_asset_aliases(limit=None, order_by=("name",)).rows]
            show(rows, output, ("name", "group"), chosen=columns, empty="No DAG uses an asset alias.")
            return
        found = store.list_assets(only_active=not everything, limit=None, order_by=("name",)).rows
        conflicts = [(view.name, text) for view in found for text in store.asset_conflicts(view.id)]
    shown = ("name", "uri", "produced_by", "schedules", "last_update")
    show([_fields(view) for view in found], output, shown, chosen=columns, empty="No DAG uses an asset.")
    for name, text in conflicts:
        click.echo(f"warning: asset {name}: {text}.", err=True)


@assets.command()
@asset_argument
@click.option("--alias", is_flag=True, help="The name is an alias.")
@output_option
def details(name: str, uri: str, alias: bool, output: str) -> None:
    """Show all details of one asset, and which updates each DAG scheduled on it still waits for."""
    with reading() as store:
        if alias:
            show_one(_alias_details(store, name), output)
            return
        _check(name, uri)
        view = store.need_asset(name, uri)
        found = _fields(view)
        found["conflicts"] = store.asset_conflicts(view.id)
        found["waiting"] = [f"{one.dag_id}: {_awaited_assets_text(store, one.dag_id)}" for one in view.scheduled_dags]
    show_one(found, output)


def _alias_details(store: Reader, name: str) -> dict[str, Any]:
    from tradewind.model.errors import NotFound, did_you_mean

    known = {view.name: view for view in store.list_asset_aliases(limit=None).rows}
    if name not in known:
        raise NotFound(f"there is no asset alias {name!r}.{did_you_mean(name, known)}")
    events = store.asset_events(alias=name)
    about = {"name": name, "group": known[name].group, "id": known[name].id}
    return {**about, "assets": sorted({event.asset.name for event in events}), "events": len(events)}


def _awaited_assets_text(store: Reader, dag_id: str) -> str | None:
    from tradewind.scheduler.assets.answers import waits_for_assets

    return waits_for_assets(store, store.need_dag(dag_id))


def _check(name: str, uri: str) -> None:
    if not name and not uri:
        raise click.UsageError("no asset is given; give its name or --uri. All assets: tradewind assets list")


@assets.command()
@asset_argument
@click.option("-c", "--conf", metavar="JSON", help="Parameters of the run, as a JSON object.")
@click.option("--note", help="Note to store with the run.")
@click.option("--partition-key", help="Partition key of the run.")
@output_option
def materialize(name: str, uri: str, conf: str | None, note: str | None, partition_key: str | None, output: str) -> None:
    """Run the DAG that produces an asset."""
    from tradewind.wire import commands as c

    _check(name, uri)
    client = command_client()
    given = json_object(conf, "--conf")
    command = c.MaterializeAsset(name=name or None, uri=uri or None, conf=given, note=note, partition_key=partition_key)
    made = client.call(command)
    if output == "table":
        click.echo(f"DAG {made.dag_id} was triggered: {made.run_id}")
    else:
        show_one({"dag_id": made.dag_id, "run_id": made.run_id, "state": made.state}, output)
    warn_if_no_scheduler(client)


_EVENTS_SEARCHED = 20
"""Number of the latest events of an asset among which an event that was just created is searched."""


@assets.command("create-event")
@asset_argument
@click.option("--extra", metavar="JSON", help="Extra information about the event, as a JSON object.")
@click.option("--partition-key", help="Partition key of the event.")
@output_option
def create_event(name: str, uri: str, extra: str | None, partition_key: str | None, output: str) -> None:
    """Record that an asset was updated outside of Tradewind. DAGs scheduled on it run when their condition is met."""
    from tradewind.wire import commands as c

    _check(name, uri)
    about = json_object(extra, "--extra") or {}
    client = command_client()
    command = c.CreateAssetEvent(name=name or None, uri=uri or None, extra=about, partition_key=partition_key)
    event = client.call(command)
    with reading() as store:
        view = store.asset_details(event.asset_id)
        latest = store.list_asset_events(asset=event.asset_id, limit=_EVENTS_SEARCHED, order_by=("-id",)).rows
        began = {run.dag_id: run.run_id for one in latest if one.id == event.id for run in one.created_dagruns}
        waiting = {
            one.dag_id: f"its run {began[one.dag_id]} was created"
            if one.dag_id in began
            else _awaited_assets_text(store, one.dag_id)
            for one in view.scheduled_dags
        }
    if output != "table":
        show_one({"id": event.id, "name": event.name, "uri": event.uri, "dags": sorted(waiting)}, output)
    else:
        click.echo(f"Event {event.id}: asset {event.name} was updated.")
        for dag_id, text in waiting.items():
            click.echo(f"  DAG {dag_id}: {text}")
        if not waiting:
            click.echo("  No DAG is scheduled on this asset.")
    warn_if_no_scheduler(client)


@assets.command()
@name_option
@uri_option
@click.option("-d", "--dag-id", shell_complete=complete_dags, help="Only events emitted by tasks of this DAG.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Show at most this many, the newest first."
)
@columns_option
@output_option
def events(name: str, uri: str, dag_id: str | None, limit: int, columns: str | None, output: str) -> None:
    """List asset events, the newest first, and the runs that each event started."""
    with reading() as store:
        asset = store.need_asset(name, uri).id if name or uri else None
        found = store.list_asset_events(asset=asset, source_dag_id=dag_id, limit=limit, order_by=("-id",)).rows
    rows = [
        {
            "id": view.id,
            "name": view.name,
            "timestamp": view.timestamp,
            "source": f"{view.source_dag_id}.{view.source_task_id}" if view.source_dag_id else None,
            "source_run_id": view.source_run_id,
            "extra": view.extra,
            "began": [f"{run.dag_id} {run.run_id}" for run in view.created_dagruns],
        }
        for view in found
    ]
    show(rows, output, ("id", "name", "timestamp", "source", "began"), chosen=columns, empty="There are no asset events yet.")


@assets.command()
@click.argument("dag_id", required=False, shell_complete=complete_dags)
@output_option
def queued(dag_id: str | None, output: str) -> None:
    """List DAGs that are scheduled on assets, with the updates they have and the updates they wait for."""
    with reading() as store:
        plans = [store.need_dag(dag_id)] if dag_id else [plan for plan in store.plans() if plan.is_active]
        rows = [
            {
                "dag_id": plan.dag_id,
                "waits_for": _awaited_assets_text(store, plan.dag_id),
                "updated": [one.asset.name for one in store.waiting_assets(plan.dag_id) if one.counts],
            }
            for plan in plans
            if plan.assets is not None
        ]
    show(rows, output, ("dag_id", "waits_for", "updated"), empty="No such DAG is scheduled on assets.")


@assets.command("clear-queued")
@dag_argument
@name_option
@uri_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def clear_queued(dag_id: str, name: str, uri: str, yes: bool) -> None:
    """Delete the queued asset events of a DAG, so that they do not start a run."""
    from tradewind.wire import commands as c

    with reading() as store:
        store.need_dag(dag_id)
        asset = store.need_asset(name, uri) if name or uri else None
    confirm(f"Delete the queued asset events of DAG {dag_id}{f' for asset {asset.name}' if asset is not None else ''}?", yes)
    command_client().call(c.DropQueuedEvents(dag_id, asset.id if asset is not None else None))
    click.echo(f"The queued asset events of DAG {dag_id}{f' for asset {asset.name}' if asset is not None else ''} are deleted.")
