"""Runs golden specifications with run machines in virtual time (conformance format, sections 2 to 4).

A heap contains the times of future events: an attempt ends, a retry is due, a run is created. At each time the
reports arrive, the machines decide, runs start, slots are assigned, and tasks with a slot start at once. No real clock is
used, so a thousand virtual seconds take milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.conformance.neutral import Json, Unsupported, Workflow
from tradewind.kernel import events as e
from tradewind.kernel.admission import PARALLELISM, UNLIMITED, Admission, Candidate, Resource
from tradewind.kernel.machine import RunMachine
from tradewind.kernel.rules import past
from tradewind.kernel.run_data import RunFacts
from tradewind.kernel.topology import Topology
from tradewind.model.branch import Branch
from tradewind.model.moments import SECOND, parse_moment
from tradewind.model.states import OCCUPYING, Outcome, RunState, TaskState

ORIGIN = parse_moment("2024-01-01")
"""Second 0 of the story: any time after 1970, because the kernel reads 0 as 'never'."""

OUTCOMES = {"success": Outcome.SUCCESS, "fail": Outcome.FAILED, "fail_hard": Outcome.FAILED_FINAL, "skip": Outcome.SKIPPED}


def at(second: int) -> int:
    return ORIGIN + second * SECOND


class Dag:
    """One workflow of the story."""

    def __init__(self, dag_id: str, spec: Json, settings: Json) -> None:
        self.dag_id = dag_id
        self.workflow = Workflow(spec)
        self.definition = self.workflow.definition(dag_id, settings)
        self.topology = Topology(self.definition)
        self._specs: list[Json] = [self.workflow.tasks[task_id] for task_id in self.topology.ids]
        self.runs: list[Run] = []
        """Runs created so far, by logical date."""

    def spec(self, task: int) -> Json:
        return self._specs[task]


class Attempt(NamedTuple):
    """One running attempt."""

    fence: int
    number: int
    began: int
    ends: int


class Run:
    """One run of the story. It has a machine from its creation on, which is used only after the run has started."""

    def __init__(self, dag: Dag, number: int, spec: Json) -> None:
        self.dag = dag
        self.number = number
        self.run_id: str = spec["run_id"]
        self.scheduled: bool = spec.get("type", "scheduled") != "manual"
        self.created: int = spec["at"]
        self.logical_date = parse_moment(spec["logical_date"])
        self.state = RunState.QUEUED
        self.machine = RunMachine(dag.topology, RunFacts(number, dag.dag_id, self.logical_date))
        self.started: Counter[int] = Counter()
        self.live: dict[int, Attempt] = {}
        self.trace: list[list[Any]] = []

    def where(self, slot: int) -> tuple[str, int]:
        """Task id and map index."""
        instances = self.machine.instances
        return self.dag.topology.ids[instances.task(slot)], instances.index(slot)

    def asked(self, slot: int, key: str, default: Any) -> Any:
        """The value of the specification for a task instance in this run. An entry for its index has priority."""
        instances = self.machine.instances
        spec, index = self.dag.spec(instances.task(slot)), str(instances.index(slot))
        by_index: Mapping[str, Any] = spec.get(f"{key}_by_index", {})
        if index in by_index:
            return by_index[index]
        by_run: Mapping[str, Any] = spec.get(f"{key}_by_run", {})
        return by_run[self.run_id] if self.run_id in by_run else spec.get(key, default)

    def of_attempt(self, slot: int, key: str, default: Any, number: int) -> Any:
        """As `asked`, for one attempt: a list contains a value for each attempt, and the last value repeats."""
        value = self.asked(slot, key, default)
        return value[min(number, len(value)) - 1] if isinstance(value, list) else value

    def branch(self, slot: int) -> Branch | None:
        """The decision of a branch or short circuit when it succeeds."""
        kind = self.dag.spec(self.machine.instances.task(slot)).get("kind")
        if kind == "branch":
            follow = self.asked(slot, "follow", None) or []
            names = [follow] if isinstance(follow, str) else follow
            return Branch("follow", tuple(root for name in names for root in self.dag.workflow.roots(name)))
        if kind == "short_circuit" and not self.asked(slot, "condition", True):
            return Branch("stop", direct_only=not self.asked(slot, "ignore_downstream_trigger_rules", True))
        return None

    def returned(self, slot: int, number: int) -> int | None:
        """The length of the list that a successful attempt returns, if other tasks are mapped over it.

        For an instance of a mapped task, it only matters whether it returns anything.
        """
        value = self.asked(slot, "returns", None)
        if isinstance(value, dict) and "by_attempt" in value:
            lengths = value["by_attempt"]
            value = lengths[min(number, len(lengths)) - 1]
        if isinstance(value, dict):
            value = value["value"]
            if self.machine.instances.index(slot) < 0:
                return len(value) if isinstance(value, list | dict) else None
        return value if self.machine.instances.index(slot) < 0 or value is None else 1

    def task_instances(self) -> list[list[Any]]:
        """[task id, map index, state, tries], sorted."""
        machine = self.machine
        rows = (
            [*self.where(slot), machine.task_state(slot).shown, machine.tries[slot]] for slot in range(machine.instances.total)
        )
        return sorted(rows)


class Story:
    """Runs, limits and time."""

    def __init__(self, dags: Iterable[Dag], runs: Iterable[Json], pools: Mapping[str, int]) -> None:
        self.dags = {dag.dag_id: dag for dag in dags}
        self.runs = [Run(self.dags[spec["dag"]], number, spec) for number, spec in enumerate(runs)]
        self.admission = Admission()
        self.admission.set_capacity(PARALLELISM, UNLIMITED)
        self.admission.set_capacity(("pool", "default_pool", 0), UNLIMITED)
        for pool, slots in pools.items():
            self.admission.set_capacity(("pool", pool, 0), slots)
        self.now = 0
        self.step: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []

    # --- the course of time ---------------------------------------------------------------------------------------

    def tell(self) -> None:
        """Process all events from the start to the end."""
        second = self._next_moment(-1)
        while second is not None:
            self.now = second
            self.step = {"t": second, "started": [], "finished": [], "queued": [], "waiting": []}
            self._reports()
            self._create_runs()
            self._timers()
            while self._pass():
                pass
            self._close_step()
            second = self._next_moment(second)

    def _pass(self) -> bool:
        """One turn of the scheduler: start runs, examine one wave in every run, assign slots. True if there may be more to do.

        Slots are assigned after every wave, not after the last one: a task that is ready in this pass gets its slot before a
        more important one that will be ready in the next.
        """
        news = self._look_at_the_past()
        news = self._start_runs() or news
        for run in self.runs:
            if run.state is RunState.RUNNING:
                decisions = run.machine.settle(at(self.now), waves=1)
                self._follow(run, decisions)
                news = news or bool(decisions) or run.machine.unsettled
        self._admit()
        return news

    def _next_moment(self, after: int) -> int | None:
        moments = [run.created for run in self.runs]
        for run in self.runs:
            moments.extend(attempt.ends for attempt in run.live.values())
            if run.state is RunState.RUNNING:
                moments.extend((due - ORIGIN) // SECOND for due in run.machine.due.values())
        return min((moment for moment in moments if moment > after), default=None)

    def _reports(self) -> None:
        over = [
            (run.dag.dag_id, run.run_id, run.where(slot), run, slot)
            for run in self.runs
            for slot, attempt in run.live.items()
            if attempt.ends == self.now
        ]
        for *_, run, slot in sorted(over, key=lambda entry: entry[:3]):
            attempt = run.live.get(slot)
            if attempt is None:
                continue  # stopped by an earlier report at the same time
            outcome = OUTCOMES[run.of_attempt(slot, "script", "success", attempt.number)]
            branch = run.branch(slot) if outcome is Outcome.SUCCESS else None
            length = run.returned(slot, attempt.number) if outcome is Outcome.SUCCESS else None
            task = run.machine.instances.task(slot)
            plain = run.machine.instances.index(slot) < 0
            if outcome is Outcome.SUCCESS and length is None and plain and task in run.dag.topology.mapped_over:
                outcome, branch = Outcome.FAILED, None  # other tasks are mapped over it, but it returned no list
            event = e.AttemptEnded(slot, attempt.fence, outcome, at(self.now), branch=branch, length=length)
            self._follow(run, run.machine.apply(event, settle=False))

    def _create_runs(self) -> None:
        for run in self.runs:
            if run.created == self.now:
                run.dag.runs.append(run)
                run.dag.runs.sort(key=lambda other: other.logical_date)

    def _timers(self) -> None:
        for run in self.runs:
            if run.state is RunState.RUNNING:
                for slot in [slot for slot, due in run.machine.due.items() if due == at(self.now)]:
                    if run.machine.task_state(slot) is TaskState.UP_FOR_RETRY:
                        self._follow(run, run.machine.apply(e.TimerDue(slot, at(self.now)), settle=False))

    def _start_runs(self) -> bool:
        """Start runs, the oldest first, as many as each DAG allows. True if a run started."""
        any_started = False
        for dag in self.dags.values():
            for run in dag.runs:
                active = sum(other.state is RunState.RUNNING for other in dag.runs)
                if run.state is RunState.QUEUED and active < dag.definition.max_active_runs:
                    run.state = RunState.RUNNING
                    any_started = True
                    self.step["started"].append([dag.dag_id, run.run_id])
                    self._set_limits(run)
                    self._follow(run, run.machine.apply(e.RunStarted(at(self.now)), settle=False))
        return any_started

    def _look_at_the_past(self) -> bool:
        """Update the data of the previous run in every running machine. True if something changed."""
        news = False
        for run in self.runs:
            for slot in run.dag.topology.past_tasks if run.state is RunState.RUNNING else ():
                verdict = self._past(run, slot)
                if run.state is RunState.RUNNING and run.machine.past_allowed.get(slot, False) != verdict.allowed:
                    news = True
                    event = e.PastChanged(slot, verdict.allowed, at(self.now), verdict.why)
                    self._follow(run, run.machine.apply(event, settle=False))
        return news

    def _past(self, run: Run, slot: int) -> past.PastVerdict:
        dag = run.dag
        earlier = [
            other
            for other in dag.runs
            if other.logical_date < run.logical_date and (other.scheduled or not dag.definition.catchup)
        ]
        previous = None
        if earlier:
            before = earlier[-1]
            machine = before.machine
            states = {
                task_id: [machine.state[one] for one in machine.instances.slots(i)]
                for i, task_id in enumerate(dag.topology.ids)
            }
            previous = past.PreviousRun(before.run_id, states)
        downstream = [dag.topology.ids[child] for child in dag.topology.downstream(slot)]
        return past.judge(dag.topology.tasks[slot], downstream, previous, ever_ran=bool(earlier))

    # --- what follows from decisions --------------------------------------------------------------------------------

    def _follow(self, run: Run, decisions: list[e.Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, e.Move):
                self._moved(run, decision)
            elif isinstance(decision, e.RunEnds):
                run.state = RunState.SUCCESS if decision.success else RunState.FAILED
                self.step["finished"].append([run.dag.dag_id, run.run_id, run.state.value])
            elif isinstance(decision, e.Refusal):
                raise AssertionError(f"{run.run_id}: an event does not apply: {decision}")

    def _moved(self, run: Run, move: e.Move) -> None:
        slot = move.slot
        if move.after is TaskState.SCHEDULED:
            self.admission.add(self._candidate(run, slot))
        elif move.before is TaskState.SCHEDULED and move.after is not TaskState.QUEUED:
            self.admission.discard(run.number, slot)
        if move.before in OCCUPYING and move.after not in OCCUPYING:
            self.admission.release(run.number, slot)
            attempt = run.live.pop(slot)
            killed = move.fence != attempt.fence
            result = "killed" if killed else move.after.value
            run.trace.append([attempt.began, self.now, *run.where(slot), attempt.number, result])

    # --- slots ------------------------------------------------------------------------------------------------------

    def _set_limits(self, run: Run) -> None:
        self.admission.set_capacity(("run", run.number, 0), run.dag.definition.max_active_tasks)
        for slot, task in enumerate(run.dag.topology.tasks):
            if task.max_active_tis_per_dag is not None:
                self.admission.set_capacity(("dag_task", run.dag.dag_id, slot), task.max_active_tis_per_dag)
            if task.max_active_tis_per_dagrun is not None:
                self.admission.set_capacity(("run_task", run.number, slot), task.max_active_tis_per_dagrun)

    def _candidate(self, run: Run, slot: int) -> Candidate:
        number = run.machine.instances.task(slot)
        task = run.dag.topology.tasks[number]
        needs: list[tuple[Resource, int]] = [(("pool", task.pool, 0), task.pool_slots), (("run", run.number, 0), 1)]
        if task.max_active_tis_per_dag is not None:
            needs.append((("dag_task", run.dag.dag_id, number), 1))
        if task.max_active_tis_per_dagrun is not None:
            needs.append((("run_task", run.number, number), 1))
        return Candidate(-run.dag.topology.priority[number], run.logical_date, run.number, slot, tuple(needs))

    def _admit(self) -> None:
        for candidate in self.admission.admit():
            run, slot = self.runs[candidate.run], candidate.slot
            self._start_attempt(run, slot)
            self.step["queued"].append([run.dag.dag_id, run.run_id, *run.where(slot), -candidate.rank])

    def _start_attempt(self, run: Run, slot: int) -> None:
        machine, moment = run.machine, at(self.now)
        machine.apply(e.Admitted(slot, moment), settle=False)
        fence = machine.fence[slot]
        machine.apply(e.AttemptStarted(slot, fence, moment), settle=False)
        run.started[slot] += 1
        number = run.started[slot]
        ends = self.now + run.of_attempt(slot, "duration", 1, number)
        run.live[slot] = Attempt(fence, number, self.now, ends)

    def _close_step(self) -> None:
        for run in self.runs:
            run.machine.mark_written()
            for slot in range(run.machine.instances.total):
                if run.machine.task_state(slot) is TaskState.SCHEDULED:
                    self.step["waiting"].append([run.dag.dag_id, run.run_id, *run.where(slot)])
        step = {
            key: sorted(value) if key in ("started", "finished", "waiting") else value
            for key, value in self.step.items()
            if key == "t" or value
        }
        if step.keys() & {"started", "finished", "queued"}:
            self.steps.append(step)


def answer_a(spec: Json) -> dict[str, Any]:
    """Outcome, trace and graph of one run of one workflow, without limits."""
    settings = {**spec.get("dag", {}), "max_active_tasks": UNLIMITED}
    dag = Dag("d", spec, settings)
    run = {"dag": "d", "run_id": "r", "at": 0, "logical_date": "2024-01-01"}
    story = Story([dag], [run], {})
    story.tell()
    result = story.runs[0]
    return {
        "outcome": {"run_state": result.state.value, "tis": result.task_instances()},
        "trace": sorted(result.trace),
        "graph": dag.workflow.graph(),
    }


def answer_b(spec: Json) -> dict[str, Any]:
    """Outcome of several runs under limits."""
    dags = [Dag(part["id"], part, part) for part in spec["dags"]]
    story = Story(dags, spec["runs"], spec.get("pools", {}))
    story.tell()
    weights = {dag.dag_id: dict(zip(dag.topology.ids, dag.topology.priority, strict=True)) for dag in dags}
    rows = [[run.dag.dag_id, run.run_id, *row] for run in story.runs for row in run.task_instances()]
    return {
        "outcome": {
            "priority_weights": weights,
            "steps": story.steps,
            "runs": sorted([run.dag.dag_id, run.run_id, run.state.value] for run in story.runs),
            "tis": sorted(rows),
        }
    }


FAMILIES = {"A": answer_a, "B": answer_b}


def answer(spec: Json) -> dict[str, Any]:
    """The answer to one specification in the conformance format."""
    teller = FAMILIES.get(spec["family"])
    if teller is None:
        return {"id": spec["id"], "unsupported": f"family {spec['family']}"}
    try:
        return {"id": spec["id"], **teller(spec)}
    except Unsupported as error:
        return {"id": spec["id"], "unsupported": str(error)}
