"""Edits by people: clear, mark, run states, notes. Each edit increases the run's revision: the scheduler loads the run again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from tradewind.model.errors import NotFound
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import AttemptEnd, FeedEntry, Marked, RunRow
from tradewind.model.states import FINISHED_RUNS, RunState, TaskState
from tradewind.store.sql.deadlines import write_deadlines
from tradewind.store.sql.run_changes import ATTEMPT_END, JOURNAL
from tradewind.store.sql.runs import LIVE_CODES, RunOperations

_NONE, _RESTARTING, _REMOVED = TaskState.NONE.code, TaskState.RESTARTING.code, TaskState.REMOVED.code


_EDITED = "UPDATE dag_run SET revision = revision + 1, journal_seq = ? WHERE id = ? AND revision = ?"
_CLEARED = """UPDATE dag_run SET revision = revision + 1, journal_seq = ?, state = ?, clear_number = clear_number + ?,
    queued_at = ?, started_at = ?, ended_at = NULL, reason = NULL WHERE id = ? AND revision = ?"""
_UNPINNED = "UPDATE dag_run SET bundle_version = NULL WHERE id = ? AND revision = ?"


class EditOperations(RunOperations):
    """See `store.port` for the descriptions of the methods."""

    def clearable(
        self, run: RunRow, task_ids: Collection[str], *, only_failed: bool = False, only_running: bool = False
    ) -> list[tuple[int, str, int, TaskState]]:
        found: list[tuple[int, str, int, TaskState]] = []
        for one in self.task_instances_of(run, task_ids):
            state = one[3]
            if state is TaskState.NONE:
                continue
            failed = only_failed and state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)
            live = only_running and state.code in LIVE_CODES
            if (only_failed or only_running) and not (failed or live):
                continue
            found.append(one)
        return found

    def task_instances_of(self, run: RunRow, task_ids: Collection[str] | None) -> list[tuple[int, str, int, TaskState]]:
        states = list(TaskState)
        wanted = None if task_ids is None else set(task_ids)
        return [
            (slot, task_id, map_index, states[code])
            for slot, task_id, map_index, code in self.engine.rows(
                "SELECT slot, task_id, map_index, state FROM task_instance WHERE run = ? ORDER BY slot", (run.id,)
            )
            if wanted is None or task_id in wanted
        ]

    def clear(
        self,
        run_id: int,
        slots: Collection[int],
        actor: str,
        at: int,
        reason: str = "",
        *,
        reset_run: bool = True,
        to_latest: bool = False,
    ) -> RunRow:
        with self.engine.transaction():
            run = self.run(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            to_latest = to_latest and run.bundle_version is not None and self.need_dag(run.dag_id).is_active
            follows = run.bundle_version is None or to_latest
            version = self.need_dag(run.dag_id).version if follows else run.version
            retries = {task.task_id: task.retries for task in self.definition(version).tasks}
            cause = _cleared(actor, reason)
            seq, cleared = run.journal_seq, list[int]()
            for slot in sorted(slots):
                row = self.engine.row(
                    "SELECT state, fence, try_number, task_id, pool FROM task_instance WHERE run = ? AND slot = ?",
                    (run_id, slot),
                )
                if row is None or row[0] in (_NONE, _RESTARTING):
                    if row is not None and row[0] == _NONE and row[4] is not None:
                        self.engine.change(
                            "UPDATE task_instance SET pool = NULL WHERE run = ? AND slot = ? AND state = ?",
                            (run_id, slot, _NONE),
                            f"task instance {row[3]} of run {run.run_id}",
                        )
                    continue
                state, fence, tries, task_id, pool = row
                live = state in LIVE_CODES
                after, new_fence = (_RESTARTING, fence) if live else (_NONE, fence + 1)
                self.engine.change(
                    """UPDATE task_instance SET state = ?, fence = ?, max_tries = ?, resume = 0, requeues = 0, due_at = NULL,
                       ended_at = NULL, reason = NULL, branch = NULL, map_length = NULL, pool = ?
                       WHERE run = ? AND slot = ? AND state = ? AND fence = ?""",
                    (after, new_fence, tries + retries.get(task_id, 0), pool if live else None, run_id, slot, state, fence),
                    f"task instance {task_id} of run {run.run_id}",
                )
                seq += 1
                cleared.append(slot)
                self.engine.run(
                    "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (run_id, seq, slot, new_fence, state, after, at, cause),
                )
            ended = run.state in FINISHED_RUNS
            if to_latest:
                self.engine.change(_UNPINNED, (run_id, run.revision), f"run {run.run_id}")
            if ended and not reset_run:
                self.engine.change(_EDITED, (seq, run_id, run.revision), f"run {run.run_id}")
            else:
                self.engine.change(
                    _CLEARED,
                    (
                        seq,
                        RunState.QUEUED.code if ended else run.state.code,
                        int(reset_run),
                        at if ended else run.queued_at,
                        None if ended else run.started_at,
                        run_id,
                        run.revision,
                    ),
                    f"run {run.run_id}",
                )
            payload = msgspec.msgpack.encode({"slots": cleared, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "clear", payload, actor, at))
            detail = {"count": len(cleared), "reason": reason} | ({"latest_version": True} if to_latest else {})
            self._audit("clear", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            found = self.run(run_id)
            assert found is not None
            if ended and reset_run:
                write_deadlines(self.engine, self.definition(found.version), found, at)
            return found

    def mark(
        self,
        run_id: int,
        slots: Collection[int],
        state: TaskState,
        actor: str,
        at: int,
        reason: str = "",
        *,
        executors: Mapping[int, str] = {},
    ) -> Marked:
        with self.engine.transaction():
            run = self.run(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            cause = _marked(state.value, actor, reason)
            seq, live, marked = run.journal_seq, list[tuple[int, int]](), list[int]()
            for slot in sorted(slots):
                row = self.engine.row(
                    "SELECT state, fence, try_number, queued_at FROM task_instance WHERE run = ? AND slot = ?", (run_id, slot)
                )
                if row is None or row[0] in (state.code, _REMOVED):
                    continue
                before, fence, tries, queued_at = row
                if before in LIVE_CODES:
                    live.append((slot, fence))
                    executor = executors.get(slot, "")
                    end = AttemptEnd(slot, fence, tries, executor, queued_at or at, at, "stopped", cause, None, None)
                    self.engine.run(ATTEMPT_END, (run_id, *end))
                self.engine.change(
                    """UPDATE task_instance SET state = ?, fence = ?, resume = 0, requeues = 0, due_at = NULL,
                       ended_at = ?, reason = ? WHERE run = ? AND slot = ? AND state = ? AND fence = ?""",
                    (state.code, fence + 1, at, cause, run_id, slot, before, fence),
                    f"a task instance of run {run.run_id}",
                )
                seq += 1
                marked.append(slot)
                self.engine.run(JOURNAL, (run_id, seq, slot, fence + 1, before, state.code, at, cause))
            self.engine.change(_EDITED, (seq, run_id, run.revision), f"run {run.run_id}")
            payload = msgspec.msgpack.encode({"slots": marked, "state": state.value, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "mark", payload, actor, at))
            detail = {"state": state.value, "count": len(marked), "reason": reason}
            self._audit("mark", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            found = self.run(run_id)
            assert found is not None
            return Marked(found, live)

    def set_run_state(self, run_id: int, state: RunState, actor: str, at: int, reason: str = "") -> RunRow:
        with self.engine.transaction():
            run = self.run(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            failing = state is RunState.RUNNING
            after = run.state if failing else state
            word = RunState.FAILED if failing else state
            cause = _marked(word.value, actor, reason)
            moments: tuple[int, int | None, int | None, str | None]
            if after is RunState.QUEUED and not failing:
                moments = (at, None, None, None)
            elif failing:
                moments = (run.queued_at, run.started_at, None, cause)
            else:
                moments = (run.queued_at, run.started_at or at, at, cause)
            self.engine.change(
                """UPDATE dag_run SET revision = revision + 1, state = ?, queued_at = ?, started_at = ?, ended_at = ?,
                   reason = ? WHERE id = ? AND revision = ? AND state = ?""",
                (after.code, *moments, run_id, run.revision, run.state.code),
                f"run {run.run_id}",
            )
            payload = msgspec.msgpack.encode({"state": word.value, "reason": reason})
            self.consume_feed(run_id, self.append_feed(run_id, "set run state", payload, actor, at))
            detail = {"before": run.state.value, "after": word.value, "reason": reason}
            self._audit("set run state", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)
            found = self.run(run_id)
            assert found is not None
            return found

    # --- notes ------------------------------------------------------------------------------------------------------

    def set_run_note(self, run_id: int, note: str | None, actor: str, at: int) -> RunRow:
        with self.engine.transaction():
            if self.engine.run("UPDATE dag_run SET note = ? WHERE id = ?", (note, run_id)) != 1:
                raise NotFound(f"there is no run number {run_id}")
            found = self.run(run_id)
            assert found is not None
            self._audit("note", actor, at, dag_id=found.dag_id, run_id=found.run_id, detail={"note": note})
            return found

    def set_task_notes(self, run_id: int, slots: Collection[int], note: str | None, actor: str, at: int) -> None:
        with self.engine.transaction():
            run = self.run(run_id)
            if run is None:
                raise NotFound(f"there is no run number {run_id}")
            rows = [(note, run_id, slot) for slot in sorted(slots)]
            count = self.engine.many("UPDATE task_instance SET note = ? WHERE run = ? AND slot = ?", rows) if rows else 0
            detail = {"note": note, "task_instances": count}
            self._audit("note", actor, at, dag_id=run.dag_id, run_id=run.run_id, detail=detail)

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


def _cleared(actor: str, note: str) -> str:
    found = phrase("cause_cleared_note", actor=actor, note=note) if note else phrase("cause_cleared", actor=actor)
    return english(found)


def _marked(state: str, actor: str, note: str) -> str:
    if note:
        return english(phrase("cause_marked_note", state=state, actor=actor, note=note))
    return english(phrase("cause_marked", state=state, actor=actor))
