"""The warm templates of a worker host: which exist, which are stale, which wait for work.

A template is a process that has imported one DAG file. It is stale when the file, or a module that the file loaded from the DAG
folder, has changed on the disk. It is short-lived when its import read the clock, the environment or data files. A stale or idle
template drains: it forks no more processes and ends after its last task process.

If a template or the base image is killed, its task processes continue as children of the worker host (`on_orphaned`), and orders
that it had not executed are given again. So its death costs an attempt only time.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.platform.exit_codes import how_it_ended
from tradewind.platform.fork_server import ROOM_FOR_TITLE, Answer, Exited, Forked, Ready, Used, decode_answer, send_order
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.messages import Workload, encode
from tradewind.worker.config import HostConfig
from tradewind.worker.orders import MakeTemplate, RunDirect, encode_order

log = Log("templates")

MALLOC_SETTINGS = {"malloc_hugetlb": {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}}
PACKET = 1 << 18
CHEAP_IMPORT = 100_000
"""Microseconds. If a file imports faster and only one task of it comes, that task gets no template."""
WORTH_KEEPING = 200
"""A template waits this many times as long for its next task as its file takes to import, at least `SHORTEST_WAIT`."""
SHORTEST_WAIT = 2 * SECOND
LOOK_EVERY = SECOND
"""Interval of the search for idle templates, while there are templates."""
USED_MIN = 200
"""Minimum number of files whose last use is remembered."""
STEADY_LIFE = 60 * SECOND
"""A base image that lived this long is started again at once when it dies."""
START_LIMITS = 5
"""Factor of `stall_limit`: a base image may take this long to be ready, and a template to import its file."""
FAILED_STARTS_MAX = 5
"""Number of base images in a row that died before they were ready. Afterwards orders are refused."""
CRASHES_MAX = 3
"""An import that ended the template's process this number of times in a row is a broken import."""
CRASHES_WITHIN = 600 * SECOND
ALONE = 5_000_000
"""Microseconds without another task of the same file, after which a task counts as a single one."""


class ForkRequest(Protocol):
    """A request for a forked process."""

    def descriptors(self) -> list[int]:
        """Return the descriptors for the process; `handed_over` is called when it has them."""

    def handed_over(self) -> None: ...

    def forked(self, pid: int) -> None: ...

    def could_not_start(self, why: str, *, file_broken: bool) -> None: ...

    def order_lost(self, why: str) -> int | None:
        """The forking process died first, or could not fork. Return the microseconds until the order is to be given again. None:
        it is not given again, and `could_not_start` has been called."""


class PendingAttempt(ForkRequest, Protocol):
    """The forking process died before the fork, or could not fork. Return the microseconds until the order is to be sent again.
    None: it is not sent again, and `could_not_start` has been called."""

    workload: Workload


class ForkLink(msgspec.Struct, eq=False):
    """The connection to a fork server: the base image or a template."""

    link: socket.socket
    label: str
    ordered: deque[ForkRequest | Template] = msgspec.field(default_factory=deque)
    """Orders that were sent and have no `Forked` answer yet."""
    closed: bool = False
    awaited: object = None
    """The order, or the start of the server itself, that had no answer at the last check for stalls."""
    awaited_since: int = 0
    suspected: bool = False

    def order(self, what: ForkRequest | Template, data: bytes, descriptors: list[int]) -> bool:
        """Send an order; return False if the server is gone."""
        try:
            send_order(self.link, data, descriptors)
        except OSError:
            return False
        self.ordered.append(what)
        return True


class Template(ForkLink, eq=False):
    key: tuple[str, str] = ("", "")
    pid: int = 0
    state: str = "asked"
    """asked → ready → draining; or broken, direct."""
    why: str = ""
    sources: list[tuple[str, int, int]] = []
    made_at: int = 0
    used_at: int = 0
    short_lived: bool = False
    idle_limit: int = 0
    """Microseconds that it waits for its next task while it is idle."""
    waiting: deque[PendingAttempt] = msgspec.field(default_factory=deque)
    pids: set[int] = set()
    """Its living task processes."""


class Templates:
    """Owns the base image and its templates.

    Args:
        on_exit: called with (pid, wait status, what it has used) when a task process ended.
        on_orphaned: called with the task processes of a server that died: they are, or were, children of this process.
        reap: kills the unregistered children of this process and waits for them.
    """

    def __init__(
        self,
        config: HostConfig,
        loop: Loop,
        clock: Clock,
        on_exit: Callable[[int, int, Used | None], None],
        on_orphaned: Callable[[set[int]], None],
        reap: Callable[[], None],
    ) -> None:
        self.config = config
        self.loop = loop
        self.clock = clock
        self._on_exit = on_exit
        self._on_orphaned = on_orphaned
        self._reap = reap
        self.base: ForkLink | None = None
        self.base_process: subprocess.Popen[bytes] | None = None
        self._direct_pids: set[int] = set()
        self._by_key: dict[tuple[str, str], Template] = {}
        self._all: set[Template] = set()
        self._base_ready = False
        self._lifeline = -1
        """The reading end of a pipe whose writing end only this process has."""
        self._base_started = 0
        self._early: deque[tuple[ForkRequest, Callable[[], None]]] = deque()
        """Orders that came while there was no base image, each with the function that sends it."""
        self._eviction: TimerHandle | None = None
        self._deaths = 0
        """Number of base images in a row that lived for less than `STEADY_LIFE`."""
        self._failed_starts = 0
        """Number of base images in a row that died before they were ready."""
        self._used: dict[tuple[str, str], int] = {}
        """File → the moment of its last task. An entry older than `ALONE` means the same as no entry."""
        self._used_kept = 0
        """How many entries were left when old ones were last removed."""
        self._crashes: dict[tuple[str, str], tuple[int, int]] = {}
        """File → how many of its last imports in a row ended the template's process, and the time of the last one."""
        self.closed = False

    # --- the base image -----------------------------------------------------------------------------------------------

    def start_base(self) -> None:
        """Start the base image. Orders wait until it is ready."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = self.config.environment()
        environment.update(MALLOC_SETTINGS.get(self.config.malloc, {}))
        if self._lifeline < 0:
            self._lifeline, _ = os.pipe2(os.O_CLOEXEC)  # the writing end stays open until this process ends
        numbers = [theirs.fileno(), self._lifeline]
        self.base_process = subprocess.Popen(
            [sys.executable, "-m", "tradewind.worker.base_image", *map(str, [*numbers, os.getpid()]), ROOM_FOR_TITLE],
            pass_fds=numbers,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        theirs.close()
        self._base_started = self.clock.monotonic()
        self.base = self._listen(ForkLink(ours, "base image"))
        self._base_ready = False

    def registered(self) -> set[int]:
        """Children of the host that are registered here."""
        return {self.base_process.pid} if self.base_process is not None else set()

    def listen(self) -> set[int]:
        """Read the answers of every fork server; return the pids that were forked and have not ended."""
        for server in [*self._all, *([self.base] if self.base else [])]:
            self._read_answers(server)
        return set(self._direct_pids).union(*(template.pids for template in self._all))

    def close(self) -> None:
        """Give no more orders: all templates drain, and nothing that dies is started again."""
        self.closed = True
        for server in [*self._all, *([self.base] if self.base else [])]:
            self._close_orders(server)

    # --- orders --------------------------------------------------------------------------------------------------------

    def run(self, pending: PendingAttempt) -> None:
        """Let a process be forked for this attempt; then `forked` or `could_not_start` of the attempt is called."""
        if not self._base_ready:
            self._early.append((pending, lambda: self.run(pending)))
            return
        key = (pending.workload.folder, pending.workload.file)
        template = self._by_key.get(key)
        if template is not None and template.state in ("ready", "direct", "broken") and self._stale(template):
            self._drain(template)
            template = None
        alone = self._is_single_task(pending, key)
        if template is None and alone:
            self._order(self.base, pending, encode_order(RunDirect(pending.workload, self.config.limits)))
            return
        if template is None:
            template = self._make(key)
            if template is None:
                self._order_lost(pending, "the base image of the worker host is gone")
                return
        self._send_attempt(template, pending)

    def run_beside(self, pending: ForkRequest, order: bytes) -> None:
        """Let the base image fork a process that runs no attempt."""
        if not self._base_ready:
            self._early.append((pending, lambda: self.run_beside(pending, order)))
        else:
            self._order(self.base, pending, order)

    def _is_single_task(self, pending: PendingAttempt, key: tuple[str, str]) -> bool:
        """Whether this is a single task of a file that is cheap to import. Then the task process imports the file itself.

        A template would cost more than it saves: two hundred DAGs of one task each, due in the same minute, need no templates.
        """
        now = self.clock.monotonic()
        before = self._used.get(key)
        self._used[key] = now
        if len(self._used) > 2 * self._used_kept + USED_MIN:
            self._used = {one: moment for one, moment in self._used.items() if now - moment <= ALONE}
            self._used_kept = len(self._used)
        if pending.workload.run_as_user:
            return False  # its user may not be able to read the DAG folder, so the template imports the file
        return _is_cheap(pending.workload) and (before is None or now - before > ALONE)

    def _send_attempt(self, template: Template, pending: PendingAttempt) -> None:
        template.used_at = self.clock.monotonic()
        template.idle_limit = self._idle_limit(pending.workload)
        if template.state == "asked":
            template.waiting.append(pending)
        elif template.state == "broken":
            pending.could_not_start(template.why, file_broken=True)
        elif template.state == "direct":
            self._order(self.base, pending, encode_order(RunDirect(pending.workload, self.config.limits)))
        else:
            self._order(template, pending, encode(pending.workload))

    def _order(self, server: ForkLink | None, pending: ForkRequest, data: bytes) -> None:
        if server is None or not server.order(pending, data, pending.descriptors()):
            self._order_lost(pending, "the process that forks task processes is gone")
        else:
            pending.handed_over()

    def _order_lost(self, what: ForkRequest, why: str) -> None:
        """Send the order of an attempt again after a pause."""
        if self.closed:
            what.could_not_start(why, file_broken=False)
            return
        delay = what.order_lost(why)
        if delay is not None:
            self.loop.call_later(delay, lambda: self.run(what))  # type: ignore[arg-type]  # only a `PendingAttempt` returns a delay

    def _make(self, key: tuple[str, str]) -> Template | None:
        if self.base is None:
            return None
        self._keep_at_most(self.config.template_max - 1)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        now = self.clock.monotonic()
        template = Template(ours, f"template of {key[1]}", key=key, made_at=now, used_at=now)
        order = encode_order(MakeTemplate(key[0], key[1], self.config.limits))
        sent = self.base.order(template, order, [theirs.fileno()])
        theirs.close()
        if not sent:
            ours.close()
            return None
        self._by_key[key] = template
        self._all.add(template)
        self._listen(template)
        if self._eviction is None:
            self._eviction = self.loop.call_later(LOOK_EVERY, self._evict)
        return template

    def _stale(self, template: Template) -> bool:
        now = self.clock.monotonic()
        if template.short_lived and now - template.made_at > self.config.dynamic_template_max_age:
            return True
        if any(_signature(source[0]) != source for source in template.sources):
            return True
        # a broken import is tried again for the next attempt after a second: the cause may be gone
        return template.state == "broken" and now - template.made_at > 1_000_000

    def _idle_limit(self, workload: Workload) -> int:
        """How long to keep an idle template. A file that is quickly imported gets a short time: an idle template costs memory."""
        if not workload.import_cost:
            return self.config.template_idle
        return min(self.config.template_idle, max(SHORTEST_WAIT, WORTH_KEEPING * workload.import_cost))

    def _evict(self) -> None:
        """Drain the templates that were idle for too long. Runs only while there are templates."""
        now = self.clock.monotonic()
        for template in self._idle_templates():
            if now - template.used_at > template.idle_limit:
                self._drain(template)
        self._eviction = self.loop.call_later(LOOK_EVERY, self._evict) if self._by_key else None

    def _idle_templates(self) -> list[Template]:
        """The idle templates."""
        return [t for t in self._by_key.values() if t.state != "asked" and not t.waiting and not t.pids and not t.ordered]

    def _keep_at_most(self, number: int) -> None:
        """Drain idle templates beyond this number, the longest unused first."""
        excess = len(self._by_key) - number
        if excess > 0:
            for template in sorted(self._idle_templates(), key=lambda t: t.used_at)[:excess]:
                self._drain(template)

    def _drain(self, template: Template) -> None:
        if self._by_key.get(template.key) is template:
            del self._by_key[template.key]
        template.state = "draining"
        self._close_orders(template)

    def _close_orders(self, server: ForkLink) -> None:
        """Close the sending side. The server continues to report the ends of its children."""
        try:
            server.link.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def look_for_stalls(self) -> None:
        """Kill servers that make no progress: their orders are sent again. To be called every few seconds.

        A server is killed if it was late at two checks in a row: after a pause of the whole machine the first check is too early.
        """
        now, limit = self.clock.monotonic(), self.config.stall_limit
        for server in [*self._all, *([self.base] if self.base else [])] if limit else []:
            starts = not self._base_ready if server is self.base else isinstance(server, Template) and server.state == "asked"
            owes = server if starts else server.ordered[0] if server.ordered else None
            if owes is None or owes is not server.awaited:
                server.awaited, server.awaited_since, server.suspected = owes, now, False
            elif now - server.awaited_since > (START_LIMITS if starts else 1) * limit:
                if server.suspected:
                    log.error("a process that forks task processes makes no progress; it is killed", which=server.label)
                    self._kill(server)
                server.suspected = True

    def _kill(self, server: ForkLink) -> None:
        pid = server.pid if isinstance(server, Template) else self.base_process.pid if self.base_process else 0
        if pid:
            os.kill(pid, signal.SIGKILL)  # it was not waited for, so the pid cannot belong to another process

    # --- answers --------------------------------------------------------------------------------------------------------

    def _listen(self, server: Any) -> Any:
        server.link.setblocking(False)
        server.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.loop.watch(server.link, selectors.EVENT_READ, lambda events: self._read_answers(server))
        return server

    def _read_answers(self, server: ForkLink) -> None:
        while not server.closed:
            try:
                data = server.link.recv(PACKET)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._on_link_closed(server)
                return
            try:
                self._handle_answer(server, decode_answer(data))
            except msgspec.DecodeError:
                log.error("an answer of a fork server cannot be read", server=server.label)

    def _handle_answer(self, server: ForkLink, answer: Answer) -> None:
        if isinstance(answer, Ready):
            self._ready(server, answer)
        elif isinstance(answer, Forked):
            self._forked(server, answer)
        else:
            self._exited(server, answer)

    def _ready(self, server: ForkLink, answer: Ready) -> None:
        if not isinstance(server, Template):
            self._base_ready = True
            self._failed_starts = 0
            early, self._early = self._early, deque()
            for _, call in early:
                call()
            return
        facts = answer.facts
        self._crashes.pop(server.key, None)
        server.sources = [tuple(row) for row in facts.get("sources", ())]  # type: ignore[attr-defined]
        server.short_lived = bool(facts.get("volatile_because"))
        server.made_at = self.clock.monotonic()
        if answer.problem is not None:
            server.state, server.why = "broken", answer.problem
            server.sources = [_signature(os.path.join(*server.key))]
        elif facts.get("unforkable"):
            server.state, server.why = "direct", str(facts["unforkable"])
            log.info("each task imports its file again, because forking it is not safe", file=server.key[1], why=server.why)
        else:
            server.state = "ready"
        while server.waiting:
            self._send_attempt(server, server.waiting.popleft())

    def _forked(self, server: ForkLink, answer: Forked) -> None:
        what = server.ordered.popleft()
        if isinstance(what, Template):
            what.pid = answer.pid
            if not answer.pid:
                self._template_lost(what, answer.problem or "it could not be forked")
        elif answer.pid:
            (server.pids if isinstance(server, Template) else self._direct_pids).add(answer.pid)
            what.forked(answer.pid)
        else:
            self._order_lost(what, answer.problem or "it could not be forked")

    def _exited(self, server: ForkLink, answer: Exited) -> None:
        if isinstance(server, Template):
            server.pids.discard(answer.pid)
            server.used_at = self.clock.monotonic()
            self._on_exit(answer.pid, answer.status, answer.used)
            if not server.pids:
                self._keep_at_most(self.config.template_max)
            return
        if answer.pid in self._direct_pids:
            self._direct_pids.discard(answer.pid)
            self._on_exit(answer.pid, answer.status, answer.used)
            return
        for template in list(self._all):
            if template.pid == answer.pid:
                how = how_it_ended(os.waitstatus_to_exitcode(answer.status))
                self._template_lost(template, f"the template process of {template.key[1]} ended: {how}", by_itself=True)

    def _on_link_closed(self, server: ForkLink) -> None:
        """The server has closed its end. A template is dead when the base image has waited for it."""
        server.closed = True
        self.loop.unwatch(server.link)
        server.link.close()
        if server is self.base:
            self._base_lost()
        elif isinstance(server, Template) and server.state == "ready" and self._by_key.get(server.key) is server:
            del self._by_key[server.key]  # the next attempt gets a new template at once

    def _template_lost(self, template: Template, why: str, *, by_itself: bool = False) -> None:
        """A template's process has ended. `by_itself`: the base image lives, so the import itself may have ended the process."""
        if template not in self._all:
            return
        self._read_answers(template)  # its last answers
        self._all.discard(template)
        if self._by_key.get(template.key) is template and template.state not in ("broken", "direct"):
            del self._by_key[template.key]
        if not template.closed:
            self._on_link_closed(template)
        if template.pids:
            self._on_orphaned(set(template.pids))
        crashed = by_itself and template.state == "asked" and template.pid != 0
        crashes = self._crashes_of(template.key) if crashed else 0
        pending_attempts = [*template.waiting, *(what for what in template.ordered if not isinstance(what, Template))]
        template.waiting.clear()
        template.ordered.clear()
        template.pids.clear()
        if pending_attempts:
            self._reap()  # a forked process that was not reported must be gone before its order is given again
        for pending in pending_attempts:
            if crashes >= CRASHES_MAX:
                pending.could_not_start(f"{why} while it imported the file, {crashes} times", file_broken=True)
            else:
                self._order_lost(pending, why)

    def _crashes_of(self, key: tuple[str, str]) -> int:
        """Count one more import of this file that ended its process; return how many did in a row."""
        now = self.clock.monotonic()
        self._crashes = {one: seen for one, seen in self._crashes.items() if now - seen[1] < CRASHES_WITHIN}
        count = self._crashes.get(key, (0, 0))[0] + 1
        self._crashes[key] = count, now
        return count

    def _base_lost(self) -> None:
        """The base image died, and its templates with it; task processes continue. Start again, more slowly if it keeps dying."""
        assert self.base is not None
        assert self.base_process is not None
        try:
            status = self.base_process.wait(5)
        except subprocess.TimeoutExpired:
            self.base_process.send_signal(signal.SIGKILL)
            status = self.base_process.wait()
        why = f"the base image of the worker host ended: {how_it_ended(status)}"
        lost, pids = [what for what in self.base.ordered if not isinstance(what, Template)], set(self._direct_pids)
        never_ready = not self._base_ready
        self.base, self.base_process = None, None
        self._base_ready = False
        self._direct_pids.clear()
        for template in list(self._all):
            self._read_answers(template)
            pids |= template.pids
            template.pids.clear()
        self._on_orphaned(pids)
        self._reap()  # the templates
        for template in list(self._all):
            self._template_lost(template, why)
        self._by_key.clear()
        for what in lost:
            self._order_lost(what, why)
        if self.closed or self.loop.stopping:
            return
        self._restart_base(why, never_ready)

    def _restart_base(self, why: str, never_ready: bool) -> None:
        log.error("the base image died and is started again", why=why)
        if self.clock.monotonic() - self._base_started > STEADY_LIFE:
            self._deaths = 0
        self._deaths += 1
        self._failed_starts = self._failed_starts + 1 if never_ready else 0
        if self._failed_starts >= FAILED_STARTS_MAX:
            early, self._early = self._early, deque()
            for what, _ in early:
                what.could_not_start(f"{why}, {self._failed_starts} times before it was ready", file_broken=False)
        self.loop.call_later(min(10_000, 10 * 2 ** min(self._deaths, 10)) * 1000, self.start_base)


def _is_cheap(workload: Workload) -> bool:
    return 0 < workload.import_cost < CHEAP_IMPORT


def _signature(path: str) -> tuple[str, int, int]:
    """Path, time of the last change in ns and size in bytes, as in `sdk.load.SourceFile`; 0 and 0 if there is no such file."""
    try:
        facts = os.stat(path)
    except OSError:
        return path, 0, 0
    return path, facts.st_mtime_ns, facts.st_size
