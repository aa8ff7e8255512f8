"""Invariants of callbacks: each is stored in the outbox once, with its cause, and called before it is deleted.

As in `checks`, no code is shared with the kernel or the scheduler: the rules which state change causes which callback are
implemented a second time. A post (a row of the outbox) is identified by the callback that it names, not by its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tradewind.model.definition import TaskDefinition
from tradewind.model.moments import MINUTE
from tradewind.simulation.checks import FAILED, NAMES, NONE, R_FAILED, R_SUCCESS, RETRY, RUNNING, SKIPPED, SUCCESS, Checks
from tradewind.simulation.shadow import Change, Post, Run, Step
from tradewind.wire.commands import DropCallbacks, IncomingCommand, RetryCallbacks, result_of
from tradewind.wire.messages import (
    AttemptKey,
    CallbackOrder,
    CommandResult,
    FromRunner,
    Report,
    Workload,
    decode_to_scheduler,
    decode_workload,
)

OF_RUN = -1
"""Used in place of a slot: the callback belongs to a run."""
LATE = 20 * MINUTE
"""A post that has been due for this long, without faults and without progress of other posts, counts as forgotten."""
_ARGUMENTS = {
    SUCCESS: "on_success_callback",
    SKIPPED: "on_skipped_callback",
    RETRY: "on_retry_callback",
    FAILED: "on_failure_callback",
}


class Asked(NamedTuple):
    """One callback or mail to be called."""

    run: int
    slot: int
    fence: int
    state: str
    """State of the task instance or of the run that causes it."""
    argument: str
    place: int


DEADLINE = "deadline"
"""Kinds of posts that are not callbacks: `deadlines` checks them."""


def asked_by(work: Workload) -> Asked:
    """The callback that a post or an order names."""
    call = work.call
    assert call is not None
    if call.of_run:
        return Asked(work.run, OF_RUN, 0, call.run_state, call.argument, call.index)
    return Asked(work.run, work.slot, work.fence, call.state, call.argument, call.index)


class CallbackChecks:
    """See the module.

    Args:
        wall: the clock of the scheduler.
        now: true time.
    """

    def __init__(self, checks: Checks, wall: Callable[[], int], now: Callable[[], int]) -> None:
        self._checks = checks
        self._wall = wall
        self._now = now
        self.last_change = 0
        """The true time of the last write to the outbox."""
        self.tries = 0
        """Number of failed tries after which a post is parked."""
        self.posts: dict[int, Post] = {}
        """The current rows of the outbox, by number."""
        self._asked: dict[int, Asked] = {}
        """All posts that were ever committed, by number."""
        self._states: dict[int, int] = {}
        """State of each run."""
        self._reports: dict[AttemptKey, Report] = {}
        """Reports of processes that call their callbacks themselves, as received by a scheduler."""
        self._called_before: set[AttemptKey] = set()
        """Attempts that have reported that their callbacks were called."""
        self._own: set[Asked] = set()
        """Callbacks that task processes have called themselves."""
        self._own_attempts: set[AttemptKey] = set()
        """Attempts whose process has called all callbacks of the definition that it ran. The DAG may have been edited since."""
        self._called: set[int] = set()
        """Posts whose call has ended."""
        self._failed: set[tuple[int, int]] = set()
        """(post, earlier tries) of failed calls."""
        self._chosen: dict[str, list[int]] = {}
        """Command → the posts for which it was executed."""
        self._given_up: dict[int, int] = {}
        """Posts that a user has dropped → the true time of the drop."""
        self.calls: Counter[Asked] = Counter()
        """Number of complete calls of each callback, by any process."""

    # --- notifications of the world -----------------------------------------------------------------------------

    def message_received(self, document: bytes) -> None:
        """Record a message that a scheduler has received."""
        if b"calls_back" not in document:
            return
        message = decode_to_scheduler(document)
        if isinstance(message, FromRunner) and isinstance(message.body, Report) and message.body.calls_back:
            self._reports[message.attempt] = message.body
            if message.body.called_back:
                self._called_before.add(message.attempt)

    def called_itself(self, asked: Asked) -> None:
        """Record that a task process has called the callback completely."""
        self._own.add(asked)
        self._own_attempts.add((asked.run, asked.slot, asked.fence))
        self.calls[asked] += 1

    def handed_over(self, order: CallbackOrder) -> None:
        """Check the start of a call by a worker host."""
        row = self.posts.get(order.callback_id)
        if order.callback_id not in self._asked:
            self._checks.violated("36 posts", f"post {order.callback_id} was handed over, but was never committed")
        elif self._now() - self._given_up.get(order.callback_id, self._now()) > LATE:
            self._checks.violated("36 posts", f"post {order.callback_id} was given up long ago, and is handed over")
        elif row is not None and row.tries == order.tries and row.due > self._wall() and not self._checks.jumped:
            self._checks.violated("36 posts", f"{row.identity} was handed over {row.due - self._wall()} µs early")

    def called(self, order: CallbackOrder) -> None:
        """Record that a callback process has called the callback completely."""
        self._called.add(order.callback_id)
        self.calls[self._asked[order.callback_id]] += 1

    def failed(self, order: CallbackOrder) -> None:
        """Record that a callback process failed, or ended during the call."""
        self._failed.add((order.callback_id, order.tries))

    # --- after every commit ----------------------------------------------------------------------------------

    def committed(
        self, changes: Iterable[Change], by_scheduler: bool, command: IncomingCommand | None, missed: Iterable[Asked]
    ) -> None:
        """Called after `Checks.committed`.

        Args:
            by_scheduler: the commit is a batch of decisions.
            command: the command that the commit executes.
            missed: the callbacks of missed deadlines.
        """
        retried, given_up = self._choose(command, RetryCallbacks), self._choose(command, DropCallbacks)
        wanted: dict[Asked, bool] = dict.fromkeys(missed, False)
        perhaps: set[Asked] = set()
        new: list[tuple[int, Post]] = []
        gone: list[tuple[int, Post]] = []
        for kind, key, row in changes:
            if kind == "journal" and by_scheduler and row is not None:
                self._step(key[0], row, wanted, perhaps)
            elif kind == "run":
                self._run(key[0], row, wanted if by_scheduler else {})
            elif kind == "outbox" and (key[0] in self.posts or (row is not None and row.kind != DEADLINE)):
                self.last_change = self._now()
                before = self.posts.get(key[0])
                if row is None:
                    if before is not None:
                        gone.append((key[0], self.posts.pop(key[0])))
                    continue
                self.posts[key[0]] = row
                if before is None:
                    new.append((key[0], row))
                elif key[0] in retried:
                    self._retried(key[0], before)
                else:
                    self._tried(key[0], before, row)
        for number, row in new:
            self._posted(number, row, wanted, perhaps)
        for asked in wanted:
            self._missing(asked)
        for asked in perhaps:
            if (asked.run, asked.slot, asked.fence) not in self._own_attempts:
                self._checks.violated("36 posts", f"{self._name(asked)} was neither called nor posted")
        for number, row in gone:
            if number in given_up:
                self._given_up[number] = self._now()
                self._checks.sometimes(f"a person gave up a callback that was {'parked' if row.parked else 'to be called'}")
            else:
                self._check_deleted(number, row)
        self._check_edited_posts(retried, given_up)

    def _choose(self, incoming: IncomingCommand | None, kind: type[RetryCallbacks | DropCallbacks]) -> list[int]:
        """Return the posts that this command changes, if the command has this type."""
        if incoming is None or not isinstance(incoming.command, kind):
            return []
        chosen = incoming.command.ids
        found = self._all(kind) if chosen is None else list(chosen)
        self._chosen[incoming.op] = found
        return found

    def _all(self, kind: type[RetryCallbacks | DropCallbacks]) -> list[int]:
        """Return the posts of a command that names none: parked posts; for a retry also posts that have failed before."""
        retry = kind is RetryCallbacks
        return [number for number, row in sorted(self.posts.items()) if row.parked is not None or (retry and row.tries)]

    def _retried(self, number: int, before: Post) -> None:
        self._failed -= {one for one in self._failed if one[0] == number}
        what = "parked" if before.parked else "to be tried again" if before.tries else "to be called"
        self._checks.sometimes(f"a person had a callback called that was {what}")

    def _check_edited_posts(self, retried: list[int], given_up: list[int]) -> None:
        """36: a callback that a user retries is due now, with all its tries; a dropped callback is deleted."""
        for number in retried:
            row = self.posts.get(number)
            if row is None or row.parked is not None or row.tries or row.due > self._wall():
                self._checks.violated("36 posts", f"post {number} was to be tried again, and is {row}")
        for number in given_up:
            if number in self.posts:
                self._checks.violated("36 posts", f"post {number} was given up, and is there")

    def answered(self, incoming: IncomingCommand, result: CommandResult) -> None:
        """Check the answer of a command about posts."""
        op, command, _ = incoming
        if not isinstance(command, RetryCallbacks | DropCallbacks):
            return
        if result.error is None:
            ids = result_of(result, command).ids
            if sorted(ids) != sorted(self._chosen.get(op, [])):
                self._checks.violated("36 posts", f"{op}, {command}: {ids}, not {self._chosen.get(op)}")
        if result.error == "NotFound" and all(number in self.posts for number in command.ids or ()):
            self._checks.violated("36 posts", f"{command}: {result.message}, but there is")

    def _step(self, run: int, step: Step, wanted: dict[Asked, bool], perhaps: set[Asked]) -> None:
        """Add the callbacks of a state change to `wanted` (with a flag if they are held back), or to `perhaps`."""
        checks, argument = self._checks, _ARGUMENTS.get(step.after)
        row, task = checks.shadow.runs.get(run), checks.shadow.tasks.get(run, {}).get(step.slot)
        if argument is None or step.before == NONE or row is None or task is None:
            return
        definition = checks.task_of(row, task)
        key = (run, step.slot, step.fence)
        attempt, report = checks.shadow.attempts.get(key), self._reports.get(key)
        said = report is not None and attempt is not None and attempt.outcome == report.outcome.value
        own = step.before == RUNNING and said
        bad = step.after in (FAILED, RETRY)
        for place in range(len((definition.callbacks or {}).get(argument, ()))):
            asked = Asked(*key, NAMES[step.after], argument, place)
            if own and key in self._called_before:
                perhaps.add(asked)
            elif own or bad:
                wanted[asked] = own
        if bad and _wants_mail(definition, step.after):
            wanted[Asked(*key, NAMES[step.after], "email", 0)] = False

    def _run(self, run: int, row: Run | None, wanted: dict[Asked, bool]) -> None:
        if row is None:
            self._states.pop(run, None)
            return
        before, self._states[run] = self._states.get(run), row.state
        if row.state == before or row.state not in (R_SUCCESS, R_FAILED):
            return
        argument, state = ("on_success_callback", "success") if row.state == R_SUCCESS else ("on_failure_callback", "failed")
        for place in range(len(self._checks.shape(row.version).definition.callbacks.get(argument, ()))):
            wanted[Asked(run, OF_RUN, 0, state, argument, place)] = False

    def _posted(self, number: int, row: Post, wanted: dict[Asked, bool], perhaps: set[Asked]) -> None:
        asked = asked_by(decode_workload(row.payload))
        self._asked[number] = asked
        if asked in perhaps:
            perhaps.discard(asked)
            held = True
        elif asked in wanted:
            held = wanted.pop(asked)
        else:
            self._checks.violated("36 posts", f"{row.identity} was posted, but nothing in this commit calls for it")
            return
        if held != (row.due > row.created):
            text = "posted at once, but its own process calls it" if held else "held back, but nobody else calls it"
            self._checks.violated("36 posts", f"{row.identity} is {text}")
        self._checks.sometimes("a callback was posted that a process calls itself" if held else "a callback was posted")

    def _missing(self, asked: Asked) -> None:
        """Report that this commit lacks a post, unless it may lack it."""
        again = asked.run in self._checks.state_set_by_user and asked.slot == OF_RUN
        if again and any(self._asked[number] == asked for number in self.posts):
            return  # a person had it run once more, and its last end is still to be reported
        self._checks.violated("36 posts", f"{self._name(asked)} was not posted")

    def _tried(self, number: int, before: Post, row: Post) -> None:
        """Check a changed row: a try failed, or a user made it due."""
        if row.tries not in (before.tries, before.tries + 1):
            self._checks.violated("36 posts", f"{row.identity}: {row.tries} tries after {before.tries}")
        elif row.tries != before.tries and (number, before.tries) not in self._failed:
            self._checks.violated("36 posts", f"{row.identity}: try {row.tries} has failed, but it was never made")
        if row.parked is not None and row.tries < self.tries:
            self._checks.violated("36 posts", f"{row.identity} is parked after {row.tries} of {self.tries} tries")
        if row.parked is None and row.tries >= self.tries:
            self._checks.violated("36 posts", f"{row.identity} is tried again after {row.tries} of {self.tries} tries")
        if row.parked is not None:
            self._checks.sometimes("a callback was parked")

    def _check_deleted(self, number: int, row: Post) -> None:
        """Check a deleted row: the callback was called, or its run was deleted."""
        asked = self._asked[number]
        if asked.run not in self._checks.shadow.runs:
            return
        begun = self._checks.begun_version.get((asked.run, asked.slot, asked.fence))
        edited = begun is not None and begun != self._checks.shadow.runs[asked.run].version
        if number not in self._called and asked not in self._own and not edited:  # if edited, its process knew no such callback
            self._checks.violated("36 posts", f"{row.identity} was acknowledged, but {self._name(asked)} was never called")

    # --- at the end ------------------------------------------------------------------------------------------

    def left(self) -> list[Post]:
        """Return the callbacks that are not called yet."""
        return [row for row in self.posts.values() if row.parked is None]

    def forgotten(self) -> list[str]:
        """Return the callbacks that have been due for long and were not called."""
        if self._now() - self.last_change < LATE:
            return []
        return [row.identity for row in self.left() if row.due < self._wall() - LATE]

    def _name(self, asked: Asked) -> str:
        where = f"run {asked.run}" if asked.slot == OF_RUN else self._checks.where(asked.run, asked.slot)
        return f"{asked.argument}[{asked.place}] of {where} under fence {asked.fence}, {asked.state},"


def _wants_mail(task: TaskDefinition, after: int) -> bool:
    return bool(task.email) and (task.email_on_failure if after == FAILED else task.email_on_retry)
