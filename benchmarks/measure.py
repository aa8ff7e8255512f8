"""Statistics, and measurements from /proc: CPU time by role, load of other processes, memory.

CPU seconds are those of the kernel (utime, stime, and of reaped children cutime, cstime), so they hardly change when other
processes use the machine; wall times do. `Span.ext` is the CPU time of other processes: if it is large, wall times are upper
bounds.
"""

from __future__ import annotations

import glob
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

TICK = os.sysconf("SC_CLK_TCK")
ROLES = {
    "tw-supervisor": "supervisor",
    "tw-scheduler": "scheduler",
    "tw-host": "host",
    "tw-image": "image",
    "tw-template": "templates",
    "tw-task": "runners",
    "tw-api": "api",
    "tw-parser": "parser",
    "tw-zygote": "parser",
}


def quantile(values: Sequence[float], q: float) -> float:
    """Linear interpolation between the nearest ranks; nan for an empty sequence."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    position = (len(ordered) - 1) * q
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def p95(values: Sequence[float]) -> float:
    return quantile(values, 0.95)


LOAD = "load average of the machine"


@dataclass
class Result:
    """The result of one workload. A workload with a failed check has a `problem` and no valid numbers."""

    name: str
    values: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problem: str | None = None
    facts: dict[str, object] = field(default_factory=dict)

    def add(self, key: str, samples: Iterable[float]) -> None:
        """Add samples of one quantity, in the order of measurement."""
        self.samples.setdefault(key, []).extend(samples)

    def note_load(self) -> None:
        """Add the load average of the machine: above the number of cores, other programs make wall times longer."""
        self.add(LOAD, [os.getloadavg()[0]])
        self.facts["cores"] = os.cpu_count()

    def median(self, key: str) -> float:
        return median(self.samples.get(key, []))

    def p95(self, key: str) -> float:
        return p95(self.samples.get(key, []))


@dataclass
class Process:
    pid: int
    parent: int
    name: str
    own: float
    """CPU seconds of the process itself."""
    reaped: float
    """CPU seconds of its children that have been waited for."""


def processes() -> dict[int, Process]:
    """All processes of the machine now."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    data = file.read().decode(errors="replace")
            except OSError:
                continue
            end = data.rindex(")")
            rest = data[end + 2 :].split()
            name = data[data.index("(") + 1 : end]
            own, reaped = int(rest[11]) + int(rest[12]), int(rest[13]) + int(rest[14])
            found[int(entry)] = Process(int(entry), int(rest[1]), name, own / TICK, reaped / TICK)
    return found


def tree(roots: Iterable[int]) -> list[Process]:
    """The processes `roots` and all their descendants."""
    everything = processes()
    below: dict[int, list[int]] = {}
    for process in everything.values():
        below.setdefault(process.parent, []).append(process.pid)
    found, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        if pid in everything:
            found.append(everything[pid])
            todo += below.get(pid, [])
    return found


def cpu_by_role(members: Iterable[Process]) -> dict[str, float]:
    """CPU seconds by role. The ended children of fork servers are task processes (and ended templates)."""
    found: dict[str, float] = {}
    for process in members:
        role = ROLES.get(process.name, "other")
        found[role] = found.get(role, 0.0) + process.own
        if role in ("image", "templates"):
            found["runners"] = found.get("runners", 0.0) + process.reaped
        else:
            found["reaped"] = found.get("reaped", 0.0) + process.reaped
    return found


def machine_busy() -> float:
    """Busy CPU seconds of the whole machine since it was started."""
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:]]
    return (sum(numbers[:8]) - numbers[3] - numbers[4]) / TICK


def self_cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pss_mb(members: Iterable[Process]) -> dict[str, float]:
    """Proportional set size in MB, by role."""
    found: dict[str, float] = {}
    for process in members:
        try:
            with open(f"/proc/{process.pid}/smaps_rollup") as file:
                for line in file:
                    if line.startswith("Pss:"):
                        role = ROLES.get(process.name, process.name)
                        found[role] = found.get(role, 0.0) + int(line.split()[1]) / 1024
                        break
        except OSError:
            continue
    return found


def rss_mb(pid: int | str = "self") -> float:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def running_ns(members: Iterable[Process]) -> int:
    """CPU nanoseconds of the threads of these processes: exact, while the values above are counted in ticks."""
    total = 0
    for process in members:
        for path in glob.glob(f"/proc/{process.pid}/task/*/schedstat"):
            try:
                with open(path) as file:
                    total += int(file.read().split()[0])
            except OSError:
                continue
    return total


class Span:
    """CPU and time between `Span(roots)` and `end()`.

    After `end`: `seconds`, `cpu` (by role), `total` CPU seconds of the deployment, `ext` CPU seconds of other processes.
    """

    def __init__(self, roots: Sequence[int] = ()) -> None:
        self.roots = list(roots)
        self._before = cpu_by_role(tree(self.roots))
        self._busy, self._own, self._at = machine_busy(), self_cpu(), time.monotonic()
        self.seconds = self.total = self.ext = 0.0
        self.cpu: dict[str, float] = {}

    def end(self) -> Span:
        self.seconds = time.monotonic() - self._at
        after = cpu_by_role(tree(self.roots))
        self.cpu = {role: round(after[role] - self._before.get(role, 0.0), 3) for role in sorted(after)}
        self.total = sum(self.cpu.values())
        self.ext = max(0.0, machine_busy() - self._busy - (self_cpu() - self._own) - self.total)
        return self

    def into(self, result: Result, prefix: str = "", tasks: int = 0) -> None:
        """Add the measurement to the facts of a result; with `tasks`, CPU milliseconds per task."""
        facts: dict[str, object] = {"seconds": round(self.seconds, 3), "ext_cpu_s": round(self.ext, 2), "cpu_s": self.cpu}
        if tasks:
            facts["cpu_ms_per_task"] = {role: round(seconds / tasks * 1e3, 3) for role, seconds in self.cpu.items()}
            facts["cpu_ms_per_task"]["all"] = round(self.total / tasks * 1e3, 3)  # type: ignore[index]
        result.facts[prefix + "account"] = facts
