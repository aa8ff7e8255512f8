"""Asks custom timetables for the next runs of their DAGs.

The scheduler never calls a timetable that users wrote. If the next run of a DAG depends on such a timetable, this class sends a
request to the parser. A child process of the parser asks the timetable; the answer comes back as an event. If a timetable raises,
hangs or gives a wrong answer, only its own DAG has no next run: the error is shown among the import errors and in `why`, and the
timetable is asked again after growing pauses, or as soon as its file changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tradewind.model.moments import MINUTE, SECOND, iso
from tradewind.model.rows import DagPlan, ImportProblem, ParsedFile
from tradewind.observe.log import Log
from tradewind.platform.backoff import backoff_us
from tradewind.scheduler.dags.schedule import DagEntry, Question, Reply, schedule_name
from tradewind.store.port import Store
from tradewind.timetables import RunTimes
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

log = Log("timetables")

BUNDLE = "timetables"
"""The bundle name under which import errors list failures of timetables."""
FIRST_RETRY, LONGEST_RETRY = 10 * SECOND, 10 * MINUTE
ASK_ENDED_AGAIN = 10 * MINUTE
"""Interval after which a timetable without a further run is asked again: it may read a calendar that was extended."""


class Trouble(NamedTuple):
    """Why a DAG's timetable is not asked for a while."""

    sentence: str
    failures: int
    retry_at: int


class CustomTimetables:
    """See the module.

    Args:
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.troubles: dict[str, Trouble] = {}
        self._send: Callable[[TimetableQuestion], None] | None = None
        self._open: dict[int, tuple[TimetableQuestion, Question]] = {}
        self._asked: dict[str, int] = {}
        """DAG → the number of its open request."""
        self._reported: set[str] = set()
        """Files under which the store holds import errors of timetables."""
        self._number = 0

    def restart(self) -> None:
        """Drop all open requests: everything is loaded from the store again, and then asked again."""
        self._open.clear()
        self._asked.clear()
        self._reported = set(self.store.known_files(BUNDLE))

    def connect(self, send: Callable[[TimetableQuestion], None] | None) -> None:
        """Set the connection to the parser, which asks timetables; None: it is closed. Open requests are sent again."""
        self._send = send
        if send is not None:
            for request, _ in list(self._open.values()):
                send(request)

    @property
    def connected(self) -> bool:
        return self._send is not None

    def number(self) -> int:
        """Return a new number for a request."""
        self._number += 1
        return self._number

    def send(self, request: TimetableQuestion) -> None:
        """Send a request, if there is a connection."""
        if self._send is not None:
            self._send(request)

    # --- the next run -------------------------------------------------------------------------------------------------

    def consult(self, entry: DagEntry, now: int) -> int | None:
        """Ask the timetable of a DAG that needs it, unless a request is open.

        Returns:
            The moment at which the DAG must be examined again, if the timetable failed and is not asked now.
        """
        question, dag_id = entry.question, entry.plan.dag_id
        if question is None:
            return None
        known = self._open.get(self._asked.get(dag_id, 0))
        if known is not None and known[1] == question:
            return None
        trouble = self.troubles.get(dag_id)
        if trouble is not None and now < trouble.retry_at:
            return trouble.retry_at
        plan = entry.plan
        request = TimetableQuestion(
            self.number(),
            dag_id,
            plan.bundle,
            plan.file,
            plan.schedule,
            plan.last,
            plan.start_date,
            plan.end_date,
            plan.catchup,
            bundle_version=plan.bundle_version,
        )
        self._drop_request(dag_id)
        self._open[request.number] = (request, question)
        self._asked[dag_id] = request.number
        self.send(request)
        return None

    def take(self, answer: TimetableAnswer, dags: Mapping[str, DagEntry], now: int) -> DagEntry | None:
        """Use an answer: set `entry.reply`, or record the failure.

        Returns:
            The DAG that the answer is for; None: the request is not open any more.

        Raises:
            StoreError: a failure cannot be written.
        """
        request, question = self._open.pop(answer.number, (None, None))
        if request is None or question is None:
            return None
        self._asked.pop(request.dag_id, None)
        entry = dags.get(request.dag_id)
        if entry is None or entry.question != question:
            return entry
        times = None if answer.run is None else RunTimes(*answer.run)
        sentence = answer.problem or _why_invalid(times, request.last)
        if sentence is not None:
            self._quarantine(entry.plan, sentence, answer.stack_trace, now)
            return entry
        if times is not None and request.latest is not None and _moment(times) > request.latest:
            times = None
        entry.reply = Reply(question, times, None if times is not None else now + ASK_ENDED_AGAIN)
        if self.troubles.pop(request.dag_id, None) is not None:
            log.info("a timetable answers again", dag_id=request.dag_id)
        self._clear(entry.plan, now)
        return entry

    def why(self, entry: DagEntry | None) -> str | None:
        """Return why the next run of this DAG is not known, if its timetable is the reason."""
        if entry is None or entry.question is None:
            return None
        trouble = self.troubles.get(entry.plan.dag_id)
        if trouble is not None:
            return trouble.sentence
        if self.connected:
            return None  # a request is open
        name = schedule_name(entry.plan)
        return f"DAG {entry.plan.dag_id!r} has the timetable {name}, and no parser is running that could ask it."

    def reset_backoff(self, plan: DagPlan, now: int, *, custom: bool) -> None:
        """Ask at once: the DAG's file was parsed again. If the DAG has no custom timetable, forget its failure instead."""
        self._drop_request(plan.dag_id)
        trouble = self.troubles.pop(plan.dag_id, None)
        if custom and trouble is not None:
            self.troubles[plan.dag_id] = trouble._replace(failures=0, retry_at=now)
        elif not custom:
            self._clear(plan, now)

    def _drop_request(self, dag_id: str) -> None:
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
            log.error(
                "a timetable cannot be asked for the next run of its DAG", dag_id=plan.dag_id, timetable=name, why=sentence
            )
        problem = ImportProblem(text, stack_trace, None)
        self.store.register_file(
            ParsedFile(BUNDLE, _row(plan), "", (), problem, duration=0, is_dynamic=False, at=now), paused_at_creation=True
        )
        self._reported.add(_row(plan))

    def _clear(self, plan: DagPlan, now: int) -> None:
        row = _row(plan)
        if row in self._reported:
            self.store.forget_files(BUNDLE, [row], now)
            self._reported.discard(row)


def _row(plan: DagPlan) -> str:
    """Return the file name under which the import errors list the failure of a DAG's timetable."""
    return f"{plan.file}::{plan.dag_id}"


def _moment(times: RunTimes) -> int:
    return times.run_after if times.logical_date is None else times.logical_date


def _why_invalid(times: RunTimes | None, last: tuple[int | None, int | None, int | None, int] | None) -> str | None:
    """Return why this cannot be the run after the last one; None: it can."""
    if times is None or last is None:
        return None
    before = RunTimes(*last)
    if _moment(times) <= _moment(before):
        return f"it gave the run of {iso(_moment(times))}, which is not after the last one ({iso(_moment(before))})"
    return None
