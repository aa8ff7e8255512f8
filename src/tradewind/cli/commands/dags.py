"""`tradewind dags …`: list, details, import errors, pause and unpause. The other commands are in the modules of `Dags.lazy`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from tradewind.cli.arguments import dag_argument
from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.cli.common import command_client, confirm, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.model.counts import counted
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.store.port import Reader


class Dags(LazyGroup):
    lazy = {
        "list-runs": LazyCommand("dags_runs:list_runs", "List the runs of a DAG, or of all DAGs."),
        "state": LazyCommand("dags_runs:state", "Print the state of a run."),
        "next-execution": LazyCommand("dags_runs:next_execution", "Show when the next scheduled runs start."),
        "upcoming": LazyCommand("dags_upcoming:upcoming", "List what starts next in all DAGs, and when."),
        "why": LazyCommand("why:why_dag", "Explain why a run has not started or ended."),
        "list-skipped": LazyCommand("dags_runs:list_skipped", "List the scheduled dates without a run, and why."),
        "trigger": LazyCommand("dags_runs:trigger", "Trigger a run of a DAG."),
        "test": LazyCommand("dags_test:test", "Run a DAG once in this process, without writing to the database."),
        "clear": LazyCommand("dags_clear:clear", "Clear runs, so that their tasks run again."),
        "set-state": LazyCommand("dags_clear:set_state", "Set the state of a run by hand."),
        "note": LazyCommand("dags_clear:note", "Write a note on a run."),
        "show": LazyCommand("dags_show:show_dag", "Show the tasks of a DAG, as a table or a graph."),
        "show-dependencies": LazyCommand("dags_show:show_dependencies", "Show which DAGs depend on each other."),
        "list-jobs": LazyCommand("dags_maintenance:list_jobs", "List the services, as `tradewind jobs list` does."),
        "report": LazyCommand("dags_maintenance:report", "Show how long parsing each DAG file took."),
        "reserialize": LazyCommand("dags_maintenance:reserialize", "Parse all DAG files again."),
        "backfill": LazyCommand("backfill:airflow2_backfill", "Now: tradewind backfill create.", hidden=True),
        "delete": LazyCommand("dags_maintenance:delete", "Delete a DAG with all its runs."),
    }


@click.group(cls=Dags)
def dags() -> None:
    """List, show, trigger, pause and test DAGs."""


bundle_option = click.option(
    "-B", "--bundle-name", "bundles", multiple=True, help="Only DAGs of this bundle (folder of DAG files)."
)
"""As in Airflow; passed to the command as `bundles`."""


@dags.command("list")
@click.option("--paused/--unpaused", default=None, help="Only paused, or only unpaused DAGs.")
@click.option("--tag", "tags", multiple=True, help="Only DAGs with this tag; can be repeated.")
@click.option("--owner", "owners", multiple=True, help="Only DAGs of this owner; can be repeated.")
@click.option("--pattern", metavar="TEXT", help="Only DAGs whose id contains this text.")
@click.option("--all", "everything", is_flag=True, help="Include DAGs whose file no longer exists.")
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
    """List the DAGs."""
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
        unread = store.unread_files()
    if unread is not None:
        verb = "is" if unread.unread == 1 else "are"
        click.echo(
            f"{unread.unread} of {counted(unread.files, 'DAG file')} {verb} still being read: DAGs may be missing.", err=True
        )
    if broken:
        click.echo(f"{counted(broken, 'DAG file')} with import errors. See: tradewind dags list-import-errors", err=True)
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
    """Show all details of one DAG."""
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
    """List DAG files with import errors. The exit code is 1 if there are any."""
    import msgspec

    with reading() as store:
        found = store.import_errors(limit=None).rows
    rows = []
    for view in found:
        row = msgspec.to_builtins(view)
        if not bundles or view.bundle_name in bundles:
            rows.append({"bundle_name": row["bundle_name"], "filepath": row["filename"], "error": row["stack_trace"], **row})
    show(rows, output, ("filepath", "line", "message"), chosen=columns, empty="There are no import errors.")
    return 1 if rows else 0


# --- pause ------------------------------------------------------------------------------------------------------------------


@dags.command()
@click.argument("dag_ids", metavar="DAG_ID...", nargs=-1, required=True, shell_complete=complete_dags)
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="DAG_ID is a regular expression: all DAGs that match.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@output_option
def pause(dag_ids: tuple[str, ...], regex: bool, yes: bool, output: str) -> None:
    """Pause DAGs: no new runs and tasks start; running tasks continue."""
    _set_paused(dag_ids, True, regex, yes, output)


@dags.command()
@click.argument("dag_ids", metavar="DAG_ID...", nargs=-1, required=True, shell_complete=complete_dags)
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="DAG_ID is a regular expression: all DAGs that match.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@output_option
def unpause(dag_ids: tuple[str, ...], regex: bool, yes: bool, output: str) -> None:
    """Unpause DAGs, so that they are scheduled again."""
    _set_paused(dag_ids, False, regex, yes, output)


def _set_paused(dag_ids: tuple[str, ...], paused: bool, regex: bool, yes: bool, output: str) -> None:
    from tradewind.wire import commands as c

    names = list(dag_ids)
    if regex:
        with reading() as store:
            names = list(dict.fromkeys(name for pattern in dag_ids for name in matching(store, pattern)))
        verb = "pause" if paused else "unpause"
        confirm(
            f"{counted(len(names), 'DAG')} to {verb}: {', '.join(names[:20])}{' ...' if len(names) > 20 else ''}\nContinue?",
            yes,
        )
    elif len(names) > 1:  # a wrong id must be found before the first DAG is changed
        with reading() as store:
            for name in names:
                store.need_dag(name)
    client = command_client()
    rows = [client.call(c.SetPaused(name, paused)) for name in names]
    if output == "table":
        for row in rows:
            word = "paused" if row.is_paused else "unpaused"
            click.echo(f"{row.dag_id} {'is now' if row.changed else 'was already'} {word}")
    else:
        show([{"dag_id": row.dag_id, "is_paused": row.is_paused} for row in rows], output, ("dag_id", "is_paused"))
    if not paused:
        warn_if_no_scheduler(client)


def matching(store: Reader, pattern: str) -> list[str]:
    """Ids of the DAGs that a regular expression matches, from the start of the id as in Airflow.

    Raises:
        click.BadParameter: `pattern` is not a regular expression.
        click.ClickException: no DAG matches.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}", param_hint="DAG_ID") from None
    found = [plan.dag_id for plan in store.plans() if plan.is_active and compiled.match(plan.dag_id)]
    if not found:
        raise click.ClickException(f"no DAG matches {pattern!r}")
    return found
