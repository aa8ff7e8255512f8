"""Gateways, and worker hosts behind them: the decisions are those of production, sockets and WebSockets are replaced."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from tradewind.client.gateway_line import CONNECT_WITHIN, Closed, GatewayAddress
from tradewind.gateway.worker_state import DisconnectedWorkers, Refused, WorkerState
from tradewind.model.moments import SECOND
from tradewind.platform.loop import Loop
from tradewind.simulation.cables import DATABASE, MachineClock, Wire
from tradewind.simulation.host import HostProcess, VirtualHost
from tradewind.simulation.network import LATENCY, End
from tradewind.simulation.timeline import Process, VirtualLoop
from tradewind.wire import gateway as g
from tradewind.wire.connection import Connection
from tradewind.wire.messages import AttemptKey, GatewayHello, LeaseEnded, Report, decode_from_scheduler, encode
from tradewind.wire.worker_names import home_of, is_remote, remote_worker
from tradewind.wire.worker_tokens import read_grant
from tradewind.worker.config import GatewayConfig, HostConfig
from tradewind.worker.local_lease import LocalLease
from tradewind.worker.remote_link import RemoteLink

if TYPE_CHECKING:
    from tradewind.simulation.machine_world import MachineWorld

KEY = b"the key of the simulation"
RETRY = SECOND // 5
DATABASE_ANSWER = 4 * SECOND


class GatewayProcess(Process):
    """The gateway of one machine."""

    def __init__(self, world: MachineWorld, machine: str, number: int) -> None:
        super().__init__(world.timeline, f"gateway{number}", world.clock_of(machine))
        self.world = world
        self.machine = machine
        self.sessions: dict[str, GatewaySession] = {}
        """Worker → its connection."""
        self.away = DisconnectedWorkers()
        self._control: End | None = None
        self._announced: dict[str, object] = {}

    def begin(self) -> None:
        """Connect to the scheduler, which has to know which workers have disconnected."""
        end = self.world.connect_to_scheduler(self)
        if end is None:
            self.timeline.after(RETRY, self, self.begin)
            return
        self._control, self._announced = end, {}
        end.listen(lambda document: None, self._control_lost)
        end.send(encode(GatewayHello(self.machine)))
        self.report()

    def _control_lost(self) -> None:
        self._control = None
        self.timeline.after(RETRY, self, self.begin)

    def report(self) -> None:
        if self._control is not None:
            states = {worker: session.state for worker, session in self.sessions.items()}
            for news in self.away.news(self._announced, states, self.clock.monotonic()):
                self._control.send(encode(news))

    def accept(self, end: Wire, token: str) -> None:
        """A worker host has connected."""
        grant, now = read_grant(token, KEY, self.clock.wall()), self.clock.monotonic()
        limit = self.away.limit(remote_worker(grant.worker))
        state = WorkerState(grant, self.machine, KEY, self.world.outage_lease, now, limit)
        session = GatewaySession(self, end, state)
        before = self.sessions.get(session.state.worker)
        self.sessions[session.state.worker] = session
        if before is not None:
            before.end.close()
        session.begin()

    def ended_session(self, session: GatewaySession) -> None:
        if self.sessions.get(session.state.worker) is session:
            del self.sessions[session.state.worker]
            self.away.disconnected(session.state, self.clock.monotonic())
            self.report()


class GatewaySession:
    """One worker host at a gateway, as `gateway.session.Session`."""

    def __init__(self, gateway: GatewayProcess, end: Wire, state: WorkerState) -> None:
        self.gateway = gateway
        self.end = end
        self.state = state
        self._upstream: End | None = None
        self._heard_at = gateway.clock.monotonic()

    def begin(self) -> None:
        self.end.listen(self._on_message, self._on_close)
        self.end.send(b"")  # the answer to the handshake
        self._keep_scheduler()
        self._look()

    def _look(self) -> None:
        gateway = self.gateway
        if self.end.closed:
            return
        if gateway.clock.monotonic() - self._heard_at > g.SILENT_MAX:
            gateway.world.count("a gateway gives up a silent worker")
            self.end.close()
        gateway.timeline.after(SECOND, gateway, self._look)

    def _on_close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.close()
        self.gateway.ended_session(self)

    def _keep_scheduler(self) -> None:
        if self.end.closed:
            return
        upstream = self.gateway.world.connect_to_scheduler(self.gateway)
        if upstream is None:
            self.gateway.timeline.after(RETRY, self.gateway, self._keep_scheduler)
            return
        self._upstream = upstream
        upstream.listen(self._from_scheduler, self._scheduler_lost)
        self._send(g.SchedulerOpen(self.gateway.machine))

    def _scheduler_lost(self) -> None:
        if self._upstream is None:
            return
        self._upstream = None
        self.state.scheduler_lost(self.gateway.clock.monotonic())
        self._send(g.SchedulerClosed())
        self._keep_scheduler()

    def _from_scheduler(self, document: bytes) -> None:
        if self.gateway.world.is_answer_lost(self.gateway.machine, self.state.worker):
            return
        keys, _ = self.state.attempts_in(decode_from_scheduler(document), self.gateway.clock.monotonic())
        if keys:
            self._send(self.state.tokens(keys))
        self.end.send(bytes((g.SCHEDULER,)) + document)

    def _on_message(self, data: bytes) -> None:
        self._heard_at = self.gateway.clock.monotonic()
        if data[0] == g.SCHEDULER:
            try:
                checked = self.state.to_forward(data[1:])
            except Refused as refused:
                self.gateway.world.violated("gateway", f"a worker is disconnected: {refused}")
                return
            if checked is not None and self._upstream is not None:
                self._upstream.send(checked)
            return
        message: g.ToGateway = g.decode_to_gateway(data[1:])
        if isinstance(message, g.Renew):
            now = self.gateway.clock.monotonic()
            if self._upstream is not None and self.state.scheduler_is_stopped(now):
                self.gateway.world.count("a gateway gives up a stopped scheduler")
                self._upstream.close()
            self._send(self.state.renew(message, now))
        elif isinstance(message, g.Holding):
            self.state.holding(message)
        elif isinstance(message, g.Claim):
            problem, workload = self.state.claimed(message)
            if workload is not None:
                self._send(self.state.tokens([workload.key]))
            self._send(g.Claimed(message.id, problem))

    def _send(self, message: object) -> None:
        self.end.send(bytes((g.GATEWAY,)) + g.encode(message))


class VirtualLine:
    """Replaces `client.gateway_line.GatewayLine`."""

    def __init__(
        self,
        process: MachineHostProcess,
        address: GatewayAddress,
        token: str,
        loop: Loop,
        tls: ssl.SSLContext | None,
        on_open: Callable[[], None],
        on_message: Callable[[bytes], None],
        on_close: Callable[[Closed], None],
    ) -> None:
        self._process = process
        self._world = process.machines
        self._machine = address.host
        self._token = token
        self._on_open, self._on_message, self._on_close = on_open, on_message, on_close
        self._wire: Wire | None = None
        self._closed = self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open and not self._closed

    def connect(self) -> None:
        self._after(CONNECT_WITHIN, self._give_up)
        self._after(LATENCY, self._arrive)

    def _after(self, delay: int, call: Callable[[], None]) -> None:
        self._world.timeline.after(delay, self._process, call)

    def _arrive(self) -> None:
        world = self._world
        if self._closed or not world.cables.reaches(self._process.machine, self._machine):
            return
        gateway = world.gateways.get(self._machine)
        if gateway is None or not gateway.alive:
            self._end(Closed("connection refused", True, False))
            return
        here, there = world.wires.join(Wire(world.wires, self._process), Wire(world.wires, gateway))
        self._wire = here
        here.listen(self._heard, lambda: self._end(Closed("the gateway closed the connection", True, False)))
        world.timeline.after(LATENCY, gateway, lambda: gateway.accept(there, self._token))

    def _give_up(self) -> None:
        if not self._is_open:
            self._end(Closed("no answer of the gateway", False, False))

    def _heard(self, data: bytes) -> None:
        if self._closed:
            return
        if self._is_open:
            self._on_message(data)
        else:
            self._is_open = True
            self._on_open()

    def send(self, message: bytes) -> None:
        if self.is_open and self._wire is not None:
            self._wire.send(message)

    def close(self, reason: str) -> None:
        self._end(Closed(reason, False, False))

    def breaks(self) -> None:
        if self.is_open:
            self._end(Closed("the connection was reset", True, False))

    def _end(self, closed: Closed) -> None:
        if self._closed:
            return
        self._closed = True
        if self._wire is not None:
            self._wire.close()
        self._on_close(closed)


class Link(RemoteLink):
    """Production's link. It sends no logs: there are none."""

    @property
    def home(self) -> str:
        """Name of the gateway at which this worker was registered last; empty: none."""
        return self._home_name

    def break_line(self) -> None:
        """The connection ends by itself; the machine of the gateway answers."""
        if isinstance(self._line, VirtualLine):
            self._line.breaks()

    def _ship(self) -> None:
        pass


class MachineHostProcess(HostProcess):
    """The process of a worker host on one of several machines."""

    def __init__(self, world: MachineWorld, worker: str, number: int) -> None:
        self.machines = world
        self.machine = world.machine_of_worker(worker)
        super().__init__(world, worker, number, world.clock_of(self.machine))

    def make_host(self, worker: str, number: int) -> MachineHost:
        return MachineHost(self.machines, self, worker, number, self.machines.config_of(worker))


class MachineHost(VirtualHost):
    """The worker host of production, remote or beside a scheduler."""

    def __init__(self, world: MachineWorld, process: MachineHostProcess, worker: str, number: int, config: HostConfig) -> None:
        self.machines = world
        self.place = process
        super().__init__(world, process, worker, number, config)
        self.unshipped_reports: dict[AttemptKey, Report] = {}
        if not is_remote(worker) and home_of(worker):
            self.lease = LocalLease(self.loop, self.clock, self, [(DATABASE, 5432)], self._database_answers, self._ask)

    def _make_remote_link(self, config: GatewayConfig) -> RemoteLink:
        world = self.machines
        return Link(self, config, "", "", self.clock, self.loop, world.links.random, partial(VirtualLine, self.place))

    def begin(self) -> None:
        super().begin()
        if self.remote is not None:
            self.remote.start()

    def _database_answers(self, address: tuple[str, int]) -> bool:
        return self.machines.cables.reaches(self.place.machine, address[0])

    def _ask(self, call: Callable[[], None]) -> None:
        """Ask the machine of the database: the answer comes at once, or after its time limit."""
        delay = LATENCY if self._database_answers((DATABASE, 5432)) else DATABASE_ANSWER
        self.machines.timeline.after(delay, self.process, call)

    def relay_failed(self, reason: str) -> None:
        """The relay of the standby scheduler says that the active scheduler cannot be reached."""
        self._on_order(cast(Connection, None), encode(LeaseEnded(reason)))


def virtual_loop(process: Process) -> Loop:
    return VirtualLoop(process)


def clock_of(world: MachineWorld, rate: float) -> MachineClock:
    return MachineClock(world.timeline, rate, world.clock)
