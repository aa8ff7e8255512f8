"""Verbs by which people change what has happened. Each bumps the run's revision, so that its machine is rebuilt."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.states import FINISHED_RUNS, RunState, TaskState
from tradewind.store.nouns import FeedEntry, RunRow
from tradewind.store.sqlite.runs import LIVE_CODES, RunVerbs

_NONE, _RESTARTING = TaskState.NONE.code, TaskState.RESTARTING.code


class EditVerbs(RunVerbs):
    """See `store.port.Store` for what each verb promises."""

    def select_tasks(
        self,
        dag_id: str,
        task_ids: Collection[str],
        *,
        upstream: bool = False,
        downstream: bool = False,
    ) -> set[str]:
        """Task ids of the DAG's current version, with what is above or below them; an empty choice is all tasks.

        Raises:
            NotFound: with the nearest task id.
        """
        definition = self.current_definition(dag_id)
        above = {task.task_id: task.upstream for task in definition.tasks}
        if not task_ids:
            return set(above)
        for name in task_ids:
            if name not in above:
                raise NotFound(f"DAG {dag_id} has no task {name!r}.{did_you_mean(name, above)}")
        below: dict[str, list[str]] = {name: [] for name in above}
        for name, parents in above.items():
            for parent in parents:
                below[parent].append(name)
        chosen = set(task_ids)
        for wanted, edges in ((upstream, above), (downstream, below)):
            stack = list(task_ids) if wanted else []
            while stack:
                for name in edges[stack.pop()]:
                    if name not in chosen:
                        chosen.add(name)
                        stack.append(name)
        return chosen

    def clearable(
        self, run: RunRow, task_ids: Collection[str], *, only_failed: bool = False, only_running: bool = False
    ) -> list[tuple[int, str, int, TaskState]]:
        """What a clear would touch: (slot, task id, map index, state). Both choices together are what failed and what runs."""
        states = list(TaskState)
        wanted = set(task_ids)
        found: list[tuple[int, str, int, TaskState]] = []
        for slot, task_id, map_index, code in self.engine.rows(
            "SELECT slot, task_id, map_index, state FROM task_instance WHERE run = ? ORDER BY slot", (run.id,)
        ):
            state = states[code]
            if task_id not in wanted or state is TaskState.NONE:
                continue
            failed = only_failed and state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            live = only_running and code in LIVE_CODES
            if (only_failed or only_running) and not (failed or live):
                continue
            found.append((slot, task_id, map_index, state))
        return found

    def clear(self, run_id: int, slots: Collection[int], actor: str, at: int, reason: str = "") -> RunRow:
        """Forget the results of these task instances; the run goes on, or becomes queued again.

        A task instance whose attempt lives becomes `restarting`: the attempt is stopped before it may start again. Each
        gets its retries anew.
        """
        with self.engine.transaction():
            run = self.run(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            retries = {task.task_id: task.retries for task in self.definition(run.version).tasks}
            cause = f"cleared by {actor}" + (f": {reason}" if reason else "")
            seq = run.journal_seq
            for slot in sorted(slots):
                row = self.engine.row(
                    "SELECT state, fence, try_number, task_id FROM task_instance WHERE run = ? AND slot = ?", (run_id, slot)
                )
                if row is None or row[0] in (_NONE, _RESTARTING):
                    continue
                state, fence, tries, task_id = row
                live = state in LIVE_CODES
                after, new_fence = (_RESTARTING, fence) if live else (_NONE, fence + 1)
                self.engine.run(
                    """UPDATE task_instance SET state = ?, fence = ?, max_tries = ?, resume = 0, requeues = 0, due_at = NULL,
                       ended_at = NULL, reason = NULL, branch = NULL, map_length = NULL
                       WHERE run = ? AND slot = ? AND state = ? AND fence = ?""",
                    (after, new_fence, tries + retries.get(task_id, 0), run_id, slot, state, fence),
                )
                seq += 1
                self.engine.run(
                    "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (run_id, seq, slot, new_fence, state, after, at, cause),
                )
            again = run.state in FINISHED_RUNS
            self.engine.run(
                """UPDATE dag_run SET revision = revision + 1, journal_seq = ?, state = ?, clear_number = clear_number + 1,
                   queued_at = ?, started_at = ?, ended_at = NULL, reason = NULL WHERE id = ?""",
                (
                    seq,
                    RunState.QUEUED.code if again else run.state.code,
                    at if again else run.queued_at,
                    None if again else run.started_at,
                    run_id,
                ),
            )
            payload = msgspec.msgpack.encode({"slots": sorted(slots), "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "clear", payload, actor, at))
            self._audit(
                "clear", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail={"count": len(slots), "reason": reason}
            )
            found = self.run(run_id)
            assert found is not None
            return found

    # --- the feed ---------------------------------------------------------------------------------------------------

    def append_feed(self, run: int, kind: str, payload: bytes, actor: str, at: int) -> int:
        with self.engine.transaction():
            if self.engine.row("SELECT 1 FROM dag_run WHERE id = ?", (run,)) is None:
                raise NotFound(f"there is no run number {run}")
            row = self.engine.row("SELECT coalesce(max(seq), 0) + 1 FROM feed WHERE run = ?", (run,))
            assert row is not None
            self.engine.run(
                "INSERT INTO feed (run, seq, kind, payload, actor, at) VALUES (?, ?, ?, ?, ?, ?)",
                (run, row[0], kind, payload, actor, at),
            )
        return int(row[0])

    def feed(self, run: int, after: int = 0) -> list[FeedEntry]:
        rows = self.engine.rows(
            "SELECT seq, kind, payload, actor, at FROM feed WHERE run = ? AND seq > ? ORDER BY seq", (run, after)
        )
        return [FeedEntry(*row) for row in rows]

    def consume_feed(self, run: int, upto: int) -> None:
        with self.engine.transaction():
            self.engine.run("UPDATE dag_run SET feed_seq = ? WHERE id = ? AND feed_seq < ?", (upto, run, upto))
