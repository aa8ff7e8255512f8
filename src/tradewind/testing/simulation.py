"""DAGs in virtual time: several runs at the same time, under limits, with the real code of tasks and the real scheduler.

    world = Simulation(my_dag, pools={"api": 2}, start=datetime(2026, 1, 1))
    world.trigger("my_dag", run_id="first")
    world.trigger("my_dag", run_id="second", at=timedelta(minutes=5))
    world.play()
    assert world.run("second").state == "success"

It uses the scheduler and the kernel of production with a store in memory. The code of a task runs when its attempt starts.
Meanwhile only the `time.sleep` of this code moves its clock, and the sum of the sleeps is the duration of the attempt. So a
task that sleeps for an hour takes an hour of virtual time and no real time, and a thousand such tasks can run at the same time.
A task that sleeps longer than its `execution_timeout` fails at the timeout. Time jumps from event to event.

Nothing else happens while the code of a task runs. So a task that polls other tasks must give its slot back between two pokes
(`mode="reschedule"`): a sensor in poke mode sees the state at its start until it times out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tradewind.kernel.topology import Topology
from tradewind.model.definition import DagDefinition, NoSchedule
from tradewind.model.errors import Conflict, DefinitionError, NotFound, did_you_mean
from tradewind.model.moments import from_micros, to_micros
from tradewind.model.rows import NewRun, RunRow
from tradewind.model.states import TASK_STATES, RunState, RunType
from tradewind.sdk.definition import to_definition
from tradewind.testing.dag_test import NOW, configured_defaults
from tradewind.testing.results import TestedRun, tested_run
from tradewind.testing.secrets import fake_secrets
from tradewind.testing.virtual_time import VirtualTime
from tradewind.wire.commands import ClearTasks, MarkTasks, SetRunState, Trigger, edit_in_steps
from tradewind.wire.messages import Notice

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS_MAX = 1_000_000
"""Maximum number of events: a longer simulation raises Conflict."""


class StateChange(NamedTuple):
    """A task instance, or a run (`task_id` None), changed its state."""

    at: datetime
    dag_id: str
    run_id: str
    task_id: str | None
    map_index: int
    before: str | None
    """None: no state yet, or a change of a run."""
    after: str | None
    cause: str


class Moment(NamedTuple):
    """All changes at one time: runs that started or ended, task instances that got a slot, and those that still wait for one."""

    at: datetime
    started: list[StateChange]
    """Runs that started."""
    finished: list[StateChange]
    """Runs that ended."""
    queued: list[StateChange]
    """Task instances, in the order in which they got their slots."""
    waiting: list[tuple[str, str, str, int]]
    """(DAG, run, task, map index) of scheduled task instances without a slot, sorted."""


class Simulation:
    """Runs DAGs in virtual time; see the module's docstring.

    Args:
        dags: the DAGs of the simulation.
        start: the first time; UTC if it has no zone.
        pools: name → slots; the default pool and pools not named here have no limit.
        parallelism: maximum number of concurrent attempts; 0 is no limit.
        follow_schedules: also run the DAGs by their schedules, including assets; `play` then needs an end.
        show_output: also print the output of tasks as usual. The logs of the attempts always contain it.

    Raises:
        DefinitionError: a DAG is invalid, or two DAGs have the same id.
    """

    def __init__(
        self,
        *dags: DAG,
        start: datetime = START,
        pools: Mapping[str, int] | None = None,
        parallelism: int = 0,
        follow_schedules: bool = False,
        show_output: bool = False,
    ) -> None:
        self._follow = follow_schedules
        self._run_changes: list[StateChange] = []
        self._dates: set[tuple[str, int | None]] = set()
        """Logical dates that runs have already."""
        self._time = VirtualTime(_micros(start), parallelism, show_output, self._on_notice)
        self.store = self._time.store
        self.dags = {dag.dag_id: dag for dag in dags}
        if len(self.dags) < len(dags):
            raise DefinitionError(f"two of these DAGs have the same id: {', '.join(sorted(dag.dag_id for dag in dags))}")
        defaults = configured_defaults()
        for dag in dags:
            self._time.register(dag, self._adjusted(to_definition(dag, dag.fileloc, defaults)), pools or {})
        variables, connections = fake_secrets()
        for variable in variables:
            self.store.set_variable(variable, "a test", 0)
        for connection in connections:
            self.store.set_connection(connection, "a test", 0)

    def _adjusted(self, definition: DagDefinition) -> DagDefinition:
        if self._follow:
            return msgspec.structs.replace(definition, is_paused_upon_creation=False)
        return msgspec.structs.replace(definition, schedule=NoSchedule(), assets=None, is_paused_upon_creation=False)

    # --- actions ----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return self._time.clock.now

    def trigger(
        self,
        dag: DAG | str,
        run_id: str | None = None,
        *,
        at: datetime | timedelta | None = None,
        logical_date: datetime | object | None = NOW,
        data_interval: tuple[datetime, datetime] | None = None,
        run_after: datetime | None = None,
        run_type: str = "manual",
        conf: dict[str, Any] | None = None,
        xcoms: Mapping[Any, Any] | None = None,
    ) -> None:
        """Create a run, now or later.

        Args:
            at: the time of the creation; a timedelta counts from now. A time in the past means now.
            logical_date: default: the time of the creation (further runs at the same time: each a microsecond later). None: a run
                without a logical date.
            run_after: the run does not start before this time.
            xcoms: XComs that exist before the run: task id, or (task id, key), → value.

        Raises:
            NotFound: no such DAG.
            Conflict: the run exists already, or `conf` does not fit the params. For a later run, `play` raises it.
        """
        start, end = data_interval or (None, None)
        dag_id, due = self._known(dag), max(self._moment(at) or 0, self._time.clock.wall())
        date: int | None = due
        if logical_date is not NOW:
            date = _or_none(logical_date)  # type: ignore[arg-type]
        while logical_date is NOW and (dag_id, date) in self._dates:
            date = (date or 0) + 1
        self._dates.add((dag_id, date))
        trigger = Trigger(
            dag_id,
            run_id,
            date,
            due if run_after is None and logical_date is NOW else _or_none(run_after),
            _or_none(start),
            _or_none(end),
            conf,
            run_type=RunType(run_type),
            triggered_by="test",
        )
        self._time.trigger(due, trigger, xcoms or {})

    def past_run(
        self,
        dag: DAG | str,
        run_id: str,
        *,
        logical_date: datetime,
        data_interval: tuple[datetime, datetime] | None = None,
        started: datetime | None = None,
        ended: datetime | None = None,
        state: str = "success",
        run_type: str = "scheduled",
    ) -> None:
        """Create a run that has already ended, for `depends_on_past` and `prev_…` in templates.

        All its tasks have the state of the run. The default of its times is its logical date.
        """
        start, end = data_interval or (logical_date, logical_date)
        new = NewRun(
            dag_id=self._known(dag),
            run_id=run_id,
            run_type=RunType(run_type),
            version=self.store.need_dag(self._known(dag)).version,
            logical_date=_micros(logical_date),
            interval_start=_micros(start),
            interval_end=_micros(end),
            run_after=_micros(end),
            at=_micros(started or logical_date),
            triggered_by="test",
        )
        self._time.create_past(new, RunState(state), _micros(ended or logical_date))

    def clear(
        self,
        dag: DAG | str,
        run_id: str | None = None,
        task_ids: Iterable[str | tuple[str, int]] = (),
        *,
        upstream: bool = False,
        downstream: bool = False,
        only_failed: bool = False,
        only_running: bool = False,
        start: datetime | None = None,
        end: datetime | None = None,
        past: bool = False,
        future: bool = False,
        reset_runs: bool = True,
    ) -> list[tuple[str, str, int]]:
        """Clear task instances and their runs. Returns (run id, task id, map index) of each, sorted.

        Args:
            run_id: None: all runs, or those with a logical date from `start` to `end`, both included.
            task_ids: task ids, or (task id, map index); default: all tasks.
            past, future: also in the runs before or after it.
            reset_runs: queue ended runs again; with False, they keep their state.
        """
        names, instances = _split(task_ids)
        clear = ClearTasks(
            self._known(dag),
            run_id,
            past,
            future,
            _or_none(start),
            _or_none(end),
            names,
            instances,
            upstream,
            downstream,
            only_failed=only_failed,
            only_running=only_running,
            reset_dag_runs=reset_runs,
        )
        return self._edit(clear)

    def mark(
        self,
        dag: DAG | str,
        state: str,
        run_id: str | None = None,
        task_ids: Iterable[str | tuple[str, int]] = (),
        *,
        upstream: bool = False,
        downstream: bool = False,
        past: bool = False,
        future: bool = False,
    ) -> list[tuple[str, str, int]]:
        """Mark task instances as `success`, `failed` or `skipped`. Returns the changed ones, sorted, in the form of `clear`.

        Task instances that failed only because of the marked ones are among them: they are evaluated again.
        """
        names, instances = _split(task_ids)
        mark = MarkTasks(
            dag_id=self._known(dag),
            run_id=run_id,
            past=past,
            future=future,
            task_ids=names,
            instances=instances,
            upstream=upstream,
            downstream=downstream,
            state=state,
        )
        return self._edit(mark)

    def set_run_state(self, dag: DAG | str, run_id: str, state: str) -> None:
        """Set the state of a run to `success`, `failed` or `queued`."""
        self._time.command(SetRunState(self._known(dag), run_id, state))

    def _edit(self, command: ClearTasks | MarkTasks) -> list[tuple[str, str, int]]:
        """Execute all steps of a clear or a mark."""
        steps = edit_in_steps(command, self._time.command)
        return sorted((one.run_id, one.task_id, one.map_index) for step in steps for one in step.task_instances)

    def play(self, until: datetime | timedelta | None = None) -> Simulation:
        """Run the simulation until nothing more happens, or until a given time. Returns itself.

        Raises:
            Conflict: an internal error, a simulation without end, or a later run that cannot be created.
        """
        if until is None and self._follow:
            raise Conflict("a simulation that follows schedules does not end by itself: use play(until=…)")
        self._time.play(self._moment(until), STEPS_MAX)
        return self

    # --- results --------------------------------------------------------------------------------------------------------

    def run(self, run_id: str, dag: DAG | str | None = None) -> TestedRun:
        """The result of a run so far. `dag` is optional if only one DAG has a run with this id.

        Raises:
            NotFound: there is no such run, or there are several.
        """
        found = [run for run in self.runs(dag) if run.run_id == run_id]
        if len(found) != 1:
            known = ", ".join(f"{run.dag_id}/{run.run_id}" for run in self.runs()) or "none"
            raise NotFound(f"there {'are several runs' if found else 'is no run'} {run_id!r}; there are: {known}")
        return found[0]

    def runs(self, dag: DAG | str | None = None) -> list[TestedRun]:
        """All runs so far, in the order of creation."""
        records = self._time.records
        return [tested_run(self.store, row, records.get(row.id, [])) for row in self._rows(dag)]

    def history(self) -> list[StateChange]:
        """All state changes by time; at the same time, those of tasks come first."""
        found = [change for row in self._rows() for change in self._of_run(row)]
        return sorted(found + self._run_changes, key=lambda one: one.at)

    def timeline(self) -> list[Moment]:
        """The times with state changes, and the task instances that waited for a slot at the end of each."""
        scheduled: set[tuple[str, str, str, int]] = set()
        moments: list[Moment] = []
        for at, group in groupby(self.history(), key=lambda one: one.at):
            moment = Moment(at, [], [], [], [])
            for one in group:
                if one.task_id is None:
                    {"running": moment.started, "queued": []}.get(one.after or "", moment.finished).append(one)
                    continue
                instance = one.dag_id, one.run_id, one.task_id, one.map_index
                (scheduled.add if one.after == "scheduled" else scheduled.discard)(instance)
                if one.after == "queued":
                    moment.queued.append(one)
            moments.append(moment._replace(waiting=sorted(scheduled)))
        return moments

    def priorities(self, dag: DAG | str) -> dict[str, int]:
        """Task id → its total priority weight by its weight rule. Higher weights get free slots first."""
        topology = Topology(self.store.current_definition(self._known(dag)))
        return dict(zip(topology.ids, topology.priority, strict=True))

    def _rows(self, dag: DAG | str | None = None) -> list[RunRow]:
        dag_ids = list(self.dags) if dag is None else [self._known(dag)]
        return sorted(
            (row for dag_id in dag_ids for row in self.store.runs_between(dag_id, None, None)), key=lambda row: row.id
        )

    def _of_run(self, row: RunRow) -> Iterator[StateChange]:
        snapshot = self.store.snapshot(row.id)
        assert snapshot is not None
        instances = {one.slot: (one.task_id, one.map_index) for one in snapshot.rows}
        for entry in self.store.journal(row.id):
            before, after = (TASK_STATES[code].shown for code in (entry.before, entry.after))
            yield StateChange(from_micros(entry.at), row.dag_id, row.run_id, *instances[entry.slot], before, after, entry.cause)

    def _on_notice(self, notice: Notice) -> None:
        if notice.kind == "run":
            at = from_micros(notice.at)
            self._run_changes.append(StateChange(at, notice.dag_id, notice.run_id, None, -1, None, notice.state, notice.text))

    # --- times ----------------------------------------------------------------------------------------------------------

    def _known(self, dag: DAG | str) -> str:
        dag_id = dag if isinstance(dag, str) else dag.dag_id
        if dag_id not in self.dags:
            raise NotFound(f"there is no DAG {dag_id!r} in this simulation.{did_you_mean(dag_id, self.dags)}")
        return dag_id

    def _moment(self, when: datetime | timedelta | None) -> int | None:
        return _or_none(self.now + when if isinstance(when, timedelta) else when)


def _micros(moment: datetime) -> int:
    return to_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _or_none(moment: datetime | None) -> int | None:
    return None if moment is None else _micros(moment)


def _split(task_ids: Iterable[str | tuple[str, int]]) -> tuple[list[str], list[tuple[str, int]]]:
    """Split into ids of whole tasks, and (task id, map index) of single instances."""
    chosen = list(task_ids)
    return [one for one in chosen if isinstance(one, str)], [one for one in chosen if not isinstance(one, str)]
