"""The fields of a run that tasks receive."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.rows import RunRow


def run_facts(run: RunRow) -> dict[str, Any]:
    """Return the fields of a run by Airflow's names. Moments are microseconds since 1970, UTC."""
    return {
        "run_id": run.run_id,
        "run_type": run.run_type.value,
        "state": run.state.value,
        "logical_date": run.logical_date,
        "data_interval_start": run.interval_start,
        "data_interval_end": run.interval_end,
        "run_after": run.run_after,
        "start_date": run.started_at,
        "end_date": run.ended_at,
        "queued_at": run.queued_at,
        "id": run.id,
        "triggering_user_name": run.triggering_user,
        "note": run.note,
        "clear_number": run.clear_number,
        "bundle_version": run.bundle_version,
        "partition_key": run.partition_key,
        "partition_date": run.partition_date,
        "conf": msgspec.json.decode(run.conf) if run.conf else {},
    }
