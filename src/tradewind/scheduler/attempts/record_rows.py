"""Rows of what Airflow records beside runs: services, the audit log, versions, warnings, assets, failed tries, missed deadlines.

User code written for Airflow's database reads them (`ListRows`). The columns have Airflow's names, moments are microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.model.moments import parse_moment
from tradewind.model.states import Outcome
from tradewind.model.waits import TriggerWait
from tradewind.store.port import Reader
from tradewind.wire.messages import ListRows

RECORDS_MAX = 1_000
"""Maximum number of rows of these tables, the latest ones."""

Rows = list[dict[str, Any]]


def _micros(shown: str | None) -> int | None:
    """A moment of a list, which is text in ISO format."""
    return None if shown is None else parse_moment(shown)


def _jobs(store: Reader, _question: ListRows) -> Rows:
    return [
        {
            "id": one.id,
            "dag_id": None,
            "state": one.state,
            "job_type": one.job_type,
            "start_date": one.started_at,
            "end_date": one.ended_at,
            "latest_heartbeat": one.heartbeat_at,
            "executor_class": one.executor_class,
            "hostname": one.hostname,
            "unixname": one.unixname,
        }
        for one in store.jobs(RECORDS_MAX)
    ]


def _audit_log(store: Reader, question: ListRows) -> Rows:
    found = store.event_logs(dag_id=question.dag_id or None, limit=RECORDS_MAX, order_by=("-id",))
    return [
        {
            "id": one.event_log_id,
            "dttm": _micros(one.when),
            "dag_id": one.dag_id,
            "task_id": one.task_id,
            "run_id": one.run_id,
            "map_index": one.map_index,
            "try_number": one.try_number,
            "event": one.event,
            "logical_date": _micros(one.logical_date),
            "execution_date": _micros(one.logical_date),
            "owner": one.owner,
            "owner_display_name": one.owner,
            "extra": one.extra,
        }
        for one in found.rows
    ]


def _versions(store: Reader, question: ListRows) -> Rows:
    if question.dag_id and store.dag(question.dag_id) is None:
        return []
    found = store.dag_versions(question.dag_id or "~", limit=RECORDS_MAX, order_by=("-version_number",))
    return [
        {
            "id": str(one.id),
            "dag_id": one.dag_id,
            "version_number": one.version_number,
            "bundle_name": one.bundle_name,
            "bundle_version": one.bundle_version,
            "created_at": _micros(one.created_at),
            "last_updated": _micros(one.created_at),
        }
        for one in found.rows
    ]


def _warnings(store: Reader, question: ListRows) -> Rows:
    return [
        {
            "dag_id": one.dag_id,
            "warning_type": one.warning_type,
            "message": one.message,
            "timestamp": _micros(one.timestamp),
        }
        for one in store.dag_warnings(dag_id=question.dag_id or None)[:RECORDS_MAX]
    ]


def _assets(store: Reader, _question: ListRows) -> Rows:
    return [
        {
            "id": one.id,
            "name": one.name,
            "uri": one.uri,
            "group": one.group,
            "extra": one.extra,
            "created_at": _micros(one.created_at),
            "updated_at": _micros(one.updated_at),
            "is_orphaned": False,
        }
        for one in store.list_assets(limit=RECORDS_MAX).rows
    ]


def _asset_events(store: Reader, _question: ListRows) -> Rows:
    return [
        {
            "id": one.id,
            "asset_id": one.asset_id,
            "dataset_id": one.asset_id,
            "name": one.name,
            "uri": one.uri,
            "extra": one.extra,
            "source_dag_id": one.source_dag_id,
            "source_task_id": one.source_task_id,
            "source_run_id": one.source_run_id,
            "source_map_index": one.source_map_index,
            "timestamp": _micros(one.timestamp),
            "partition_key": one.partition_key,
        }
        for one in store.list_asset_events(limit=RECORDS_MAX, order_by=("-timestamp",)).rows
    ]


def _missed_deadlines(store: Reader, question: ListRows) -> Rows:
    """Tasks that had not succeeded by their `sla`."""
    rows: Rows = []
    for miss in store.deadline_misses(question.dag_id or None, at_most=RECORDS_MAX):
        run = store.run(miss.run) if miss.task_id is not None else None
        if run is not None:
            rows.append(
                {
                    "dag_id": miss.dag_id,
                    "task_id": miss.task_id,
                    "execution_date": run.logical_date,
                    "logical_date": run.logical_date,
                    "timestamp": miss.noticed_at,
                    "email_sent": True,
                    "notification_sent": True,
                    "description": None,
                }
            )
    return rows


def _failed_tries(store: Reader, question: ListRows) -> Rows:
    """The failed tries of the runs that the question names."""
    rows: Rows = []
    for run_id in question.run_ids:
        run = store.find_run(question.dag_id, run_id)
        if run is None:
            continue
        by_slot = {one.slot: one for one in store.instance_facts(run.id, (), RECORDS_MAX)}
        for attempt in store.attempts_of_run(run.id):
            one = by_slot.get(attempt.slot)
            if one is None or attempt.outcome not in _FAILURES or len(rows) >= RECORDS_MAX:
                continue
            began, ended = attempt.started_at, attempt.ended_at
            rows.append(
                {
                    "dag_id": run.dag_id,
                    "task_id": one.task_id,
                    "run_id": run.run_id,
                    "map_index": max(one.map_index, -1),
                    "start_date": began,
                    "end_date": ended,
                    "duration": (ended - began) // 1_000_000 if began is not None and ended is not None else None,
                    "execution_date": run.logical_date,
                    "logical_date": run.logical_date,
                }
            )
    return rows


_FAILURES = frozenset({Outcome.FAILED.value, Outcome.FAILED_FINAL.value, Outcome.LOST.value})


def _triggers(store: Reader, _question: ListRows) -> Rows:
    """The triggers that deferred tasks wait for. Airflow keeps one row for each of them, too."""
    return [
        {
            "id": number,
            "classpath": one.deferral.wait.classpath,
            "created_date": one.since,
            "triggerer_id": None,
        }
        for number, one in enumerate(store.open_waits(at_most=RECORDS_MAX), 1)
        if isinstance(one.deferral.wait, TriggerWait)
    ]


RECORDS: Mapping[str, Callable[[Reader, ListRows], Rows]] = {
    "asset": _assets,
    "asset_event": _asset_events,
    "dag_version": _versions,
    "dag_warning": _warnings,
    "job": _jobs,
    "log": _audit_log,
    "sla_miss": _missed_deadlines,
    "task_fail": _failed_tries,
    "trigger": _triggers,
}
"""Table in `ListRows` → its rows."""
