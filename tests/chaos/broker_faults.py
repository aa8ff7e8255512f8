"""Faults of the broker and of Celery workers, under load: a scheduler with a CeleryExecutor, two Celery workers and a broker.

The load, the marks of the tasks and the judge are those of the kill test. A broker carries messages and nothing else: whatever
happens to it, no running task may end, and each task starts when the broker answers again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.chaos.judge import Kill, judge
from tests.chaos.killer import STRAY_BOUND, Killer, Outcome
from tests.chaos.world import Process, now, until
from tests.integration.celery.brokers import Broker

RECOVERY = 60.0
"""Seconds after the end of a fault in which the runs that it has delayed must end."""
STOPPING = 4.0
"""Seconds in which the worker host of a killed Celery worker may still be stopping its tasks."""


class BrokerFaults(Killer):
    """See the module.

    Args:
        home: folder that is created anew.
        broker: is started and closed here.
        say: is called with each line of the progress.
    """

    def __init__(self, home: Path, broker: Broker, seed: int, say: Callable[[str], None]) -> None:
        super().__init__(home, 0, seed, say)
        self.broker = broker
        self.home = home
        self.world.environment |= {
            "TRADEWIND__CORE__EXECUTOR": "CeleryExecutor",
            "TRADEWIND__CELERY__BROKER_URL": broker.url,
        }
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    # --- start and end ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.broker.start()
        self.world.start()
        self.world.await_ready(60.0)
        until("the DAGs are known", 60, self._dags_known)
        for name in ("near", "far"):
            self.start_worker(name)

    def start_worker(self, name: str, prefix: tuple[str, ...] = (), broker: str | None = None) -> None:
        """Start a Celery worker, and wait until the scheduler knows it.

        Args:
            prefix: a command that runs the worker, such as `ip netns exec NAME`.
            broker: URL of the broker for this worker.
        """
        words = ["celery", "worker", "--name", name, "--pid", str(self.home / f"{name}.pid"), "-c", "4"]
        environment = self.world.environment | ({"TRADEWIND__CELERY__BROKER_URL": broker} if broker else {})
        with (self.home / f"{name}.out").open("ab") as output:
            self.workers[name] = subprocess.Popen(
                [*prefix, sys.executable, "-m", "tradewind", *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        until(f"the worker {name} is connected", 60, lambda: name in self.connected())

    def connected(self) -> dict[str, int]:
        """Worker → process id of its worker host."""
        return {one["worker"]: one["pid"] for one in (self.world.ping() or {}).get("workers", ())}

    def close(self) -> None:
        self.broker.thaw()
        self.world.kill_everything()
        for worker in self.workers.values():
            worker.wait(10)
        self.broker.close()

    # --- faults -------------------------------------------------------------------------------------------------------

    @contextmanager
    def fault(self, kind: str, *, losing: bool = False, lasts: float = 0.0) -> Iterator[None]:
        """Record a fault, which the block causes and ends, and wait until the runs that it has delayed have ended.

        Args:
            losing: the fault may end attempts.
            lasts: seconds after the fault during which it may still end attempts.
        """
        self._load()
        until("tasks run on the workers", 30, self._is_working)
        self.say(f"fault {len(self.kills) + 1}: {kind}")
        at = now()
        yield
        self.kills.append(Kill("host" if losing else kind, at, now() + round(lasts * 1e9), ()))
        begun, delayed = time.monotonic(), set(self.open)
        until(f"the runs go on after {kind}", RECOVERY, lambda: not delayed & set(self._go_on()))
        self.say(f"  {len(delayed)} runs ended {time.monotonic() - begun:.1f} s after it")

    def _is_working(self) -> bool:
        self._load()
        return bool(self.world.find("runner"))

    def _go_on(self) -> list[tuple[str, str]]:
        """Look at the runs, and at the processes of ended attempts. Returns the open runs."""
        self._load()
        self._strays(STRAY_BOUND)
        return self.open

    def load_for(self, seconds: float) -> None:
        """Trigger runs for this time: the fault lasts as long."""
        over = time.monotonic() + seconds
        until("the fault is over", seconds + 30, lambda: self._go_on() is None or time.monotonic() > over)

    def freeze_broker(self, seconds: float) -> None:
        with self.fault(f"the broker is stopped for {seconds:g} s"):
            self.broker.freeze()
            try:
                self.load_for(seconds)
            finally:
                self.broker.thaw()

    def broker_is_away(self, seconds: float) -> None:
        with self.fault(f"the broker is killed, and comes back after {seconds:g} s"):
            self.broker.kill()
            self.load_for(seconds)
            self.broker.start()

    def kill_worker(self, name: str) -> None:
        with self.fault(f"the Celery worker {name} is killed", losing=True, lasts=STOPPING):
            self.workers[name].kill()
            self.workers[name].wait()
        self.start_worker(name)

    def kill_worker_host(self, name: str) -> None:
        with self.fault(f"the worker host of {name} is killed", losing=True):
            pid = until(f"the worker {name} is connected", 60, lambda: self.connected().get(name))
            psutil.Process(pid).kill()
        until(f"{name} has another worker host", 60, lambda: self.connected().get(name, pid) != pid)

    def stop_worker(self, name: str, seconds: float, *, alone: bool) -> None:
        """SIGSTOP and SIGCONT.

        Args:
            alone: only the Celery worker, and not its worker host with the tasks.
        """
        what = "its tasks continue" if alone else "with its tasks"
        with self.fault(f"the Celery worker {name} is stopped for {seconds:g} s, {what}"):
            still = self._processes(name)[: 1 if alone else None]
            for process in still:
                process.kill(signal.SIGSTOP)
            try:
                self.load_for(seconds)
            finally:
                for process in reversed(still):
                    process.kill(signal.SIGCONT)

    def _processes(self, name: str) -> list[Process]:
        """The Celery worker, and all processes below it."""
        top = psutil.Process(self.workers[name].pid)
        below = {one.pid for one in top.children(recursive=True)}
        found = {one.pid: one for one in self.world.census()}
        return [found[top.pid], *(found[pid] for pid in below if pid in found)]

    # --- the verdict --------------------------------------------------------------------------------------------------

    def verdict(self) -> Outcome:
        """Wait for the end of every run, stop everything, and evaluate."""
        self._finish()
        for worker in self.workers.values():
            worker.terminate()
        for name, worker in self.workers.items():
            assert worker.wait(30) == 0, f"the worker {name} ended with {worker.returncode}"
        self.world.stop()
        self.problems += [f"a process was left behind: {process}" for process in self.world.census()]
        self._strays(0.0)
        verdict = judge(self.marks, self.kills, self.runs, self.ends)
        verdict.problems[:0] = self.problems
        return Outcome(self.kills, self.runs, verdict, 0.0, Counter(kill.kind for kill in self.kills))
