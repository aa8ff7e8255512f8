"""The triage page: what failed, what is late, what is blocked and why, what runs, and whether everything is healthy."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, described, json_response
from tradewind.api.routes.monitor import Component, components_of
from tradewind.api.services import Services
from tradewind.api.triage import FAILURES_MAX, HISTORY_MAX, failed_ends, failed_total, first_line, first_miss, fixed, shown_run
from tradewind.api.ui_shapes import (
    PartState,
    Triage,
    TriageBlock,
    TriageFailure,
    TriageHealth,
    TriageInstance,
    TriageNext,
    TriageRun,
)
from tradewind.model.errors import TradewindError
from tradewind.model.moments import iso
from tradewind.model.states import RUN_STATES, RunState
from tradewind.store.port import Reader
from tradewind.store.port.triage_lists import FailedInstance, LatestEndedRuns
from tradewind.wire import commands as c

R = TypeVar("R")

router = APIRouter(prefix="/api/tradewind/v1", tags=["Web page"])

SHOWN_MAX = 100
"""Maximum number of entries of each list."""
RUNS_MAX = 500
"""Maximum number of unfinished runs that are checked for lateness."""
DAGS_MAX = 200
"""Maximum number of DAGs whose usual duration is read."""
FIXED_MAX = 20
NEXT = 3
ASK_SECONDS = 2.0
"""How long to wait for the scheduler. Without its answer the page shows the other parts."""

_NO_ANSWER: dict[str, Any] = {
    "running": [],
    "running_total": 0,
    "blocked": [],
    "blocked_total": 0,
    "progress": {},
}


@router.get("/triage", responses=described(Triage, also=(503,)))
@allow("read", "task_instance")
def get_triage(api: Api) -> Response:
    """Everything that needs attention now, in one answer.

    `failed` has the failed task instances of the newest ended run of each DAG, and of runs that have not ended. A run is late
    if it has missed a deadline, or takes longer than each of the latest successful runs of its DAG (at least three). If the
    scheduler does not answer within two seconds, `health` says so, and `blocked`, `tasks_running` and `next` are empty.
    """
    reader, now = api.reader(), api.clock.wall()
    activity = _ask(api, c.Activity()) or _NO_ANSWER
    ends = reader.latest_ended_runs()
    failed, unfinished = failed_ends(ends), reader.failed_in_unfinished_runs(FAILURES_MAX)
    late, running, total = _runs(reader, now, activity["progress"])
    coming = _ask(api, c.Upcoming(NEXT))
    return json_response(
        Triage(
            at=iso(now) or "",
            failed=_failures(reader, failed, unfinished),
            failed_total=failed_total(failed, unfinished),
            late=late[:SHOWN_MAX],
            running=running[:SHOWN_MAX],
            unfinished_total=total,
            tasks_running=msgspec.convert(activity["running"][:SHOWN_MAX], list[TriageInstance]),
            tasks_running_total=activity["running_total"],
            blocked=msgspec.convert(activity["blocked"][:SHOWN_MAX], list[TriageBlock]),
            blocked_total=activity["blocked_total"],
            fixed=fixed(ends, now, FIXED_MAX),
            next=[] if coming is None else msgspec.convert(coming.upcoming, list[TriageNext], from_attributes=True),
            broken_files=reader.import_error_count(),
            health=_health(api),
        )
    )


def _ask(api: Services, question: c.Command[R]) -> R | None:
    """The scheduler's answer; None if it does not answer."""
    if not api.ping().answers:
        return None
    try:
        return api.control().call(question, timeout=ASK_SECONDS)
    except TradewindError:
        return None


def _failures(reader: Reader, ends: list[LatestEndedRuns], unfinished: list[FailedInstance]) -> list[TriageFailure]:
    newest = sorted(ends, key=lambda one: -(one.ended_at or 0))[:SHOWN_MAX]
    found = unfinished + reader.failed_instances([one.run for one in newest], SHOWN_MAX)
    found.sort(key=lambda one: (-(one.ended_at or 0), one.run, one.slot))
    found = found[:SHOWN_MAX]
    behind = reader.upstream_failed_counts(sorted({one.run for one in found}))
    return [_failure(one, behind.get(one.run, 0)) for one in found]


def _failure(one: FailedInstance, behind: int) -> TriageFailure:
    return TriageFailure(
        dag_id=one.dag_id,
        run_id=one.run_id,
        run_state=RUN_STATES[one.run_state].value,
        run_after=iso(one.run_after) or "",
        task_id=one.task_id,
        map_index=one.map_index,
        try_number=one.try_number,
        tries=max(one.max_tries + 1, one.try_number),
        start_date=iso(one.started_at),
        end_date=iso(one.ended_at),
        error=first_line(one.reason),
        upstream_failed=behind,
    )


def _runs(reader: Reader, now: int, progress: dict[str, list[int]]) -> tuple[list[TriageRun], list[TriageRun], int]:
    """Runs that are late, the other running ones, and how many have not ended."""
    runs = reader.unfinished_runs(RUNS_MAX)
    dags = list(dict.fromkeys(run.dag_id for run in runs))[:DAGS_MAX]
    durations, misses = reader.usual_durations(dags, HISTORY_MAX), first_miss(reader.missed_deadlines())
    shown = [
        shown_run(run, now, durations.get(run.dag_id, ()), misses.get(run.run), progress.get(str(run.run))) for run in runs
    ]
    late = [one for one in shown if one.late_because is not None]
    running = [one for one in shown if one.late_because is None and one.state == RunState.RUNNING.value]
    return late, running, len(runs) if len(runs) < RUNS_MAX else reader.unfinished_count()


def _health(api: Services) -> TriageHealth:
    state, ping = components_of(api), api.ping()

    def part(one: Component) -> PartState:
        return PartState(one.status, one.problem)

    return TriageHealth(
        database=part(state.database),
        scheduler=part(state.scheduler),
        worker_host=part(state.host),
        triggerer=part(state.triggerer),
        dag_processor=part(state.parser),
        workers=len(ping.state.workers) if ping.state is not None else 0,
    )
