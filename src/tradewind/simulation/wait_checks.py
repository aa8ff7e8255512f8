"""Invariants of deferred task instances: a part of `checks`, implemented a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tradewind.model.definition import TaskDefinition
from tradewind.model.states import Outcome
from tradewind.model.wait_plans import MomentPlan, TasksPlan
from tradewind.model.waits import Deferral, EveryWait, MomentWait, Resumption, TasksWait, TriggerEnd, TriggerWait
from tradewind.simulation.shadow import Run, Shadow, Step, Task, Wait
from tradewind.wire.messages import AttemptKey, Report, Workload

# repeated here on purpose: codes are stored, so they never change
NONE, SCHEDULED, QUEUED, RUNNING, SUCCESS, FAILED, SKIPPED = range(7)
REMOVED = 8
RETRY, RESCHEDULE, DEFERRED = 9, 10, 11
_WORDS = (
    *("none", "scheduled", "queued", "running", "success", "failed", "skipped", "upstream_failed", "removed"),
    *("up_for_retry", "up_for_reschedule", "deferred", "awaiting_input", "restarting"),
)
_RUN_WORDS = ("queued", "running", "success", "failed")
_TOLD = frozenset({SCHEDULED, QUEUED, RUNNING})
"""States in which the attempt after a wait is expected, or runs."""

TIMEOUT = "timeout"
_HOST_REPORTS = "the triggerer process ended"


class OpenWait:
    """The committed wait of a deferred task instance."""

    def __init__(self, fence: int, since: int, deferral: Deferral, planned: bool) -> None:
        self.fence = fence
        self.since = since
        self.deferral = deferral
        self.planned = planned
        self.found: set[str] = set()
        """Results of the awaited task instances and runs since the start of the wait: success, failed, skipped, gone."""
        self.judged = False
        self.holds = False
        """Whether the awaited tasks and runs had the wanted states in the last commit."""

    @property
    def due(self) -> int | None:
        """The time at which the clock ends the wait at the latest."""
        wait, at = self.deferral.wait, self.deferral.timeout_at
        moments = [wait.at] if isinstance(wait, MomentWait) else []
        return min([*moments, *([at] if at is not None else [])], default=None)


class WaitChecks:
    """See the module.

    Args:
        shadow: the committed rows.
        said: the reports of task processes.
        plan_of: returns the task definition of a row, with its `wait` and its pool.
        violated, sometimes, where: as in `Checks`.
    """

    def __init__(
        self,
        shadow: Shadow,
        said: dict[AttemptKey, Report],
        plan_of: Callable[[Run, Task], Any],
        violated: Callable[[str, str], None],
        sometimes: Callable[[str], None],
        where: Callable[[int, int], str],
    ) -> None:
        self.shadow = shadow
        self.said = said
        self.violated = violated
        self.sometimes = sometimes
        self.open: dict[tuple[int, int], OpenWait] = {}
        """(run, slot) → its wait."""
        self.seen: set[AttemptKey] = set()
        """All waits that were ever committed."""
        self.outlived: set[AttemptKey] = set()
        """Waits whose trigger ran in a triggerer that died."""
        self.ends: dict[AttemptKey, list[TriggerEnd]] = {}
        """The results of triggers. Never removed."""
        self.hidden: set[str] = set()
        """DAGs for which a message about a command was lost: the scheduler may use outdated states."""
        self._plan_of = plan_of
        self._where = where
        self._resumptions: dict[tuple[int, int], Resumption] = {}
        """(run, slot) → the values for the attempts after its wait."""
        self._expected: dict[AttemptKey, Resumption | None] = {}
        """The values that each dispatched attempt must get."""
        self._at: dict[tuple[str, int | str], int] = {}
        """(DAG, logical date or run id) → run."""

    # --- notifications ----------------------------------------------------------------------------------------

    def trigger_ended(self, key: AttemptKey, end: TriggerEnd) -> None:
        """Record that a trigger has ended, or that the host stops it."""
        self.ends.setdefault(key, []).append(end)

    def host_reported(self, key: AttemptKey, end: TriggerEnd) -> None:
        """Record a result that the host itself reports. It counts only if the process died."""
        if end.error is not None and end.error.startswith(_HOST_REPORTS) and key in self.outlived:
            self.trigger_ended(key, end)

    def ordered(self, key: AttemptKey) -> None:
        """Check a trigger that was sent to a host."""
        if key not in self.seen:
            self.violated("40 waits", f"the trigger of {key} is to run, but no such wait was committed")

    def code_started(self, work: Workload) -> None:
        """Check at the start of an attempt's code that it got the result of its wait, and only if it had a wait."""
        expected = self._expected.get(work.key)
        if work.resumption != expected:
            self.violated(
                "42 resumption", f"attempt {work.key} got {work.resumption}, but the result of its wait is {expected}"
            )

    def pushed(self, key: AttemptKey) -> bool:
        """Whether the trigger of this wait ended its task with a success, which may have XComs."""
        return any(end.outcome is Outcome.SUCCESS for end in self.ends.get(key, ()))

    # --- state changes -----------------------------------------------------------------------------------------------

    def step(self, run: int, row: Run, step: Step) -> None:
        """Check a journal entry, in order."""
        key = (run, step.slot)
        if step.before == DEFERRED:
            self._ends(run, row, step)
        if step.after == DEFERRED:
            self._begins(run, row, step)
        elif step.after == QUEUED:
            self._expected[run, step.slot, step.fence] = self._resumptions.get(key)
        elif step.after not in _TOLD:
            self._resumptions.pop(key, None)

    def _begins(self, run: int, row: Run, step: Step) -> None:
        key, where = (run, step.slot), self._where(run, step.slot)
        self._resumptions.pop(key, None)
        if (run, step.slot, step.fence) in self.seen:
            self.violated("41 resume", f"{where} waits for the second time under fence {step.fence}")
        self.seen.add((run, step.slot, step.fence))
        now, kept = self.shadow.tasks[run][step.slot], self.shadow.waits.get(key)
        if kept is None or kept.fence != step.fence:
            if now[:2] == (DEFERRED, step.fence):
                self.violated("40 waits", f"{where} is deferred, but what it waits for is not kept")
            return  # it was taken away in the same commit
        planned = step.before != RUNNING
        self.open[key] = OpenWait(step.fence, kept.since, kept.deferral, planned)
        if planned:
            self._planned(where, row, step, kept, self._plan_of(row, now).wait)
            return
        report = self.said.get((run, step.slot, step.fence))
        if report is None or report.outcome is not Outcome.DEFERRED or report.deferral != kept.deferral:
            self.violated("35 verdict", f"{where}: deferred, but its runner said {report}")

    def _planned(self, where: str, row: Run, step: Step, kept: Wait, plan: Any) -> None:
        """Check that the stored wait agrees with the definition."""
        self.sometimes("a task waits without an attempt")
        if plan is None:
            self.violated("40 waits", f"{where} waits in the place of an attempt, but its task does more than that")
            return
        until, wait, timeout = plan.until, kept.deferral.wait, kept.deferral.timeout_at
        if timeout is None or timeout > step.at + plan.timeout:
            self.violated("40 waits", f"{where} waits until {timeout} from {step.at} on, its task {plan.timeout} µs at most")
        if isinstance(until, MomentPlan):
            late = isinstance(wait, MomentWait) and until.counted_from == "start" and wait.at > step.at + until.micros
            if not isinstance(wait, MomentWait) or late:
                self.violated("40 waits", f"{where} waits for {wait}, its task for {until}")
        elif isinstance(until, TasksPlan):
            dates = () if row.logical_date is None else (row.logical_date - until.earlier,)
            same = isinstance(wait, TasksWait) and (wait.dag_id, wait.logical_dates) == (until.dag_id, dates)
            if not same:
                self.violated("40 waits", f"{where} waits for {wait}, its task for {until}")

    def _ends(self, run: int, row: Run, step: Step) -> None:
        key, where = (run, step.slot), self._where(run, step.slot)
        one = self.open.pop(key, None)
        if one is None or step.after in (NONE, REMOVED) or step.cause.startswith("marked "):
            return
        words = self._possible((run, step.slot, one.fence), one, step.at)
        if step.fence != one.fence:
            self.violated("41 resume", f"{where}: its wait of fence {one.fence} ends under fence {step.fence}: {step.cause}")
        elif step.after == SCHEDULED:
            self._resumes(where, run, step, one, words)
        elif not self._may_end(step.after, one.deferral, words) and not self._may_be_skipped(row, step):
            found = ", ".join(sorted(words)) or "nothing"
            self.violated(
                "41 resume", f"{where}: deferred → {_WORDS[step.after]}, but the result of its wait is {found}: {step.cause}"
            )

    def _may_be_skipped(self, row: Run, step: Step) -> bool:
        """Whether a rule of the whole run may have skipped the waiting task."""
        definition = self.shadow.versions[row.version]
        branches = any(one.outcome is Outcome.SUCCESS and one.branch is not None for one in self.said.values())
        return step.after == SKIPPED and (definition.fail_fast or definition.dagrun_timeout is not None or branches)

    def _possible(self, key: AttemptKey, one: OpenWait, at: int) -> set[str]:
        """Return all possible results of the wait at this time: moment, timeout, event, error, success, failed, skipped, gone."""
        wait, until = one.deferral.wait, one.deferral.timeout_at
        words = set(one.found)
        if until is not None and at >= until:
            words.add(TIMEOUT)
        if isinstance(wait, MomentWait) and at >= wait.at:
            words.add("moment")
        for asked in _asked(wait):
            if asked.dag_id in self.hidden:
                words |= {"success", "failed", "skipped", "gone"}
        for end in self.ends.get(key, ()):
            outcome = end.outcome.value if end.outcome is not None else None
            words.add(outcome or ("error" if end.error is not None else "event"))
        return words

    def _may_end(self, after: int, deferral: Deferral, words: set[str]) -> bool:
        """Whether the task may end without another attempt."""
        bad = words & {"failed", "failed_final", *((TIMEOUT,) if deferral.method is None else ())}
        if after == SUCCESS:
            self._noted(words)
            return "success" in words or ("moment" in words and deferral.method is None)
        if after == SKIPPED:
            return "skipped" in words or bool(bad and deferral.soft_fail)
        self._noted(words)
        return bool(bad) if after == FAILED else after == RETRY and "failed" in words

    def _resumes(self, where: str, run: int, step: Step, one: OpenWait, words: set[str]) -> None:
        kept, now = self.shadow.waits.get((run, step.slot)), self.shadow.tasks[run][step.slot]
        if one.deferral.method is None:
            self.violated("41 resume", f"{where} continues after its wait, though its definition names no method")
        if kept is None or kept.fence != one.fence or kept.resumption is None:
            if now.state in _TOLD:
                self.violated("42 resumption", f"{where} continues, but the result of its wait is not stored")
            return  # it was taken away in the same commit
        resumption = kept.resumption
        self._resumptions[run, step.slot] = resumption
        if (resumption.method, resumption.kwargs) != (one.deferral.method, one.deferral.kwargs):
            self.violated("42 resumption", f"{where} continues in {resumption.method}, but requested {one.deferral.method}")
        if not self._is_so((run, step.slot, one.fence), one, resumption, words):
            found = ", ".join(sorted(words)) or "nothing"
            self.violated(
                "41 resume", f"{where} continues with {resumption}, but the result of its wait is {found}: {step.cause}"
            )
        self._noted({TIMEOUT} if resumption.error == TIMEOUT else words - {TIMEOUT})
        if (
            isinstance(one.deferral.wait, TriggerWait)
            and resumption.error is None
            and (run, step.slot, one.fence) in self.outlived
        ):
            self.sometimes("a wait ended by a trigger whose first process died")

    def _is_so(self, key: AttemptKey, one: OpenWait, resumption: Resumption, words: set[str]) -> bool:
        wait = one.deferral.wait
        if resumption.error is not None:
            errors = [end.error for end in self.ends.get(key, ())]
            return TIMEOUT in words if resumption.error == TIMEOUT else resumption.error in errors
        if isinstance(wait, MomentWait):
            return "moment" in words and resumption.event == wait.event
        if isinstance(wait, TriggerWait):
            return resumption.event in [
                end.event for end in self.ends.get(key, ()) if end.error is None and end.outcome is None
            ]
        return str(msgspec.json.decode(resumption.event)) in words

    def _noted(self, words: set[str]) -> None:
        if TIMEOUT in words:
            self.sometimes("a wait ended by its timeout")
        elif "moment" in words:
            self.sometimes("a wait ended by its moment")
        elif words & {"event", "error"}:
            self.sometimes("a wait ended by its trigger")
        elif words:
            self.sometimes("a wait ended by tasks and runs")

    # --- awaited tasks and runs ----------------------------------------------------------------------------------

    def update(self, done: list[tuple[str, tuple[Any, ...], Any, Any]]) -> None:
        """After a commit: update the results of the awaited tasks and runs."""
        moved: set[str] = set()
        for kind, key, before, row in done:
            if kind == "run":
                known = row if row is not None else before
                moved.add(known.dag_id)
                for place in (known.logical_date, known.run_id):
                    if place is not None and row is not None:
                        self._at[known.dag_id, place] = key[0]
                    elif place is not None and self._at.get((known.dag_id, place)) == key[0]:
                        del self._at[known.dag_id, place]
                if row is None:
                    for gone in [one for one in self.open if one[0] == key[0]]:
                        del self.open[gone]
                elif row.state in (2, 3):
                    self._left_behind(key[0])
            elif kind == "task" and key[0] in self.shadow.runs:
                moved.add(self.shadow.runs[key[0]].dag_id)
        for one in self.open.values():
            asked = _asked(one.deferral.wait)
            if asked and (not one.judged or not moved.isdisjoint(wait.dag_id for wait in asked)):
                self._judge(one, asked)

    def _left_behind(self, run: int) -> None:
        """17: no task instance waits in a run that has ended, because nothing would end the wait."""
        for key in [key for key in self.open if key[0] == run]:
            if self.shadow.tasks.get(run, {}).get(key[1], (NONE,))[0] == DEFERRED:
                self.violated("17 runs", f"run {run} has ended, but {self._where(*key)} waits")

    def _judge(self, one: OpenWait, asked: tuple[TasksWait, ...]) -> None:
        found = [self._found(wait) for wait in asked]
        one.judged = True
        one.holds = all("success" in words for words in found) or any(words & {"failed", "skipped"} for words in found)
        if one.holds:
            one.found |= set.union(*found) - (set() if all("success" in words for words in found) else {"success"})
        if one.deferral.method is not None and any(
            (wait.dag_id, run_id) not in self._at for wait in asked for run_id in wait.run_ids
        ):
            one.found.add("gone")
            one.holds = True

    def _found(self, wait: TasksWait) -> set[str]:
        """success, failed, skipped: the result by the present rows; empty if there is no result yet."""
        words: set[str] = set()
        complete = True
        for place in wait.run_refs():
            run = self._at.get((wait.dag_id, place))
            if run is None:
                complete = False
                continue
            there = self.shadow.tasks.get(run, {}).values()
            rows = [task for task in there if task.task_id in wait.task_ids and task.state != REMOVED]
            if wait.task_ids:
                states = [_WORDS[task.state] for task in rows]
                complete = complete and {task.task_id for task in rows} == set(wait.task_ids)
            else:
                states = [_RUN_WORDS[self.shadow.runs[run].state]]
            for state in states:
                if state in wait.failed:
                    words.add("skipped" if wait.soft_fail else "failed")
                elif state in wait.skipped:
                    words.add("skipped")
                complete = complete and state in wait.allowed
        return words | {"success"} if complete else words

    # --- limits ----------------------------------------------------------------------------------------------

    def holds(self, definition: TaskDefinition) -> list[tuple[tuple[Any, ...], int]]:
        """The slots that a deferred task instance holds: those of a pool that counts deferred tasks, and no others."""
        pool = self.shadow.pools.get(definition.pool)
        if pool is None or not pool.counts_deferred:
            return []
        self.sometimes("a deferred task holds slots of its pool")
        return [(("pool", definition.pool), definition.pool_slots)]


def _asked(wait: Any) -> tuple[TasksWait, ...]:
    """The waits for task instances and runs that a wait consists of."""
    if isinstance(wait, EveryWait):
        return wait.of
    return (wait,) if isinstance(wait, TasksWait) else ()
