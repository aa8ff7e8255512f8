"""Deadlines in the simulation: which DAGs and tasks have some, and the checks of deadlines.

As in `checks`, no code is shared with the kernel or the scheduler: the start of a deadline, its misses and the notifications are
implemented a second time, from the committed rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tradewind.model.definition import DagDefinition, DeadlineDefinition, TaskDefinition
from tradewind.model.moments import MINUTE, SECOND
from tradewind.simulation.callback_checks import LATE, OF_RUN, Asked
from tradewind.simulation.checks import R_FAILED, R_QUEUED, R_SUCCESS, REMOVED, SKIPPED, SUCCESS, Checks
from tradewind.simulation.shadow import Change, Miss, Post, Run
from tradewind.simulation.timeline import START
from tradewind.simulation.workload import Plan
from tradewind.wire.messages import decode_workload

if TYPE_CHECKING:
    from tradewind.simulation.world import World

SHARE = 0.25
"""Share of the seeds with deadlines."""
KIND = "deadline"
_STATES = ("queued", "running", "success", "failed")
_SPANS = (10 * SECOND, MINUTE, 5 * MINUTE, 20 * MINUTE)


class Deadlines:
    """Draws the deadlines of this seed, from a separate random stream."""

    def __init__(self, world: World, drawn: bool) -> None:
        # with this name of the stream, the older seeds in mutants.py have no deadlines
        self._rng = rng = world.timeline.stream("late by sla")
        self.drawn = rng.random() < SHARE and drawn
        self._horizon = world.horizon

    def add_features(self, plan: Plan) -> Plan:
        """Add deadlines to a drawn DAG, if this seed has deadlines."""
        if not self.drawn:
            return plan
        rng, definition = self._rng, plan.definition
        tasks = tuple(self._add_to_task(task) for task in definition.tasks)
        tells = {"sla_miss_callback": ("tell",) * rng.randrange(1, 3)} if rng.random() < 0.7 else {}
        definition = msgspec.structs.replace(
            definition,
            tasks=tasks,
            slas=tuple(sorted({task.sla for task in tasks if task.sla is not None})),
            deadlines=tuple(self._alert() for _ in range(rng.randrange(3))),
            callbacks={**definition.callbacks, **tells},
        )
        return plan._replace(definition=definition)

    def _add_to_task(self, task: TaskDefinition) -> TaskDefinition:
        rng = self._rng
        if rng.random() < 0.6:
            return task
        mail = {"email": ("late@b.example",)} if rng.random() < 0.3 else {}
        return msgspec.structs.replace(task, sla=rng.choice(_SPANS), **mail)

    def _alert(self) -> DeadlineDefinition:
        rng = self._rng
        reference, interval = rng.choice(("logical_date", "queued_at", "fixed", "average")), rng.choice(_SPANS)
        at = START + rng.randrange(self._horizon) if reference == "fixed" else None
        most, least = (rng.randrange(1, 6), rng.randrange(1, 4)) if reference == "average" else (0, 0)
        return DeadlineDefinition(reference, interval, at, most, least, callback="tell")


class Wanted(NamedTuple):
    """A notification because of a missed deadline."""

    due: int
    late: tuple[str, ...]
    to: tuple[str, ...]


class DeadlineChecks:
    """See the module.

    Args:
        wall: the scheduler's clock.
        now: true time.
    """

    def __init__(self, checks: Checks, wall: Callable[[], int], now: Callable[[], int]) -> None:
        self._checks = checks
        self._wall = wall
        self._now = now
        self._last_change = 0
        self._open: dict[int, Post] = {}
        """Open deadlines by the number of their posts."""
        self._of_run: dict[int, set[int]] = {}
        """Run → numbers of its open deadlines."""
        self._misses: dict[int, Miss] = {}
        self._runs: dict[int, Run] = {}
        """The rows after the previous commit."""

    def committed(self, changes: Iterable[Change]) -> set[Asked]:
        """Called after `Checks.committed` and before `CallbackChecks.committed`.

        Returns the posts that this commit must contain.
        """
        renewed: set[int] = set()
        gone: list[Post] = []
        new: list[Post] = []
        posts: list[Post] = []
        missed: list[Miss] = []
        runs: dict[int, Run | None] = {}
        for kind, key, row in changes:
            if kind == "run":
                runs[key[0]] = row
            elif kind == "outbox" and (key[0] in self._open or (row is not None and row.kind == KIND)):
                self._last_change = self._now()
                self._moved(key[0], row, gone, new)
            elif kind == "outbox" and row is not None and row.tries == 0:
                posts.append(row)
            elif kind == "miss":
                if row is None:
                    self._forgotten_miss(self._misses.pop(key[0], None))
                else:
                    missed.append(row)
        for run, row in runs.items():
            if row is not None and self._is_renewed(run, row):
                renewed.add(run)
                self._renewed(run, row)
        for post in new:
            if post.run not in renewed:
                self._checks.violated("51 deadlines", f"{post.identity} comes with no new life of its run")
        wanted: dict[Miss, Run] = {}
        asked: dict[Asked, Wanted] = {}
        for post in gone:
            if post.run not in renewed and post.run in self._checks.shadow.runs:
                self._judged(post, wanted, asked)
        self._noted(missed, wanted)
        self._check_posts(posts, asked)
        for number, miss in ((key[0], row) for kind, key, row in changes if kind == "miss" and row is not None):
            self._misses[number] = miss
        for run, row in runs.items():
            if row is None:
                self._runs.pop(run, None)
            else:
                self._runs[run] = row
        return set(asked)

    # --- open deadlines ------------------------------------------------------------------------------------------

    def _moved(self, number: int, row: Post | None, gone: list[Post], new: list[Post]) -> None:
        before = self._open.get(number)
        if row is None:
            if before is not None:
                gone.append(self._open.pop(number))
                self._of_run[before.run or 0].discard(number)
        elif before is None:
            self._open[number] = row
            self._of_run.setdefault(row.run or 0, set()).add(number)
            new.append(row)
        elif before != row:
            self._open[number] = row
            self._checks.violated("51 deadlines", f"{row.identity}, due at {before.due}, is changed: {row}")

    def _is_renewed(self, run: int, row: Run) -> bool:
        """Whether the run is created now, or starts again after a clear."""
        before = self._runs.get(run)
        if before is None:
            return True
        again = row.clear_number > before.clear_number and before.state in (R_SUCCESS, R_FAILED) and row.state == R_QUEUED
        if again and self._checks.shape(row.version).definition.deadlines:
            self._checks.sometimes("a cleared run has its deadlines anew")
        return again

    def _renewed(self, run: int, row: Run) -> None:
        """51: a run has each of its deadlines from its creation or clear on."""
        definition = self._checks.shape(row.version).definition
        wanted = self._deadlines(run, row, definition)
        found = {self._open[number].payload.decode(): self._open[number].due for number in self._of_run.get(run, ())}
        if found != wanted:
            self._checks.violated("51 deadlines", f"run {run} of {row.dag_id} has the deadlines {found}, not {wanted}")

    def _deadlines(self, run: int, row: Run, definition: DagDefinition) -> dict[str, int]:
        found = {}
        if row.kind == "scheduled":
            found = {f"sla/{task.sla}": row.run_after + task.sla for task in definition.tasks if task.sla is not None}
            if row.clear_number:  # deadlines in the past were evaluated at their time
                found = {name: due for name, due in found.items() if due > row.queued_at}
        for number, alert in enumerate(definition.deadlines):
            begin = self._begin(run, row, alert)
            if begin is not None:
                found[f"alert/{number}"] = begin + alert.interval
        return found

    def _begin(self, run: int, row: Run, alert: DeadlineDefinition) -> int | None:
        if alert.reference == "fixed":
            return alert.at
        if alert.reference == "logical_date":
            return row.logical_date
        if alert.reference == "queued_at":
            return row.queued_at
        ended = [
            ((other.run_after, number), other.ended_at - other.started_at)
            for number, other in self._checks.shadow.runs.items()
            if other.dag_id == row.dag_id and other.ended_at is not None and other.started_at is not None
        ]
        took = [micros for _, micros in sorted(ended, reverse=True)[: alert.max_runs]]
        if not took or len(took) < alert.min_runs:
            return None
        self._checks.sometimes("a deadline counts how long others took")
        return row.queued_at + sum(took) // len(took)

    # --- deadlines that are due ----------------------------------------------------------------------------------

    def _judged(self, post: Post, wanted: dict[Miss, Run], asked: dict[Asked, Wanted]) -> None:
        """52: a deadline is evaluated once, and not before its time. Adds the misses to `wanted` and `asked`."""
        run, name = post.run or 0, post.payload.decode()
        row = self._checks.shadow.runs[run]
        definition = self._checks.shape(row.version).definition
        if post.due > self._wall():
            self._checks.violated("52 deadlines", f"{post.identity} is looked at {post.due - self._wall()} µs early")
        kind, _, number = name.partition("/")
        known = {(miss.run, miss.task_id, miss.name, miss.due) for miss in self._misses.values()}
        state = _STATES[row.state]
        if kind == "alert" and int(number) >= len(definition.deadlines):
            self._checks.sometimes("a deadline was taken out of its DAG before it came")
            return
        if kind == "alert":
            in_time = row.state == R_SUCCESS and row.ended_at is not None and row.ended_at <= post.due
            self._checks.sometimes("a run met its deadline" if in_time else "a run missed its deadline")
            if not in_time and (run, "", name, post.due) not in known:
                wanted[Miss(run, "", name, post.due)] = row
                asked[Asked(run, OF_RUN, 0, state, "deadline", int(number))] = Wanted(post.due, (), ())
            elif not in_time:
                self._checks.sometimes("a deadline was missed of which all was known")
            return
        late = tuple(
            task.task_id
            for task in definition.tasks
            if task.sla == int(number)
            and self._is_late(run, task.task_id, post.due)
            and (run, task.task_id, name, post.due) not in known
        )
        self._checks.sometimes("tasks missed their sla" if late else "tasks met their sla")
        for task_id in late:
            wanted[Miss(run, task_id, name, post.due)] = row
        for place in range(len(definition.callbacks.get("sla_miss_callback", ())) if late else 0):
            asked[Asked(run, OF_RUN, 0, state, "sla_miss_callback", place)] = Wanted(post.due, late, ())
        to = {address for task in definition.tasks if task.task_id in late for address in task.email}
        if to:
            asked[Asked(run, OF_RUN, 0, state, "email", 0)] = Wanted(post.due, late, tuple(sorted(to)))

    def _is_late(self, run: int, task_id: str, due: int) -> bool:
        """Whether an instance of the task has not succeeded by this time."""
        there = [one for one in self._checks.shadow.tasks.get(run, {}).values() if one.task_id == task_id]
        present = [one for one in there if one.state != REMOVED]  # a removed task is not late
        return not there or any(one.state not in (SUCCESS, SKIPPED) or one.ended > due for one in present)

    def _noted(self, missed: list[Miss], wanted: dict[Miss, Run]) -> None:
        """52: each miss is recorded once, with the time of its deadline, and only if it was late."""
        for miss in missed:
            if wanted.pop(miss, None) is None:
                self._checks.violated("52 deadlines", f"{miss} is written down, but it is none, or was known")
        for miss in wanted:
            self._checks.violated("52 deadlines", f"{miss} is not written down")

    def _check_posts(self, posts: list[Post], asked: dict[Asked, Wanted]) -> None:
        """53: the notification names the late tasks and the times at which they should have ended."""
        for post in posts:
            work = decode_workload(post.payload)
            call = work.call
            if call is None or call.due is None:
                continue
            wanted = asked.get(Asked(work.run, OF_RUN, 0, call.run_state, call.argument, call.index))
            if wanted is not None and wanted != (call.due, call.late, call.to):
                self._checks.violated("53 deadlines", f"{post.identity} tells {call}, not {wanted}")

    def _forgotten_miss(self, miss: Miss | None) -> None:
        if miss is not None and miss.run in self._checks.shadow.runs:
            self._checks.violated("52 deadlines", f"{miss} is not known any more")

    # --- at the end ----------------------------------------------------------------------------------------------

    def left(self) -> bool:
        """Whether there are open deadlines."""
        return bool(self._open)

    def forgotten(self) -> list[str]:
        """Return the deadlines that are long over and were not evaluated."""
        if self._now() - self._last_change < LATE:
            return []
        return [row.identity for row in self._open.values() if row.due < self._wall() - LATE]
