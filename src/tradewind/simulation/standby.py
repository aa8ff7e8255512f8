"""Schedulers on several machines: one has the lease, the others stand by and lead the processes of their machines to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.executors.celery import CeleryExecutor
from tradewind.executors.local import LocalExecutor
from tradewind.gateway.scheduler_relay import Contact, message_to_forward
from tradewind.model.errors import Stale, StoreBusy, StoreError
from tradewind.model.moments import SECOND
from tradewind.scheduler.attempts.remote_workers import RemoteWorkers
from tradewind.scheduler.attempts.worker_liveness import LOST_AFTER, WorkerLiveness
from tradewind.scheduler.lease_renewal import LeaseRenewal
from tradewind.simulation.cables import Wire, Wires
from tradewind.simulation.timeline import Process
from tradewind.simulation.world import SchedulerProcess
from tradewind.store.port import lease as lease_rules
from tradewind.store.port.lease import Holder
from tradewind.wire.messages import Relayed, decode_to_scheduler, encode

if TYPE_CHECKING:
    from tradewind.simulation.machine_world import MachineWorld

LEASE, LEASE_WHILE_LOADING, STEP = 10 * SECOND, 60 * SECOND, SECOND // 4


class LeaseRow:
    """The lease in the database. Its clock is the true time."""

    def __init__(self) -> None:
        self.epoch = 0
        self.holder: MachineScheduler | None = None
        self.until = 0
        self.lock: MachineScheduler | None = None
        """The scheduler with the advisory lock."""


class VirtualLease:
    """The lease as one scheduler uses it: `store.port.lease.Lease`."""

    def __init__(self, world: MachineWorld, process: MachineScheduler) -> None:
        self._world = world
        self._process = process
        self.epoch = 0

    def _row(self) -> LeaseRow:
        world = self._world
        if world.cut_off(self._process) or world.store_faults.broken_until > world.timeline.now:
            raise StoreBusy("the database cannot be reached (simulated)")
        return world.lease

    def _is_connected(self, other: MachineScheduler | None) -> bool:
        """Whether the server has a connection of this scheduler. It learns the end of a process that is cut off later."""
        return other is not None and (other.alive or self._world.cut_off(other))

    def try_acquire(self) -> Holder | None:
        row, now = self._row(), self._world.timeline.now
        if not self._is_connected(row.lock):
            row.lock = self._process
        holder = row.holder
        name = holder.name if holder is not None else ""
        if lease_rules.is_held(name, row.until > now, row.lock is self._process, lambda: self._is_connected(holder)):
            assert holder is not None
            return Holder(row.epoch, holder.machine, holder.number)
        row.epoch = self._world.store.epoch() + 1
        row.holder, row.until, row.lock = self._process, now + LEASE_WHILE_LOADING, self._process
        self.epoch = row.epoch
        return None

    def acquire(self, timeout_seconds: float) -> None:
        raise NotImplementedError("the simulation asks with try_acquire")

    def renew(self) -> None:
        row = self._row()
        if row.holder is not self._process or row.epoch != self.epoch:
            raise Stale(f"scheduler epoch {self.epoch} was superseded")
        row.until = self._world.timeline.now + LEASE

    def has_standby(self) -> bool:
        self._row()
        return any(life is not self._process and life.server is None for life in self._world.schedulers.values())

    def release(self) -> None:
        row = self._world.lease
        if row.holder is self._process:
            row.holder, row.until = None, 0


class MachineScheduler(SchedulerProcess):
    """The process of a scheduler on one of several machines: it stands by until it has the lease."""

    def __init__(self, world: MachineWorld, number: int, machine: str) -> None:
        super().__init__(world, number)
        self.machines = world
        self.machine = machine
        self.clock = world.clock_of(machine)
        self.lease = VirtualLease(world, self)
        self.contact = Contact()
        self.renewal: LeaseRenewal | None = None
        self.active_machine = ""
        """While it stands by: the machine of the active scheduler."""
        self.relayed: list[Wire] = []
        """Connections that it leads to the active scheduler."""
        self.on_death.append(self._close_relay)

    def begin(self) -> None:
        try:
            holder = self.lease.try_acquire()
        except StoreBusy:
            self.timeline.after(STEP, self, self.begin)
            return
        except StoreError:
            self.die("the database cannot be reached")
            return
        if holder is None:
            self.active_machine = ""
            self._close_relay()
            self.machines.is_active(self)
            self.serve(self.lease.epoch)
            return
        if holder.hostname != self.active_machine:
            self.active_machine = holder.hostname
            self.contact.made()
            self._close_relay()
        self.timeline.after(STEP, self, self.begin)

    def serve(self, given: int | None = None) -> None:
        super().serve(given)
        server = self.server
        if server is None:
            return
        self.renewal = LeaseRenewal(self.lease, server.loop, lambda: True, server.end_epoch, server.executor.standby_is_ready)
        self.renewal.start()
        server.loop.call_later(LOST_AFTER + SECOND, server.scheduler.hosts.lease_ended)

    def _close_relay(self) -> None:
        relayed, self.relayed = self.relayed, []
        for wire in relayed:
            wire.close()
            wire.peer.close()

    def make_executor(self) -> tuple[LocalExecutor, RemoteWorkers | None]:
        world = self.machines
        remote = RemoteWorkers(self.clock, world.outage_lease)
        lives = WorkerLiveness(self.clock, self.machine, remote, lambda: executor.workers, world.has_process).may_live
        kill_grace = world.config.kill_grace
        executor: LocalExecutor
        if world.broker is None:
            executor = LocalExecutor(lives, kill_grace)
        else:
            executor = CeleryExecutor(world.broker.publisher(self), self.clock, lives, kill_grace)
        return executor, remote


class RelayedWire(Wire):
    """The end of a connection that a standby scheduler leads to the active one on another machine."""

    def __init__(self, wires: Wires, process: Process) -> None:
        super().__init__(wires, process)
        self._forwards: bool | None = None
        """None: the first message has not been sent."""

    def send(self, document: bytes) -> None:
        if self._forwards is None:
            message = message_to_forward(decode_to_scheduler(document))
            self._forwards = message is not None
            if message is not None:
                super().send(encode(Relayed("another machine")))
                super().send(encode(message))
        elif self._forwards:
            super().send(document)
