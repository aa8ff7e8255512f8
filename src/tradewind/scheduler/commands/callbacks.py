"""Commands on callbacks that were not acknowledged yet: list them, try them again, give them up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tradewind.model.errors import NotFound
from tradewind.model.rows import DEADLINE, OutboxItem
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.store.callback_view import miss_shown, shown
from tradewind.store.port import Store

Args = dict[str, Any]

AT_MOST = 1000
"""So many are listed, tried again or given up by one command."""


class CallbackCommands:
    """Part of `commands.Commands`."""

    store: Store
    clock: Clock

    def do_list_callbacks(self, args: Args, actor: str, effects: Effects) -> Args:
        """parked? → `callbacks`, a list of `CallbackView`."""
        found = self.store.posts(parked=args.get("parked"), at_most=AT_MOST)
        return {"callbacks": [msgspec.to_builtins(shown(item)) for item in found]}

    def do_retry_callbacks(self, args: Args, actor: str, effects: Effects) -> Args:
        """ids (none: all that failed, parked or waiting for their next try) → `ids` of those that are tried again now."""
        now = self.clock.wall()
        chosen = list(self._chosen(args, waiting=True))
        for item in chosen:
            self.store.retry_post(item.id, now)
            self._note("retry callback", item, actor)
        effects.callbacks = True
        return {"ids": [item.id for item in chosen]}

    def do_drop_callbacks(self, args: Args, actor: str, effects: Effects) -> Args:
        """ids (none: all that are parked) → `ids` of those that are never called."""
        chosen = list(self._chosen(args))
        for item in chosen:
            self.store.acknowledge(item.id)
            self._note("drop callback", item, actor)
        return {"ids": [item.id for item in chosen]}

    def do_list_misses(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id? → `misses`, a list of `MissView`."""
        found = self.store.misses(args.get("dag_id"), at_most=AT_MOST)
        return {"misses": [msgspec.to_builtins(miss_shown(miss)) for miss in found]}

    def _chosen(self, args: Args, *, waiting: bool = False) -> Iterable[OutboxItem]:
        """Those that are named; else all that are parked, and with `waiting` those that failed and wait for their next try."""
        ids = args.get("ids")
        if ids is None:
            yield from self.store.posts(parked=True, at_most=AT_MOST)
            if waiting:  # not what its own process has still to call
                yield from [item for item in self.store.posts(parked=False, at_most=AT_MOST) if item.tries]
            return
        for number in ids:
            item = self.store.find_post(int(number))
            if item is None or item.kind == DEADLINE:
                raise NotFound(f"there is no callback {number}: it was called or given up; see tradewind callbacks list")
            yield item

    def _note(self, event: str, item: OutboxItem, actor: str) -> None:
        view = shown(item)
        detail = {"what": view.what, "task_id": view.task_id, "problem": view.problem}
        self.store.note_audit(event, actor, self.clock.wall(), dag_id=view.dag_id, run_id=view.run_id, detail=detail)
