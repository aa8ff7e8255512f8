"""A scheduler for tests, with a store, a clock that the test moves, and an executor whose part the test plays.

    bench.dag("d", task("a"), task("b", "a"))
    run = bench.trigger("d", "r1")
    bench.finish("r1.a")              # its worker starts it and reports success
    assert bench.states("r1") == {"a": "success", "b": "queued"}

Attempts are named "run_id.task_id", or "dag_id/run_id.task_id" where two DAGs have a run of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, cast

import msgspec

from tests.commands import as_dict, incoming, plain
from tradewind.executors.single import SingleWorker
from tradewind.kernel.admission import PARALLELISM
from tradewind.kernel.events import AttemptVanished
from tradewind.model.branch import Branch
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import StoreError, TradewindError
from tradewind.model.moments import DAY, SECOND
from tradewind.model.rows import Batch, Committed, JournalEntry, ParsedDag, ParsedFile, PoolRow, RunRow, RunSnapshot
from tradewind.model.states import (
    OCCUPYING,
    TASK_STATES,
    TASK_TRANSITIONS,
    Outcome,
    RunState,
    RunType,
    TaskState,
    TriggerRule,
    WeightRule,
)
from tradewind.model.waits import TriggerWait
from tradewind.platform.clock import ManualClock
from tradewind.scheduler.commands.handler import Commands
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.core import Scheduler
from tradewind.scheduler.explain.why import why
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.store.port import FullStore, Store
from tradewind.store.sql.store import SqlStore
from tradewind.wire.commands import IncomingCommand
from tradewind.wire.messages import (
    Accepted,
    AttemptKey,
    LastLine,
    Notice,
    Refused,
    Report,
    Start,
    TimetableAnswer,
    ToRunner,
    TriggerOrder,
    Workload,
    XComValue,
)

NOW = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""

DEFAULTS: dict[str, Any] = {
    "parallelism": 0,
    "executor": "StubExecutor",
    "requeue_limit": 2,
    "resubmit_interval": 30 * SECOND,
    "sweep_interval": 60 * SECOND,
    "batch_max_rows": 2000,
    "kill_grace": SECOND,
    "paused_at_creation": False,
    "retention": 0,
    "retention_keep_runs": 1,
    "retention_interval": 60 * SECOND,
    "default_execution_timeout": None,
    "xcom_folder": "/xcom",
}


def task(task_id: str, *upstream: str, **more: Any) -> TaskDefinition:
    """Return a task definition; trigger and weight rules may be given by name."""
    more["trigger_rule"] = TriggerRule(more.get("trigger_rule", "all_success"))
    more["weight_rule"] = WeightRule(more.get("weight_rule", "downstream"))
    return TaskDefinition(task_id=task_id, upstream=tuple(sorted(upstream)), **more)


class StubExecutor(SingleWorker):
    """An executor that records what it gets."""

    def __init__(self) -> None:
        self.submitted: list[Workload] = []
        self.cancelled: list[AttemptKey] = []
        self.asked: list[AttemptKey] = []
        self.asked_for: dict[AttemptKey, str] = {}
        """Attempt → nonce of the process that reconciliation named."""
        self.answers: list[ToRunner] = []
        self.ended_logs: list[LastLine] = []
        self.ready = True
        self.triggers: dict[AttemptKey, TriggerOrder] = {}
        self.taken_events: list[str] = []
        """Tokens of asset watchers' events that were acknowledged."""

    def submit(self, workloads: Sequence[Workload]) -> None:
        self.submitted += workloads

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        self.cancelled.append(attempt)

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        self.asked += attempts
        self.asked_for.update(attempts)

    def end_log(self, line: LastLine, worker: str | None = None) -> None:
        self.ended_logs.append(line)

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        self.triggers.update((order.key, order) for order in triggers)

    def trigger_worker(self, key: AttemptKey) -> str | None:
        return "h1" if key in self.triggers else None

    def take_watcher_event(self, key: AttemptKey, token: str) -> None:
        self.taken_events.append(token)

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        for key in keys:
            self.triggers.pop(key, None)

    def answer(self, host: str, answer: ToRunner) -> None:
        self.answers.append(answer)


class WatchedStore:
    """A store whose commits are recorded and can be made to fail."""

    def __init__(self, inner: FullStore) -> None:
        self.inner = inner
        self.commits: list[Batch] = []
        self.faults: list[Callable[[Batch], str | TradewindError | None]] = []
        """Called before each commit: None: commit; an error: raise it instead; "unknown": commit and raise."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def commit(self, batch: Batch) -> Committed:
        fault = next((found for ask in self.faults if (found := ask(batch)) is not None), None)
        if isinstance(fault, Exception):
            raise fault
        done = self.inner.commit(batch)
        self.commits.append(batch)
        if fault == "unknown":
            raise StoreError("the connection broke during COMMIT")
        return done

    def rows_of(self, batch: Batch) -> int:
        """Return how many rows a commit wrote."""
        rows = sum(
            1 + len(w.tasks) + len(w.journal) + len(w.starts) + len(w.ends) + len(w.xcoms) + len(w.new_rows) for w in batch.runs
        )
        rows += sum(1 + min(2000, len(self.inner.definition(new.run.version).tasks)) for new in batch.new_runs)
        return rows + len(batch.positions) + sum(count for _, count in batch.more_rows)


class Bench:
    """A scheduler with store, clock and executor under the control of a test; see the module's docstring."""

    def __init__(
        self, store: FullStore, *, wall: int = NOW, executor: StubExecutor | None = None, executors: str = "", **config: Any
    ) -> None:
        self.watched = WatchedStore(store)
        self.store = cast("FullStore", self.watched)
        self.clock = ManualClock(wall)
        names = {"executor": executors} if executors else {}
        self.config = SchedulerConfig(**{**DEFAULTS, **names, **config})
        self.executor = StubExecutor() if executor is None else executor
        self.notices: list[Notice] = []
        self.commands = Commands(self.store, self.clock, self.config, lambda text: text.encode())
        self.accepted: dict[AttemptKey, str] = {}
        """Attempt → the nonce whose start was accepted."""
        self._asked: dict[tuple[AttemptKey, int], str] = {}
        self._op = 0
        self.scheduler = self._begin()

    def _begin(self) -> Scheduler:
        epoch = self.store.begin_epoch("bench", 1, "boot", self.clock.wall())
        scheduler = Scheduler(self.store, self.clock, self.config, self.executor, epoch, self.notices.append)
        scheduler.load()
        return scheduler

    # --- the scheduler ------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Replace the scheduler by a new one with empty memory. The worker host registers with its attempts."""
        self.scheduler = self._begin()
        self.process()

    def process(self) -> None:
        self.scheduler.process()
        for answer in self.executor.answers:
            nonce = self._asked.get((answer.attempt, answer.body.op)) if isinstance(answer.body, Accepted) else None
            if nonce is not None:
                known = self.accepted.setdefault(answer.attempt, nonce)
                assert known == nonce, f"two processes were accepted for {answer.attempt}: {known} and {nonce}"

    def pass_time(self, micros: int) -> None:
        self.clock.advance(micros)
        self.process()

    def next_timer(self) -> None:
        """Advance the clock to the next timer."""
        due = self.scheduler.timers.next_due()
        assert due is not None, "nothing waits for a moment"
        self.pass_time(max(0, due - self.clock.wall()))

    # --- people -------------------------------------------------------------------------------------------------------

    def command(self, command: str, /, *, timetable_answer: TimetableAnswer | None = None, **args: Any) -> Any:
        """Execute a command as the server does: return its result as plain values, or raise its error."""
        asked = self.ask_for(command, **args)
        answer, effects = self.commands.run(asked, timetable_answer)
        effects.apply(self.scheduler)
        if self.scheduler.changes.wanted:
            effects.note(self.scheduler)
        self.process()
        return plain(answer, asked.command)

    def ask_for(self, command: str, /, **args: Any) -> IncomingCommand:
        """Execute a command under a new op-id."""
        self._op += 1
        return incoming(f"op{self._op}", command, args)

    def dag(
        self,
        dag_id: str,
        *tasks: TaskDefinition,
        paused: bool = False,
        file: str | None = None,
        bundle_version: str | None = None,
        **more: Any,
    ) -> None:
        """Parse a file with this DAG."""
        more.setdefault("is_paused_upon_creation", paused)
        data = encode_definition(DagDefinition(dag_id, tasks=tasks, **more))
        dag = ParsedDag(dag_id, data, version_hash(data))
        at = self.clock.wall()
        parsed = ParsedFile("dags", file or f"{dag_id}.py", version_hash(data), (dag,), None, 5, False, at)
        parsed = parsed._replace(bundle_version=bundle_version)
        for changed in self.store.register_file(parsed, paused_at_creation=False):
            self.scheduler.schedules.refresh(changed)
        self.process()

    def trigger(self, dag_id: str, run_id: str, day: int | None = None, **args: Any) -> RunRow:
        """Trigger a manual run; `day` gives it a logical date."""
        if day is not None:
            args["logical_date"] = NOW - 100 * DAY + day * DAY
        self.command("trigger", dag_id=dag_id, run_id=run_id, **args)
        return self.store.need_run(dag_id, run_id)

    def pool(self, name: str, slots: int) -> None:
        self.command("set_pool", name=name, slots=slots)

    def clear(self, dag_id: str, run_id: str, *task_ids: str, **more: Any) -> Any:
        return self.command("clear", dag_id=dag_id, run_id=run_id, task_ids=list(task_ids), **more)

    # --- workers ------------------------------------------------------------------------------------------------------

    def attempt(self, name: str) -> Workload:
        """Return the newest workload of "run.task"."""
        dag_id, _, rest = name.rpartition("/")
        run_id, _, task_id = rest.rpartition(".")
        found = [
            w
            for w in self.executor.submitted
            if (w.run_id, w.task_id if w.map_index < 0 else f"{w.task_id}[{w.map_index}]") == (run_id, task_id)
            and dag_id in ("", w.dag_id)
        ]
        assert found, f"{name} was never submitted; submitted: {[f'{w.run_id}.{w.task_id}' for w in self.executor.submitted]}"
        return found[-1]

    def ask(self, attempt: str | Workload, nonce: str | None = None, host: str = "host") -> Accepted | Refused | None:
        """Request the start of the attempt of "run.task"; return the answer, or None when there is none yet."""
        work = self.attempt(attempt) if isinstance(attempt, str) else attempt
        nonce = nonce or f"n{work.fence}"
        self._op += 1
        self._asked[work.key, self._op] = nonce
        return self._send(work, Start(self._op, nonce, 99), host)

    def report(self, attempt: str | Workload, outcome: Outcome = Outcome.SUCCESS, **more: Any) -> Accepted | Refused | None:
        """Report the end of the attempt of "run.task"; return the answer, or None when there is none yet."""
        work = self.attempt(attempt) if isinstance(attempt, str) else attempt
        self._op += 1
        more["xcoms"] = tuple(XComValue(key, value, None, len(value)) for key, value in more.pop("xcoms", {}).items())
        more = {"nonce": self._nonce(work.key), "host": "host", **more}
        return self._send(work, Report(self._op, outcome, **more))

    def _nonce(self, key: AttemptKey) -> str:
        """Return the nonce of the process whose start was accepted, or of the one that is about to request it."""
        return self.accepted.get(key, f"n{key[2]}")

    def _send(self, work: Workload, body: Start | Report, host: str = "host") -> Accepted | Refused | None:
        self.scheduler.push(FromWorker(work.key, host, body))
        self.process()
        for answer in reversed(self.executor.answers):
            if answer.attempt == work.key and answer.body.op == body.op:
                assert isinstance(answer.body, Accepted | Refused)
                return answer.body
        return None

    def start(self, *attempts: str) -> None:
        for attempt in attempts:
            assert isinstance(self.ask(attempt), Accepted), attempt

    def finish(self, *attempts: str, outcome: Outcome = Outcome.SUCCESS, **more: Any) -> None:
        """Start the attempt of "run.task", then report its end."""
        for attempt in attempts:
            if self.state(attempt) is not TaskState.RUNNING:
                self.start(attempt)
            assert isinstance(self.report(attempt, outcome, **more), Accepted), attempt

    def fail(self, *attempts: str) -> None:
        self.finish(*attempts, outcome=Outcome.FAILED)

    def branch(self, attempt: str, kind: str, *task_ids: str, direct_only: bool = False) -> None:
        self.finish(attempt, branch=Branch(kind, task_ids, direct_only))

    def vanish(self, attempt: str | Workload, nonce: str | None = None, host: str = "host") -> None:
        """Report, as a worker host, that a process has disappeared. Default: the process whose start was accepted."""
        key = (self.attempt(attempt) if isinstance(attempt, str) else attempt).key
        run, slot, fence = key
        said = AttemptVanished(slot, fence, 0, "it died", self._nonce(key) if nonce is None else nonce, host)
        self.scheduler.push(RunEvent(run, said))
        self.process()

    def work(self, rounds: int = 1000, *, but: Collection[str] = ()) -> None:
        """Let every submitted attempt succeed, until nothing more is submitted."""
        done = 0
        for _ in range(rounds):
            todo = self.executor.submitted[done:]
            if not todo:
                return
            done += len(todo)
            for work in todo:
                if work.task_id not in but:
                    self.ask(work)
                    self.report(work)
        raise AssertionError(f"attempts are still submitted after {rounds} rounds")

    # --- looking ------------------------------------------------------------------------------------------------------

    def run(self, run_id: str, dag_id: str | None = None) -> RunRow:
        found = [row for dag in self.store.dag_ids() if (row := self.store.find_run(dag, run_id)) and dag_id in (None, dag)]
        assert len(found) == 1, (run_id, found)
        return found[0]

    def snapshot(self, run_id: str) -> RunSnapshot:
        found = self.store.snapshot(self.run(run_id).id)
        assert found is not None
        return found

    def states(self, run_id: str, dag_id: str | None = None) -> dict[str, str]:
        """Return the state of each task instance, as the store has it."""
        row = self.run(run_id, dag_id)
        snapshot = self.store.snapshot(row.id)
        assert snapshot is not None
        return {
            r.task_id if r.map_index < 0 else f"{r.task_id}[{r.map_index}]": TASK_STATES[r.state].value for r in snapshot.rows
        }

    def instances(self, run_id: str, task_id: str) -> dict[int, str]:
        """Return map index → state of all instances of a task, removed ones included."""
        rows = self.snapshot(run_id).rows
        return {row.map_index: TASK_STATES[row.state].value for row in rows if row.task_id == task_id}

    def state(self, attempt: str) -> TaskState:
        dag_id, _, rest = attempt.rpartition("/")
        run_id, _, task_id = rest.rpartition(".")
        return TaskState(self.states(run_id, dag_id or None)[task_id])

    def in_state(self, state: str) -> list[str]:
        """Return "run.task" of all task instances of active runs in a state."""
        return [
            f"{row.run_id}.{name}"
            for row in self.store.active_runs()
            for name, has in self.states(row.run_id, row.dag_id).items()
            if has == state
        ]

    def runs(self, dag_id: str) -> list[RunRow]:
        found: list[RunRow] = self.store.runs_between(dag_id, None, None)
        return found

    def run_states(self, dag_id: str) -> dict[str, str]:
        return {row.run_id: row.state.value for row in self.runs(dag_id)}

    def why(self, attempt: str, *, live: bool = True, map_index: int | None = None) -> dict[str, str]:
        """Return the blockers of "run.task" as rule → sentence."""
        found = self.why_answer(attempt, live=live, map_index=map_index)
        return {blocker["rule"]: blocker["sentence"] for blocker in found["blockers"]}

    def why_answer(self, attempt: str, *, live: bool = True, map_index: int | None = None) -> dict[str, Any]:
        """Return the whole answer of `why`."""
        dag_id, _, rest = attempt.rpartition("/")
        run_id, _, task_id = rest.rpartition(".")
        dag_id = dag_id or self.run(run_id).dag_id
        found = why(self.store, self.scheduler if live else None, dag_id, task_id, run_id, map_index)
        return as_dict(found)

    # --- checking -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check states against the journal, its numbers and steps, and the use of limits against a recount."""
        fsck(self.watched.inner)
        scheduler = self.scheduler
        assert not scheduler.busy
        assert scheduler.trouble is None
        used: dict[Any, int] = {}
        for run, active_run in scheduler.active_runs_by_id.items():
            snapshot = self.store.snapshot(run)
            assert snapshot is not None
            assert snapshot.run == active_run.row
            for row in snapshot.rows:
                assert (active_run.machine.state[row.slot], active_run.machine.fence[row.slot]) == (row.state, row.fence), (
                    run,
                    row,
                )
                if TASK_STATES[row.state] in OCCUPYING:
                    for resource, amount in (*active_run.needs(row.slot), (PARALLELISM, 1)):
                        used[resource] = used.get(resource, 0) + amount
        assert scheduler.admission._used == used
        running = {row.id for row in self.store.active_runs() if row.state is RunState.RUNNING}
        assert set(scheduler.active_runs_by_id) == running
        assert {run for entry in scheduler.dags.values() for run in entry.running} == running
        queued = {row.id for row in self.store.active_runs() if row.state is RunState.QUEUED}
        assert {run for entry in scheduler.dags.values() for run in entry.waiting} == queued
        self._check_indexes()

    def _check_indexes(self) -> None:
        """Check that every index in memory equals the result of a search."""
        scheduler = self.scheduler
        waiting = {row.id: row for entry in scheduler.dags.values() for row in entry.waiting.values()}
        assert scheduler.queue._queued == {run: row.dag_id for run, row in waiting.items()}
        for entry in scheduler.dags.values():
            backfills = [row for row in entry.waiting.values() if row.run_type is RunType.BACKFILL]
            assert entry.waiting_backfills == len(backfills)
        assert scheduler.hosts.live_attempts == len(scheduler.hosts.attempts())
        opened = scheduler.waits.open
        assert list(scheduler.waits.triggers()) == [
            one for one in opened.values() if isinstance(one.deferral.wait, TriggerWait)
        ]
        dated: dict[str, list[tuple[int, int]]] = {}
        for run, active_run in scheduler.active_runs_by_id.items():
            if active_run.topology.has_past and active_run.row.logical_date is not None:
                dated.setdefault(active_run.row.dag_id, []).append((active_run.row.logical_date, run))
        assert scheduler.previous_runs._by_date == {dag_id: sorted(runs) for dag_id, runs in dated.items()}


def journal(store: Store, run: int) -> list[tuple[int, JournalEntry]]:
    """Return (number, entry) of a run's journal."""
    assert isinstance(store, SqlStore)
    rows = store.engine.rows(
        "SELECT seq, slot, fence, before, after, at, cause FROM journal WHERE run = ? ORDER BY seq", (run,)
    )
    return [(row[0], JournalEntry(*row[1:])) for row in rows]


def fsck(store: Store) -> None:
    for dag_id in store.dag_ids():
        for row in store.runs_between(dag_id, None, None):
            entries = journal(store, row.id)
            assert [seq for seq, _ in entries] == list(range(1, row.journal_seq + 1)), f"run {row.run_id}: gaps in the journal"
            folded: dict[int, int] = {}
            for _, entry in entries:
                assert entry.before == folded.get(entry.slot, 0), (row.run_id, entry)
                assert TASK_STATES[entry.after] in TASK_TRANSITIONS[TASK_STATES[entry.before]], (row.run_id, entry)
                folded[entry.slot] = entry.after
            snapshot = store.snapshot(row.id)
            assert snapshot is not None
            assert {task.slot: task.state for task in snapshot.rows} == {task.slot: 0 for task in snapshot.rows} | folded, (
                row.run_id
            )


@contextmanager
def failing(store: WatchedStore, fault: Callable[[Batch], str | TradewindError | None]) -> Iterator[None]:
    """Have `fault` called before each commit inside of this context."""
    store.faults.append(fault)
    try:
        yield
    finally:
        store.faults.remove(fault)


def on_commit(numbers: Mapping[int, str | TradewindError]) -> Callable[[Batch], str | TradewindError | None]:
    """Return a fault that raises by the number of the commit; the next commit has number 1."""
    count = 0

    def fault(batch: Batch) -> str | TradewindError | None:
        nonlocal count
        count += 1
        return numbers.get(count)

    return fault


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


__all__ = [
    "NOW",
    "Bench",
    "Outcome",
    "PoolRow",
    "Random",
    "StubExecutor",
    "WatchedStore",
    "encoded",
    "failing",
    "fsck",
    "journal",
    "on_commit",
    "task",
]
