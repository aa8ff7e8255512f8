"""A task that starts every kind of process that is hard to kill, and ends as the conf of its run says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from tradewind import DAG
from tradewind.operators.python import PythonOperator

NOTES = Path(os.environ.get("HOSTILE_NOTES", "/nonexistent"))
FOREVER = "600"


def began(pid: int) -> str:
    data = Path(f"/proc/{pid}/stat").read_bytes()
    return data[data.rindex(b")") + 2 :].split()[19].decode()


class Notes:
    """Lines of one attempt: `kind pid start-time`."""

    def __init__(self, run: str) -> None:
        self.path = NOTES / f"census.{run}"

    def add(self, kind: str, pid: int) -> None:
        with self.path.open("a", encoding="ascii") as file:
            file.write(f"{kind} {pid} {began(pid)}\n")


def daemonised(body: Callable[[], None]) -> int:
    """Start a process with its own session and without a parent. Returns its pid."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            os.close(write)
            try:
                body()
                time.sleep(600)
            finally:
                os._exit(0)
        os._exit(0)
    os.close(write)
    pid = int(os.read(read, 20))
    os.close(read)
    return pid


def plain() -> int:
    return subprocess.Popen(["sleep", FOREVER]).pid


def setsid() -> int:
    return subprocess.Popen(["sleep", FOREVER], start_new_session=True).pid


def double_fork() -> int:
    return daemonised(lambda: None)


def closed_descriptors() -> int:
    return daemonised(lambda: os.closerange(0, 4096))


def another_name_and_environment() -> int:
    return subprocess.Popen(["innocent", FOREVER], executable="/bin/sleep", env={}, start_new_session=True).pid


def ignores_term() -> int:
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, sys, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nprint(flush=True)\ntime.sleep(600)",
        ],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child.pid


def stopped() -> int:
    return daemonised(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def grandchildren() -> int:
    """Start a shell, its child, and a child of this child. Returns the pid of the last one."""
    child = subprocess.Popen(["bash", "-c", "bash -c 'sleep 600 & echo $!; wait' & wait"], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return int(child.stdout.readline())


KINDS: dict[str, Callable[[], int]] = {
    made.__name__: made
    for made in (
        plain,
        setsid,
        double_fork,
        closed_descriptors,
        another_name_and_environment,
        ignores_term,
        stopped,
        grandchildren,
    )
}


class Census(PythonOperator):
    def on_kill(self) -> None:
        with (NOTES / f"census.on_kill.{os.environ['CENSUS_RUN']}").open("a", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
        super().on_kill()


def work(run_id: str, **context: Any) -> str:
    conf = context["dag_run"].conf
    os.environ["CENSUS_RUN"] = run_id
    notes = Notes(run_id)
    for kind in conf["kinds"]:
        notes.add(kind, KINDS[kind]())
    notes.add("task", os.getpid())
    print(f"attempt {os.environ['TRADEWIND_ATTEMPT']} has started everything", flush=True)
    mark = NOTES / f"census.again.{run_id}"
    again = mark.exists()
    mark.touch()  # before the test notices this attempt and ends it
    notes.path.rename(NOTES / f"{notes.path.name}.{context['ti'].try_number}.{os.environ['TRADEWIND_ATTEMPT']}")
    if again:
        return "the second attempt"
    end = conf["end"]
    if end == "success":
        return "well"
    if end == "failure":
        raise RuntimeError("as told")
    if end == "no memory":
        return str(len([bytearray(64 * 1024 * 1024) for _ in range(10_000)]))
    if end == "killed by the kernel":
        Path(conf["cgroup"], "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        return str(len([bytearray(b"x" * 1024 * 1024) for _ in range(10_000)]))
    if end == "exit":
        os._exit(3)
    while True:
        time.sleep(0.05)


for name, limit in {"census": None, "census_timeout": timedelta(seconds=1.5)}.items():
    with DAG(name, schedule=None, is_paused_upon_creation=False) as dag:
        Census(task_id="t", python_callable=work, execution_timeout=limit, retries=1, retry_delay=timedelta(seconds=0))
    globals()[name] = dag
