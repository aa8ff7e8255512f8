"""The DAG files of the workloads, as a user would write them, and the marker lines that prove the execution of their tasks.

Each task appends one line: task, its own pid and start time (from /proc/self/stat), and when its code started and ended on the
monotonic clock. Distinct (pid, start time) = tasks is the proof that each had a process of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_HEAD = """\
import os
import time

from tradewind import DAG
from tradewind.operators.python import PythonOperator

MARKS = {marks!r}


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def mark(name, started):
    stat = os.open("/proc/self/stat", os.O_RDONLY)
    born = os.read(stat, 4096).rsplit(b")", 1)[1].split()[19].decode()
    os.close(stat)
    file = os.open(MARKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{{name}} {{os.getpid()}} {{born}} {{started}} {{time.monotonic_ns()}} {{time.time_ns()}}\\n".encode())
    os.close(file)


def work(name, n):
    started = time.monotonic_ns()
    if n:
        fib(n)
    mark(name, started)


def task(name, n=0):
    return PythonOperator(task_id=name, python_callable=work, op_args=[name, n])

"""

_CHAIN = """
with DAG({dag!r}, schedule=None):
    before = None
    for i in range({tasks}):
        now = task(f"t{{i}}", {n})
        if before is not None:
            before >> now
        before = now
"""

_FAN = """
with DAG({dag!r}, schedule=None, max_active_tasks=100_000):
    first, last = task("first"), task("last")
    first >> [task(f"f{{i}}") for i in range({tasks})] >> last
"""

_CROWD = """
with DAG({dag!r}, schedule=None, max_active_runs={runs}):
    PythonOperator(task_id="t0", python_callable=work, op_args=["t0", 0], depends_on_past=True)
"""

_LAYERED = """
with DAG({dag!r}, schedule=None, max_active_tasks=100_000):
    layer = []
    for i in range(0, {tasks}, {width}):
        new = [task(f"t{{j}}") for j in range(i, min(i + {width}, {tasks}))]
        for k, one in enumerate(new):
            if layer:
                [layer[k % len(layer)], layer[(k + 1) % len(layer)]] >> one
        layer = new
"""

_BASH = """
from tradewind.operators.bash import BashOperator

COMMAND = "read _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ born _ < /proc/$$/stat; echo \\"$NAME $$ $born 0 0 0\\" >> " + MARKS

with DAG({dag!r}, schedule=None, max_active_tasks=100_000):
    for i in range({tasks}):
        BashOperator(task_id=f"b{{i}}", bash_command=COMMAND, env={{"NAME": f"b{{i}}"}}, append_env=True)
"""

_TEN = """\
from {module} import DAG
from {module}.operators.bash import BashOperator

with DAG({dag!r}, schedule=None) as dag:
    tasks = [BashOperator(task_id=f"t{{i}}", bash_command="true") for i in range(10)]
    for a, b in zip(tasks, tasks[1:]):
        a >> b
"""

_MINUTE = """
with DAG({dag!r}, schedule="* * * * *", catchup=False):
    PythonOperator(task_id="only", python_callable=work, op_args=["{dag}@{{{{ ts_nodash }}}}", 0])
"""


class Mark(NamedTuple):
    name: str
    pid: int
    born: int
    started: int
    """Monotonic nanoseconds, like `ended`."""
    ended: int
    wall: int
    """Wall-clock nanoseconds at the end."""


class Marks:
    """The marker file of one deployment; `take` returns the lines since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = 0

    def take(self) -> list[Mark]:
        try:
            data = self.path.read_bytes()[self._seen :]
        except FileNotFoundError:
            return []
        self._seen += len(data)
        return [Mark(words[0], *map(int, words[1:])) for words in (line.split() for line in data.decode().splitlines())]


def problem_of(marks: list[Mark], tasks: int) -> str | None:
    """The reason why these marker lines do not prove that each task ran once in its own process; None if they prove it."""
    if len(marks) != tasks:
        return f"{len(marks)} marker lines for {tasks} tasks"
    names = len({mark.name for mark in marks})
    if names != tasks:
        return f"marker lines of {names} different tasks, expected {tasks}"
    lives = len({(mark.pid, mark.born) for mark in marks})
    if lives != tasks:
        return f"{tasks} tasks ran in {lives} processes"
    return None


def head(marks: Path) -> str:
    return _HEAD.format(marks=str(marks))


def chain(dag: str, marks: Path, tasks: int, n: int) -> str:
    return head(marks) + _CHAIN.format(dag=dag, tasks=tasks, n=n)


def fan(dag: str, marks: Path, tasks: int) -> str:
    return head(marks) + _FAN.format(dag=dag, tasks=tasks)


def crowd(dag: str, marks: Path, runs: int) -> str:
    """A DAG with this `max_active_runs`; each run waits for the previous one."""
    return head(marks) + _CROWD.format(dag=dag, runs=runs)


def layered(dag: str, marks: Path, tasks: int, width: int = 100) -> str:
    return head(marks) + _LAYERED.format(dag=dag, tasks=tasks, width=width)


def bash(dag: str, marks: Path, tasks: int) -> str:
    return head(marks) + _BASH.format(dag=dag, tasks=tasks)


def single(dag: str, marks: Path) -> str:
    return chain(dag, marks, 1, 0)


def ten(dag: str, module: str = "tradewind") -> str:
    """A file with one DAG of ten tasks. `module`: `tradewind`, or `airflow` for the same names of Airflow."""
    return _TEN.format(dag=dag, module=module)


def minute(dag: str, marks: Path) -> str:
    return head(marks) + _MINUTE.format(dag=dag)
