"""The worker host's side of triggers: which are wanted, which have fired, and the process that runs them (the triggerer).

Wanted and fired triggers are kept here, so the death of a triggerer costs only time: the next one gets the same orders. The end of
a trigger is sent to the scheduler repeatedly, until the scheduler drops the trigger.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tradewind.model.moments import SECOND
from tradewind.model.secret_names import secrets_in
from tradewind.model.waits import TriggerEnd
from tradewind.observe.failpoints import fp
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.loop import TimerHandle
from tradewind.wire.connection import Connection
from tradewind.wire.messages import (
    AttemptKey,
    DropTriggers,
    FromRunner,
    RunnerAnswer,
    RunTriggers,
    TriggerFired,
    TriggerOrder,
    Value,
    WatcherEvent,
    WatcherEventTaken,
    encode,
)
from tradewind.worker.environment_mask import environment_mask
from tradewind.worker.host_services import HostServices
from tradewind.worker.log_capture import LogCapture
from tradewind.worker.orders import (
    BecomeTriggerer,
    TriggerAsks,
    TriggererLimits,
    TriggerSaid,
    decode_from_triggerer,
    encode_order,
)
from tradewind.worker.trigger_heartbeat import make_page, read_page
from tradewind.worker.trigger_suspects import Suspects

log = Log("triggers")

IDLE = 60 * SECOND
"""A triggerer without triggers ends after this time."""
RESTART_AFTER_MS = (50, 200, 1000, 5000, 15000)
DEATHS_MAX = 3
"""A trigger fails if the process ended this many times while the code of the trigger ran."""
STUCK_MORE = 15.0
"""Seconds beyond `blocked_max` after which the host kills a triggerer whose event loop makes no progress."""


class TriggerManager:
    """See the module. It is also the `ForkRequest` that it passes to `Templates.run_beside`."""

    def __init__(self, host: HostServices) -> None:
        self._host = host
        self.wanted: dict[AttemptKey, TriggerOrder] = {}
        self.fired: dict[AttemptKey, TriggerEnd] = {}
        """Wanted triggers that have fired, with their end."""
        self._events: dict[AttemptKey, dict[str, WatcherEvent]] = {}
        """Events of asset watchers that the scheduler has not taken: by watcher, then by token."""
        self.pid = 0
        self._state = "none"
        """none → asked → up → none."""
        self._line: Connection | None = None
        self._questions: Connection | None = None
        self._ours: tuple[socket.socket, socket.socket] | None = None
        self._theirs: list[int] = []
        self._logs: dict[AttemptKey, LogCapture] = {}
        self._asked: set[tuple[AttemptKey, int]] = set()
        self._deaths = 0
        self._deaths_in: dict[AttemptKey, int] = {}
        """Wanted trigger → how often the process ended while its code ran."""
        self._suspects = Suspects()
        self._probation: TimerHandle | None = None
        self._started_at = 0
        self._stalled_at = 0.0
        """The last turn of an event loop that was found to make no progress."""
        self._page = -1
        self._limits = TriggererLimits(event_max=host.config.limits.xcom_max, log_max=host.config.log_max)
        self._idle: TimerHandle | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # --- orders of the scheduler ------------------------------------------------------------------------------------

    def run(self, orders: Sequence[TriggerOrder]) -> None:
        """Run these triggers. A known trigger is not started again, but its end is sent again."""
        new = [order for order in orders if order.key not in self.wanted]
        for order in orders:
            if order.key in self.fired:
                self._host.send(TriggerFired(order.key, self.fired[order.key]))
            for event in self._events.get(order.key, {}).values():
                self._host.send(event)
        if not new or self._host.stopping:
            return
        self.wanted.update((order.key, order) for order in new)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._line is not None:
            self._line.send(encode(RunTriggers(tuple(new))))
        elif self._state == "none":
            self._start()

    def drop(self, keys: Sequence[AttemptKey]) -> None:
        """Stop these triggers: nothing waits for them any more."""
        gone = [key for key in keys if self.wanted.pop(key, None) is not None]
        for key in gone:
            self.fired.pop(key, None)
            self._events.pop(key, None)
            self._deaths_in.pop(key, None)
            capture = self._logs.pop(key, None)
            if capture is not None:
                capture.close()
        if gone and self._asked:
            self._asked = {question for question in self._asked if question[0] in self.wanted}
        if gone and self._line is not None:
            self._line.send(encode(DropTriggers(tuple(gone))))
        if not self.wanted and self._state != "none" and self._idle is None:
            self._idle = self._host.loop.call_later(IDLE, self._end_idle)

    def resend(self) -> None:
        """Safety net: send again what was not acknowledged."""
        for events in self._events.values():
            for event in events.values():
                self._host.send(event)
        for key, end in self.fired.items():
            self._host.send(TriggerFired(key, end))
        self._check_progress()

    def event_taken(self, taken: WatcherEventTaken) -> None:
        """The event of an asset watcher is committed: its trigger goes on."""
        events = self._events.get(taken.key, {})
        if events.pop(taken.token, None) is not None and self._line is not None:
            self._line.send(encode(taken))
        if not events:
            self._events.pop(taken.key, None)

    def answered(self, key: AttemptKey, answer: RunnerAnswer) -> bool:
        """Pass on the answer to a request of a trigger; return whether it was one."""
        if (key, answer.op) not in self._asked:
            return False
        self._asked.discard((key, answer.op))
        if isinstance(answer, Value):
            self._log_of(key).mask(secrets_in(answer.value, answer.secret))
        if self._questions is not None:
            self._questions.send(encode(answer))
        return True

    # --- the process --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._state = "asked"
        if HAVE_LINUX and self._host.config.task_start == "template":
            self._host.templates.run_beside(self, encode_order(BecomeTriggerer(self._limits)))
            return
        line, questions, page = self.descriptors()
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *("-m", "tradewind.worker.triggerer"),
                    *(str(line), str(questions), str(page), str(os.getpid())),
                    msgspec.json.encode(self._limits).decode(),
                ],
                pass_fds=[line, questions, page],
                stdin=subprocess.DEVNULL,
                env=self._host.config.environment(),
            )
        except OSError as error:
            self.could_not_start(f"an interpreter could not be started: {error.strerror}", file_broken=False)
            return
        self.handed_over()
        self.forked(self._process.pid)

    def descriptors(self) -> list[int]:
        """The triggerer's ends of (orders, requests, shared page)."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2)]
        self._ours = pairs[0][0], pairs[1][0]
        self._page = make_page()
        self._theirs = [*(pair[1].detach() for pair in pairs), os.dup(self._page)]
        return self._theirs

    def handed_over(self) -> None:
        for descriptor in self._theirs:
            os.close(descriptor)
        self._theirs = []

    def forked(self, pid: int) -> None:
        assert self._ours is not None
        line, questions = self._ours
        self._ours = None
        loop = self._host.loop
        self._on_started(
            pid,
            Connection(line, loop, self._on_document, self._line_closed),
            Connection(questions, loop, self._on_request, lambda _: None),
        )

    def _on_started(self, pid: int, line: Connection, questions: Connection) -> None:
        """The process exists: send it the wanted triggers."""
        self.pid, self._state, self._started_at = pid, "up", self._host.clock.monotonic()
        self._line, self._questions = line, questions
        held = self._suspects.held
        waiting = tuple(order for key, order in self.wanted.items() if key not in self.fired and key not in held)
        self._begin_probation()
        if waiting:
            self._line.send(encode(RunTriggers(waiting)))
        elif not self.wanted and self._idle is None:
            self._idle = self._host.loop.call_later(IDLE, self._end_idle)

    def could_not_start(self, why: str, *, file_broken: bool) -> None:
        self.handed_over()
        log.warning("the triggerer could not be started; it is tried again", why=why)
        self._process_ended()

    def order_lost(self, why: str) -> None:
        """The triggerer is started again after its own pause."""
        self.could_not_start(why, file_broken=False)

    def exited(self, pid: int, status: int | None = None) -> bool:
        """Run these triggers. A known trigger is not started again; if it has ended, its end is sent again."""
        if pid != self.pid or not pid:
            return False
        if self._line is not None:
            self._line.drain()
        if self.wanted and not self._host.stopping:
            log.warning("the triggerer ended; another one is started", triggers=len(self.wanted))
            key, _ = self._read_page()
            if key is not None:
                self._count_death(key)
            elif status is not None and status != signal.SIGKILL:  # SIGKILL comes from outside
                self._search_culprit()
        self._process_ended()
        return True

    def _count_death(self, key: AttemptKey) -> None:
        """Count the end of the process for the trigger whose code ran at that moment."""
        if key not in self.wanted or key in self.fired:
            return
        deaths = self._deaths_in[key] = self._deaths_in.get(key, 0) + 1
        self._log_of(key).note("warning", "The triggerer process ended while the code of this trigger ran.")
        if deaths >= DEATHS_MAX:
            self._fired(key, TriggerEnd(error=f"the triggerer process ended {deaths} times while the code of this trigger ran"))

    def _search_culprit(self) -> None:
        """Search for the trigger that ended the process while no trigger's code was recorded as running."""
        lived = self._host.clock.monotonic() - self._started_at
        ran = [key for key in self.wanted if key not in self.fired and key not in self._suspects.held]
        key = self._suspects.ended(ran, lived)
        if key is not None:
            self._fired(
                key,
                TriggerEnd(error="the triggerer process ended repeatedly while this trigger, or a thread of it, ran"),
            )

    def _begin_probation(self) -> None:
        if self._probation is not None:
            self._probation.cancel()
            self._probation = None
        lasts = self._suspects.probation
        if lasts is not None and self._state == "up":
            self._probation = self._host.loop.call_later(lasts, self._end_probation)

    def _end_probation(self) -> None:
        """The started triggers did not end the process: start some of those that were held back."""
        self._probation = None
        held = self._suspects.held
        self._suspects.survived()
        orders = [self.wanted[key] for key in held - self._suspects.held if key in self.wanted and key not in self.fired]
        if orders and self._line is not None:
            self._line.send(encode(RunTriggers(tuple(orders))))
        self._begin_probation()

    def _check_progress(self) -> None:
        """Kill a triggerer whose code never returns to the interpreter: that stops its own watchdog too.

        A stall counts if it is seen twice: host and triggerer may both have been stopped for a while.
        """
        if self._state != "up":
            return
        key, loop_ran_at = self._read_page()
        still = self._host.clock.monotonic() / SECOND - loop_ran_at
        if not loop_ran_at or still <= self._limits.blocked_max + STUCK_MORE:
            return
        before, self._stalled_at = self._stalled_at, loop_ran_at
        if loop_ran_at == before:
            log.warning("the triggerer makes no progress; it is killed", seconds=round(still))
            if key is not None and key in self.wanted and key not in self.fired:
                error = (
                    f"the trigger blocked the event loop of all triggers for {still:.0f} s, and was stopped with its process"
                )
                self._fired(key, TriggerEnd(error=error))
            self._kill()

    def _read_page(self) -> tuple[AttemptKey | None, float]:
        """(the trigger whose code runs, the last turn of the loop: 0 if nothing is recorded)."""
        return read_page(self._page) if self._page >= 0 else (None, 0.0)

    def _line_closed(self, line: Connection) -> None:
        """Kill the triggerer: without its connection it is of no use."""
        if line is self._line:
            self._kill()

    def poll(self) -> None:
        """SIGCHLD: check for the end of a triggerer that was not forked from the base image."""
        if self._process is not None and self._process.poll() is not None:
            pid, code, self._process = self._process.pid, self._process.returncode, None
            self.exited(pid, -code if code < 0 else code << 8)

    def own_children(self) -> set[int]:
        return {self._process.pid} if self._process is not None else set()

    def _process_ended(self) -> None:
        if self._probation is not None:
            self._probation.cancel()
            self._probation = None
        self.pid, self._state = 0, "none"
        lines, self._line, self._questions = (self._line, self._questions), None, None
        for connection in lines:
            if connection is not None:
                connection.close()
        for ours in self._ours or ():
            ours.close()
        self._ours = None
        if self._page >= 0:
            os.close(self._page)
            self._page = -1
        self._asked.clear()
        if any(key not in self.fired for key in self.wanted) and not self._host.stopping:
            wait = RESTART_AFTER_MS[min(self._deaths, len(RESTART_AFTER_MS) - 1)]
            self._deaths += 1
            self._state = "asked"
            self._host.loop.call_later(wait * 1000, self._start_again)

    def _start_again(self) -> None:
        if self._state == "asked" and self.pid == 0 and not self._host.stopping:
            self._start()

    def _end_idle(self) -> None:
        self._idle = None
        if not self.wanted:
            self.stop()

    def stop(self) -> None:
        """End the process. It ends when its connection is closed; the KILL signal makes sure."""
        line, self._line = self._line, None
        if line is not None:
            line.close()
        self._kill()

    def _kill(self) -> None:
        if self.pid:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # --- messages of triggers ----------------------------------------------------------------------------------------------

    def _on_document(self, line: Connection, document: bytes) -> None:
        try:
            message = decode_from_triggerer(document)
        except msgspec.MsgspecError as error:
            log.error("a message of the triggerer cannot be read", error=str(error))
            return
        if isinstance(message, TriggerFired) and message.key in self.wanted and message.key not in self.fired:
            self._deaths = 0
            self._fired(message.key, message.end)
        elif isinstance(message, WatcherEvent) and message.key in self.wanted:
            self._deaths = 0
            self._events.setdefault(message.key, {})[message.token] = message
            fp("host.watcher_event")
            self._host.send(message)
        elif isinstance(message, TriggerSaid) and message.key in self.wanted:
            self._log_of(message.key).note(message.level, message.event, message.logger or None)
        elif isinstance(message, TriggerSaid) and message.logger == "triggerer":
            log.warning(message.event, attempt=str(message.key))

    def _fired(self, key: AttemptKey, end: TriggerEnd) -> None:
        if end.error is not None:
            self._log_of(key).note("error", f"The trigger failed: {end.error}")
        self.fired[key] = end
        fp("host.trigger_fired")
        self._host.send(TriggerFired(key, end))

    def _on_request(self, line: Connection, document: bytes) -> None:
        try:
            message = decode_from_triggerer(document)
        except msgspec.MsgspecError as error:
            log.error("a request of a trigger cannot be read", error=str(error))
            return
        if isinstance(message, TriggerAsks):
            self._asked.add((message.key, message.question.op))
            self._host.send(FromRunner(message.key, message.question))

    def _log_of(self, key: AttemptKey) -> LogCapture:
        capture = self._logs.get(key)
        if capture is None:
            config, order = self._host.config, self.wanted.get(key)
            path = Path(config.log_folder) / (order.log if order is not None and order.log else "triggers.log")
            capture = LogCapture(path, self._host.clock.wall, config.log_max, config.log_line_max, environment_mask())
            if order is not None:
                self._logs[key] = capture
        return capture
