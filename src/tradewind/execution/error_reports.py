"""Reports of failed tasks to Sentry, from the process of the task. Needs the package sentry-sdk (the extra sentry).

As in Airflow, all options of the section `[sentry]` are arguments of `sentry_sdk.init`, and the task may use sentry_sdk itself. A
problem with Sentry never changes the result of a task.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from tradewind.execution.other_instances import instances_of_run
from tradewind.model.moments import iso
from tradewind.observe.log import Log
from tradewind.sdk.conf import conf
from tradewind.sdk.operator import BaseOperator
from tradewind.wire.messages import Workload

log = Log("sentry")

FLUSH_SECONDS = 2.0
"""Maximum time for which the end of a task's process waits for Sentry."""
BREADCRUMBS_MAX = 100
"""Number of finished task instances of the run that a report names. Sentry keeps no more breadcrumbs."""
_OWN_OPTIONS = frozenset({"sentry_on", "sentry_dsn", "dsn"})
_UNSUPPORTED = frozenset({"integrations", "in_app_include", "in_app_exclude", "ignore_errors", "before_breadcrumb"})
"""Options that are objects of Python and cannot be given as a text. Airflow does not support them either."""
_IMPORTED = frozenset({"before_send", "transport"})
"""Options whose value is the import path of an object."""
_FINISHED = ("success", "failed", "skipped", "upstream_failed")


class ErrorReports:
    """The connection of this process to Sentry.

    Args:
        sdk: the module sentry_sdk, initialized.
    """

    def __init__(self, sdk: Any, workload: Workload) -> None:
        self._sdk = sdk
        self._workload = workload

    def capture(self, error: BaseException) -> None:
        """Send a report, and wait until it is sent, for at most `FLUSH_SECONDS`."""
        try:
            self._add_breadcrumbs()
            self._sdk.capture_exception(error)
            self._sdk.flush(timeout=FLUSH_SECONDS)
        except Exception as problem:
            log.warning("the error was not sent to Sentry", error=f"{type(problem).__name__}: {problem}")

    def _add_breadcrumbs(self) -> None:
        """Name the finished task instances of the run."""
        try:
            found = instances_of_run(self._workload.dag_id, self._workload.run_id)
        except Exception as problem:
            log.warning("a report to Sentry does not name the other tasks", error=f"{type(problem).__name__}: {problem}")
            return
        for one in [one for one in found if one.state in _FINISHED][:BREADCRUMBS_MAX]:
            data = {"task_id": one.task_id, "state": one.state, "operator": one.operator, "duration": one.duration}
            self._sdk.add_breadcrumb(category="completed_tasks", data=data, level="info")


def open_reports(task: BaseOperator, workload: Workload) -> ErrorReports | None:
    """Connect this process to Sentry, before the task runs. None: reports are off, or this is not possible; the log says why."""
    try:
        if not conf.getboolean("sentry", "sentry_on"):
            return None
        sdk = importlib.import_module("sentry_sdk")
        importlib.import_module("sentry_sdk.integrations.logging").ignore_logger("airflow.task")
        sdk.init(**init_arguments(conf.getsection("sentry") or {}))
        scope = sdk.get_isolation_scope()
        for name, value in tags_of(task, workload).items():
            scope.set_tag(name, value)
    except ImportError:
        log.warning("errors are not sent to Sentry; install its package: pip install 'tradewind[sentry]'")
        return None
    except Exception as problem:
        log.warning("errors are not sent to Sentry", error=f"{type(problem).__name__}: {problem}")
        return None
    return ErrorReports(sdk, workload)


def init_arguments(section: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `sentry_sdk.init` for the options of the section `[sentry]`.

    Without a DSN, sentry_sdk reads the environment variable SENTRY_DSN.

    Raises:
        AirflowConfigException: an object that an option names cannot be imported.
    """
    found: dict[str, Any] = {}
    for name, value in section.items():
        if name in _UNSUPPORTED:
            log.warning("this option of the section [sentry] is not supported", option=name)
        elif name in _IMPORTED:
            if value:
                found[name] = conf.getimport("sentry", name)
        elif name not in _OWN_OPTIONS and value != "":
            found[name] = value
    dsn = section.get("sentry_dsn") or section.get("dsn")
    return {"dsn": dsn, **found} if dsn else found


def tags_of(task: BaseOperator, workload: Workload) -> dict[str, object]:
    """The tags of a report: Airflow's, and the run."""
    return {
        "task_id": workload.task_id,
        "dag_id": workload.dag_id,
        "run_id": workload.run_id,
        "map_index": workload.map_index,
        "try_number": workload.try_number,
        "data_interval_start": iso(workload.interval_start),
        "data_interval_end": iso(workload.interval_end),
        "logical_date": iso(workload.logical_date),
        "operator": task.task_type,
    }
