"""What must hold of callbacks: each that is asked for is posted once, with what causes it, and called before it is let go.

As in `checks`, nothing is shared with the kernel or the scheduler: which steps call for what is written a second time, from what
the arguments mean. A post is known by what it says is to be called, not by its identity.
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
"""In the place of a slot: the callback of a whole run."""
LATE = 20 * MINUTE
"""A post that is due for so long, while nothing breaks and no other one moves, is forgotten."""
_ARGUMENTS = {
    SUCCESS: "on_success_callback",
    SKIPPED: "on_skipped_callback",
    RETRY: "on_retry_callback",
    FAILED: "on_failure_callback",
}


class Asked(NamedTuple):
    """One thing that is to be called."""

    run: int
    slot: int
    fence: int
    state: str
    """Of the task instance, or of the run, that calls for it."""
    argument: str
    place: int


DEADLINE = "deadline"
"""Kind of posts that are none: `deadlines` looks at them."""


def asked_by(work: Workload) -> Asked:
    """What a post, or an order, says is to be called."""
    call = work.call
    assert call is not None
    if call.of_run:
        return Asked(work.run, OF_RUN, 0, call.run_state, call.argument, call.index)
    return Asked(work.run, work.slot, work.fence, call.state, call.argument, call.index)


class CallbackChecks:
    """See the module.

    Args:
        wall: the scheduler's clock.
        now: true time.
    """

    def __init__(self, checks: Checks, wall: Callable[[], int], now: Callable[[], int]) -> None:
        self._checks = checks
        self._wall = wall
        self._now = now
        self.last_change = 0
        """Moment of true time at which the outbox was last written."""
        self.tries = 0
        """After so many that failed a post is parked."""
        self.posts: dict[int, Post] = {}
        """In the outbox now, by number."""
        self._asked: dict[int, Asked] = {}
        """Every post that was ever committed, by number."""
        self._states: dict[int, int] = {}
        """State of each run."""
        self._told: dict[AttemptKey, Report] = {}
        """Reports of processes that call back themselves, as a scheduler heard them."""
        self._called_before: set[AttemptKey] = set()
        """Those that were said to have called back already."""
        self._own: set[Asked] = set()
        """What processes of tasks have called themselves."""
        self._called: set[int] = set()
        """Posts that were called to the end."""
        self._failed: set[tuple[int, int]] = set()
        """(post, tries before) of what was called and failed."""
        self._chosen: dict[str, list[int]] = {}
        """Command → the posts that it was carried out for."""
        self._given_up: dict[int, int] = {}
        """Posts that a person has given up → when, in true time."""
        self.calls: Counter[Asked] = Counter()
        """How often each was called to the end, by whomever."""

    # --- what the world has seen -----------------------------------------------------------------------------

    def overheard(self, document: bytes) -> None:
        """A scheduler hears this."""
        if b"calls_back" not in document:
            return
        message = decode_to_scheduler(document)
        if isinstance(message, FromRunner) and isinstance(message.body, Report) and message.body.calls_back:
            self._told[message.attempt] = message.body
            if message.body.called_back:
                self._called_before.add(message.attempt)

    def called_itself(self, asked: Asked) -> None:
        """The process of a task has called it to the end."""
        self._own.add(asked)
        self.calls[asked] += 1

    def handed_over(self, order: CallbackOrder) -> None:
        """A worker host begins with it."""
        row = self.posts.get(order.post)
        if order.post not in self._asked:
            self._checks.violated("36 posts", f"post {order.post} was handed over, but was never committed")
        elif self._now() - self._given_up.get(order.post, self._now()) > LATE:
            self._checks.violated("36 posts", f"post {order.post} was given up long ago, and is handed over")
        elif row is not None and row.tries == order.tries and row.due > self._wall() and not self._checks.jumped:
            self._checks.violated("36 posts", f"{row.identity} was handed over {row.due - self._wall()} µs early")

    def called(self, order: CallbackOrder) -> None:
        """Another process has called it to the end."""
        self._called.add(order.post)
        self.calls[self._asked[order.post]] += 1

    def failed(self, order: CallbackOrder) -> None:
        """Its process failed, or ended in the middle of it."""
        self._failed.add((order.post, order.tries))

    # --- after every commit ----------------------------------------------------------------------------------

    def committed(
        self, changes: Iterable[Change], by_scheduler: bool, command: IncomingCommand | None, missed: Iterable[Asked]
    ) -> None:
        """Called behind `Checks.committed`. `by_scheduler`: it is a batch of decisions. `command`: what somebody has commanded.
        `missed`: what deadlines call for that were missed."""
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
        for asked in perhaps - self._own:
            self._checks.violated("36 posts", f"{self._name(asked)} was neither called nor posted")
        for number, row in gone:
            if number in given_up:
                self._given_up[number] = self._now()
                self._checks.sometimes(f"a person gave up a callback that was {'parked' if row.parked else 'to be called'}")
            else:
                self._let_go(number, row)
        self._obeyed(retried, given_up)

    def _choose(self, incoming: IncomingCommand | None, kind: type[RetryCallbacks | DropCallbacks]) -> list[int]:
        """The posts that this command is about, if it is one of that type."""
        if incoming is None or not isinstance(incoming.command, kind):
            return []
        chosen = incoming.command.ids
        found = self._all(kind) if chosen is None else list(chosen)
        self._chosen[incoming.op] = found
        return found

    def _all(self, kind: type[RetryCallbacks | DropCallbacks]) -> list[int]:
        """What a command is about that names no posts: the parked ones; of those to be tried again also the ones that failed."""
        retry = kind is RetryCallbacks
        return [number for number, row in sorted(self.posts.items()) if row.parked is not None or (retry and row.tries)]

    def _retried(self, number: int, before: Post) -> None:
        self._failed -= {one for one in self._failed if one[0] == number}
        what = "parked" if before.parked else "to be tried again" if before.tries else "to be called"
        self._checks.sometimes(f"a person had a callback called that was {what}")

    def _obeyed(self, retried: list[int], given_up: list[int]) -> None:
        """36: what a person wants called is due now, with all its tries; what they give up is gone."""
        for number in retried:
            row = self.posts.get(number)
            if row is None or row.parked is not None or row.tries or row.due > self._wall():
                self._checks.violated("36 posts", f"post {number} was to be tried again, and is {row}")
        for number in given_up:
            if number in self.posts:
                self._checks.violated("36 posts", f"post {number} was given up, and is there")

    def answered(self, incoming: IncomingCommand, result: CommandResult) -> None:
        """Who is told of posts is told the truth."""
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
        """What a step of a task instance calls for: into `wanted`, with whether it is held back, or into `perhaps`."""
        checks, argument = self._checks, _ARGUMENTS.get(step.after)
        row, task = checks.shadow.runs.get(run), checks.shadow.tasks.get(run, {}).get(step.slot)
        if argument is None or step.before == NONE or row is None or task is None:
            return
        definition = checks.task_of(row, task)
        key = (run, step.slot, step.fence)
        attempt, told = checks.shadow.attempts.get(key), self._told.get(key)
        said = told is not None and attempt is not None and attempt.outcome == told.outcome.value
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
        """Nothing of the kind is posted in this commit."""
        again = asked.run in self._checks.judged_by_hand and asked.slot == OF_RUN
        if again and any(self._asked[number] == asked for number in self.posts):
            return  # a person had it run once more, and its last end is still to be told
        self._checks.violated("36 posts", f"{self._name(asked)} was not posted")

    def _tried(self, number: int, before: Post, row: Post) -> None:
        """Its row has changed: a try failed, or it was hastened."""
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

    def _let_go(self, number: int, row: Post) -> None:
        """It left the outbox: it was called, or goes with its run."""
        asked = self._asked[number]
        if asked.run not in self._checks.shadow.runs:
            return
        begun = self._checks.begun_version.get((asked.run, asked.slot, asked.fence))
        edited = begun is not None and begun != self._checks.shadow.runs[asked.run].version
        if number not in self._called and asked not in self._own and not edited:  # else its process knew of no such callback
            self._checks.violated("36 posts", f"{row.identity} was acknowledged, but {self._name(asked)} was never called")

    # --- at the end ------------------------------------------------------------------------------------------

    def left(self) -> list[Post]:
        """Those that are still to be called."""
        return [row for row in self.posts.values() if row.parked is None]

    def forgotten(self) -> list[str]:
        """Those that nobody has called, though they have been due for long."""
        if self._now() - self.last_change < LATE:
            return []
        return [row.identity for row in self.left() if row.due < self._wall() - LATE]

    def _name(self, asked: Asked) -> str:
        where = f"run {asked.run}" if asked.slot == OF_RUN else self._checks.where(asked.run, asked.slot)
        return f"{asked.argument}[{asked.place}] of {where} under fence {asked.fence}, {asked.state},"


def _wants_mail(task: TaskDefinition, after: int) -> bool:
    return bool(task.email) and (task.email_on_failure if after == FAILED else task.email_on_retry)
