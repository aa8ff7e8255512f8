"""A simulation of several machines: two with a scheduler, a gateway and a worker host each, and two with a remote worker.

    machine a, b    scheduler (one has the lease, the other stands by), gateway, worker host
    machine r, s    worker host behind a gateway; with a CeleryExecutor, also a Celery worker
    database, broker

Machines and processes die, stop, and are cut off from each other. The checks are those of one machine (`world`), which know
nothing about machines: no two attempts of a task instance at once, no attempt that counts as lost while its process runs, and
nothing that does not end.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import msgspec

from tradewind.model.executor_names import CELERY
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.states import Outcome
from tradewind.simulation import faults
from tradewind.simulation.broker import Broker, CeleryPool
from tradewind.simulation.cables import BROKER, DATABASE, Cables, MachineClock, Wire, Wires, machine_of
from tradewind.simulation.faults import CALM, Profile
from tradewind.simulation.gateways import KEY, GatewayProcess, Link, MachineHost, MachineHostProcess
from tradewind.simulation.host import HostProcess
from tradewind.simulation.network import End
from tradewind.simulation.standby import LeaseRow, MachineScheduler, RelayedWire
from tradewind.simulation.timeline import NodeClock, Process, Timeline, draw_delay
from tradewind.simulation.workload import Plan
from tradewind.simulation.world import World
from tradewind.wire.messages import AttemptGone, AttemptKey, FromRunner, Report, Workload
from tradewind.wire.worker_names import home_of, is_remote, worker_at
from tradewind.wire.worker_tokens import WorkerGrant, sign_grant
from tradewind.worker.config import GatewayConfig, HostConfig

SCHEDULER_MACHINES = ("a", "b")
REMOTE_MACHINES = ("r", "s")
MACHINES = (*SCHEDULER_MACHINES, *REMOTE_MACHINES)
STALL_LIMIT = 80 * SECOND
_RELAY_LOST = "for 30 seconds, the active scheduler could not be reached from the standby scheduler of this machine"


class MachineFaults(NamedTuple):
    """Rates are events per hour, shares are between 0 and 1. They are drawn like those of `faults.Profile`."""

    gateway_crashes: float = 0
    gateway_pauses: float = 0
    machines_cut: float = 0
    """A machine is cut off from all others."""
    pairs_cut: float = 0
    """Two machines are cut off from each other, for example a machine from the database."""
    machines_lost: float = 0
    """All processes of a machine die, and nobody is told."""
    slow_networks: float = 0
    foreign_words: float = 0
    """A worker reports about an attempt of another worker."""
    broker_flushes: float = 0
    broker_outages: float = 0
    celery_crashes: float = 0
    broker_loses: float = 0
    """Share."""
    broker_repeats: float = 0
    broker_delays: float = 0
    drift: float = 0
    """Maximum deviation of the clocks of the machines."""
    double_losses: float = 0
    """A remote worker and the active scheduler are lost within the same 30 seconds."""
    answers_lost: float = 0
    """A restarted gateway has no scheduler, and what another gateway answers to the registration of its workers does not arrive."""


def draw(rng: random.Random) -> MachineFaults:
    maybe = faults.maybe
    return MachineFaults(
        gateway_crashes=maybe(rng, 0.5, 20),
        gateway_pauses=maybe(rng, 0.5, 10),
        machines_cut=maybe(rng, 0.5, 12),
        pairs_cut=maybe(rng, 1, 20),
        machines_lost=maybe(rng, 0.3, 4),
        slow_networks=maybe(rng, 1, 12),
        foreign_words=maybe(rng, 2, 40),
        broker_flushes=maybe(rng, 0.5, 10),
        broker_outages=maybe(rng, 0.5, 6),
        celery_crashes=maybe(rng, 0.5, 6),
        broker_loses=maybe(rng, 0.005, 0.2),
        broker_repeats=maybe(rng, 0.01, 0.3),
        broker_delays=maybe(rng, 0.01, 0.3),
        drift=maybe(rng, 0.0005, 0.01),
        double_losses=maybe(rng, 0.5, 6),
        answers_lost=maybe(rng, 0.5, 6),
    )


class MachineWorld(World):
    """See the module. Arguments as for `World`."""

    def __init__(
        self,
        seed: int,
        *,
        plans: list[Plan] | None = None,
        profile: Profile | None = None,
        hours: float | None = None,
        trace: bool = False,
    ) -> None:
        drawing = Timeline(seed)
        if profile is None:
            profile = faults.draw(drawing.stream("faults"))
        calm = profile == CALM
        # a worker host that is stopped cannot end its tasks, so its lease holds nothing
        profile = profile._replace(host_pauses=0, clock_rate=0)
        self.machine_faults = MachineFaults() if calm else draw(drawing.stream("machine faults"))
        setup = drawing.stream("machines")
        self.has_celery = setup.random() < 0.5
        self._returns = setup.random() < 0.5
        self.outage_lease = setup.choice((2, 15)) * MINUTE
        self._setup = setup
        self._clocks: dict[str, MachineClock] = {}
        self.broker: Broker | None = None
        super().__init__(seed, plans=plans, profile=profile, hours=hours, trace=trace)
        self.cables = Cables(self.timeline)
        self.wires = Wires(self.timeline, self.cables)
        self.links = self.timeline.stream("links")
        self.lease = LeaseRow()
        self.schedulers: dict[str, MachineScheduler] = {}
        """Machine → its scheduler."""
        self.gateways: dict[str, GatewayProcess] = {}
        self._cuts_at_an_answer = 0
        """The next answer to a registration through a gateway is lost, and the network there is cut for this time, microseconds."""
        self.store_faults.cut_off = self.cut_off
        if self.has_celery:
            self.broker = Broker(self)

    # --- machines ---------------------------------------------------------------------------------------------------

    def clock_of(self, machine: str) -> NodeClock:
        if machine not in self._clocks:
            drift = self._setup.uniform(-1, 1) * self.machine_faults.drift
            self._clocks[machine] = MachineClock(self.timeline, 1 + drift, self.clock)
        return self._clocks[machine]

    def draw_workers(self) -> list[str]:
        local = [worker_at("w1", machine) for machine in SCHEDULER_MACHINES]
        return [*local, *(f"{machine}@remote" for machine in REMOTE_MACHINES)]

    def machine_of_worker(self, worker: str) -> str:
        return worker.partition("@")[0] if is_remote(worker) else home_of(worker)

    def config_of(self, worker: str) -> HostConfig:
        machine = self.machine_of_worker(worker)
        if not is_remote(worker):
            return msgspec.structs.replace(self.host_config, worker="w1", home_name=machine)
        token = sign_grant(WorkerGrant(machine), KEY)
        gateway = GatewayConfig(tuple(f"ws://{one}:1" for one in SCHEDULER_MACHINES), token, self.outage_lease)
        celery: dict[str, Any] = {"executors": (CELERY,), "offers_socket": "offers"} if self.has_celery else {}
        return msgspec.structs.replace(self.host_config, gateway=gateway, **celery)

    def _update_checks(self) -> None:
        if self.has_celery:
            self.config = msgspec.structs.replace(self.config, executor=CELERY)
        super()._update_checks()

    def reaches(self, process: Process, machine: str) -> bool:
        return self.cables.reaches(machine_of(process), machine)

    def cut_off(self, process: Process) -> bool:
        """Whether a process cannot reach the database."""
        return not self.reaches(process, DATABASE)

    def has_process(self, worker: str) -> bool:
        """Whether a process of this worker of the same machine is alive."""
        return worker in self.hosts

    def count(self, what: str) -> None:
        self.timeline.sometimes[what] += 1

    def was_handed_over(self, workload: Workload) -> None:
        if workload.key not in self.checks.dispatched:
            self.violated("dispatch", f"attempt {workload.key} was published, but its dispatch was never committed")

    def user_code_begins(self, key: AttemptKey, nonce: str, try_number: int) -> None:
        if key in self.checks.said:
            self.violated("8 repeat", f"attempt {key} starts again after its report")
        super().user_code_begins(key, nonce, try_number)

    # --- processes --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        for machine in SCHEDULER_MACHINES:
            self._start_gateway(machine)
        self._start_on(SCHEDULER_MACHINES[1])
        if self.broker is not None:
            for worker in self.workers:
                if is_remote(worker):
                    self._start_pool(worker)
            self.broker.look()
        super()._begin()

    def _start_scheduler(self) -> None:
        self._start_on(SCHEDULER_MACHINES[0])

    def _start_on(self, machine: str) -> None:
        if machine in self.schedulers:
            return
        self._lives += 1
        life = MachineScheduler(self, self._lives, machine)
        self.schedulers[machine] = life
        life.on_death.append(lambda: self._scheduler_ended(life))
        self.timeline.after(0, life, life.begin)

    def is_active(self, life: MachineScheduler) -> None:
        """A scheduler has the lease."""
        if self.scheduler is not None and self.scheduler.alive:
            self._count("scheduler taken over while the former one lives")
        self.scheduler = life

    def _scheduler_ended(self, life: MachineScheduler) -> None:
        del self.schedulers[life.machine]
        if life is self.scheduler:
            self.scheduler = None
        if life.renewal is not None and life.renewal.lost is None and life.server is not None and life.server.loop.stopping:
            life.lease.release()
        self.timeline.after(draw_delay(self.chance, SECOND), None, lambda: self._start_on(life.machine))

    def _start_gateway(self, machine: str) -> None:
        self._lives += 1
        gateway = self.gateways[machine] = GatewayProcess(self, machine, self._lives)
        gateway.on_death.append(lambda: self._gateway_died(machine))
        self.timeline.after(0, gateway, gateway.begin)

    def _gateway_died(self, machine: str) -> None:
        del self.gateways[machine]
        pause = draw_delay(self.links, 2 * SECOND)
        if not self.recovering and self.links.random() < 0.3:
            self._count("gateway away for long")
            pause += self.links.randrange(5 * MINUTE)
        self.timeline.after(pause, None, lambda: self._start_gateway(machine))

    def _start_pool(self, worker: str) -> None:
        assert self.broker is not None
        self._lives += 1
        pool = CeleryPool(self, worker, self._lives, self.host_config.slots, self._returns)
        self.broker.pools[worker] = pool
        pool.on_death.append(lambda: self._pool_died(worker))
        host = self.hosts.get(worker)
        if host is not None and isinstance(host.host, MachineHost):
            pool.host_begins(host.host)

    def _pool_died(self, worker: str) -> None:
        assert self.broker is not None
        del self.broker.pools[worker]
        host = self.hosts.get(worker)
        if host is not None:
            host.die("its Celery worker")
        self.timeline.after(draw_delay(self.links, 5 * SECOND), None, lambda: self._start_pool(worker))

    def make_host(self, worker: str, number: int) -> HostProcess:
        process = MachineHostProcess(self, worker, number)
        pool = self.broker.pools.get(worker) if self.broker is not None else None
        if pool is not None and isinstance(process.host, MachineHost):
            host = process.host
            self.timeline.after(0, pool, lambda: pool.host_begins(host) if process.alive else None)
        return process

    # --- connections to a scheduler ---------------------------------------------------------------------------------

    def connect_to_scheduler(self, process: Process) -> End | None:
        """Connect to the socket of the scheduler on the machine of a process. A standby scheduler leads to the active one."""
        machine = machine_of(process)
        if not machine:
            return super().connect_to_scheduler(process)
        life = self.schedulers.get(machine)
        if life is None or not life.alive or life.paused_until > self.timeline.now:
            return None
        if life.server is not None:
            wire = Wire(self.wires, process)
            return self._join(wire, life)
        return self._relay(process, life)

    def _join(self, here: Wire, life: MachineScheduler) -> Wire:
        server = life.server
        assert server is not None
        _, there = self.wires.join(here, Wire(self.wires, life))
        connection = there.connection

        def receive(document: bytes) -> None:
            self.callback_checks.message_received(document)
            server.on_document(connection, document)

        there.listen(receive, lambda: server.on_disconnect(connection))
        server.on_connect(connection)
        return here

    def _relay(self, process: Process, standby: MachineScheduler) -> Wire | None:
        if not standby.active_machine:
            return None  # it is becoming the active scheduler, or has not asked for the lease yet
        active = self.schedulers.get(standby.active_machine)
        gateway = self.gateways.get(standby.active_machine)
        reached = self.cables.reaches(standby.machine, standby.active_machine)
        now = standby.clock.monotonic()
        if not reached or gateway is None or gateway.paused_until > self.timeline.now:
            standby.contact.failed(now)
            if standby.contact.lease_has_ended(now) and isinstance(process, MachineHostProcess):
                self.count("a standby scheduler ends the tasks of its machine")
                assert isinstance(process.host, MachineHost)
                process.host.relay_failed(_RELAY_LOST)
            return None
        standby.contact.made()
        if active is None or not active.alive or active.server is None:
            return None
        wire = RelayedWire(self.wires, process)
        self._join(wire, active)
        standby.relayed.append(wire)
        gateway.on_death.append(wire.close)
        gateway.on_death.append(wire.peer.close)
        self.wires.watch(wire)
        return wire

    # --- faults -----------------------------------------------------------------------------------------------------

    def _schedule_faults(self) -> None:
        super()._schedule_faults()
        rates = self.machine_faults
        self._often("gateway crash", rates.gateway_crashes, self._crash_gateway)
        self._often("gateway pause", rates.gateway_pauses, self._pause_gateway)
        self._often("machine cut", rates.machines_cut, self._cut_machine)
        self._often("pair cut", rates.pairs_cut, self._cut_pair)
        self._often("machine lost", rates.machines_lost, self._lose_machine)
        self._often("slow network", rates.slow_networks, self._slow_network)
        self._often("foreign word", rates.foreign_words, self._foreign_word)
        self._often("double loss", rates.double_losses, self._lose_worker_and_scheduler)
        self._often("answer lost", rates.answers_lost, self._lose_answer)
        if self.broker is not None:
            self._often("broker flush", rates.broker_flushes, self._flush_broker)
            self._often("broker outage", rates.broker_outages, self._stop_broker)
            self._often("celery crash", rates.celery_crashes, self._crash_celery)

    def _take_over(self, rng: random.Random) -> None:
        """Pause the active scheduler for so long that its lease ends: the other one takes over, and the first one goes on."""
        life = self.scheduler
        if isinstance(life, MachineScheduler):
            self._count("active scheduler paused for longer than its lease")
            self._stop(life, 11 * SECOND + faults.pause_length(rng))

    def _pause(self, life: Process | None, what: str, rng: random.Random) -> None:
        if isinstance(life, MachineScheduler):
            self._count(f"{what} paused")
            self._stop(life, faults.pause_length(rng))
        else:
            super()._pause(life, what, rng)

    def _stop(self, life: MachineScheduler, micros: int) -> None:
        """Stop a scheduler. Its supervisor kills it when it makes no progress for too long."""
        life.pause(micros)
        if micros > STALL_LIMIT:
            until = life.paused_until

            def kill() -> None:
                if life.paused_until >= until:
                    life.die("its supervisor")

            self.timeline.after(STALL_LIMIT, None, kill)

    def _cut_link(self, rng: random.Random) -> None:
        """Break a connection: with a scheduler on the same machine, or with a gateway."""
        life = self._some_host(rng)
        if life is None or life.host.scheduler is None:
            return
        self._count("link cut")
        remote = life.host.remote
        self.timeline.after(0, life, remote.break_line if isinstance(remote, Link) else life.host.scheduler.close)

    def _crash_gateway(self, rng: random.Random) -> None:
        if self.gateways:
            self._count("gateway crashed")
            rng.choice(list(self.gateways.values())).die("killed")

    def _pause_gateway(self, rng: random.Random) -> None:
        if self.gateways:
            self._count("gateway paused")
            rng.choice(list(self.gateways.values())).pause(faults.pause_length(rng))

    def _isolate(self, machine: str, micros: int) -> None:
        for other in (*MACHINES, DATABASE, BROKER):
            self.cables.cut(machine, other, micros)

    def _cut_machine(self, rng: random.Random) -> None:
        machine = rng.choice(MACHINES)
        self._count(f"machine of a {'scheduler' if machine in SCHEDULER_MACHINES else 'remote worker'} cut off")
        self._isolate(machine, faults.pause_length(rng))

    def _cut_pair(self, rng: random.Random) -> None:
        one, other = rng.sample((*MACHINES, DATABASE, BROKER), 2)
        self._count("two machines cut off from each other")
        self.cables.cut(one, other, faults.pause_length(rng))

    def _lose_machine(self, rng: random.Random) -> None:
        """The power of a machine fails. It comes back after a while."""
        machine = rng.choice(MACHINES)
        self._count("machine lost")
        self._isolate(machine, SECOND + faults.pause_length(rng))
        pools = list(self.broker.pools.values()) if self.broker is not None else []
        for process in (*self.schedulers.values(), *self.gateways.values(), *pools, *self.hosts.values()):
            if machine_of(process) == machine and process.alive:
                process.die("its machine")

    def _lose_worker_and_scheduler(self, rng: random.Random) -> None:
        """A remote worker dies or is cut off, and shortly before or after it the active scheduler dies. Its gateway lives on."""
        worker = rng.choice([one for one in self.workers if is_remote(one)])
        machine, cut_for = self.machine_of_worker(worker), 2 * MINUTE + faults.pause_length(rng)
        self._count("remote worker and active scheduler lost together")
        host = self.hosts.get(worker)
        if rng.random() < 0.5 and host is not None:
            host.die("its machine")
        self.timeline.after(rng.randrange(30 * SECOND), None, lambda: self._isolate(machine, cut_for))
        life = self.scheduler
        if life is not None and life.alive:
            self.timeline.after(rng.randrange(30 * SECOND), life, lambda: life.die("killed"))

    def _lose_answer(self, rng: random.Random) -> None:
        """Restart the gateway beside the standby scheduler, cut off from the active one. Its workers try the other gateway."""
        standby = next((one for one in self.schedulers.values() if one is not self.scheduler), None)
        gateway = self.gateways.get(standby.machine) if standby is not None else None
        if gateway is None:
            return
        self._count("gateway restarted, and cut off from the active scheduler")
        self.cables.cut(*SCHEDULER_MACHINES, 2 * MINUTE + faults.pause_length(rng))
        gateway.die("killed")
        self._cuts_at_an_answer = 2 * MINUTE + faults.pause_length(rng)

    def is_answer_lost(self, gateway: str, worker: str) -> bool:
        """Whether the answer to the registration of a worker that comes from another gateway is lost. Then the worker cannot reach
        this gateway for a while.
        """
        host = self.hosts.get(worker)
        if not self._cuts_at_an_answer or self.recovering or host is None or not isinstance(host.host.remote, Link):
            return False
        if host.host.remote.home in ("", gateway) or not host.host.attempts:
            return False
        cut_for, self._cuts_at_an_answer = self._cuts_at_an_answer, 0
        self.count("the answer to a registration is lost")
        self.cables.cut(gateway, self.machine_of_worker(worker), cut_for)
        return True

    def _slow_network(self, rng: random.Random) -> None:
        machine = rng.choice(MACHINES)
        self._count("slow network")
        self.cables.latency[machine] = rng.randrange(12 * SECOND)
        self.timeline.after(faults.pause_length(rng), None, lambda: self.cables.speed_up(machine))

    def _foreign_word(self, rng: random.Random) -> None:
        """A worker reports the loss of an attempt that another worker runs."""
        busy = [life for life in self.hosts.values() if life.host.attempts]
        if not busy or len(self.hosts) < 2:
            return
        holder = rng.choice(busy)
        other = rng.choice([life for life in self.hosts.values() if life is not holder])
        key = rng.choice(sorted(holder.host.attempts))
        nonce = holder.host.attempts[key].nonce
        self._count("a worker reports about an attempt of another one")
        word: AttemptGone | FromRunner = AttemptGone(key, "it is not here", nonce, other.host.name)
        if rng.random() < 0.5:
            word = FromRunner(key, Report(0, Outcome.LOST, reason="it is not here", nonce=nonce, host=other.host.name))
        self.timeline.after(0, other, lambda: other.host.send(word))

    def _flush_broker(self, rng: random.Random) -> None:
        assert self.broker is not None
        self._count("broker flushed")
        self.broker.flush()

    def _stop_broker(self, rng: random.Random) -> None:
        assert self.broker is not None
        self._count("broker stopped")
        self.broker.down_until = self.timeline.now + faults.pause_length(rng)

    def _crash_celery(self, rng: random.Random) -> None:
        assert self.broker is not None
        if self.broker.pools:
            self._count("Celery worker crashed")
            rng.choice(list(self.broker.pools.values())).die("killed")

    # --- the end ----------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        self.cables.heal_all()
        if self.broker is not None:
            self.broker.down_until = 0
        for process in (*self.schedulers.values(), *self.gateways.values()):
            process.steps_left = -1
            process.paused_until = min(process.paused_until, self.timeline.now)
        super()._recover()

    def registered_hosts(self) -> list[HostProcess]:
        """Without the worker host beside a standby scheduler: nobody asks for the triggers that it has left."""
        server = self.scheduler.server if self.scheduler is not None else None
        return [life for worker, life in self.hosts.items() if server is not None and worker in server.workers]

    def _check_the_end(self) -> None:
        """Every attempt whose start was accepted has a recorded end."""
        for key, attempt in self.checks.shadow.attempts.items():
            if attempt.ended_at is None:
                self.violated("14 attempts", f"everything has ended, but attempt {key} has no recorded end")
        super()._check_the_end()
