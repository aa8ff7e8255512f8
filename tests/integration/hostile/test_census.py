"""After every kind of end of an attempt, no process of its tree is left, whatever it did to escape."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chaos.world import began, until
from tests.integration.hostile.conftest import Hostile, standing
from tests.integration.hostile.dags.census import KINDS

K = 10.0
"""Seconds after the end in which all processes must end: TERM, the grace period of this instance, KILL, cleanup."""


class Started(NamedTuple):
    kind: str
    pid: int
    began: int

    def alive(self) -> bool:
        return began(self.pid) == self.began


class Run:
    """A run of the census DAG, and the processes that its first attempt started."""

    def __init__(self, hostile: Hostile, end: str, kinds: list[str], dag: str = "census", **conf: str) -> None:
        self.hostile, self.dag = hostile, dag
        hostile._count += 1
        self.run = f"c{hostile._count}"
        hostile.world.control.call("trigger", dag_id=dag, run_id=self.run, conf={"end": end, "kinds": kinds, **conf})
        until("the task has started everything", 60, self.attempts)

    def attempts(self) -> list[Path]:
        return sorted(self.hostile.notes.glob(f"census.{self.run}.*"))

    def started(self) -> list[Started]:
        """Processes that the first attempt started."""
        lines = self.attempts()[0].read_text(encoding="ascii").splitlines()
        return [Started(kind, int(pid), int(start)) for kind, pid, start in (line.split() for line in lines)]

    def all_gone(self) -> None:
        started = self.started()
        until(
            f"none is left of {', '.join(f'{one.kind} {one.pid}' for one in started)}",
            K,
            lambda: not [one for one in started if one.alive()],
        )

    def log_tells(self) -> bool:
        """True if the log contains the output of the first attempt, during it and after it."""
        attempt = self.attempts()[0].name.partition(".1.")[2]
        path = f"/api/v2/dags/{self.dag}/dagRuns/{self.run}/taskInstances/t/logs/1?full_content=true"
        said = [str(record["event"]) for record in self.hostile.world.get(path)["content"]]
        return f"attempt {attempt} has started everything" in said

    def on_kill_calls(self) -> int:
        path = self.hostile.notes / f"census.on_kill.{self.run}"
        return len(path.read_text(encoding="ascii").splitlines()) if path.exists() else 0

    def ends(self, state: str) -> None:
        world = self.hostile.world
        ended = ("success", "failed")
        until(f"the run {self.run} ends", 60, lambda: world.run_state(self.dag, self.run) in ended)
        found = world.task_states(self.dag, self.run), self.hostile.why(self.dag, self.run)
        assert world.run_state(self.dag, self.run) == state, found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with standing(tmp_path_factory.mktemp("census"), {"TRADEWIND__CORE__KILL_GRACE": "2"}) as found:
        yield found


@pytest.fixture
def hostile(shared: Hostile) -> Hostile:
    shared.world.restart_if_dead()
    shared.world.await_ready()
    return shared


End = Callable[[Hostile, list[str]], None]


def own_end(end: str, state: str) -> End:
    def play(hostile: Hostile, kinds: list[str]) -> None:
        run = Run(hostile, end, kinds)
        run.ends(state)
        run.all_gone()
        assert run.on_kill_calls() == 0

    return play


def timeout(hostile: Hostile, kinds: list[str]) -> None:
    run = Run(hostile, "forever", kinds, "census_timeout")
    run.all_gone()
    assert run.on_kill_calls() == 1
    run.ends("success")  # the second try


def clear(hostile: Hostile, kinds: list[str]) -> None:
    run = Run(hostile, "forever", kinds)
    hostile.world.control.call("clear", dag_id="census", run_id=run.run, task_ids=["t"])
    run.all_gone()
    assert run.on_kill_calls() == 1
    run.ends("success")
    assert len(run.attempts()) == 2


def mark(hostile: Hostile, kinds: list[str]) -> None:
    run = Run(hostile, "forever", kinds)
    hostile.world.control.call("mark", dag_id="census", run_id=run.run, task_ids=["t"], state="success")
    run.all_gone()
    assert run.on_kill_calls() == 1
    run.ends("success")
    assert len(run.attempts()) == 1


def stop_the_worker(hostile: Hostile, kinds: list[str]) -> None:
    """TERM to the supervisor: tasks are stopped in an orderly way, and run again after the next start."""
    run = Run(hostile, "forever", kinds)
    hostile.world.stop()
    assert [one for one in run.started() if one.alive()] == []
    assert run.on_kill_calls() == 1
    hostile.world.start()
    hostile.world.await_ready()
    run.ends("success")


def stop_the_host(hostile: Hostile, kinds: list[str]) -> None:
    """TERM to the worker host alone: the supervisor starts another one."""
    run = Run(hostile, "forever", kinds)
    hostile.world.find("host")[0].kill(signal.SIGTERM)
    run.all_gone()
    assert run.on_kill_calls() == 1
    run.ends("success")


def killed(kind: str) -> End:
    def play(hostile: Hostile, kinds: list[str]) -> None:
        run = Run(hostile, "forever", kinds)
        until("the log of the living task tells", 20, run.log_tells)
        found = hostile.world.find(kind)
        if kind == "supervisor":  # a new child has the same name until its exec
            assert hostile.world.process is not None
            found = [one for one in found if one.pid == hostile.world.process.pid]
        if kind == "runner":
            found = [one for one in found if one.pid == run.started()[-1].pid]
        for one in found:
            one.kill()
        if kind == "supervisor":
            assert hostile.world.process is not None
            hostile.world.process.wait(30)
        run.all_gone()
        hostile.world.restart_if_dead()
        hostile.world.await_ready()
        run.ends("success")
        assert run.log_tells(), "what a killed attempt had printed is kept"

    return play


def orphaned(whose: str, then: str) -> End:
    """The death of the parent of a task process, or of the base image, does not end an attempt.

    Then the orphan or the host is killed.
    """

    def play(hostile: Hostile, kinds: list[str]) -> None:
        run = Run(hostile, "forever", kinds)
        (host,) = hostile.world.find("host")
        runner = run.started()[-1].pid
        found = hostile.world.find("image")
        if whose == "parent":
            found = [one for one in hostile.world.census() if one.pid == parent_of(runner)]
        assert found
        for one in found:
            one.kill()
        until("the worker host has adopted the runner", 10, lambda: parent_of(runner) == host.pid)
        assert [one.kind for one in run.started() if not one.alive()] == []
        os.kill(runner if then == "runner" else host.pid, signal.SIGKILL)
        run.all_gone()
        run.ends("success")  # the second try
        assert run.log_tells(), "what a killed attempt had printed is kept"
        if then == "host":
            return
        path = f"/api/v2/dags/{run.dag}/dagRuns/{run.run}/taskInstances/t/logs/1?full_content=true"
        said = [str(record["event"]) for record in hostile.world.get(path)["content"]]
        assert any("killed by SIGKILL" in line for line in said), said

    return play


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


def scheduler_killed(hostile: Hostile, kinds: list[str]) -> None:
    """The death of this process does not end the attempt, and no process of it is killed. Then the task is cleared."""
    run = Run(hostile, "forever", kinds)
    hostile.world.find("scheduler")[0].kill()
    hostile.world.await_ready()
    assert [one.kind for one in run.started() if not one.alive()] == []
    hostile.world.control.call("clear", dag_id="census", run_id=run.run, task_ids=["t"])
    run.all_gone()
    run.ends("success")


def out_of_memory(hostile: Hostile, kinds: list[str]) -> None:
    with _cgroup() as folder:
        run = Run(hostile, "killed by the kernel", kinds, cgroup=folder)
        run.all_gone()
        run.ends("success")
        said = hostile.world.get(f"/api/v2/dags/census/dagRuns/{run.run}/taskInstances/t/logs/1?full_content=true")["content"]
        assert any("killed by SIGKILL" in str(record["event"]) for record in said)


@contextmanager
def _cgroup() -> Iterator[str]:
    """A memory cgroup of 60 MB, or the test is skipped."""
    found = [path for path in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if (path / "cgroup.procs").exists()]
    folder = next(iter(found), Path("/nonexistent")) / f"tradewind-test-{os.getpid()}"
    limits = ("memory.limit_in_bytes", "memory.max")
    try:
        folder.mkdir()
        limit = next(folder / name for name in limits if (folder / name).exists())
        limit.write_text(str(60 * 1024 * 1024), encoding="ascii")
    except (OSError, StopIteration):
        if folder.is_dir():
            folder.rmdir()
        pytest.skip("a memory cgroup cannot be made here")
    try:
        yield str(folder)
    finally:
        until("the cgroup is empty", 20, lambda: not (folder / "cgroup.procs").read_text(encoding="ascii").split())
        folder.rmdir()


ENDS: dict[str, End] = {
    "success": own_end("success", "success"),
    "failure": own_end("failure", "success"),
    "exit": own_end("exit", "success"),
    "no memory": own_end("no memory", "success"),
    "out of memory": out_of_memory,
    "timeout": timeout,
    "clear": clear,
    "mark": mark,
    "worker stopped": stop_the_worker,
    "host stopped": stop_the_host,
    "runner -9": killed("runner"),
    "template -9, runner -9": orphaned("parent", "runner"),
    "image -9, runner -9": orphaned("image", "runner"),
    "image -9, host -9": orphaned("image", "host"),
    "host -9": killed("host"),
    "supervisor -9": killed("supervisor"),
    "scheduler -9": scheduler_killed,
}


PROVES = {
    "timeout": pytest.mark.spec("S398", "S467"),
    "clear": pytest.mark.spec("S464"),
    "mark": pytest.mark.spec("S464"),
    "runner -9": pytest.mark.spec("S382"),
}
"""End of the attempt → the rows of the specification that it proves. One kind of process ignores TERM."""


@pytest.mark.parametrize("end", [pytest.param(end, marks=PROVES.get(end, ())) for end in ENDS])
def test_no_process_is_left_after(hostile: Hostile, end: str) -> None:
    """All kinds of processes at once."""
    ENDS[end](hostile, list(KINDS))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ENDS)
def test_no_process_of_one_kind_is_left_after(hostile: Hostile, end: str, kind: str) -> None:
    ENDS[end](hostile, [kind])
