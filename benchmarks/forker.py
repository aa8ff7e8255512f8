"""A template for measurements: the same process image, created by the same code, but without a worker host.

`python -m benchmarks.forker LOOP FOLDER FILE [ARGUMENT …]` becomes the base image, forks the template of FOLDER/FILE, and runs
LOOP (a function of this module) in it. The output of a loop is its result: JSON, one value per line.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tradewind.worker import base_image
from tradewind.worker.config import TaskLimits
from tradewind.worker.orders import MakeTemplate

Child = Callable[[bytes, list[int]], None]
"""The code that production runs in a fork of this template."""


class Once:
    """Replaces `ForkServer`: the base image creates one template, and the template runs the loop of the measurement."""

    def __init__(self, link: socket.socket, child: Child, *callbacks: Callable[[], None]) -> None:
        self.link = link
        self.child = child

    def serve(self) -> None:
        if Once.in_template:
            Once.loop(self.child)
            return
        pid = os.fork()
        if pid == 0:
            Once.in_template = True
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            order = MakeTemplate(ARGUMENTS[0], ARGUMENTS[1], limits(tempfile.gettempdir()))
            base_image._become_template(order, theirs, LIFELINE[0])
            problem = ours.recv(1 << 18)
            if b"problem" in problem and not Once.looped:
                sys.stderr.write(repr(problem))
            sys.stdout.flush()
            os._exit(0 if Once.looped else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    in_template = False
    looped = False
    loop: Callable[[Child], None]


def limits(xcom_folder: str) -> TaskLimits:
    """Default limits. Unknown fields have a simple value of their type."""
    known: dict[str, Any] = {
        "xcom_folder": xcom_folder,
        "xcom_inline_max": 65536,
        "xcom_max": 1 << 26,
        "memory_max": 0,
        "start_retry": 5_000_000,
        "descriptors": 1024,
        "descriptors_hard": 4096,
    }
    return TaskLimits(**{name: known.get(name, 0) for name in TaskLimits.__struct_fields__})


ARGUMENTS: list[str] = []
"""The arguments: FOLDER, FILE, and those of the loop."""

LIFELINE = os.pipe()
"""Reading end and writing end: the task processes of this measurement end together with it."""

_out = os.dup(1)
"""The output for results, because the stdout of a template is silenced."""


def print_result(value: object) -> None:
    os.write(_out, json.dumps(value).encode() + b"\n")


def _rss_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


# --- loops ---------------------------------------------------------------------------------------------------------------


def forks(child: Child) -> None:
    """Fork, exit at once, wait. Returns the ms of each. Argument: the number of forks."""
    samples = []
    for _ in range(int(ARGUMENTS[2])):
        began = time.perf_counter_ns()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        samples.append((time.perf_counter_ns() - began) / 1e6)
    print_result({"rss_mb": _rss_mb(), "ms": samples})


def rate(child: Child) -> None:
    """As `forks`, without reading the clock; starts when a byte arrives on stdin. Argument: the number of forks.

    Returns (start, end) in monotonic ns.
    """
    number = int(ARGUMENTS[2])
    print_result("ready")
    os.read(0, 1)
    began = time.monotonic_ns()
    for _ in range(number):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    print_result([began, time.monotonic_ns()])


def hop(child: Child) -> None:
    """The bare hop, see `barehop`. Arguments: database file, hops."""
    from benchmarks import barehop

    print_result(barehop.chain(ARGUMENTS[2], int(ARGUMENTS[3])))


def attempts(child: Child) -> None:
    """The task process of production; the measurement acts as the host.

    Arguments: folder for profiles or "", number of attempts.
    """
    import cProfile

    from tradewind.client.channel import START_OP
    from tradewind.wire.frames import FrameReader, frame
    from tradewind.wire.messages import Accepted, Workload, encode

    profiles, number = ARGUMENTS[2], int(ARGUMENTS[3])
    work = encode(
        Workload(
            1, 0, 1, "chain", "t0", "manual__x", bundle=ARGUMENTS[0], file=ARGUMENTS[1], run_after=1, run_started=1, log="x"
        )
    )
    for i in range(number):
        ours, theirs = socket.socketpair()
        log = os.open(os.devnull, os.O_WRONLY)
        began = time.perf_counter_ns()
        pid = os.fork()
        if pid == 0:
            if profiles:
                _profile_until_exit(cProfile.Profile(), f"{profiles}/runner-{i}.prof")
            child(work, [theirs.detach(), log])
            os._exit(0)
        steps = [time.perf_counter_ns()]
        theirs.close()
        os.close(log)
        ours.sendall(frame(encode(Accepted(START_OP))))
        reader = FrameReader()
        while True:
            try:
                data = ours.recv(65536)
            except ConnectionResetError:  # a runner does not wait for the answer to its report
                break
            if not data:
                break
            steps += [time.perf_counter_ns() for _ in reader.feed(data)]
        ours.close()
        _, _, usage = os.wait4(pid, 0)
        steps.append(time.perf_counter_ns())
        micros = [(step - began) / 1e3 for step in steps]
        print_result([*micros, (usage.ru_utime + usage.ru_stime) * 1e6, usage.ru_minflt])


def _profile_until_exit(profile: Any, path: str) -> None:
    leave = os._exit

    def stop(status: int) -> None:
        profile.disable()
        profile.dump_stats(path)
        leave(status)

    os._exit = stop  # type: ignore[assignment]
    profile.enable()


LOOPS = {"forks": forks, "rate": rate, "hop": hop, "attempts": attempts}


def main() -> None:
    def loop(child: Child) -> None:
        Once.looped = True
        LOOPS[name](child)

    ARGUMENTS[:] = sys.argv[2:]
    name = sys.argv[1]
    Once.loop = staticmethod(loop)
    setattr(base_image, "ForkServer", Once)  # noqa: B010  (a stand-in for the whole class, on purpose)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.argv = [sys.argv[0], str(theirs.detach()), str(LIFELINE[0]), str(os.getppid())]
    base_image.main()
    ours.close()


if __name__ == "__main__":
    main()
