"""`tradewind tasks failed-deps`, `render` and `test`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, json_object, optional_run_argument, store_option, task_argument
from tradewind.cli.common import find_run, reading
from tradewind.cli.output import FORMATS, output_option, show
from tradewind.model.errors import NotFound, NotYetSupported, TradewindError, did_you_mean
from tradewind.model.moments import parse_moment
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.cli.lookups import Deployment
    from tradewind.sdk.dag import DAG

file_option = click.option(
    "-f",
    "--dagfile-path",
    "-S",
    "--subdir",
    "file",
    type=click.Path(),
    help="File of the DAG, if the DAG is not in the database yet.",
)


@click.command("failed-deps")
@dag_argument
@task_argument
@optional_run_argument
@click.option("--map-index", type=int, help="Map index, for a mapped task. Default: the first unfinished one.")
@output_option
def failed_deps(dag_id: str, task_id: str, run: str | None, map_index: int | None, output: str) -> None:
    """List the unmet dependencies of a task, with Airflow's names. Default: in the newest unfinished run."""
    from tradewind.cli.commands.why import ask
    from tradewind.kernel.airflow_dependencies import dependency_name
    from tradewind.wire.commands import Why

    run_id = None
    if run is not None:
        with reading() as store:
            run_id = find_run(store, dag_id, run).run_id
    found = ask(load(), Why(dag_id, task_id, run_id, map_index))
    rows = [
        {"name": dependency_name(one.rule, found.state), "reason": one.sentence, "rule": one.rule} for one in found.blockers
    ]
    if output == "table":
        click.echo("Task instance dependencies not met:" if rows else "Task instance dependencies are all met.")
        for row in rows:
            click.echo(f"{row['name']}: {row['reason']}")
    else:
        show(rows, output, ("name", "reason"))


@click.command()
@dag_argument
@task_argument
@optional_run_argument
@file_option
@click.option("-t", "--task-params", metavar="JSON", help="Parameters, as with --conf of a run, as a JSON object.")
@click.option("--env-vars", metavar="JSON", help="Environment variables for the task, as a JSON object.")
@store_option
def test(
    dag_id: str, task_id: str, run: str | None, file: str | None, task_params: str | None, env_vars: str | None, store: bool
) -> int:
    """Run one task once in this process, whatever the state of its upstream tasks. Breakpoints work. The database is not changed.

    Other tasks count as successful; their XComs are read from the given run. Variables and connections are read from the database
    of the home folder, as in `dags test`.
    """
    conf = json_object(task_params, "--task-params")
    os.environ.update({name: str(value) for name, value in (json_object(env_vars, "--env-vars") or {}).items()})
    from tradewind.cli.lookups import deployment

    outside = deployment(load(), store)
    dag, task, date, run_conf = _find(dag_id, task_id, run, file, outside)
    task.retries = 0
    ended = dag.test(logical_date=date, run_conf={**run_conf, **(conf or {})}, only_task=task_id, outside=outside)
    return 0 if all(one.state in ("success", "skipped") for one in ended.instances_of(task_id)) else 1


@click.command()
@dag_argument
@task_argument
@optional_run_argument
@file_option
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", help="Output format.")
@store_option
def render(dag_id: str, task_id: str, run: str | None, file: str | None, output: str, store: bool) -> int:
    """Render the template fields of a task for a run or a date. Default: now. The task is not run.

    XComs are read from the given run, variables and connections from the database of the home folder, as in `dags test`.
    """
    from tradewind.cli.lookups import deployment
    from tradewind.model.secret_mask import SecretMask, secrets_of_environment
    from tradewind.model.secret_names import masked

    outside = deployment(load(), store)
    dag, task, date, run_conf = _find(dag_id, task_id, run, file, outside)
    if task.result_is_list_for(None):
        raise NotYetSupported(
            f"{task_id} is mapped: each of its task instances has its own template fields. In an existing run they are shown with "
            f"the task instances; to run all of them in this process: tradewind tasks test {dag_id} {task_id}"
        )
    found: dict[str, Any] = {}

    def keep(context: Any) -> None:
        rendered = context["task"]
        found.update({name: getattr(rendered, name, None) for name in rendered.template_fields})

    task.retries, task.do_xcom_push = 0, False
    task._pre_execute_hook = task._post_execute_hook = None
    task.pre_execute = task.post_execute = lambda *_: None
    task.execute = keep
    ended = dag.test(logical_date=date, run_conf=run_conf, only_task=task_id, say=lambda line: None, outside=outside)
    outcome = ended.get_task_instance(task_id)
    if outcome is None or outcome.state != "success":
        click.echo(
            f"The templates of {task_id} cannot be rendered: {outcome.reason if outcome else 'it was not run'}", err=True
        )
        return 1
    mask = SecretMask([*secrets_of_environment(os.environ), *(outside.secrets if outside is not None else ())])
    found = {name: mask.value(masked(value, name)) for name, value in found.items()}
    if output == "table":
        rule = "# " + "-" * 58
        for name, value in found.items():
            click.echo(f"{rule}\n# property: {name}\n{rule}\n{_shown(value)}\n")
    else:
        rows = [{"property": name, "value": value} for name, value in found.items()]
        show(rows, output, ("property", "value"))
    return 0


def _find(
    dag_id: str, task_id: str, run: str | None, file: str | None, outside: Deployment | None
) -> tuple[DAG, Any, Any, dict[str, Any]]:
    """The DAG, the task, the logical date (a datetime, or None for a run without one), and the run's conf.

    Sets `outside.run` to the run.

    Raises:
        NotFound: no such DAG, task or run.
    """
    from datetime import UTC, datetime

    from tradewind.cli.commands.dags_test import find_dag
    from tradewind.model.moments import from_micros
    from tradewind.model.states import TriggerRule

    dag = find_dag(load(), dag_id, file, outside)
    if task_id not in dag.task_dict:
        raise NotFound(f"DAG {dag.dag_id} has no task {task_id!r}.{did_you_mean(task_id, dag.task_dict)}")
    date: Any = datetime.now(UTC)
    conf: dict[str, Any] = {}
    if run is not None:
        try:
            with reading() as store:
                row = find_run(store, dag.dag_id, run)
            if outside is not None:
                outside.run = (row.dag_id, row.run_id)
            date = None if row.logical_date is None else from_micros(row.logical_date)
            conf = json.loads(row.conf) if row.conf else {}
        except TradewindError:
            try:  # a date without a run
                date = from_micros(parse_moment(run))
            except ValueError:
                raise NotFound(f"{run!r} is neither a run of DAG {dag.dag_id} nor a date like 2024-01-31") from None
    task = dag.task_dict[task_id]
    task.trigger_rule = TriggerRule.ALWAYS
    return dag, task, date, conf


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=repr)
