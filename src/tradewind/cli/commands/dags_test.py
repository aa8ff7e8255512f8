"""`tradewind dags test`: run a DAG once in this process. `tasks test` and `tasks render` use it too."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tradewind.cli.arguments import json_object, store_option
from tradewind.cli.common import MOMENT
from tradewind.model.bundles import folder_of
from tradewind.model.errors import DefinitionError, NotFound, TradewindError, did_you_mean
from tradewind.settings import Settings, load
from tradewind.wire.empty_database import EmptyDatabase
from tradewind.wire.runtime import installed

if TYPE_CHECKING:
    from tradewind.cli.lookups import Deployment
    from tradewind.sdk.dag import DAG


class TrialRun(NamedTuple):
    """Whether the run succeeded, and the state of each task."""

    succeeded: bool
    states: dict[str, str]


def find_dag(settings: Settings, name: str, file: str | None, outside: Deployment | None = None) -> DAG:
    """Import the file of a DAG and return the DAG.

    Args:
        name: id of a DAG, or path of a file that holds one.
        file: path of the file, when the DAG is not known yet.
        outside: answers requests for values of variables and connections while the file is imported.

    Raises:
        NotFound: there is no such DAG or file.
        DefinitionError: the file cannot be imported, or holds several DAGs and none was named.
    """
    from tradewind.sdk.import_paths import PLUGINS_FOLDER  # lazy import: only the test commands run user code
    from tradewind.sdk.load import load_file  # lazy import: only the test commands run user code

    os.environ[PLUGINS_FOLDER] = settings.paths.plugins
    dag_id: str | None = name
    if file is None and (name.endswith(".py") or os.path.isfile(name)):
        file, dag_id = name, None
    folder, relative = _folder_and_path(settings, name, file)
    try:
        with _answering(outside):
            found = load_file(folder, relative).dags
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"{relative} cannot be imported: {type(error).__name__}: {error}{_line_in_traceback(error, relative)}"
        ) from error
    if dag_id is None and len(found) == 1:
        return next(iter(found.values()))
    if dag_id is None:
        many = f"several DAGs ({', '.join(sorted(found))}); choose one: tradewind dags test DAG_ID -f {relative}"
        raise DefinitionError(f"{relative} contains {many if found else 'no DAG'}")
    if dag_id not in found:
        raise NotFound(f"{relative} contains no DAG {dag_id!r}.{did_you_mean(dag_id, found)}")
    return found[dag_id]


def _folder_and_path(settings: Settings, name: str, file: str | None) -> tuple[str, str]:
    """Folder and relative path of the DAG file."""
    if file is not None:
        path = os.path.abspath(file)
        if not os.path.isfile(path):
            raise NotFound(f"there is no file {path}")
        folder = settings.paths.dags
        if not path.startswith(os.path.join(folder, "")):
            folder = os.path.dirname(path)
        return folder, os.path.relpath(path, folder)
    return _registered_path(settings, name)


def _registered_path(settings: Settings, dag_id: str) -> tuple[str, str]:
    from tradewind.cli.compose.bundles import bundle_folders  # lazy import: as for every command that reads the database
    from tradewind.cli.compose.database import open_reader

    try:
        store = open_reader(settings)
    except TradewindError as error:
        raise NotFound(f"DAG {dag_id!r} is unknown, because {error}. To test a file: tradewind dags test FILE") from None
    try:
        plan = store.need_dag(dag_id)
    finally:
        store.close()
    return folder_of(plan.bundle, bundle_folders(settings), settings.paths.dags), plan.file


def _line_in_traceback(error: BaseException, file: str) -> str:
    """` (line 7 of x.py)`: the innermost line of the file in the error's traceback; "" if there is none."""
    trace, found = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith(file):
            found = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.lineno:
        found = error.lineno
    return f" (line {found} of {file})" if found else ""


def _answering(outside: Deployment | None) -> AbstractContextManager[None]:
    """Answer requests of the file: from the deployment, or from an empty database, as when a scheduler has no such variable."""
    return installed(EmptyDatabase() if outside is None else outside)


def run_dag(
    dag: DAG, date: int | None, conf: dict[str, Any] | None, done: str | None, outside: Deployment | None = None
) -> TrialRun:
    """Run a DAG once and print each step.

    Args:
        date: logical date in microseconds; None: now.
        done: regular expression of task ids that are not run but marked as success.
    """
    from tradewind.model.moments import from_micros

    given: dict[str, Any] = {"run_conf": conf, "outside": outside}
    if date is not None:
        given["logical_date"] = from_micros(date)
    if done is not None:
        given["mark_success_pattern"] = done
    run = dag.test(**given)
    return TrialRun(run.state == "success", {name: task.state.value for name, task in run.tasks.items()})


@click.command()
@click.argument("dag", metavar="DAG_ID_OR_FILE")
@click.argument("logical_date", type=MOMENT, required=False)
@click.option("-c", "--conf", metavar="JSON", help="Parameters of the run, as a JSON object.")
@click.option("-f", "--dagfile-path", "file", type=click.Path(), help="File of the DAG, if the DAG is not in the database yet.")
@click.option("--mark-success-pattern", metavar="REGEX", help="Tasks whose id matches are not run; they are marked as success.")
@click.option(
    "--save-dagrun",
    type=click.Path(dir_okay=False),
    help="Write the graph of the run to this file: .dot, or .png … (needs Graphviz).",
)
@click.option("--show-dagrun", is_flag=True, help="Print the graph of the run in the DOT language of Graphviz.")
@click.option("--imgcat-dagrun", is_flag=True, help="Show the graph of the run in the terminal; needs Graphviz and imgcat.")
@click.option("--use-executor", is_flag=True, hidden=True)
@store_option
def test(
    dag: str,
    logical_date: int | None,
    conf: str | None,
    file: str | None,
    mark_success_pattern: str | None,
    save_dagrun: str | None,
    show_dagrun: bool,
    imgcat_dagrun: bool,
    use_executor: bool,
    store: bool,
) -> int:
    """Run a DAG once in this process, without writing to the database. Breakpoints work.

    Variables and connections are read from the database of the home folder. Values that tasks set exist only during this run.
    """
    from tradewind.cli.commands.dags_show import run_as_dot, write_graph
    from tradewind.cli.lookups import deployment

    if use_executor:
        raise click.UsageError("a test runs in this process; to run the DAG with the executor: tradewind dags trigger --wait")
    given = json_object(conf, "--conf")
    settings = load()
    outside = deployment(settings, store)
    found = find_dag(settings, dag, file, outside)
    run = run_dag(found, logical_date, given, mark_success_pattern, outside)
    if show_dagrun or save_dagrun is not None or imgcat_dagrun:
        graph = run_as_dot(found, run.states)
        if show_dagrun:
            write_graph(graph, None, False)
        if save_dagrun is not None or imgcat_dagrun:
            write_graph(graph, save_dagrun, imgcat_dagrun)
    return 0 if run.succeeded else 1
