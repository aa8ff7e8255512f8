"""`tradewind why` and `dags why`: why a task or a run is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from tradewind.cli.arguments import dag_argument, optional_run_argument
from tradewind.cli.common import find_run, reading
from tradewind.cli.completers import complete_tasks
from tradewind.cli.output import FORMATS, show_one
from tradewind.model.errors import NotFound, Unreachable
from tradewind.model.moments import iso, parse_moment
from tradewind.settings import Settings, load

format_option = click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="table", help="Output format; json has all fields."
)

if TYPE_CHECKING:
    from tradewind.wire.commands import Command
    from tradewind.wire.explanations import BlockerView, Explanation, FirstInQueue, SlotHolder

R = TypeVar("R")


@click.command()
@dag_argument
@click.argument("task_id", required=False, shell_complete=complete_tasks)
@optional_run_argument
@click.option("--map-index", type=int, help="Map index, for a mapped task. Default: the first unfinished one.")
@format_option
def why(dag_id: str, task_id: str | None, run: str | None, map_index: int | None, output: str) -> None:
    """Explain why a task is not running; without TASK_ID, why a run is not running. Default: the newest unfinished run."""
    from tradewind.wire import commands as c

    settings = load()
    run_id, date = which_run(settings, dag_id, run)
    if task_id is None or date is not None:
        _show_run(settings, dag_id, run_id, date, output)
    else:
        _show(ask(settings, c.Why(dag_id, task_id, run_id, map_index)), output)


@click.command("why")
@dag_argument
@optional_run_argument
@format_option
def why_dag(dag_id: str, run: str | None, output: str) -> None:
    """Explain why a run has not started or ended, or why there is no run for a date. Default: the next run."""
    settings = load()
    run_id, date = which_run(settings, dag_id, run)
    _show_run(settings, dag_id, run_id, date, output)


def which_run(settings: Settings, dag_id: str, run: str | None) -> tuple[str | None, int | None]:
    """The run id of an existing run, or the date (microseconds) if the DAG has no run for it.

    Raises:
        NotFound: there is no such DAG, or `run` is neither one of its runs nor a date.
    """
    if run is None:
        return None, None
    with reading(settings) as store:
        try:
            return find_run(store, dag_id, run).run_id, None
        except NotFound:
            if store.dag(dag_id) is None:
                raise
            try:
                return None, parse_moment(run)
            except ValueError:
                pass
            raise


def ask(settings: Settings, question: Command[R]) -> R:
    """The answer of the running scheduler; without one, the answer from the database alone. See `scheduler.explain`."""
    from tradewind.client.control import ControlClient

    try:
        with ControlClient(settings.paths.scheduler_socket, "cli") as control:
            return control.call(question)
    except Unreachable:
        from tradewind.platform.clock import SystemClock
        from tradewind.scheduler.explain import questions  # lazy import: only without a scheduler

        with reading(settings) as store:
            return questions.ask(question, store, None, SystemClock().wall())


def _show_run(settings: Settings, dag_id: str, run_id: str | None, date: int | None, output: str) -> None:
    """Print why a run is not running, why there is no run for a date, or why the next run has not started."""
    from tradewind.wire import commands as c

    _show(ask(settings, c.WhyDag(dag_id, run_id, date)), output, date)


# --- output as text -------------------------------------------------------------------------------------------------------


def _show(found: Explanation, output: str, date: int | None = None) -> None:
    if output != "table":
        show_one(msgspec.to_builtins(found), output)
        return
    click.echo(_heading(found, date))
    for blocker in found.blockers:
        _blocker(blocker, "  ")
    if not found.blockers:
        click.echo("  " + _text_without_blockers(found))
    for state, tasks in (found.open or {}).items():
        more = f" and {tasks.count - len(tasks.first)} more" if tasks.count > len(tasks.first) else ""
        word = "not examined yet" if state == "none" else state
        click.echo(f"  {tasks.count} {word}: {', '.join(tasks.first)}{more}")
    _print_queue(found)
    for sentence in found.callbacks:
        click.echo(f"  - {sentence}")
    coming = found.next_run
    unplanned = coming is not None and [one.rule for one in coming.blockers] == ["no_schedule"]
    if coming is not None and found.run_id is not None and not unplanned:
        click.echo("The next run of the DAG:" if coming.blockers else "The next run of the DAG is due.")
        for blocker in coming.blockers:
            _blocker(blocker, "  ")
    for note in coming.notes if coming is not None else ():
        click.echo(f"  Note: {note}")


def _heading(found: Explanation, date: int | None) -> str:
    if found.run_id is None:
        about = f"{found.dag_id}: " + (f"there is no run for {iso(date)}" if date is not None else "the next run")
        return about if found.task_id is None or date is not None else f"{found.dag_id}.{found.task_id} has no run yet"
    if found.task_id is None:
        return f"{found.dag_id} {found.run_id}: {found.run_state}"
    which = f"[{found.map_index}]" if found.map_index >= 0 else ""
    run_state = "" if found.run_state == "running" else f" (the run is {found.run_state})"
    return f"{found.dag_id}.{found.task_id}{which} in {found.run_id}: {found.state or 'not examined yet'}{run_state}"


def _text_without_blockers(found: Explanation) -> str:
    if found.run_state == "running" and found.task_id is None:
        return "The run is running; it ends when its last task has ended." if found.open else "The run is running."
    return "Nothing blocks it: it starts at the scheduler's next step."


def _blocker(blocker: BlockerView, indent: str) -> None:
    click.echo(f"{indent}- {blocker.sentence}  [{blocker.rule}]")
    holders = [_holder(one) for one in blocker.holders]
    if holders:
        more = blocker.holder_count - len(holders)
        click.echo(f"{indent}    held by {'; '.join(holders)}{f'; and {more} more' if more > 0 else ''}")
    command = blocker.command
    if command is not None and command not in blocker.sentence:
        click.echo(f"{indent}    {command}")


def _holder(one: SlotHolder) -> str:
    since = f" since {one.since}" if one.since else ""
    return f"{_instance(one)} ({one.state or 'unknown'}{since})"


def _instance(one: SlotHolder | FirstInQueue) -> str:
    """A task instance, or a run, by its ids."""
    which = f"[{one.map_index}]" if one.map_index >= 0 else ""
    task = f".{one.task_id}{which} in" if one.task_id else ""
    return f"{one.dag_id}{task} {one.run_id}"


def _print_queue(found: Explanation) -> None:
    """Print the position in the queue, missing workers, and the next event that can change the state."""
    position, workers, event = found.position, found.workers, found.next_event
    if position is not None and position.first is not None:
        first = position.first
        weight = f" (priority weight {first.priority_weight})" if first.priority_weight is not None else ""
        click.echo(f"  Ahead of it in the queue: {position.ahead}, the first is {_instance(first)}{weight}.")
    if workers is not None and not workers.attached:
        click.echo(
            f"  No worker host that runs it is connected ({workers.executor}): it does not start before one is connected."
        )
    if workers is not None and workers.note is not None:
        click.echo(f"  {workers.note}")
    if event is not None:
        click.echo(f"  Next event that can change this: {event.event}.")
    if event is not None and event.at is None and any(one.not_before for one in found.blockers):
        click.echo(f"  Not before {max(one.not_before or '' for one in found.blockers)}.")
