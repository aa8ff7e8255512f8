"""Configs of a worker host and workloads of attempts, for tests of the worker's parts."""

from __future__ import annotations

from pathlib import Path

from tradewind.model.moments import SECOND
from tradewind.wire.messages import Workload
from tradewind.worker.config import HostConfig, TaskLimits


def host_config(folder: Path) -> HostConfig:
    """The config of a host whose folders are all in `folder`."""
    limits = TaskLimits(str(folder / "xcom"), 65536, 1 << 20, 0, 1024, 1024)
    return HostConfig(
        home_mark="test",
        scheduler_socket=str(folder / "scheduler.sock"),
        spool_folder=str(folder),
        log_folder=str(folder / "logs"),
        slots=0,
        task_start="template",
        malloc="default",
        template_max=50,
        template_idle=60 * SECOND,
        dynamic_template_max_age=SECOND,
        start_retry=5 * SECOND,
        kill_grace=SECOND,
        stop_grace=SECOND,
        drain_timeout=0,
        overtime=SECOND,
        verdict_resend=5 * SECOND,
        log_max=1 << 20,
        log_line_max=1 << 16,
        limits=limits,
        stall_limit=60 * SECOND,
    )


def workload(slot: int = 0) -> Workload:
    return Workload(1, slot, 1, "etl", f"t{slot}", "r1", bundle="dags", folder="/dags", file="etl.py", log=f"etl/{slot}.log")
