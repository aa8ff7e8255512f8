"""A small random world around a scheduler: DAGs, a worker host with processes, people, clocks, crashes and a failing store.

The host checks the result: it knows which processes really ran, and that no two of one task instance ran at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.unit.scheduler.bench import NOW, Bench, StubExecutor, failing, journal, task
from tradewind.kernel.events import AttemptVanished
from tradewind.model.assets import AssetKey, AssetSchedule
from tradewind.model.branch import Branch
from tradewind.model.definition import CronSchedule, MapLiteral, MapSource, MapXCom, TaskDefinition
from tradewind.model.errors import Conflict, StoreBusy, StoreError, StoreFull
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND
from tradewind.model.rows import Batch
from tradewind.model.states import Outcome, TaskState, TriggerRule
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.model.waits import Deferral, EveryWait, MomentWait, TasksWait, TriggerEnd, TriggerWait, Wait
from tradewind.scheduler.inbox import FromWorker, RunEvent
from tradewind.scheduler.waits.wait_index import WaitResult
from tradewind.store.port import FullStore
from tradewind.wire.messages import Accepted, AssetUpdate, AttemptKey, Report, Start, ToRunner, TriggerOrder, Workload

X = AssetKey("x", "x")
HOURLY = CronSchedule(("0 * * * *",))


class Host(StubExecutor):
    """A worker host that behaves like the real one: it starts an attempt once, and repeats reports until they are answered."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.out: list[FromWorker | RunEvent | WaitResult] = []
        """Messages that have not reached the scheduler yet."""
        self.workloads: dict[AttemptKey, Workload] = {}
        self.pending: list[AttemptKey] = []
        self.starting: dict[AttemptKey, str] = {}
        self.running: set[AttemptKey] = set()
        self.verdicts: dict[AttemptKey, Report] = {}
        self.ran: dict[AttemptKey, str] = {}
        """Attempts whose start was accepted → the nonce of the process."""
        self.loses = 0.0
        """Probability that a message to the host is lost."""
        self.fails = 0.15
        self._op = 0

    # --- messages of the scheduler ----------------------------------------------------------------------------------------

    def submit(self, workloads: Sequence[Workload]) -> None:
        super().submit(workloads)
        for work in workloads:
            known = work.key in self.starting or work.key in self.running or work.key in self.verdicts
            if not known and work.key not in self.pending and self.chance.random() >= self.loses:
                self.workloads[work.key] = work
                self.pending.append(work.key)

    def cancel(self, attempt: AttemptKey, reason: str, grace: int, worker: str | None = None) -> None:
        if self.chance.random() < self.loses:
            return
        if attempt in self.pending:
            self.pending.remove(attempt)
        if attempt in self.running:
            self._verdict(attempt, Outcome.FAILED)
        nonce = self.starting.pop(attempt, "")
        self._gone(attempt, nonce or self.ran.get(attempt, ""))

    def run_triggers(self, triggers: Sequence[TriggerOrder]) -> None:
        super().run_triggers([order for order in triggers if self.chance.random() >= self.loses])

    def drop_triggers(self, keys: Sequence[AttemptKey], worker: str | None = None) -> None:
        super().drop_triggers([key for key in keys if self.chance.random() >= self.loses])

    def reconcile(self, worker: str, attempts: Mapping[AttemptKey, str], *, complete: bool = False) -> None:
        for key, nonce in attempts.items():
            if key not in self.pending and key not in self.starting and key not in self.running and key not in self.verdicts:
                self._gone(key, nonce)

    def answer(self, host: str, answer: ToRunner) -> None:
        key = answer.attempt
        if self.chance.random() < self.loses:
            return
        super().answer(host, answer)
        if key in self.verdicts and self.verdicts[key].op == answer.body.op:
            del self.verdicts[key]
        elif key in self.starting:
            nonce = self.starting.pop(key)
            if isinstance(answer.body, Accepted):
                self._let_in(key, nonce)
            else:
                self._gone(key, nonce)

    def _let_in(self, key: AttemptKey, nonce: str) -> None:
        assert not any(other[:2] == key[:2] for other in self.running), f"two processes of one task instance run: {key}"
        assert self.ran.setdefault(key, nonce) == nonce, f"two processes ran as attempt {key}"
        self.running.add(key)

    def _gone(self, key: AttemptKey, nonce: str) -> None:
        self.out.append(RunEvent(key[0], AttemptVanished(key[1], key[2], 0, "the host does not have it", nonce, "host")))

    def _verdict(self, key: AttemptKey, outcome: Outcome, **more: Any) -> None:
        self.running.discard(key)
        self._op += 1
        self.verdicts[key] = Report(self._op, outcome, nonce=self.ran[key], host="host", **more)
        self.out.append(FromWorker(key, "host", self.verdicts[key]))

    # --- actions of its processes ------------------------------------------------------------------------------------------

    def step(self, now: int) -> None:
        """Do one random action on the host."""
        for key in list(self.pending):
            if not any(other[:2] == key[:2] for other in (*self.starting, *self.running)):
                self.pending.remove(key)
                self.starting[key] = f"{key}#{self.chance.randrange(10**9)}"
        if self.starting and self.chance.random() < 0.6:
            key = self.chance.choice(sorted(self.starting))
            self._op += 1
            self.out.append(FromWorker(key, "host", Start(self._op, self.starting[key], 1)))
        if self.running and self.chance.random() < 0.6:
            self._end(self.chance.choice(sorted(self.running)), now)
        if self.triggers and self.chance.random() < 0.3:  # repeated until the scheduler drops it
            ends = [TriggerEnd(), TriggerEnd(), TriggerEnd(outcome=Outcome.SUCCESS), TriggerEnd(error="it broke")]
            end = self.chance.choice(ends if self.fails else ends[:3])
            self.out.append(WaitResult(*self.chance.choice(sorted(self.triggers)), end))
        if self.verdicts and self.chance.random() < 0.2:
            key = self.chance.choice(sorted(self.verdicts))
            self.out.append(FromWorker(key, "host", self.verdicts[key]))

    def _end(self, key: AttemptKey, now: int) -> None:
        roll = self.chance.random()
        if roll > self.fails:
            branch = Branch("stop") if self.chance.random() < self.fails / 4 else None
            length = self.chance.choice([0, 1, 2, 5] if self.fails else [1, 3])
            updates = (AssetUpdate(X.name, X.uri),) if self.workloads[key].dag_id == "d0" else ()
            self._verdict(key, Outcome.SUCCESS, branch=branch, map_length=length, assets=updates)
        elif roll < self.fails / 3:
            self._verdict(key, Outcome.RESCHEDULE, reschedule_at=now + self.chance.choice([0, 1, 40]) * SECOND)
        elif roll < self.fails / 2:
            self._verdict(key, Outcome.LOST)
        elif roll < self.fails * 2 / 3:
            self._verdict(key, Outcome.DEFERRED, deferral=self._deferral(now))
        else:
            self._verdict(key, Outcome.FAILED)

    def _deferral(self, now: int) -> Deferral:
        """Return a random wait, which in the end is fulfilled or times out."""
        chance = self.chance

        def tasks() -> TasksWait:
            date = NOW - chance.randrange(40) * DAY
            wanted = chance.choice([(), ("t0",), ("t0", "t1")])
            return TasksWait(
                chance.choice(["d0", "d1", "d2"]), (date,), task_ids=wanted, failed=chance.choice([(), ("failed",)])
            )

        waits: list[Wait] = [TriggerWait("pkg.T"), MomentWait(now + chance.choice([-1, 0, 30]) * SECOND), tasks()]
        wait = chance.choice([*waits, EveryWait((tasks(), tasks()))])
        method = chance.choice([None, "go_on"])
        return Deferral(wait, method, timeout_at=now + chance.choice([20, 300]) * SECOND, soft_fail=chance.random() < 0.3)

    def die(self) -> None:
        """Kill all processes and replace the host. Its messages are lost."""
        self.pending.clear()
        self.starting.clear()
        self.running.clear()
        self.verdicts.clear()
        self.out.clear()
        self.triggers.clear()

    @property
    def holds(self) -> frozenset[AttemptKey]:
        """Return the attempts that the registration of the host lists."""
        return frozenset((*self.pending, *self.starting, *self.running))


class World:
    """One random history."""

    def __init__(self, store: FullStore, seed: int, **config: Any) -> None:
        self.chance = Random(seed)
        self.host = Host(self.chance)
        self.bench = Bench(store, executor=self.host, parallelism=self.chance.choice([0, 0, 3]), **config)
        self.numbers = 0
        self.bench.pool("p", 2)
        for name in ("d0", "d1", "d2"):
            # d2 also runs when tasks of d0 have updated assets
            assets = AssetSchedule(X) if name == "d2" else None
            self.bench.dag(name, *self._tasks(), **self._dag(), assets=assets)

    def _tasks(self) -> list[TaskDefinition]:
        chance, tasks, empty = self.chance, list[TaskDefinition](), set[str]()
        rules = [TriggerRule.ALL_SUCCESS] * 5 + [TriggerRule.ALL_DONE, TriggerRule.NONE_FAILED, TriggerRule.ONE_SUCCESS]
        # an impossible wait fails or skips its task in every run: then no task may depend on its success in the previous run
        hard = chance.random() < 0.5
        for number in range(chance.randint(1, 6)):
            above = [one.task_id for one in tasks if chance.random() < 0.4]
            past, wait = not hard and chance.random() < 0.15, None
            sources: list[MapSource] = []
            if chance.random() < 0.25:
                with_list = [name for name in above if name not in empty]  # an empty task never returns a list
                sources = [MapXCom(name) for name in with_list[:1]] or [MapLiteral(chance.choice([0, 2, 4]))]
                sources += [MapLiteral(2)] if chance.random() < 0.3 else []
            if chance.random() < 0.1:
                empty.add(f"t{number}")
            elif chance.random() < 0.15:
                empty.add(f"t{number}")  # a task that only waits returns no list, either
                wait = WaitPlan(self._plan(hard), chance.choice([60, 300]) * SECOND, soft_fail=chance.random() < 0.3)
            tasks.append(
                task(
                    f"t{number}",
                    *above,
                    trigger_rule=chance.choice(rules),
                    mapped=bool(sources),
                    expand=tuple(sources),
                    retries=chance.choice([0, 0, 1]),
                    retry_delay=chance.choice([0, 20]) * SECOND,
                    empty=f"t{number}" in empty and wait is None,
                    wait=wait,
                    pool=chance.choice(["default_pool", "default_pool", "p"]),
                    pool_slots=chance.choice([1, 1, 2]),
                    max_active_tis_per_dag=chance.choice([None, None, 1]),
                    max_active_tis_per_dagrun=chance.choice([None, None, 1]),
                    depends_on_past=past,
                    wait_for_downstream=past and chance.random() < 0.5,
                )
            )
        return tasks

    def _plan(self, hard: bool) -> MomentPlan | TasksPlan:
        """Return a random planned wait: for a moment, or for tasks of any of the DAGs, including its own."""
        chance = self.chance
        if not hard or chance.random() < 0.3:
            return MomentPlan("start", chance.choice([0, 5, 40]) * SECOND)
        failed = chance.choice([(), (), ("failed", "upstream_failed")])
        wanted = chance.choice([(), ("t0",), ("t0", "t1")])
        return TasksPlan(
            chance.choice(["d0", "d1", "d2"]),
            chance.choice([0, 0, DAY]),
            task_ids=wanted,
            failed=failed,
            failing_skips=chance.random() < 0.3,
        )

    def _dag(self) -> dict[str, Any]:
        chance = self.chance
        scheduled = chance.random() < 0.4
        return {
            "max_active_runs": chance.choice([1, 2, 16]),
            "max_active_tasks": chance.choice([1, 3, 16]),
            "fail_fast": chance.random() < 0.2,
            "dagrun_timeout": chance.choice([None, None, None, 5 * MINUTE]),
            "schedule": HOURLY if scheduled else CronSchedule(("0 0 1 1 *",)),
            "start_date": NOW - chance.choice([0, 2]) * HOUR if scheduled else NOW + 400 * DAY,
            "catchup": chance.random() < 0.5,
        }

    # --- random steps ------------------------------------------------------------------------------------------

    def step(self) -> None:
        chance = self.chance
        for _ in range(chance.randint(0, 4)):
            self.host.step(self.bench.clock.wall())
        self._deliver(chance.random() < 0.1)
        roll = chance.random()
        if roll < 0.12:
            self._trigger()
        elif roll < 0.20:
            self._clear()
        elif roll < 0.24:
            self._command("set_paused", dag_id=chance.choice(["d0", "d1", "d2"]), is_paused=chance.random() < 0.4)
        elif roll < 0.27:
            self._command("set_pool", name="p", slots=chance.choice([0, 1, 2, 5]))
        elif roll < 0.40:
            self.bench.clock.advance(chance.choice([1, 10, 30, 400, 3600]) * SECOND)
        elif roll < 0.45:
            self.bench.restart()
            self._hello(dead=chance.random() < 0.4)
        elif roll < 0.48:
            self._hello(dead=True)
        elif roll < 0.52:
            self.bench.scheduler.hosts.resubmit_old(self.bench.clock.wall())
            self.bench.scheduler.hosts.reconcile()
        elif roll < 0.57:
            self._backfill()
        elif roll < 0.62:
            self._run_task()
        elif roll < 0.66:
            self._command("create_asset_event", name=X.name)
        elif roll < 0.66:
            self._mark()
        elif roll < 0.68:
            self._set_run_state()
        if chance.random() < 0.06:
            self._fail()
        else:
            self.bench.process()

    def _deliver(self, twice: bool) -> None:
        out, self.host.out = self.host.out, []
        for item in out:
            self.bench.scheduler.push(item)
            if twice:
                self.bench.scheduler.push(item)

    def _hello(self, *, dead: bool) -> None:
        """Register the host; its other messages follow."""
        if dead:
            self.host.die()
        self.bench.process()
        self.bench.scheduler.hosts.register("host", self.host.holds, frozenset(self.host.triggers))
        self.host.out += [FromWorker(key, "host", report) for key, report in self.host.verdicts.items()]

    def _fail(self) -> None:
        """Have a commit fail, or have an unknown outcome."""
        fault = self.chance.choice([StoreBusy("held"), StoreFull("full"), "unknown"])
        armed = True

        def once(batch: Batch) -> str | StoreError | None:
            nonlocal armed
            answer, armed = (fault if armed else None), False
            return answer  # type: ignore[return-value]

        with failing(self.bench.watched, once):
            self.bench.process()
        self._mend()

    def _mend(self) -> None:
        while self.bench.scheduler.trouble is not None:
            assert self.bench.scheduler.recover()
            self.bench.process()

    def _command(self, command: str, /, **args: Any) -> None:
        try:
            self.bench.command(command, **args)
        except Conflict:
            pass
        self._mend()

    def _trigger(self) -> None:
        self.numbers += 1
        date = NOW - self.chance.randrange(40) * DAY if self.chance.random() < 0.6 else None
        later = self.bench.clock.wall() + self.chance.choice([0, 0, 50]) * SECOND
        dag_id = self.chance.choice(["d0", "d1", "d2"])
        args = {} if date is None else {"logical_date": date}
        self._command("trigger", dag_id=dag_id, run_id=f"r{self.numbers}", run_after=later, **args)

    def _clear(self) -> None:
        rows = [row for dag_id in ("d0", "d1", "d2") for row in self.bench.runs(dag_id)]
        if rows:
            row = self.chance.choice(rows)
            tasks = [one.task_id for one in self.bench.store.definition(row.version).tasks if self.chance.random() < 0.4]
            down, reset = self.chance.random() < 0.5, self.chance.random() < 0.9
            which = {"dag_id": row.dag_id, "run_id": row.run_id, "task_ids": tasks}
            self._command("clear", **which, downstream=down, reset_dag_runs=reset)

    def _mark(self) -> None:
        """Clear or mark some tasks of a run, perhaps with upstream, downstream, earlier or later ones."""
        chance = self.chance
        rows = [row for dag_id in ("d0", "d1", "d2") for row in self.bench.runs(dag_id)]
        if rows:
            row = chance.choice(rows)
            which: dict[str, list[Any]] = {"task_ids": [], "instances": []}
            for one in self.bench.store.definition(row.version).tasks:
                roll = chance.random()
                if roll < 0.3:
                    which["task_ids"].append(one.task_id)
                elif roll < 0.4:
                    which["instances"].append([one.task_id, chance.choice([-1, 0, 1])])
            around = {name: chance.random() < 0.2 for name in ("upstream", "downstream", "past", "future")}
            state = chance.choice(["success", "success", "failed", "skipped"])
            self._command("mark", dag_id=row.dag_id, run_id=row.run_id, state=state, **which, **around)

    def _set_run_state(self) -> None:
        rows = [row for dag_id in ("d0", "d1", "d2") for row in self.bench.runs(dag_id)]
        if rows:
            row = self.chance.choice(rows)
            state = self.chance.choice(["success", "failed", "failed", "queued"])
            self._command("set_run_state", dag_id=row.dag_id, run_id=row.run_id, state=state)

    def _run_task(self) -> None:
        """Run a task by hand. This is often refused; otherwise the task runs before its dependencies are met, or runs again."""
        chance = self.chance
        rows = [row for dag_id in ("d0", "d1", "d2") for row in self.bench.runs(dag_id)]
        if rows:
            row = chance.choice(rows)
            one = chance.choice(self.bench.store.definition(row.version).tasks)
            how = {"ignore": ["task"]} if chance.random() < 0.7 else {"wait_for_past": chance.random() < 0.5}
            index = 0 if one.mapped else -1
            which = {"dag_id": row.dag_id, "run_id": row.run_id, "task_id": one.task_id, "map_index": index}
            self._command("run_task", **which, **how, force=chance.random() < 0.5)

    def _backfill(self) -> None:
        """Create, pause, unpause or cancel a backfill."""
        chance, now = self.chance, self.bench.clock.wall()
        open_ones = self.bench.store.backfills()
        if open_ones and chance.random() < 0.6:
            number = chance.choice(open_ones).id
            if chance.random() < 0.2:
                self._command("cancel_backfill", backfill=number)
            else:
                self._command("pause_backfill", backfill=number, is_paused=chance.random() < 0.5)
            return
        self._command(
            "create_backfill",
            dag_id=chance.choice(["d0", "d1", "d2"]),
            from_date=now - 5 * HOUR,
            to_date=now - chance.choice([0, 1, 2]) * HOUR,
            max_active_runs=chance.choice([1, 3]),
            run_backwards=chance.random() < 0.3,
            reprocess_behavior=chance.choice(["none", "failed", "completed"]),
        )

    # --- the end ------------------------------------------------------------------------------------------------------------

    def check_assets(self) -> None:
        """Check that each success of d0 emitted one event, and that d2 consumed each event at most once or has it waiting."""
        store = self.bench.store
        consumed = [event.id for row in self.bench.runs("d2") for event in store.asset_events_of_run(row.id)]
        events = store.asset_events(name=X.name)
        left = sum(one.events for one in store.waiting_assets("d2"))
        assert len(consumed) == len(set(consumed))
        assert len(consumed) + left == len(events), (len(consumed), left, len(events))
        sources = [(one.source_run, one.source_task, one.source_index) for one in events if one.source_dag is not None]
        successes = 0
        for row in self.bench.runs("d0"):
            successes += sum(
                entry.before == TaskState.RUNNING.code and entry.after == TaskState.SUCCESS.code
                for _, entry in journal(self.bench.watched.inner, row.id)
            )
        assert len(sources) == successes, (len(sources), successes)

    def settle(self) -> None:
        """Stop all faults and let every task succeed: every run has to end."""
        bench = self.bench
        self.host.loses = self.host.fails = 0.0
        self._command("set_pool", name="p", slots=9)
        for dag_id in ("d0", "d1", "d2"):
            self._command("set_paused", dag_id=dag_id, is_paused=False)
        for backfill in self.bench.store.backfills():
            self._command("pause_backfill", backfill=backfill.id, is_paused=False)
        for _ in range(3000):
            for _ in range(3):
                self.host.step(bench.clock.wall())
            self._deliver(False)
            bench.process()
            bench.scheduler.hosts.resubmit_old(bench.clock.wall())
            bench.scheduler.hosts.reconcile()
            if not (self.host.holds or self.host.out or self.host.verdicts or bench.scheduler.busy):
                if not bench.store.active_runs():
                    assert bench.store.backfills() == []
                    assert bench.scheduler.waits.open == {}
                    assert bench.scheduler.waits.watches is False
                    return
                bench.scheduler.compare_with_store()  # a message to run a trigger may have been lost
                self._unstick()
                bench.clock.advance(10 * SECOND)  # also after a clear: a cleared task may wait for a moment
                bench.process()
        left = {f"{row.dag_id}/{row.run_id}": bench.states(row.run_id, row.dag_id) for row in bench.store.active_runs()}
        raise AssertionError(f"these runs never end: {left}")

    def _unstick(self) -> bool:
        """Clear a failed previous run, which blocks later runs for ever, and return whether there was one."""
        for row in self.bench.store.active_runs():
            active_run = self.bench.scheduler.active_runs_by_id.get(row.id)
            if active_run is None or active_run.row.logical_date is None or not active_run.topology.has_past:
                continue
            before = self.bench.store.previous_run(
                row.dag_id, active_run.row.logical_date, scheduled_only=active_run.topology.definition.catchup
            )
            if before is not None and before.state.value in ("failed", "success"):
                bad = [
                    name.partition("[")[0]
                    for name, state in self.bench.states(before.run_id, before.dag_id).items()
                    if state not in ("success", "removed")
                ]
                if bad:
                    which = {"dag_id": before.dag_id, "run_id": before.run_id}
                    self._command("clear", **which, task_ids=bad, upstream=True)  # a task that was marked has returned no list
                    self._command("set_run_state", **which, state="queued")  # for tasks that were cleared without their run
                    return True
        return False
