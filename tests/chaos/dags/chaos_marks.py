"""The lines that the tasks of the kill test write about themselves. A line is on the disk before the task continues.

A line is one JSON object in `$CHAOS_MARKS/<dag>.<run>`. While an attempt lives, it and every process it starts hold a lock on a
file of its task instance. An attempt that finds the lock taken records that a process of an earlier attempt still runs.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("CHAOS_MARKS", "/nonexistent"))
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def began(pid: int) -> int:
    """Start time of a process in clock ticks. Together with the pid it identifies the process."""
    data = Path(f"/proc/{pid}/stat").read_bytes()
    return int(data[data.rindex(b")") + 2 :].split()[19])


class Marks:
    """The lines of one attempt."""

    def __init__(self, dag: str, run: str, task: str, try_number: int) -> None:
        self.name = f"{dag}.{run}.{task}"
        self.path = FOLDER / f"{dag}.{run}"
        self.who: dict[str, Any] = {
            "dag": dag,
            "run": run,
            "task": task,
            "try": try_number,
            "attempt": os.environ["TRADEWIND_ATTEMPT"],
            "boot": BOOT,
        }
        self.lock = os.open(FOLDER / "locks" / self.name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self.lock, 200, 0).decode(errors="replace")
            self.write("overlap", holder=holder)
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{self.who['attempt']} pid {os.getpid()}".encode(), 0)

    def write(self, what: str, **more: Any) -> None:
        """One line, durable when this returns."""
        pid = os.getpid()
        record = {
            "what": what,
            "at": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            "pid": pid,
            "began": began(pid),
            **self.who,
            **more,
        }
        data = json.dumps(record).encode() + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, data)
            os.fsync(file)
        finally:
            os.close(file)

    def said(self, how: str) -> int:
        """How many attempts of this task have ended in this way."""
        count = 0
        for line in self.path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            count += record["task"] == self.who["task"] and record["what"] == "end" and record["how"] == how
        return count

    def child(self, milliseconds: int) -> None:
        """Start a bash child that also holds the lock, and wait for it."""
        process = subprocess.Popen(["bash", "-c", f"sleep {milliseconds / 1000}; true"], pass_fds=[self.lock])
        self.write("spawn", child=process.pid, child_began=began(process.pid))
        process.wait()

    def daemon(self) -> None:
        """Leave two processes: one with its own session, no parent and no open descriptor except the lock; and one that has
        called exec.
        """
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(write, str(os.getpid()).encode())
                os.closerange(0, self.lock)
                os.closerange(self.lock + 1, 1024)
                time.sleep(600)
            os._exit(0)
        os.close(write)
        pid = int(os.read(read, 20))
        os.close(read)
        self.write("spawn", child=pid, child_began=began(pid))
        other = subprocess.Popen(["setsid", "sleep", "600"], pass_fds=[self.lock], env={"PATH": os.environ["PATH"], **_marks()})
        self.write("spawn", child=other.pid, child_began=began(other.pid))


def _marks() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TRADEWIND")}
