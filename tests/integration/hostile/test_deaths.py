"""Deaths at the worst moments: bugs that the kill test found by chance."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.chaos.world import began, until
from tests.integration.hostile.conftest import Hostile, standing
from tests.integration.hostile.test_store import begun


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with standing(tmp_path_factory.mktemp("deaths"), {"TRADEWIND__CORE__KILL_GRACE": "2"}) as found:
        yield found


@pytest.fixture
def hostile(shared: Hostile) -> Hostile:
    shared.world.restart_if_dead()
    shared.world.await_ready()
    for name in ("go", "began"):
        (shared.notes / name).unlink(missing_ok=True)
    return shared


@contextmanager
def no_scheduler(hostile: Hostile) -> Iterator[None]:
    """Kill the scheduler, and hold the writer lock, so that no other scheduler starts before the end of the block."""
    (scheduler,) = hostile.world.find("scheduler")
    os.kill(scheduler.pid, signal.SIGSTOP)
    with (hostile.world.home / "run" / "lock").open("a+b") as lock:
        scheduler.kill()
        until("the writer's lock is free", 5, lambda: _locked(lock.fileno()))
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_report_survives_scheduler_and_host(hostile: Hostile) -> None:
    run = hostile.begin("waits_quietly")
    until("the task runs", 10, lambda: begun(hostile) == [run])
    (host,) = hostile.world.find("host")
    with no_scheduler(hostile):
        (hostile.notes / "go").touch()
        until("the verdict is on disk", 10, (hostile.world.home / "spool" / "verdicts").exists)
        host.kill()
        until("there is another host", 10, lambda: [one for one in hostile.world.find("host") if one.pid != host.pid])
    hostile.end("waits_quietly", run)
    assert hostile.world.run_state("waits_quietly", run) == "success"
    assert begun(hostile) == [run]


@pytest.mark.spec("S379", "S467")
def test_next_host_waits_for_the_tasks_of_the_previous_host(hostile: Hostile) -> None:
    """The supervisor of the first host was killed, and a task that ignores TERM needs two seconds to stop.

    Meanwhile the next one starts.
    """
    run = hostile.begin("deaf")
    until("the task runs", 10, lambda: begun(hostile) == [run])
    (old,) = hostile.world.find("host")
    (supervisor,) = hostile.world.find("supervisor")
    supervisor.kill()
    assert hostile.world.process is not None
    hostile.world.process.wait(10)
    hostile.world.start()
    until("the task runs again", 30, lambda: begun(hostile)[-1:] == [run] and len(begun(hostile)) > 1)
    assert begun(hostile) == [run, "in-order", run]  # no overlap, and the task had time to clean up
    assert not old.alive()
    hostile.world.await_ready()
    (hostile.notes / "go").touch()
    hostile.end("deaf", run)
    assert hostile.world.run_state("deaf", run) == "success"


def test_tasks_wait_for_a_new_base_image(hostile: Hostile) -> None:
    (hostile.notes / "go").touch()
    for _ in range(3):
        for image in hostile.world.find("image"):
            image.kill()
        runs = [hostile.begin("fine") for _ in range(4)]
        for run in runs:
            assert hostile.end("fine", run).state == "success"
    log = (hostile.world.home / "logs" / "processes" / "host.log").read_text(encoding="utf-8")
    assert "the base image is gone" not in log


def test_task_that_kills_the_base_image_does_not_affect_other_tasks(hostile: Hostile) -> None:
    """A waiting task runs during each death: it is not stopped and loses no try.

    Tasks that kill the image repeatedly get a separate image.
    """
    (hostile.notes / "go").unlink(missing_ok=True)
    waiting = hostile.begin("waits_quietly")
    until("the task runs", 10, lambda: begun(hostile)[-1:] == [waiting])
    for _ in range(2):
        assert hostile.run("kills_image", "adopted").state == "success"
    (image,) = hostile.world.find("image")
    for _ in range(2):
        assert hostile.run("kills_image", "adopted").state == "success"
        assert image.alive(), "a suspect kills an image that only suspects use"
    assert begun(hostile).count(waiting) == 1, "it was started again"
    (hostile.notes / "go").touch()
    assert hostile.end("waits_quietly", waiting).state == "success"
    log = (hostile.world.home / "logs" / "processes" / "host.log").read_text(encoding="utf-8")
    assert "it runs isolated" in log


@pytest.mark.spec("S379")
def test_command_with_its_own_environment_is_found_after_all_processes_died(hostile: Hostile) -> None:
    run = hostile.begin("bare_environment")
    pid = int(hostile.noted("bare_environment"))
    (hostile.notes / "bare_environment").unlink()
    hostile.world.kill_everything()
    assert began(pid) is not None, "nobody was left to kill it"
    hostile.world.start()
    until("the next life finds it", 20, lambda: began(pid) is None)
    second = int(hostile.noted("bare_environment"))
    hostile.world.await_ready()
    assert hostile.world.run_state("bare_environment", run) == "running"
    os.kill(second, signal.SIGTERM)
    hostile.end("bare_environment", run)
