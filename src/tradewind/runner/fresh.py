"""One attempt in a freshly started interpreter: `python -m tradewind.runner.fresh CHANNEL_FD LOG_FD HOST_PID`.

For systems without the Linux-only parts, and for whoever wants it (`core.task_start = "fresh"`). The order comes on stdin.
"""

from __future__ import annotations

import os
import sys

import msgspec

from tradewind.processes import HAVE_LINUX
from tradewind.runner import task_process
from tradewind.runner.config import TaskLimits
from tradewind.wire.messages import Workload


class FreshOrder(msgspec.Struct, frozen=True):
    workload: Workload
    limits: TaskLimits


def main() -> None:
    channel, log, parent = (int(word) for word in sys.argv[1:4])
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=FreshOrder)
    if HAVE_LINUX:
        from tradewind.processes import linux  # lazy door: Linux only

        linux.die_with_parent(parent)
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.close(quiet)
    os.dup2(log, 1)
    os.dup2(log, 2)
    task_process.prepare()
    task_process.run_attempt(order.workload, None, channel, log, order.limits)


if __name__ == "__main__":
    main()
