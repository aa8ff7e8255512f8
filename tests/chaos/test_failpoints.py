"""Crashes at every step: a process dies at each failpoint of the source, on its first, second and a later pass.

A small workload runs through real processes meanwhile: a value too large for the database, a daemon left behind, a bash command, a
run triggered through the API. Then nothing may be lost, doubled or left behind, and all of it is over within the bound of a
dispatched attempt. A failpoint that somebody adds is covered by itself; one that this workload does not pass fails here.

`make test-long` dies at every point once, many in one life; `make failpoints` dies at each of them alone, on three passes.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.chaos.dags.chaos_plan import PLAN, run_ends, task_ends
from tests.chaos.judge import Kill, judge
from tests.chaos.killer import SETTINGS
from tests.chaos.world import World, until
from tests.shape.source import modules, names_passed

pytestmark = pytest.mark.long

POINTS = sorted(
    point
    for point in set[str]().union(
        *(names_passed(module.path, "fp") for module in modules().values() if module.name != "tradewind.observe.failpoints")
    )
    # no service passes the first: `tradewind db move` has a test of its own. The others need a repository or a watched asset, and
    # have the tests of git bundles and of asset watchers
    if not point.startswith(("move.", "bundles.")) and "watcher_event" not in point
)
DAG = "points"
BOUND = 60.0
"""Maximum seconds from a death to the end of the run. In this time, a lost attempt is started again, queued again, or fails."""
PASSES = (1, 2, 4)

HARMLESS = ("scheduler", "store", "client", "parser", "zygote", "parse", "triggerer")
"""Processes whose death ends no attempt: each task runs once."""
BEFORE_USER_CODE = frozenset(
    {
        "host.before_start_ask",
        "image.before_fork",
        "runner.accepted",
        "runner.after_report",
        "runner.before_start",
        "template.before_import",
        "template.before_ready",
    }
)
"""At these points the task itself runs once too; a host or an image may have other tasks below it."""
COMPANIONS = {
    "host.after_spool": "scheduler.report_came",
    "host.before_spool": "scheduler.report_came",
    "host.before_spool_goes": "scheduler.report_came",
}
"""Points that need a second failpoint: a report is written to the disk only while no scheduler receives it."""


def again(name: str) -> bool:
    """True if a task may correctly run twice when a process dies at this point."""
    return name.partition(".")[0] not in HARMLESS and not (name.startswith("runner.") and name in BEFORE_USER_CODE)


@dataclass
class End:
    runs: dict[str, tuple[str, dict[str, str]]]
    """Run → its state and the states of its tasks."""
    seconds: float
    """Seconds from the last death to the end."""


class Instance:
    """One home folder. It is started again with other failpoints for each case."""

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "marks"
        (self.marks / "locks").mkdir(parents=True)
        self.once = folder / "once"
        self.world = World(folder / "home", {**SETTINGS, "CHAOS_MARKS": str(self.marks)})
        for path in (Path(__file__).parent / "dags").iterdir():
            if path.is_file():
                shutil.copy(path, self.world.home / "dags")
        self.count = 0

    def reached(self, name: str) -> bool:
        return (self.once / name).exists()

    def run(self, deaths: dict[str, int], runs: int = 1) -> End:
        """Start, run DAG runs one after the other while processes die at these points on these passes, then stop.

        Args:
            deaths: failpoint → on which pass, counted over all processes.
        """
        shutil.rmtree(self.once, ignore_errors=True)
        self.once.mkdir()
        self.count += 1
        names, world = [f"r{self.count}_{number}" for number in range(runs)], self.world
        armed = ";".join(f"{name}=kill9#{at}" for name, at in deaths.items())
        environment = {"TRADEWIND_FAILPOINTS": armed, "TRADEWIND_FAILPOINTS_ONCE": str(self.once)}
        # a changed file is read again, so the parser and its children pass their points too
        (world.home / "dags" / "touched.py").write_text(f"# {self.count}\n{TOUCHED}", encoding="utf-8")
        began = time.time()
        world.start(environment)
        try:

            def ask(what: Callable[[], object]) -> object:
                world.restart_if_dead(environment)
                try:
                    return what()
                except (OSError, HTTPException):  # the web server may die during its answer
                    return None

            until("the DAGs are known", 60, lambda: ask(self._knows))
            for run in names:
                until("the run is triggered", 60, partial(ask, partial(self._trigger, run)))
                until("the run has ended", 90, partial(ask, partial(world.has_ended, DAG, run)))
            until("the processes are complete", 60, lambda: ask(lambda: (world.ping() or {}).get("workers") and world.address))
            ended = time.time()
            if all(at == 1 for at in deaths.values()):  # some processes pass their point only after they have connected again
                until(
                    f"these failpoints were passed: {', '.join(deaths)}",
                    30,
                    lambda: ask(lambda: all(map(self.reached, deaths))),
                )
            until("the last answer", 60, lambda: ask(lambda: world.task_states(DAG, names[-1])))
            ends = {run: (world.run_state(DAG, run), world.task_states(DAG, run)) for run in names}
            end = End(ends, ended - max(began, *self._deaths(deaths)))
            world.stop()
            assert world.census() == []
        finally:
            world.kill_everything()
        return end

    def _deaths(self, names: dict[str, int]) -> list[float]:
        return [(self.once / name).stat().st_mtime for name in names if self.reached(name)] or [0.0]

    def _knows(self) -> bool:
        found = {row["dag_id"] for row in self.world.get("/api/v2/dags?limit=100")["dags"]}
        return {DAG, "touched"} <= found

    def _trigger(self, run: str) -> bool:
        try:
            self.world._request("POST", f"/api/v2/dags/{DAG}/dagRuns", {"dag_run_id": run, "logical_date": None})
        except OSError as error:
            return ": 409 " in str(error)
        return True

    def judge(self, end: End, lossy: bool) -> None:
        """Compare the lines of the tasks with the plan."""
        steps = PLAN[DAG]
        assert end.runs == dict.fromkeys(end.runs, (run_ends(steps), task_ends(steps)))
        folder = self.marks / "judged"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for run in end.runs:
            shutil.copy(self.marks / f"{DAG}.{run}", folder)
        kills = [Kill("host", 0, 1 << 62, ())] if lossy else []
        ends = {(DAG, run): {"state": state, "tasks": tasks} for run, (state, tasks) in end.runs.items()}
        verdict = judge(folder, kills, list(ends), ends)
        assert verdict.problems == []
        if not lossy:
            assert (verdict.attempts, verdict.unended) == (len(steps) * len(ends), 0)
        assert end.seconds < BOUND


TOUCHED = "from tradewind import DAG\ndag = DAG('touched', schedule=None)\n"


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Instance:
    return Instance(tmp_path_factory.mktemp("failpoints"))


LIVES = 3
"""Number of starts over which the points of each kind are distributed."""


def _shares() -> Iterator[tuple[str, bool, list[str]]]:
    for lossy in (False, True):
        names = [name for name in POINTS if again(name) is lossy and name not in COMPANIONS]
        for life in range(LIVES):
            yield f"{'lossy' if lossy else 'harmless'}-{life}", lossy, names[life::LIVES]
    for name in COMPANIONS:
        yield name, again(name), [name]


SHARES = list(_shares())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("lossy", "names"), [share[1:] for share in SHARES], ids=[share[0] for share in SHARES])
def test_deaths_at_many_points_in_one_start(instance: Instance, lossy: bool, names: list[str]) -> None:
    deaths = dict.fromkeys([*names, *(COMPANIONS[name] for name in names if name in COMPANIONS)], 1)
    end = instance.run(deaths)
    instance.judge(end, lossy)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("at", PASSES)
@pytest.mark.parametrize("name", POINTS)
def test_death_at(instance: Instance, name: str, at: int) -> None:
    end = instance.run({name: at, **({COMPANIONS[name]: 1} if name in COMPANIONS else {})}, runs=1 if at == 1 else 2)
    instance.judge(end, again(name))
    if not instance.reached(name):
        pytest.skip(f"this workload passes {name} less than {at} times")


def test_names_of_points_have_a_process_and_a_moment() -> None:
    assert len(POINTS) > 35
    assert [name for name in POINTS if not re.fullmatch(r"[a-z]+\.[a-z_]+", name)] == []
    assert [name for name in (*BEFORE_USER_CODE, *COMPANIONS, *COMPANIONS.values()) if name not in POINTS] == []
