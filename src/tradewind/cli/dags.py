"""`tradewind dags …`: the list of them, what is wrong with their files, pausing. The rest stands in `dag_*.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from tradewind.cli.arguments import dag_argument
from tradewind.cli.common import door, reading, say_if_offline, sure
from tradewind.cli.completion import complete_dags
from tradewind.cli.lazy import Lazy, LazyGroup
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.store.sql.store import SqliteStore


class Dags(LazyGroup):
    lazy = {
        "list-runs": Lazy("dag_runs:list_runs", "Runs of a DAG, or of all DAGs, the newest first."),
        "state": Lazy("dag_runs:state", "The state of a run."),
        "next-execution": Lazy("dag_runs:next_execution", "When the next scheduled runs are due."),
        "upcoming": Lazy("why:upcoming", "What starts next over all DAGs, and when."),
        "why": Lazy("why:why_dag", "Why the next run, or a run, has not started."),
        "list-skipped": Lazy("dag_runs:list_skipped", "Moments of the schedule that passed without a run, and why."),
        "trigger": Lazy("dag_runs:trigger", "Start a run of a DAG now."),
        "test": Lazy("dag_runs:test", "Run a DAG once in this process, without a trace in the database."),
        "clear": Lazy("run_edits:clear", "Forget what runs came to, so that they run again."),
        "set-state": Lazy("run_edits:set_state", "Say by hand what a run came to."),
        "note": Lazy("run_edits:note", "Write a note on a run."),
        "show": Lazy("dag_graph:show_dag", "The tasks of a DAG, as a table or a graph."),
        "show-dependencies": Lazy("dag_graph:show_dependencies", "Which DAGs trigger each other or wait for each other."),
        "list-jobs": Lazy("dag_upkeep:list_jobs", "The scheduler and worker hosts that the database knows."),
        "report": Lazy("dag_upkeep:report", "How long reading each DAG file took."),
        "reserialize": Lazy("dag_upkeep:reserialize", "Read the DAG files anew."),
        "backfill": Lazy("backfill:airflow2_backfill", "Now: tradewind backfill create.", hidden=True),
        "delete": Lazy("dag_upkeep:delete", "Forget a DAG with all its runs."),
    }


@click.group(cls=Dags)
def dags() -> None:
    """List, show, trigger, pause and test DAGs."""


bundle_option = click.option("-B", "--bundle-name", "bundles", multiple=True, help="Only this folder of DAG files.")
"""As Airflow's; handed over as `bundles`."""


@dags.command("list")
@click.option("--paused/--unpaused", default=None, help="Only those.")
@click.option("--tag", "tags", multiple=True, help="Only DAGs with this tag; may be given several times.")
@click.option("--owner", "owners", multiple=True, help="Only DAGs of this owner; may be given several times.")
@click.option("--pattern", metavar="TEXT", help="Only DAGs whose id holds this text.")
@click.option("--all", "everything", is_flag=True, help="Also DAGs whose file is gone.")
@click.option("-l", "--local", is_flag=True, hidden=True)
@bundle_option
@columns_option
@output_option
def list_dags(
    paused: bool | None,
    tags: tuple[str, ...],
    owners: tuple[str, ...],
    pattern: str | None,
    everything: bool,
    local: bool,
    bundles: tuple[str, ...],
    columns: str | None,
    output: str,
) -> None:
    """All DAGs."""
    import msgspec

    with reading() as store:
        found = store.list_dags(
            paused=paused,
            tags=tags,
            owners=owners,
            dag_id_pattern=pattern,
            active=None if everything else True,
            limit=None,
        ).rows
        broken = store.import_errors(limit=1).total
    if broken:
        click.echo(f"{broken} DAG file(s) cannot be read: tradewind dags list-import-errors", err=True)
    rows = [msgspec.to_builtins(view) for view in found if not bundles or view.bundle_name in bundles]
    shown = ("dag_id", "timetable_summary", "is_paused", "owners", "fileloc")
    empty = f"There are no DAGs yet. Put a DAG file into {load().paths.dags}"
    chosen = {"--pattern": pattern, "--tag": tags, "--owner": owners, "--bundle-name": bundles}
    asked = [f"{name} {value if isinstance(value, str) else ' '.join(value)}" for name, value in chosen.items() if value]
    asked += [] if paused is None else ["--paused" if paused else "--unpaused"]
    if asked and not rows:
        empty = f"No DAG matches {', '.join(asked)}. All DAGs: tradewind dags list"
    show(rows, output, shown, chosen=columns, empty=empty)


@dags.command()
@dag_argument
@output_option
def details(dag_id: str, output: str) -> None:
    """Everything that is known of one DAG."""
    import msgspec

    with reading() as store:
        found = msgspec.to_builtins(store.dag_details(dag_id))
        found["warnings"] = list(store.current_definition(dag_id).warnings)
        if found["asset_expression"] is not None:
            from tradewind.scheduler.assets.answers import waits_for_assets

            found["waits_for"] = waits_for_assets(store, store.need_dag(dag_id))
    show_one(found, output)


@dags.command("list-import-errors")
@click.option("-l", "--local", is_flag=True, hidden=True)
@bundle_option
@columns_option
@output_option
def list_import_errors(local: bool, bundles: tuple[str, ...], columns: str | None, output: str) -> int:
    """DAG files that cannot be read, and why. The exit code is 1 when there are any."""
    import msgspec

    with reading() as store:
        found = store.import_errors(limit=None).rows
    rows = []
    for view in found:
        row = msgspec.to_builtins(view)
        if not bundles or view.bundle_name in bundles:
            rows.append({"bundle_name": row["bundle_name"], "filepath": row["filename"], "error": row["stack_trace"], **row})
    show(rows, output, ("filepath", "line", "message"), chosen=columns, empty="Every DAG file can be read.")
    return 1 if rows else 0


# --- pausing ----------------------------------------------------------------------------------------------------------------


@dags.command()
@click.argument("dag_ids", metavar="DAG_ID...", nargs=-1, required=True, shell_complete=complete_dags)
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="All DAGs whose id matches.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def pause(dag_ids: tuple[str, ...], regex: bool, yes: bool, output: str) -> None:
    """Stop scheduling a DAG; what runs goes on."""
    _set_paused(dag_ids, True, regex, yes, output)


@dags.command()
@click.argument("dag_ids", metavar="DAG_ID...", nargs=-1, required=True, shell_complete=complete_dags)
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="All DAGs whose id matches.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def unpause(dag_ids: tuple[str, ...], regex: bool, yes: bool, output: str) -> None:
    """Let a DAG be scheduled."""
    _set_paused(dag_ids, False, regex, yes, output)


def _set_paused(dag_ids: tuple[str, ...], paused: bool, regex: bool, yes: bool, output: str) -> None:
    names = list(dag_ids)
    if regex:
        with reading() as store:
            names = list(dict.fromkeys(name for pattern in dag_ids for name in matching(store, pattern)))
        verb = "pause" if paused else "unpause"
        sure(f"{len(names)} DAGs match: {', '.join(names[:20])}{' ...' if len(names) > 20 else ''}\nReally {verb} them?", yes)
    way = door()
    rows = [way.call("set_paused", dag_id=name, is_paused=paused) for name in names]
    if output == "table":
        for row in rows:
            word = "paused" if row["is_paused"] else "unpaused"
            click.echo(f"{row['dag_id']} {'is now' if row['changed'] else 'was already'} {word}")
    else:
        show([{"dag_id": row["dag_id"], "is_paused": row["is_paused"]} for row in rows], output, ("dag_id", "is_paused"))
    if not paused:
        say_if_offline(way)


def matching(store: SqliteStore, pattern: str) -> list[str]:
    """Ids of the DAGs that a regular expression matches (from their beginning, as Airflow does).

    Raises:
        click.ClickException: it is none, or matches nothing.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}", param_hint="DAG_ID") from None
    found = [plan.dag_id for plan in store.plans() if plan.is_active and compiled.match(plan.dag_id)]
    if not found:
        raise click.ClickException(f"no DAG matches {pattern!r}")
    return found
