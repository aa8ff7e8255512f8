"""Faults between machines: two machines with a scheduler and a gateway each, workers on others, and a PostgreSQL server.

The load, the marks of the tasks and the judge are those of the kill test. Only the loss of a worker may end an attempt: if any
other process dies, hangs or is cut off, running tasks continue, and their results count.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.chaos.judge import Kill, judge
from tests.chaos.killer import SETTINGS, Killer, Outcome
from tests.chaos.world import NAMES, World, now, processes_of, until
from tests.integration.remote.world import RemoteWorker, free_port
from tests.postgres_server import PostgresServer

PASSWORD = "of-the-fault-test"
WORKER_LOST = 42.0
"""Seconds until no process of a worker runs any more that cannot reach a gateway: its lease, the time to stop, and a margin."""


class Machine(World):
    """One machine: `tradewind scheduler` without a worker host, with a gateway, and a web server."""

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        self.gateway_port, self.port = free_port(), free_port()
        super().__init__(
            home,
            {
                **settings,
                "TRADEWIND__GATEWAY__ENABLED": "true",
                "TRADEWIND__GATEWAY__HOST": "0.0.0.0",
                "TRADEWIND__GATEWAY__PORT": str(self.gateway_port),
                "TRADEWIND__GATEWAY__URL": f"ws://127.0.0.1:{self.gateway_port}",
            },
        )
        self.api: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def start(self, extra: dict[str, str] | None = None) -> None:
        self.process = self._service("scheduler", "--no-worker-host")

    def start_api(self) -> None:
        self.address, self.password = f"http://127.0.0.1:{self.port}", PASSWORD
        self.api = self._service("api-server", "--port", str(self.port))

    def _service(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{words[0]}.out").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tradewind", *words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def workers(self) -> set[str]:
        return {one["worker"] for one in (self.ping() or {}).get("workers", ())}

    def epoch(self) -> int:
        answer = self.ping()
        return 0 if answer is None else int(answer["epoch"])


class Machines(Killer):
    """See the module.

    Args:
        home: folder that is created anew.
        server: a running server.
        say: is called with each line of the progress.
        more: further settings of all machines and workers.
    """

    def __init__(
        self, home: Path, server: PostgresServer, seed: int, say: Callable[[str], None], more: dict[str, str] | None = None
    ) -> None:
        shutil.rmtree(home, ignore_errors=True)
        super().__init__(home, 0, seed, say)
        self.server = server
        self.more = more or {}
        settings = {
            **SETTINGS,
            **self.more,
            "TRADEWIND__DATABASE__URL": server.create_database(),
            "CHAOS_MARKS": str(self.marks),
        }
        dags = self.world.home / "dags"
        self.machines = [
            Machine(home / name, {**settings, "TRADEWIND__CORE__DAGS_FOLDER": str(dags)}) for name in ("one", "two")
        ]
        self.world = self.machines[1]  # commands go to the second machine, whichever scheduler is active
        self.workers: dict[str, RemoteWorker] = {}
        self.home = home
        self.random = random.Random(seed)

    # --- start and end ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        first, second = self.machines
        first.command("db", "migrate")
        second.command("users", "create", "--username", "admin", "--password", PASSWORD, "--role", "admin")
        first.start()
        until("the first scheduler answers", 60, first.ping)
        until("the keys are made", 30, (first.home / "worker.key").exists)
        for name in ("worker.key", "fernet.key"):
            if (first.home / name).exists():
                shutil.copy(first.home / name, second.home / name)
        second.start()
        second.start_api()
        until("the second machine reaches the scheduler", 60, second.ping)
        until("the DAGs are known", 60, self._dags_known)

    def add_worker(self, name: str, host: str = "127.0.0.1", prefix: tuple[str, ...] = ()) -> RemoteWorker:
        """Start a worker that knows both gateways, and wait until the scheduler knows it."""
        gateways = ",".join(f"ws://{host}:{machine.gateway_port}" for machine in self.machines)
        token = self.machines[0].command("workers", "token", name)
        kept = {**SETTINGS, **self.more, "TRADEWIND__RUNNER__DRAIN_TIMEOUT": "60", "CHAOS_MARKS": str(self.marks)}
        worker = RemoteWorker(self.home / name, gateways, token, kept, prefix)
        self.workers[name] = worker
        worker.start("--concurrency", "4")
        until(f"the worker {name} is connected", 60, lambda: f"{name}@remote" in self.world_workers())
        return worker

    def world_workers(self) -> set[str]:
        assert isinstance(self.world, Machine)
        return self.world.workers()

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for machine in self.machines:
            machine.kill_everything()

    # --- faults -----------------------------------------------------------------------------------------------------

    def fault(self, kind: str, work: Callable[[], object], lasts: float = 0.0) -> None:
        """Cause a fault under load, and record it for the judge.

        Args:
            lasts: seconds after the fault during which it may still end attempts.
        """
        self._load()
        until("tasks run", 30, self._is_working)
        at = now()
        work()
        self.kills.append(Kill(kind, at, now() + round(lasts * 1e9), ()))
        self.say(f"fault {len(self.kills)}: {kind}")
        until("the scheduler answers again", 60, self.world.ping)
        self._load()

    def _is_working(self) -> bool:
        self._load()
        return any(runs_a_task(one) for one in self.workers.values())

    def kill_gateway(self) -> None:
        (gateway,) = [one for one in self.machines[0].census() if one.command == "tradewind: gateway"]
        gateway.kill()

    def lose_active_scheduler(self) -> None:
        """Kill the active scheduler, and prevent its supervisor from restarting it before the standby has taken over."""
        active = self._active()
        other = next(one for one in self.machines if one is not active)
        before, supervisor = active.epoch(), active.process
        assert supervisor is not None
        supervisor.send_signal(signal.SIGSTOP)
        try:
            for scheduler in active.find("scheduler"):
                scheduler.kill()
            until("the standby has taken over", 30, lambda: other.epoch() > before)
        finally:
            supervisor.send_signal(signal.SIGCONT)

    def _active(self) -> Machine:
        """The machine whose scheduler holds the lease."""
        database = self.machines[0].environment["TRADEWIND__DATABASE__URL"].partition("?")[0].rpartition("/")[2]
        ((pid,),) = self.server.execute("SELECT pid FROM tradewind.scheduler_lease", database)
        (machine,) = [one for one in self.machines if any(process.pid == pid for process in one.find("scheduler"))]
        return machine

    def crash_database(self) -> None:
        self.server.stop()
        self.server.start()

    def restart_api(self) -> None:
        machine = self.machines[1]
        assert machine.api is not None
        machine.api.terminate()
        machine.api.wait(30)
        machine.start_api()

    def drain_worker(self, name: str) -> None:
        """Send SIGTERM to a worker: its tasks end first, so no attempt may be lost."""
        assert self.workers[name].stop(deadline=70) == 0

    def kill_worker(self, name: str) -> None:
        process = self.workers[name].process
        assert process is not None
        process.kill()
        process.wait()

    # --- the verdict ------------------------------------------------------------------------------------------------

    def verdict(self) -> Outcome:
        """Wait for the end of every run, and evaluate."""
        self._finish()
        verdict = judge(self.marks, self.kills, self.runs, self.ends)
        verdict.problems[:0] = self.problems
        return Outcome(self.kills, self.runs, verdict, 0.0, Counter(kill.kind for kill in self.kills))


def runs_a_task(worker: RemoteWorker) -> bool:
    return any(process.name == NAMES["runner"] for process in processes_of(worker.home))
