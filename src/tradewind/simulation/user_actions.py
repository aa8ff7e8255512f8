"""Commands of users at bad moments: clears, marks, pauses, other pools, other versions of a DAG, deletions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.model.moments import MINUTE
from tradewind.simulation.checks import R_RUNNING
from tradewind.simulation.timeline import START
from tradewind.simulation.workload import POOLS, draw_dag

if TYPE_CHECKING:
    from tradewind.simulation.world import World
    from tradewind.wire.messages import CommandResult


class UserActions:
    """Draws and sends one command after another."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._versions = 0
        self._actions: list[tuple[int, Callable[[random.Random], None]]] = [
            (8, self._clear),
            (4, self._mark),
            (2, self._set_run_state),
            (4, self._pause),
            (3, self._pool),
            (4, self._run_task),
            (2, self._new_version),
            (1, self._delete),
            (1, self._retire),
            (2, self._backfill),
            (2, self._burst),
        ]

    def act(self, rng: random.Random) -> None:
        """Draw a command and send it."""
        actions = [action for _, action in self._actions]
        rng.choices(actions, [weight for weight, _ in self._actions])[0](rng)

    def _send_command(self, command: str, then: Callable[[CommandResult], None] | None = None, **args: Any) -> None:
        world = self.world
        world.timeline.faults[f"command {command}"] += 1
        world.acting_user.send(command, then, **args)

    def _run(self, rng: random.Random) -> tuple[int, dict[str, Any]] | None:
        """Return a random run, preferably a running one."""
        runs = self.world.checks.shadow.runs
        live = [run for run, row in runs.items() if row.state == R_RUNNING]
        chosen = live if live and rng.random() < 0.6 else list(runs)
        if not chosen:
            return None
        run = rng.choice(chosen)
        return run, {"dag_id": runs[run].dag_id, "run_id": runs[run].run_id}

    def _tasks(self, run: int, rng: random.Random) -> list[str]:
        names = sorted({task.task_id for task in self.world.checks.shadow.tasks.get(run, {}).values()})
        return rng.sample(names, min(len(names), rng.choice((1, 1, 2, 8))))

    def _clear(self, rng: random.Random) -> None:
        found = self._run(rng)
        if found is not None:
            run, where = found
            flags: dict[str, Any] = {
                name: rng.random() < 0.3 for name in ("upstream", "downstream", "only_failed", "only_running")
            }
            tasks = self._tasks(run, rng) if rng.random() < 0.7 else []
            self._send_command("clear", **where, task_ids=tasks, **flags)

    def _mark(self, rng: random.Random) -> None:
        found = self._run(rng)
        if found is not None:
            run, where = found
            state = rng.choice(("success", "failed", "skipped"))
            self._send_command("mark", **where, task_ids=self._tasks(run, rng), state=state, downstream=rng.random() < 0.3)

    def _set_run_state(self, rng: random.Random) -> None:
        found = self._run(rng)
        if found is not None:
            run, where = found
            self.world.checks.state_set_by_user.add(run)
            self._send_command("set_run_state", **where, state=rng.choice(("success", "failed", "queued")))

    def _pause(self, rng: random.Random) -> None:
        dag_id = rng.choice(sorted(self.world.plans))
        self._send_command("set_paused", dag_id=dag_id, is_paused=True)
        later = rng.randrange(10 * MINUTE)
        self.world.timeline.after(later, None, lambda: self._send_command("set_paused", dag_id=dag_id, is_paused=False))

    def _pool(self, rng: random.Random) -> None:
        name, slots = rng.choice(POOLS), rng.choice((0, 1, 2, 2, 4, -1))
        self._send_command("set_pool", name=name, slots=slots, **self.world.waiting.pool(name))

    def _run_task(self, rng: random.Random) -> None:
        found = self._run(rng)
        if found is None:
            return
        run, where = found
        tasks = self.world.checks.shadow.tasks.get(run, {})
        if tasks:
            slot = rng.choice(sorted(tasks))
            ignore = ["task"] if rng.random() < 0.7 else []
            self.world.checks.by_hand.add((run, slot))
            index = tasks[slot].map_index
            force = rng.random() < 0.3
            more: dict[str, Any] = {"map_index": index} if index >= 0 else {}
            self._send_command("run_task", **where, task_id=tasks[slot].task_id, ignore=ignore, force=force, **more)

    def _new_version(self, rng: random.Random) -> None:
        """Register another version of a DAG file. The schedule stays, so that the checks still know its runs."""
        world = self.world
        dag_id = rng.choice(sorted(world.plans))
        self._versions += 1
        old = world.plans[dag_id].definition
        plan = world.add_features(draw_dag(rng, dag_id, world.horizon, version=self._versions), sorted(world.plans))
        definition = msgspec.structs.replace(
            plan.definition, schedule=old.schedule, start_date=old.start_date, end_date=old.end_date, catchup=old.catchup
        )
        plan = plan._replace(definition=definition, runs_by_hand=world.plans[dag_id].runs_by_hand)
        world.timeline.faults["new version of a DAG"] += 1
        world.register(plan)

    def _delete(self, rng: random.Random) -> None:
        """Delete a DAG. This is refused while it has unfinished runs. Later its file is registered again."""
        world = self.world
        dag_id = rng.choice(sorted(world.plans))
        world.checks.deleted.add(dag_id)

        def then(result: CommandResult) -> None:
            world.timeline.after(MINUTE, None, lambda: world.register(world.plans[dag_id]))

        self._send_command("delete_dag", then, dag_id=dag_id)

    def _retire(self, rng: random.Random) -> None:
        before = self.world.clock.wall() - rng.randrange(30) * MINUTE
        self._send_command("retire", before=before, keep=rng.randrange(3))

    def _backfill(self, rng: random.Random) -> None:
        world = self.world
        dag_id = rng.choice(sorted(world.plans))
        first = START - rng.randrange(1, 10) * 60 * MINUTE
        args: dict[str, Any] = {"dag_id": dag_id, "from_date": first, "to_date": first + rng.randrange(1, 4) * 60 * MINUTE}
        behavior = rng.choice(("none", "failed", "completed"))
        self._send_command("create_backfill", **args, max_active_runs=rng.choice((1, 2)), reprocess_behavior=behavior)

    def _burst(self, rng: random.Random) -> None:
        dag_id = rng.choice(sorted(self.world.plans))
        for _ in range(rng.randrange(3, 12)):
            number = self.world.next_pid()
            date = self.world.clock.wall() - rng.randrange(120) * MINUTE + number
            self._send_command("trigger", dag_id=dag_id, run_id=f"burst_{number}", logical_date=date)
