"""Commands on DAGs: pause, favorites, delete, and delete their old runs."""

from __future__ import annotations

from tradewind.model.errors import Conflict
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import DagPlan
from tradewind.scheduler.commands.context import CommandContext
from tradewind.store.port import RowReader
from tradewind.wire import commands as c


def active_dag(store: RowReader, dag_id: str) -> DagPlan:
    """Return the DAG, if new runs of it can be created.

    Raises:
        NotFound: there is no such DAG; the message has the nearest name.
        Conflict: its file is not in the DAG folder any more.
    """
    plan = store.need_dag(dag_id)
    if not plan.is_active:
        raise Conflict(english(phrase("error_dag_gone", dag=plan.dag_id, file=plan.file)))
    return plan


def set_paused(context: CommandContext, command: c.SetPaused) -> c.SetPausedResult:
    changed = context.store.set_paused(command.dag_id, command.is_paused, context.actor, context.clock.wall())
    context.effects.dags.add(command.dag_id)
    return c.SetPausedResult(command.dag_id, command.is_paused, changed)


def set_favorite(context: CommandContext, command: c.SetFavorite) -> None:
    context.store.set_favorite(command.dag_id, context.actor, command.is_favorite)


def delete_dag(context: CommandContext, command: c.DeleteDag) -> c.DeleteDagResult:
    removed, gone = context.store.delete_dag(command.dag_id, context.actor, context.clock.wall())
    context.effects.dags.add(command.dag_id)
    context.effects.removed += removed.removed
    return c.DeleteDagResult(removed.runs, removed.spills, gone)


def retire(context: CommandContext, command: c.Retire) -> c.RetireResult:
    now = context.clock.wall()
    removed = context.store.delete_old_runs(min(command.before, now), command.keep, now, dag_id=command.dag_id)
    if removed.runs:
        context.store.write_audit("retire", context.actor, now, dag_id=command.dag_id, detail={"runs": removed.runs})
        context.effects.removed += removed.removed
    return c.RetireResult(removed.runs, removed.spills)
