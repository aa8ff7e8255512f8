"""Evaluates a kill test from the lines that the tasks wrote themselves and from the list of kills.

It does not read Tradewind's tables. It requests only the final states of runs and tasks, and compares them with the script.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.dags.chaos_plan import PLAN, Step, run_ends, task_ends

LOSING = frozenset({"runner", "template", "image", "host", "supervisor", "all"})
"""Kinds of processes whose death ends attempts. The death of a scheduler does not: tasks continue, and their reports wait."""
ON_ITS_WAY = 300_000_000
"""Nanoseconds after the last line of a task in which its report may not have arrived yet, on a busy machine."""

LAG = 300_000_000
"""Nanoseconds for which a process may continue after its parent was killed. The kernel first releases the memory of the dead
process and then signals its children, which takes time on a busy machine."""
STOPPING = 2_000_000_000
"""Nanoseconds in which a worker host whose supervisor was killed may still be stopping its tasks; and in which, when everything was
killed at once, a command of a task lives on until the next start finds it."""


class Kill(NamedTuple):
    """One kill. `at` is the time before the signal, `done` the time after it."""

    kind: str
    at: int
    done: int
    pids: tuple[int, ...]

    @property
    def over(self) -> int:
        """The time at which its consequences have ended."""
        return self.done + (STOPPING if self.kind in ("supervisor", "all") else LAG)


@dataclass
class Attempt:
    """One attempt, read from its own lines."""

    dag: str
    run: str
    task: str
    attempt: str
    number: int
    pid: int
    start: int
    end: int | None = None
    how: str | None = None
    seen: dict[str, Any] | None = None

    @property
    def fence(self) -> int:
        return int(self.attempt.rsplit(".", 1)[1])

    def __str__(self) -> str:
        return f"{self.dag}/{self.run}/{self.task} attempt {self.attempt} try {self.number} pid {self.pid}"


@dataclass
class Verdict:
    problems: list[str] = field(default_factory=list)
    attempts: int = 0
    unended: int = 0
    repeated: list[str] = field(default_factory=list)
    """Tasks that were correctly run again, because a kill lost the report of a finished attempt."""


def read_marks(folder: Path) -> list[dict[str, Any]]:
    """All lines of all files. An incomplete last line comes from a process that was killed while it wrote."""
    records = []
    for path in sorted(folder.iterdir()):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    records.append(json.loads(line))
                except ValueError:
                    continue
    return records


def judge(folder: Path, kills: list[Kill], runs: list[tuple[str, str]], ends: dict[tuple[str, str], dict[str, Any]]) -> Verdict:
    """Compare marks, kills and final states.

    Args:
        runs: (dag, run) of everything that was triggered.
        ends: (dag, run) → {"state": …, "tasks": {task: state}}, as the API returns it.
    """
    verdict = Verdict()
    by_task = _attempts(read_marks(folder), verdict)
    for (dag, run, task), attempts in by_task.items():
        _one_task(PLAN[dag][task], attempts, kills, verdict)
        if (dag, run) not in runs:
            verdict.problems.append(f"{dag}/{run}: this run was not triggered, but {task} ran")
    for dag, run in runs:
        _one_run(dag, run, by_task, ends.get((dag, run)), kills, verdict)
    return verdict


def _attempts(records: list[dict[str, Any]], verdict: Verdict) -> dict[tuple[str, str, str], list[Attempt]]:
    found: dict[tuple[str, str, str, str], Attempt] = {}
    by_task: dict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    if len({record["boot"] for record in records}) > 1:
        verdict.problems.append("the machine was booted meanwhile: monotonic moments cannot be compared")
    for record in records:
        key = (record["dag"], record["run"], record["task"], record["attempt"])
        known = found.get(key)
        if record["what"] == "overlap":
            where = "/".join(key)
            verdict.problems.append(f"{where}: a process of an earlier attempt was still running ({record['holder']})")
        elif record["what"] == "start":
            if known is not None:
                verdict.problems.append(f"{known}: started again as pid {record['pid']} under the same fence")
                continue
            known = found[key] = Attempt(*key, record["try"], record["pid"], record["at"])
            by_task[key[:3]].append(known)
        elif known is None:
            verdict.problems.append(f"{'/'.join(key)}: {record['what']} without a start")
        elif record["what"] == "saw":
            known.seen = record["seen"]
        elif record["what"] == "end":
            known.end, known.how = record["at"], record["how"]
    for attempts in by_task.values():
        attempts.sort(key=lambda one: one.start)
    return by_task


def _one_task(step: Step, attempts: list[Attempt], kills: list[Kill], verdict: Verdict) -> None:
    verdict.attempts += len(attempts)
    verdict.unended += sum(one.end is None for one in attempts)
    for one, following in pairwise(attempts):
        if following.number <= one.number and step.lost != "repeat":
            verdict.problems.append(f"{following}: ran again in the same try, after attempt {one.attempt}")
        if following.fence <= one.fence:
            verdict.problems.append(f"{following}: began after attempt {one.attempt}, under an older fence")
        if one.end is not None and following.start < one.end - CLOCK_GRAIN:
            verdict.problems.append(f"{following}: began before attempt {one.attempt} ended")
        if one.end is None and not _died(one, following.start, kills):
            verdict.problems.append(
                f"{one}: has no end, but nothing was killed while it ran, and {following.attempt} followed"
                f"{_around(one.start, kills)}"
            )
        # another try follows after a planned failure; after any other end only if the report cannot have been accepted
        if one.end is not None and (one.how != "fail" or step.ends == "final"):
            culprit = _lost_report(one, following.start, kills)
            if culprit is None:
                verdict.problems.append(
                    f"{following}: ran although attempt {one.attempt} had ended ({one.how}) undisturbed{_around(one.end, kills)}"
                )
            else:
                after = (culprit.at - one.end) / 1e6
                verdict.repeated.append(f"{one}: {culprit.kind} was killed {after:.0f} ms after its end")


CLOCK_GRAIN = 20_000_000
"""The clock of bash tasks has a resolution of 10 ms."""


def _around(moment: int, kills: list[Kill]) -> str:
    """The kills near a time, as text."""
    near = [f"{kill.kind} {(kill.at - moment) / 1e6:+.0f} ms" for kill in kills if abs(kill.at - moment) < 4_000_000_000]
    return f" (kills around it: {', '.join(near) or 'none'})"


def _concerns(kill: Kill, one: Attempt) -> bool:
    """True if a kill can affect an attempt: the death of a task process affects only its own attempt.

    (The lines of a bash task do not contain the pid of its task process.)
    """
    return kill.kind in LOSING and (kill.kind != "runner" or one.pid in kill.pids or PLAN[one.dag][one.task].kind == "bash")


def _died(one: Attempt, before: int, kills: list[Kill]) -> bool:
    return any(_concerns(kill, one) and kill.over >= one.start - CLOCK_GRAIN and kill.at <= before for kill in kills)


def _lost_report(one: Attempt, before: int, kills: list[Kill]) -> Kill | None:
    """The nearest kill that may have lost the report of an attempt."""
    assert one.end is not None
    end, latest = one.end, min(one.end + ON_ITS_WAY, before)
    near = [kill for kill in kills if _concerns(kill, one) and kill.over >= end - CLOCK_GRAIN and kill.at <= latest]
    return min(near, key=lambda kill: abs(kill.at - end), default=None)


def _one_run(
    dag: str,
    run: str,
    by_task: dict[tuple[str, str, str], list[Attempt]],
    end: dict[str, Any] | None,
    kills: list[Kill],
    verdict: Verdict,
) -> None:
    steps, where = PLAN[dag], f"{dag}/{run}"
    if end is None:
        verdict.problems.append(f"{where}: the run is lost")
        return
    if any(step.ends == "once" for step in steps.values()):
        _at_most_once(dag, run, by_task, end, kills, verdict)
        return
    if end["state"] != run_ends(steps):
        verdict.problems.append(f"{where}: is {end['state']}, the script says {run_ends(steps)}")
    for task, expected in task_ends(steps).items():
        attempts = by_task.get((dag, run, task), [])
        answer = end["tasks"].get(task)
        if answer != expected:
            verdict.problems.append(f"{where}/{task}: is {answer}, the script says {expected}")
        step = steps[task]
        scripted = {"ok": "ok", "late": "ok", "skip": "skip", "fail": "fail", "final": "fail"}[step.ends]
        runs_at_all = expected in ("success", "failed") or (expected == "skipped" and step.ends == "skip")
        if not runs_at_all:
            if attempts:
                verdict.problems.append(f"{where}/{task}: ran, although it had to be {expected}")
        elif not attempts:
            verdict.problems.append(f"{where}/{task}: is {answer} and never ran")
        elif attempts[-1].how != scripted and step.ends != "fail":
            verdict.problems.append(f"{attempts[-1]}: is the last one and ended {attempts[-1].how}, but the task is {answer}")
        elif step.ends == "late" and sum(one.how == "fail" for one in attempts) < 2:
            verdict.problems.append(f"{where}/{task}: succeeded before it failed twice")
    _order(dag, run, by_task, verdict)


def _at_most_once(
    dag: str,
    run: str,
    by_task: dict[tuple[str, str, str], list[Attempt]],
    end: dict[str, Any],
    kills: list[Kill],
    verdict: Verdict,
) -> None:
    """Tasks without retries start at most once; a success has its end line, and a failure was caused by a kill."""
    for task in PLAN[dag]:
        attempts, answer = by_task.get((dag, run, task), []), end["tasks"].get(task)
        if len(attempts) > 1:
            verdict.problems.append(f"{dag}/{run}/{task}: has no retries and began {len(attempts)} times")
        if answer != end["state"] or answer not in ("success", "failed"):
            verdict.problems.append(f"{dag}/{run}/{task}: is {answer}, and its run {end['state']}")
        if answer == "success" and (not attempts or attempts[-1].how != "ok"):
            verdict.problems.append(f"{dag}/{run}/{task}: is a success, but did not end")
        forever = 1 << 62
        for one in attempts if answer == "failed" else ():
            if not (_died(one, forever, kills) if one.end is None else _lost_report(one, forever, kills)):
                verdict.problems.append(f"{one}: has failed, but nothing was killed while it ran{_around(one.start, kills)}")


def _order(dag: str, run: str, by_task: dict[tuple[str, str, str], list[Attempt]], verdict: Verdict) -> None:
    """The start of a task proves that the reports of its upstream tasks were accepted: they must not run again, and it sees
    their values.
    """
    for task, step in PLAN[dag].items():
        below = by_task.get((dag, run, task), [])
        for other in step.after if below else ():
            above = by_task.get((dag, run, other), [])
            if step.rule != "all_success":
                continue
            if not above:
                verdict.problems.append(f"{below[0]}: began although {other} never ran")
                continue
            last = above[-1]
            if last.how != "ok" or last.end is None or last.end - CLOCK_GRAIN > below[0].start:
                verdict.problems.append(f"{below[0]}: began before the accepted attempt of {other} had ended ({last})")
            for one in below:
                if one.seen is not None and one.seen.get(other) != last.attempt:
                    verdict.problems.append(
                        f"{one}: saw the result {one.seen.get(other)!r} of {other}, the last is {last.attempt}"
                    )
