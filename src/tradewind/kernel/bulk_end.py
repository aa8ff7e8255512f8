"""Sweeps: many task instances are ended together.

A sweep begins when a task fails in a `fail_fast` DAG, a branching task has chosen, the run exceeds its `dagrun_timeout`, or
task dates exclude the run. Each call handles a bounded number of task instances. A sweep survives a restart of the scheduler:
the row of the task that caused it keeps its `resume` mark until the sweep is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tradewind.kernel import examination, integrity, mapping
from tradewind.kernel.codes import FAILED, NO_TASK, NONE, REMOVED, RESTARTING, RUNNING, SKIPPED, SUCCESS
from tradewind.kernel.run_data import RunData, Sweep
from tradewind.kernel.run_steps import RunSteps
from tradewind.model import states
from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED
from tradewind.model.phrases import english, phrase

_FINISHED = frozenset(state.code for state in states.FINISHED)


def begin(run: RunSteps, kind: str, source: int, cause: str, slots: Iterable[int]) -> None:
    """Begin a sweep over these slots."""
    run.sweeps.append(Sweep(kind, source, cause, deque(slots)))
    if source != NO_TASK:
        run.resume.add(source)


def begin_again(run: RunSteps, slot: int) -> None:
    """Begin again the sweep that this finished task instance caused and that a restart interrupted."""
    decision = run.branches.get(slot)
    if run.state[slot] == SUCCESS and decision is not None:
        begin_branch(run, slot, decision)
    else:
        begin_fail_fast(run, slot)


def begin_branch(run: RunSteps, slot: int, decision: Branch) -> None:
    """Skip the tasks that a branching task did not choose."""
    skipped = run.remember_branch(slot, decision)
    if run.instances.index(slot) == UNEXPANDED and run.instances.task(slot) not in run.topology.domain_of:
        at_once = sorted(task for task in skipped if task not in run.instances.expanded)
        begin(run, "branch", slot, english(phrase("branch_not_chosen", tasks=[run.name(slot)])), at_once)


def begin_fail_fast(run: RunSteps, failed: int) -> None:
    """End all other task instances because this one failed for good."""
    cause = english(phrase("cause_fail_fast", task=run.name(failed)))
    begin(run, "fail_fast", failed, cause, range(run.instances.total))


def continue_all(run: RunSteps, at: int) -> bool:
    """Handle as many task instances as this call may write, and return whether all sweeps are done.

    A verification against a newer definition comes first, because it may add and remove task instances.
    """
    if not integrity.continue_plan(run, at):
        return False
    if run.sweeps and run.expanding:
        if not mapping.add_instances(run):
            return False
        examination.examine_expanded(run, at)
    while run.sweeps:
        sweep = run.sweeps[0]
        while sweep.slots:
            if not run.rows_left():
                return False
            _end_one(run, sweep, sweep.slots.popleft(), at)
        run.sweeps.popleft()
        if sweep.kind == "timeout":
            run.end_run(False, at, sweep.cause, "timed_out")
            return True
        if sweep.source in run.resume and run.state[sweep.source] in _FINISHED:
            run.resume.discard(sweep.source)
            run.remember_row(sweep.source)  # its row may have been written with the mark
    return True


def _end_one(run: RunSteps, sweep: Sweep, slot: int, at: int) -> None:
    code = run.state[slot]
    if sweep.kind == "dates":
        if code == NONE:
            run.step(slot, REMOVED, at, sweep.cause)
    elif sweep.kind == "timeout":
        if code not in _FINISHED:
            run.force_state(slot, REMOVED if slot in run.gone else SKIPPED, at, sweep.cause)
    elif sweep.kind == "branch":
        if code not in (RUNNING, SUCCESS, FAILED, SKIPPED, REMOVED, RESTARTING):
            run.force_state(slot, SKIPPED, at, sweep.cause)
    elif code not in (SUCCESS, FAILED, SKIPPED, REMOVED) and _ends_with(run, sweep.source, slot):
        run.force_state(slot, FAILED if code in (RUNNING, RESTARTING) else SKIPPED, at, sweep.cause)


def _ends_with(run: RunData, failed: int, slot: int) -> bool:
    """Return whether fail_fast ends this task instance too: not teardowns, nor other instances of the mapped task that failed."""
    task = run.instances.task(slot)
    return slot not in run.gone and task != run.instances.task(failed) and not run.topology.tasks[task].is_teardown
