"""What a live scheduler has to do after a task has changed variables, connections or pools."""

from __future__ import annotations

from tradewind.scheduler.commands.effects import Effects
from tradewind.wire.messages import ChangeRows, SetVariable


def effects_of(question: ChangeRows | SetVariable) -> Effects:
    """What a live scheduler has to do after these changes: it reads pools again, and the parser reads files again."""
    effects = Effects(lookups=set(), gone_pools=set(), dags=set())
    if isinstance(question, SetVariable):
        effects.lookups.add(f"variable {question.key}")
        return effects
    for change in question.changes:
        if change.table == "dag":
            effects.dags.add(change.key)
        elif change.table != "pool":
            effects.lookups.add(f"{change.table} {change.key}")
        elif change.verb == "delete":
            effects.gone_pools.add(change.key)
        else:
            effects.pools = True
    return effects
