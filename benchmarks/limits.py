"""The limits of this machine: forks, commits, messages, and a hop that consists only of them.

Forks are made from Tradewind's own template image, created by Tradewind's code (`forker`), with the allocator settings that the
worker host gives its templates.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.deployment import REPOSITORY, stock_environment, template_environment
from benchmarks.measure import Result, median

HUGE = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def cores() -> int:
    return len(os.sched_getaffinity(0))


def _environment() -> dict[str, str]:
    return stock_environment(Path(tempfile.gettempdir()), template_environment())


def forker(loop: str, file: Path, *arguments: object) -> list[object]:
    """Run one loop in a template of `file`. Returns its results."""
    command = [sys.executable, "-m", "benchmarks.forker", loop, str(file.parent), file.name, *map(str, arguments)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=REPOSITORY, stdin=subprocess.DEVNULL
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def forks(file: Path, number: int, result: Result) -> None:
    """Times of fork, exit and wait, one after the other."""
    (found,) = forker("forks", file, number)
    assert isinstance(found, dict)
    result.add("fork_ms", found["ms"])
    result.add("fork_rss_mb", [found["rss_mb"]])


def bare_hops(file: Path, hops: int, result: Result) -> float:
    """The bare hop, see `barehop`; its median in ms."""
    with tempfile.TemporaryDirectory(prefix="twb-") as folder:
        (found,) = forker("hop", file, os.path.join(folder, "bare.db"), hops + 1)
    assert isinstance(found, dict)
    for name, samples in found.items():
        result.add(f"bare_{name}_ms", samples)
    return median(found["hop"])


def bare_rate(file: Path, each: int, result: Result) -> float:
    """Forks per second of one parent per core, each with its own template of `file`, started together."""
    command = [sys.executable, "-m", "benchmarks.forker", "rate", str(file.parent), file.name, str(each)]
    parents = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(), cwd=REPOSITORY)
        for _ in range(cores())
    ]
    spans = []
    for parent in parents:
        assert parent.stdout is not None
        parent.stdout.readline()
    for parent in parents:
        assert parent.stdin is not None
        parent.stdin.write(b"g")
        parent.stdin.flush()
    for parent in parents:
        out, _ = parent.communicate()
        spans.append(json.loads(out))
    seconds = (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e9
    rate: float = each * len(parents) / seconds
    result.add("bare_rate_per_s", [rate])
    return rate


def commits(number: int, result: Result) -> None:
    """One row per transaction, in WAL mode, with synchronous FULL and NORMAL."""
    for synchronous in ("FULL", "NORMAL"):
        with tempfile.TemporaryDirectory(prefix="twb-") as folder:
            database = sqlite3.connect(os.path.join(folder, "c.db"), isolation_level=None)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA synchronous = {synchronous}")
            database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, state TEXT, at INTEGER)")
            samples = []
            for i in range(number):
                began = time.perf_counter_ns()
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO t VALUES (?, 'running', ?)", (i, began))
                database.execute("COMMIT")
                samples.append((time.perf_counter_ns() - began) / 1e6)
            database.close()
        result.add(f"commit_{synchronous.lower()}_ms", samples)


def round_trips(number: int, result: Result) -> None:
    """16 bytes to another process and back over a Unix socket pair, both sides blocking."""
    ours, theirs = socket.socketpair()
    echo = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1]))\nwhile d := s.recv(16): s.sendall(d)"
    child = subprocess.Popen([sys.executable, "-S", "-c", echo, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    samples = []
    for _ in range(number + 100):
        began = time.perf_counter_ns()
        ours.sendall(b"x" * 16)
        if ours.recv(16) != b"x" * 16:
            raise RuntimeError("the other process does not echo")
        samples.append((time.perf_counter_ns() - began) / 1e3)
    ours.close()
    child.wait()
    result.add("round_trip_us", samples[100:])


_BALLAST = """
import gc, json, os, sys, time
def rss():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
wanted, number, keep = float(sys.argv[1]), int(sys.argv[2]), []
while rss() < wanted:
    keep.append([{"i": i, "s": str(i)} for i in range(2000)])
gc.collect(); gc.freeze(); gc.disable()
samples = []
for _ in range(number):
    began = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    samples.append((time.perf_counter_ns() - began) / 1e6)
print(json.dumps([rss(), samples]))
"""


def fork_sizes(number: int, result: Result) -> None:
    """Fork, exit, wait of a Python process of 30, 100 and 250 MB, with the default allocator and with huge pages."""
    for size in (30, 100, 250):
        for name, extra in (("default", {}), ("hugetlb", HUGE)):
            environment = {k: v for k, v in stock_environment(Path(tempfile.gettempdir())).items() if k not in HUGE}
            done = subprocess.run(
                [sys.executable, "-c", _BALLAST, str(size), str(number)],
                check=True,
                stdout=subprocess.PIPE,
                env={**environment, **extra},
            )
            rss, samples = json.loads(done.stdout)
            result.add(f"fork_{size}_{name}_ms", samples)
            result.facts[f"fork_{size}_{name}_rss_mb"] = round(rss, 1)
