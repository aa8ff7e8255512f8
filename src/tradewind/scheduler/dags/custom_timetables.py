"""The desk at which custom timetables are asked.

A timetable that users wrote is never called here. Where a DAG with one needs to know its next run, the desk sends a question to
the parser, which puts it to a child process; the answer comes back as an event. A timetable that raises, hangs or answers nonsense
costs its own DAG the next run, and nobody else anything: the DAG is in quarantine, with a sentence among the import errors and in
`why`, and is asked again after a while, later and later, or as soon as its file changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tradewind.model.moments import MINUTE, SECOND, iso
from tradewind.model.rows import DagPlan, ImportProblem, ParsedFile
from tradewind.observe.log import Log
from tradewind.platform.backoff import backoff_us
from tradewind.scheduler.dags.schedule import DagEntry, Question, Told, schedule_name
from tradewind.store.port import Store
from tradewind.timetables import RunTimes
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

log = Log("timetables")

BUNDLE = "timetables"
"""Under this name of a folder the import errors show what is wrong with timetables."""
FIRST_RETRY, LONGEST_RETRY = 10 * SECOND, 10 * MINUTE
ASK_ENDED_AGAIN = 10 * MINUTE
"""A timetable that said that there is no further run may think otherwise later: it may read a calendar."""


class Trouble(NamedTuple):
    """Why a DAG's timetable is in quarantine."""

    sentence: str
    failures: int
    retry_at: int


class CustomTimetables:
    """See the module.

    Args:
        folder: the folder of a bundle.
    """

    def __init__(self, store: Store, folder: Callable[[str], str]) -> None:
        self.store = store
        self.folder = folder
        self.troubles: dict[str, Trouble] = {}
        self._send: Callable[[TimetableQuestion], None] | None = None
        self._open: dict[int, tuple[TimetableQuestion, Question]] = {}
        self._asked: dict[str, int] = {}
        """DAG → its open question."""
        self._noted: set[str] = set()
        """Import errors of ours that the store holds."""
        self._number = 0

    def restart(self) -> None:
        """Everything is read anew: what was asked is asked again."""
        self._open.clear()
        self._asked.clear()
        self._noted = set(self.store.known_files(BUNDLE))

    def connect(self, send: Callable[[TimetableQuestion], None] | None) -> None:
        """The line to whoever asks for us; None: it is down. What is open is asked again over a new one."""
        self._send = send
        if send is not None:
            for ask, _ in list(self._open.values()):
                send(ask)

    @property
    def connected(self) -> bool:
        return self._send is not None

    def number(self) -> int:
        """A number for a question."""
        self._number += 1
        return self._number

    def send(self, ask: TimetableQuestion) -> None:
        """Put a question on the line, if there is one."""
        if self._send is not None:
            self._send(ask)

    # --- the next run -------------------------------------------------------------------------------------------------

    def consult(self, entry: DagEntry, now: int) -> int | None:
        """Ask what this DAG wants to know, unless that is under way; when to look again, for one in quarantine."""
        wants, dag_id = entry.wants, entry.plan.dag_id
        if wants is None:
            return None
        known = self._open.get(self._asked.get(dag_id, 0))
        if known is not None and known[1] == wants:
            return None
        trouble = self.troubles.get(dag_id)
        if trouble is not None and now < trouble.retry_at:
            return trouble.retry_at
        plan = entry.plan
        ask = TimetableQuestion(
            self.number(),
            dag_id,
            self.folder(plan.bundle),
            plan.file,
            plan.schedule,
            plan.last,
            plan.start_date,
            plan.end_date,
            plan.catchup,
        )
        self._withdraw(dag_id)
        self._open[ask.number] = (ask, wants)
        self._asked[dag_id] = ask.number
        self.send(ask)
        return None

    def take(self, told: TimetableAnswer, dags: Mapping[str, DagEntry], now: int) -> DagEntry | None:
        """An answer: the DAG it is for, with `entry.told` set where it is of use; None for one that nobody waits for.

        Raises:
            StoreError: a trouble could not be noted.
        """
        ask, wants = self._open.pop(told.number, (None, None))
        if ask is None or wants is None:
            return None
        self._asked.pop(ask.dag_id, None)
        entry = dags.get(ask.dag_id)
        if entry is None or entry.wants != wants:
            return entry
        times = None if told.run is None else RunTimes(*told.run)
        sentence = told.problem or _nonsense(times, ask.last)
        if sentence is not None:
            self._quarantine(entry.plan, sentence, told.stack_trace, now)
            return entry
        if times is not None and ask.latest is not None and _moment(times) > ask.latest:
            times = None
        entry.told = Told(wants, times, None if times is not None else now + ASK_ENDED_AGAIN)
        if self.troubles.pop(ask.dag_id, None) is not None:
            log.info("a timetable answers again", dag_id=ask.dag_id)
        self._clear(entry.plan, now)
        return entry

    def why(self, entry: DagEntry | None) -> str | None:
        """Why nobody knows when this DAG runs next, where its timetable is the reason."""
        if entry is None or entry.wants is None:
            return None
        trouble = self.troubles.get(entry.plan.dag_id)
        if trouble is not None:
            return trouble.sentence
        if self.connected:
            return None  # it is being asked
        name = schedule_name(entry.plan)
        return f"DAG {entry.plan.dag_id!r} has the timetable {name}, and no parser is running that could ask it."

    def reset_backoff(self, plan: DagPlan, now: int, *, custom: bool) -> None:
        """Its file was read anew: ask at once, as if nothing had been. Without a custom timetable, forget it."""
        self._withdraw(plan.dag_id)
        trouble = self.troubles.pop(plan.dag_id, None)
        if custom and trouble is not None:
            self.troubles[plan.dag_id] = trouble._replace(failures=0, retry_at=now)
        elif not custom:
            self._clear(plan, now)

    def _withdraw(self, dag_id: str) -> None:
        number = self._asked.pop(dag_id, None)
        if number is not None:
            del self._open[number]

    def _quarantine(self, plan: DagPlan, sentence: str, stack_trace: str, now: int) -> None:
        before = self.troubles.get(plan.dag_id)
        failures = 1 if before is None else before.failures + 1
        wait = backoff_us(failures, first_us=FIRST_RETRY, cap_us=LONGEST_RETRY, rng=lambda: 0.0)
        name = schedule_name(plan)
        text = f"DAG {plan.dag_id!r} ({plan.file}): its timetable {name} cannot be asked for the next run: {sentence}"
        self.troubles[plan.dag_id] = Trouble(text, failures, now + wait)
        if before is None or before.sentence != text:
            log.error("a timetable does not say when its DAG runs next", dag_id=plan.dag_id, timetable=name, why=sentence)
        problem = ImportProblem(text, stack_trace, None)
        self.store.register_file(
            ParsedFile(BUNDLE, _row(plan), "", (), problem, duration=0, is_dynamic=False, at=now), paused_at_creation=True
        )
        self._noted.add(_row(plan))

    def _clear(self, plan: DagPlan, now: int) -> None:
        row = _row(plan)
        if row in self._noted:
            self.store.forget_files(BUNDLE, [row], now)
            self._noted.discard(row)


def _row(plan: DagPlan) -> str:
    """Where the trouble of a DAG stands among the import errors."""
    return f"{plan.file}::{plan.dag_id}"


def _moment(times: RunTimes) -> int:
    return times.run_after if times.logical_date is None else times.logical_date


def _nonsense(times: RunTimes | None, last: tuple[int | None, int | None, int | None, int] | None) -> str | None:
    """Why this cannot be the run after the last one, or None."""
    if times is None or last is None:
        return None
    before = RunTimes(*last)
    if _moment(times) <= _moment(before):
        return f"it gave the run of {iso(_moment(times))}, which is not after the last one ({iso(_moment(before))})"
    return None
