"""One attempt in a freshly started interpreter: `python -m tradewind.worker.fresh_interpreter CHANNEL_FD LOG_FD HOST_PID`.

For systems without the Linux-only parts, and for users who choose it (`core.task_start = "fresh"`). The order comes on stdin.
"""

from __future__ import annotations

import os
import sys

from tradewind.platform import HAVE_LINUX
from tradewind.worker import task_process
from tradewind.worker.orders import decode_fresh_order


def main() -> None:
    channel, log, parent = (int(word) for word in sys.argv[1:4])
    order = decode_fresh_order(sys.stdin.buffer.read())
    if HAVE_LINUX:
        from tradewind.platform import linux  # lazy: Linux only

        linux.die_with_parent(parent)
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.close(quiet)
    os.dup2(log, 1)
    os.dup2(log, 2)
    task_process.limit_descriptors(order.limits)
    task_process.prepare()
    task_process.run_attempt(order.workload, None, channel, log, order.limits)


if __name__ == "__main__":
    main()
