"""What people may ask for about backfills. One method a command, as in `commands.py`."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.rows import BackfillRow, NewBackfill
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.dags.backfills import NEW, REPROCESS, RERUN, plan_runs, turn_of
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.scheduler.runs.params import check_conf
from tradewind.store.port import Store

Args = dict[str, Any]


class BackfillCommands:
    """Mixed into `Commands`."""

    store: Store
    clock: Clock

    def do_create_backfill(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, from_date, to_date, conf?, max_active_runs?, run_backwards?, reprocess_behavior?, dry_run?

        → the backfill (not with `dry_run`), and its plan: logical_date, outcome and run_id of each run.
        """
        now, store = self.clock.wall(), self.store
        plan = store.need_dag(args["dag_id"])
        definition = store.definition(plan.version)
        behavior, backwards = args.get("reprocess_behavior") or "none", bool(args.get("run_backwards"))
        if behavior not in REPROCESS:
            raise Conflict(
                f"{behavior!r} is no reprocess behavior.{did_you_mean(behavior, REPROCESS)} Use {', '.join(REPROCESS)}."
            )
        if not plan.is_active:
            raise Conflict(
                f"DAG {plan.dag_id} is not in the DAG folder any more (its file was {plan.file}); nothing can run it"
            )
        start, end = int(args["from_date"]), int(args["to_date"])
        if start > end:
            raise Conflict(f"the first date ({iso(start)}) lies behind the last one ({iso(end)})")
        if end > now:
            raise Conflict(f"a backfill is for the past: {iso(end)} has not come yet")
        past = next((task.task_id for task in definition.tasks if task.depends_on_past), None)
        if backwards and past is not None:
            raise Conflict(f"the task {past} depends on the past, so its runs cannot be made backwards")
        most = int(args.get("max_active_runs") or 10)
        if most < 1:
            raise Conflict("max_active_runs must be at least 1")
        conf = args.get("conf") or {}
        check_conf(definition, conf)
        earliest = max(start, plan.start_date) if plan.start_date is not None else start
        latest = min(end, plan.end_date) if plan.end_date is not None else end
        try:
            times = plan_runs(schedule_of(plan), earliest, latest, backwards)
        except Conflict as error:
            raise Conflict(f"DAG {plan.dag_id} cannot be backfilled: {error}") from None
        if not times:
            raise Conflict(f"the schedule of DAG {plan.dag_id} has no run between {iso(earliest)} and {iso(latest)}")
        turns = [turn_of(store, plan.dag_id, one, behavior) for one in times]
        shown = [
            {
                "logical_date": iso(turn.times.logical_date),
                "outcome": turn.outcome,
                "run_id": turn.existing.run_id if turn.existing is not None else None,
            }
            for turn in turns
        ]
        if args.get("dry_run"):
            return {"backfill": None, "plan": shown}
        row = store.create_backfill(
            NewBackfill(
                plan.dag_id,
                earliest,
                latest,
                msgspec.json.encode(conf) if conf else None,
                most,
                now,
                plan.schedule,
                behavior,
                backwards,
                actor,
                len(times),
            )
        )
        effects.dags.add(plan.dag_id)
        work = sum(turn.outcome in (NEW, RERUN) for turn in turns)
        return {"backfill": backfill_as_dict(row), "plan": [], "runs": len(times), "to_do": work}

    def do_pause_backfill(self, args: Args, actor: str, effects: Effects) -> Args:
        """backfill, is_paused → the backfill and whether it changed."""
        changed = self.store.pause_backfill(int(args["backfill"]), bool(args["is_paused"]), actor, self.clock.wall())
        return {"changed": changed, "backfill": self._shown(args, effects)}

    def do_cancel_backfill(self, args: Args, actor: str, effects: Effects) -> Args:
        """backfill → the backfill. No more runs are made; those that are made go on to their end."""
        self.store.complete_backfill(int(args["backfill"]), self.clock.wall(), cancelled_by=actor)
        return {"backfill": self._shown(args, effects)}

    def _shown(self, args: Args, effects: Effects) -> Args:
        row = self.store.backfill(int(args["backfill"]))
        if row is None:
            raise NotFound(f"there is no backfill {args['backfill']}")
        effects.dags.add(row.dag_id)
        return backfill_as_dict(row)


def backfill_as_dict(row: BackfillRow) -> Args:
    """A backfill for people, under Airflow's names."""
    return {
        "id": row.id,
        "dag_id": row.dag_id,
        "from_date": iso(row.from_date),
        "to_date": iso(row.to_date),
        "dag_run_conf": msgspec.json.decode(row.conf) if row.conf else {},
        "is_paused": row.is_paused,
        "reprocess_behavior": row.reprocess_behavior,
        "max_active_runs": row.max_active_runs,
        "run_backwards": row.run_backwards,
        "created_by": row.created_by,
        "created_at": iso(row.created_at),
        "completed_at": iso(row.completed_at),
        "runs": row.planned,
        "handled": row.handled,
    }
