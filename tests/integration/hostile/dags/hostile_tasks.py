"""Tasks that do forbidden things. Each is a separate DAG; the DAG `fine` must still work."""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from tradewind import DAG, AirflowFailException, AirflowSkipException, AirflowTaskTimeout, Variable
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator

NOTES = Path(os.environ.get("HOSTILE_NOTES", "/nonexistent"))


def note(name: str, text: str = "") -> None:
    partial = NOTES / f".{name}.{os.getpid()}"
    partial.write_text(text, encoding="utf-8")
    partial.rename(NOTES / name)


def fine() -> str:
    print("all is well")
    return "well"


def lambda_xcom() -> Any:
    return lambda: 1


def huge_xcom() -> str:
    return "x" * 100_000_000


class Deaf(PythonOperator):
    def on_kill(self) -> None:
        note("on_kill")


def ignores_term() -> None:
    while True:
        try:
            time.sleep(600)
        except BaseException as error:
            print(f"ignoring {type(error).__name__}", flush=True)


def blocks_term() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGXCPU, signal.SIGINT})
    time.sleep(600)


def at_its_limit(answer: Exception | None) -> None:
    try:
        time.sleep(600)
    except AirflowTaskTimeout as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        if answer is not None:
            raise answer from None


def double_forks() -> None:
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            os.closerange(0, 1024)
            time.sleep(600)
        os._exit(0)
    os.close(write)
    note("double_forks", os.read(read, 20).decode())


def setsid_child() -> None:
    child = subprocess.Popen(["setsid", "sleep", "600"], env={"PATH": os.environ["PATH"]})
    note("setsid_child", str(child.pid))


def out_of_memory() -> None:
    kept = []
    while True:
        kept.append(bytearray(64 * 1024 * 1024))


def prints_much() -> None:
    block = b"".join(b"line %06d of a block of a megabyte %s\n" % (i, b"." * 60) for i in range(10_000))
    for _ in range(1_000_000_000 // len(block)):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()
    print("the very last line")


def invalid_utf8() -> None:
    sys.stdout.buffer.write(b"before \xff\xfe\x00 \x1b[31m after\n")
    sys.stdout.buffer.flush()


def long_line() -> None:
    sys.stdout.write("y" * 1_000_000)
    sys.stdout.flush()


def exits() -> None:
    sys.exit("enough")


def exits_at_once() -> None:
    os._exit(0)


def segfaults() -> None:
    ctypes.string_at(0)


def aborts() -> None:
    os.abort()


def closes_descriptors() -> None:
    os.closerange(0, 256)


def closes_output() -> str:
    os.close(1)
    os.close(2)
    return "quiet"


def kills_template() -> int:
    template = os.getppid()
    os.kill(template, signal.SIGKILL)
    return _goes_on_without(template)


def kills_image() -> int:
    """Kill the base image and all templates. A task that was forked from the image itself kills only the image."""
    parent = os.getppid()
    image = parent
    if Path(f"/proc/{parent}/comm").read_text() == "tw-template\n":
        image = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(image, signal.SIGKILL)
    return _goes_on_without(parent)


def _goes_on_without(parent: int) -> int:
    """Wait until another process has adopted this one."""
    while os.getppid() == parent:
        time.sleep(0.002)
    print("adopted")
    return os.getpid()


def kills_its_group() -> None:
    os.killpg(0, signal.SIGKILL)


def leaves_thread() -> str:
    threading.Thread(target=time.sleep, args=(600,)).start()
    note("leaves_thread", str(os.getpid()))
    return "left"


def exit_function_hangs() -> str:
    atexit.register(time.sleep, 600)
    note("exit_function_hangs", str(os.getpid()))
    return "hangs"


def forges() -> None:
    """Write invalid data into every socket of this process."""
    for entry in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                os.write(int(entry), b"\xff" * 1000)
        except OSError:
            continue
    time.sleep(600)


def stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def waits(run_id: str) -> None:
    """Write a note for each attempt, and end when the test requests it."""
    with (NOTES / "began").open("a", encoding="utf-8") as file:
        file.write(f"{run_id}\n")
    while not (NOTES / "go").exists():
        time.sleep(0.02)
    Variable.set("waited", run_id)


def waits_quietly(run_id: str) -> None:
    with (NOTES / "began").open("a", encoding="utf-8") as file:
        file.write(f"{run_id}\n")
    while not (NOTES / "go").exists():
        time.sleep(0.02)


def deaf(run_id: str) -> None:
    """At TERM, clean up for a while and continue. Write a note if another attempt still runs."""

    def put_in_order(number: int, stack: object) -> None:
        time.sleep(1.6)
        with (NOTES / "began").open("a", encoding="utf-8") as file:
            file.write("in-order\n")

    signal.signal(signal.SIGTERM, put_in_order)
    lock = os.open(NOTES / "deaf.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waits_quietly("overlap")
    waits_quietly(run_id)


def callback_hangs(context: Any) -> None:
    print(f"called back: {context['ti'].state}", flush=True)
    note("callback", Variable.get("not_there", default="the scheduler answers"))
    threading.Event().wait()


def callback_raises(context: Any) -> None:
    raise RuntimeError(f"cannot tell of {context['exception']}")


def deep(depth: int = 80) -> None:
    if not depth:
        raise ValueError("deep " + "x" * 500)
    exec(f"def step_{depth}():\n    inner({depth - 1})\nstep_{depth}()", {"inner": deep})


LIMIT: dict[str, Any] = {"execution_timeout": timedelta(milliseconds=300), "retries": 1, "retry_delay": timedelta(0)}

TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fine": (fine, {}),
    "lambda_xcom": (lambda_xcom, {}),
    "huge_xcom": (huge_xcom, {}),
    "ignores_term": (ignores_term, {"execution_timeout": timedelta(milliseconds=300)}),
    "blocks_term": (blocks_term, {"execution_timeout": timedelta(milliseconds=300)}),
    "stopped": (stopped, {"execution_timeout": timedelta(milliseconds=300)}),
    "returns_at_its_limit": (at_its_limit, {**LIMIT, "op_args": [None]}),
    "skips_at_its_limit": (at_its_limit, {**LIMIT, "op_args": [AirflowSkipException("enough is done")]}),
    "gives_up_at_its_limit": (at_its_limit, {**LIMIT, "op_args": [AirflowFailException("no use to try again")]}),
    "breaks_at_its_limit": (at_its_limit, {**LIMIT, "op_args": [ValueError("a bug")]}),
    "double_forks": (double_forks, {}),
    "setsid_child": (setsid_child, {}),
    "out_of_memory": (out_of_memory, {}),
    "prints_much": (prints_much, {}),
    "invalid_utf8": (invalid_utf8, {}),
    "long_line": (long_line, {}),
    "exits": (exits, {}),
    "exits_at_once": (exits_at_once, {}),
    "segfaults": (segfaults, {}),
    "aborts": (aborts, {}),
    "closes_descriptors": (closes_descriptors, {}),
    "closes_output": (closes_output, {}),
    "kills_template": (kills_template, {}),
    "kills_image": (kills_image, {}),
    "kills_its_group": (kills_its_group, {}),
    "leaves_thread": (leaves_thread, {}),
    "exit_function_hangs": (exit_function_hangs, {}),
    "forges": (forges, {}),
    "waits": (waits, {}),
    "waits_quietly": (waits_quietly, {}),
    "deaf": (deaf, {}),
    "callback_hangs": (fine, {"on_success_callback": callback_hangs}),
    "callback_raises": (deep, {"on_failure_callback": callback_raises}),
    "unknown_pool": (fine, {"pool": "no_such_pool"}),
}

for name, (function, arguments) in TASKS.items():
    with DAG(name, schedule=None, is_paused_upon_creation=False) as dag:
        kind = Deaf if name == "ignores_term" else PythonOperator
        kind(task_id="t", python_callable=function, **arguments)
    globals()[f"dag_{name}"] = dag

with DAG("bare_environment", schedule=None, is_paused_upon_creation=False):
    command = f"sleep 600 & echo $! > {NOTES}/.pid && mv {NOTES}/.pid {NOTES}/bare_environment; wait"
    BashOperator(task_id="t", bash_command=command, env={"PATH": os.environ["PATH"]})
