"""The kill test: load, kills at random moments, and the evaluation."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.dags.chaos_plan import PLAN
from tests.chaos.judge import Kill, Verdict, judge, read_marks
from tests.chaos.world import World, began, now, until

KINDS = ("scheduler", "host", "template", "image", "runner", "api", "parser", "supervisor", "all")
LIVE_RUNS = 8
"""Number of concurrent runs: enough that every kill hits running work, and few enough that the runs end."""
STRAY_BOUND = 10.0
"""Seconds after the end of an attempt in which all its processes must end."""

SETTINGS = {
    "TRADEWIND__CORE__KILL_GRACE": "1",
    "TRADEWIND__RUNNER__DRAIN_TIMEOUT": "2",
    "TRADEWIND__CORE__TASK_OVERTIME": "2",
    "TRADEWIND__RUNNER__START_RETRY_INTERVAL": "1",
    "TRADEWIND__RUNNER__VERDICT_RESEND_INTERVAL": "1",
    "TRADEWIND__SCHEDULER__RESUBMIT_INTERVAL": "2",
    "TRADEWIND__SCHEDULER__SWEEP_INTERVAL": "3",
    "TRADEWIND__CORE__PARALLELISM": "12",
}


WORKER_HOSTS = "TRADEWIND__RUNNER__WORKER_HOSTS"


@dataclass
class Outcome:
    kills: list[Kill]
    runs: list[tuple[str, str]]
    verdict: Verdict
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)


class Killer:
    """One kill test.

    Args:
        home: folder that is created anew.
        seed: decides which process is killed when; the same seed kills in the same order.
        say: is called with each line of the progress.
        workers: worker hosts that run the tasks.
    """

    def __init__(
        self, home: Path, kills: int, seed: int, say: Callable[[str], None], minutes: float = 0.0, workers: int = 1
    ) -> None:
        shutil.rmtree(home, ignore_errors=True)
        self.marks = home / "marks"
        self.world = World(home / "home", {**SETTINGS, "CHAOS_MARKS": str(self.marks), WORKER_HOSTS: str(workers)})
        (self.marks / "locks").mkdir(parents=True)
        for path in (Path(__file__).parent / "dags").iterdir():
            if path.is_file():
                shutil.copy(path, self.world.home / "dags")
        self.wanted = kills
        self.seed = seed
        self.random = random.Random(seed)
        self.say = say
        self.minutes = minutes
        self.kills: list[Kill] = []
        self.runs: list[tuple[str, str]] = []
        self.open: list[tuple[str, str]] = []
        self.ends: dict[tuple[str, str], dict[str, Any]] = {}
        self.problems: list[str] = []
        self._missing: dict[tuple[int, int], float] = {}

    def run(self) -> Outcome:
        """Kill processes, wait for the end of every run, stop, and evaluate."""
        begun = time.monotonic()
        world = self.world
        world.start()
        try:
            world.await_ready()
            until("the DAGs are known", 30, self._dags_known)
            for number, kind in enumerate(self._order()):
                if self.minutes and time.monotonic() - begun > self.minutes * 60:
                    break
                self._load()
                self._kill(number, kind)
            self._finish()
            world.stop()
            left = world.census()
            self.problems += [f"a process was left behind: {process}" for process in left]
            self._strays(0.0)
        finally:
            world.kill_everything()
        (self.marks.parent / "kills.json").write_text(json.dumps(self.kills), encoding="utf-8")
        verdict = judge(self.marks, self.kills, self.runs, self.ends)
        verdict.problems[:0] = self.problems
        return Outcome(self.kills, self.runs, verdict, time.monotonic() - begun, Counter(kill.kind for kill in self.kills))

    def _order(self) -> list[str]:
        """The kinds of processes to kill: each kind equally often, in an order that the seed decides."""
        order = [KINDS[i % len(KINDS)] for i in range(self.wanted)]
        self.random.shuffle(order)
        return order

    def _dags_known(self) -> bool:
        try:
            known = {row["dag_id"] for row in self.world.get("/api/v2/dags?limit=100")["dags"]}
        except OSError:
            return False
        return set(PLAN) <= known

    # --- load ---------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Keep the number of concurrent runs."""
        self._look_at_runs()
        while len(self.open) < LIVE_RUNS:
            dag = self.random.choice(sorted(PLAN))
            run = f"r{len(self.runs)}"
            self.runs.append((dag, run))
            self.open.append((dag, run))
            self.world.trigger(dag, run)

    def _look_at_runs(self) -> None:
        for key in list(self.open):
            try:
                state = self.world.run_state(*key)
            except (OSError, ValueError):
                return
            if state in ("success", "failed"):
                self.open.remove(key)

    # --- kills --------------------------------------------------------------------------------------------------------

    def _kill(self, number: int, kind: str) -> None:
        pause = self.random.random() * 0.8
        luck = self.random.random()
        deadline = time.monotonic() + pause
        while time.monotonic() < deadline:
            time.sleep(max(0.0, min(0.05, deadline - time.monotonic())))
        if kind == "all":
            at = now()
            count = self.world.kill_everything()
            self.kills.append(Kill(kind, at, now(), ()))
            self.say(f"kill {number + 1}: everything ({count} processes)")
        else:
            targets = until(f"there is a {kind} to kill", 30, lambda: self._targets(kind))
            target = targets[int(luck * len(targets))]
            at = now()
            if target.kill():
                self.kills.append(Kill(kind, at, now(), (target.pid,)))
                self.say(f"kill {number + 1}: {kind} {target.pid}")
            else:
                self.say(f"kill {number + 1}: {kind} {target.pid} had just ended by itself")
                self._kill(number, kind)
                return
        if kind in ("all", "supervisor"):
            assert self.world.process is not None
            self.world.process.wait(10)
            self.world.start()
        self._strays(STRAY_BOUND)

    def _targets(self, kind: str) -> list[Any]:
        found = self.world.find(kind)
        if kind == "supervisor":  # a new child process has the same name until it calls exec
            found = [process for process in found if self.world.process and process.pid == self.world.process.pid]
        if not found and kind in ("runner", "template"):
            self._load()
        return found

    def _strays(self, bound: float) -> None:
        """Check that all processes of an attempt end soon after the task process."""
        moment = time.monotonic()
        for record in read_marks(self.marks):
            if record["what"] != "spawn":
                continue
            child = (record["child"], record["child_began"])
            if began(child[0]) != child[1] or began(record["pid"]) == record["began"]:
                self._missing.pop(child, None)
                continue
            since = self._missing.setdefault(child, moment)
            if moment - since >= bound:
                self.problems.append(f"pid {child[0]} of attempt {record['attempt']} outlived it by {moment - since:.1f} s")
                self._missing[child] = float("inf")

    def _finish(self) -> None:
        """Check that every run ends when no more processes are killed."""
        timeout = 60.0 + len(self.open) * 5
        deadline = time.monotonic() + timeout
        while self.open and time.monotonic() < deadline:
            self._look_at_runs()
            self._strays(STRAY_BOUND)
            time.sleep(0.1)
        for dag, run in self.open:
            self.problems.append(f"{dag}/{run}: did not end within {timeout:.0f} s after the last kill")
        for dag, run in self.runs:
            try:
                state = self.world.run_state(dag, run)
                self.ends[dag, run] = {"state": state, "tasks": self.world.task_states(dag, run)}
            except OSError as error:
                self.problems.append(f"{dag}/{run}: {error}")


def report(outcome: Outcome, say: Callable[[str], None]) -> None:
    """Print the result."""
    counts = ", ".join(f"{kind} {outcome.counts[kind]}" for kind in KINDS)
    verdict = outcome.verdict
    say(f"{len(outcome.kills)} kills in {outcome.seconds:.0f} s: {counts}")
    say(
        f"{len(outcome.runs)} runs, {verdict.attempts} attempts, {verdict.unended} of them killed, "
        f"{len(verdict.repeated)} done again because their report was killed on its way"
    )
    for one in verdict.repeated:
        say(f"again    {one}")
    for problem in verdict.problems:
        say(f"PROBLEM {problem}")
