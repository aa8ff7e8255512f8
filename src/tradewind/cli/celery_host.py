"""Entry point of the worker host beside a Celery worker: `python -m tradewind.cli.celery_host NAME SLOTS SOCKET QUEUES PARENT_PID`.

The worker host ends with the Celery worker. At SIGTERM its tasks may finish; if the Celery worker is killed, its tasks are stopped.
"""

from __future__ import annotations

import os
import signal
import sys

import tradewind.platform.light_imports  # noqa: F401 (before msgspec)
from tradewind.cli.compose.service_process import start_log
from tradewind.cli.compose.worker_host import gateway_config, run_host
from tradewind.cli.worker_hosts import process_kind
from tradewind.model.errors import TradewindError
from tradewind.model.executor_names import CELERY
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.settings import load


def main() -> int:
    name, slots, socket_path, queues, parent = sys.argv[1:]
    os.umask(0o077)
    os.setpgid(0, 0)  # Ctrl-C on a terminal goes to the Celery worker, which passes it on
    if HAVE_LINUX:
        from tradewind.platform import linux  # lazy import: Linux only

        linux.die_with_parent(int(parent), signal.SIGINT)
    try:
        settings = load()
        start_log(settings, process_kind(name))
        settings.paths.prepare()
        gateway = gateway_config(settings) if settings.worker.gateway else None
        run_host(
            settings,
            worker=name,
            queues=tuple(queues.split(",")),
            executors=(CELERY,),
            slots=int(slots),
            offers_socket=socket_path,
            gateway=gateway,
        )
    except TradewindError as error:
        Log("host").error("the process cannot continue", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
