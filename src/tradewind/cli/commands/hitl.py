"""`tradewind hitl …`: questions of tasks to people (human in the loop)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, json_object, run_argument, task_argument
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import command_client, find_run, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import output_option, show

if TYPE_CHECKING:
    from tradewind.store.views import HitlDetailView

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "subject", "options", "assigned_users", "created_at", "answer")

map_index_option = click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")


@click.group(cls=CommandGroup)
def hitl() -> None:
    """List and answer the questions of tasks to people (human in the loop)."""


@hitl.command("list")
@click.option("-d", "--dag-id", shell_complete=complete_dags, help="Only questions of this DAG.")
@click.option("--all", "every", is_flag=True, help="Also questions that were answered.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most this many rows.")
@output_option
def list_questions(dag_id: str | None, every: bool, limit: int, output: str) -> None:
    """List the questions that wait for an answer, the oldest first."""
    from tradewind.store.port.lists import HitlFilter

    open_only: dict[str, Any] = {} if every else {"answered": False, "states": ("awaiting_input",)}
    with reading() as store:
        found = store.hitl_details(HitlFilter(dag_id=dag_id or "~", **open_only), limit=limit).rows
    show([_question_row(one) for one in found], output, _COLUMNS, empty="No task waits for an answer.")


def _question_row(one: HitlDetailView) -> dict[str, Any]:
    task = one.task_instance
    return {
        "dag_id": task.dag_id,
        "run_id": task.dag_run_id,
        "task_id": task.task_id,
        "map_index": task.map_index,
        "subject": one.subject,
        "options": ", ".join(one.options),
        "assigned_users": ", ".join(user.name for user in one.assigned_users) or None,
        "created_at": one.created_at,
        "answer": None if one.chosen_options is None else ", ".join(one.chosen_options),
    }


@hitl.command("show")
@dag_argument
@task_argument
@run_argument
@map_index_option
def show_question(dag_id: str, task_id: str, run: str, map_index: int) -> None:
    """Show a question with its text, options and form fields, and the answer, as JSON."""
    import msgspec

    with reading() as store:
        question = store.hitl_detail(dag_id, find_run(store, dag_id, run).run_id, task_id, map_index)
    shown: dict[str, Any] = msgspec.to_builtins(question)
    shown["task_instance"] = {
        name: shown["task_instance"][name] for name in ("dag_id", "dag_run_id", "task_id", "map_index", "try_number", "state")
    }
    click.echo(json.dumps(shown, indent=2, ensure_ascii=False))


@hitl.command()
@dag_argument
@task_argument
@run_argument
@map_index_option
@click.option("-o", "--option", "options", multiple=True, required=True, help="The option to choose; repeat it for several.")
@click.option("--params", metavar="JSON", help="The values of the form fields, as a JSON object. Give all fields or none.")
def respond(dag_id: str, task_id: str, run: str, map_index: int, options: tuple[str, ...], params: str | None) -> None:
    """Answer the question of a task, in your name. You may answer any question, even one for other people."""
    from tradewind.cli.command_client import current_user
    from tradewind.sdk.exceptions import ParamValidationError
    from tradewind.sdk.params import check_fields
    from tradewind.wire import commands as c

    values = json_object(params, "--params") or {}
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
        fields = store.hitl_detail(dag_id, run_id, task_id, map_index).params
    try:
        check_fields(fields, values)
    except ParamValidationError as error:
        raise click.BadParameter(str(error), param_hint="--params") from None
    client, user = command_client(), current_user()
    done = client.call(c.AnswerInput(dag_id, run_id, task_id, list(options), user, user, map_index, values))
    click.echo(f"Answered {task_id} in {run_id}: {', '.join(done.chosen)}")
    warn_if_no_scheduler(client)
