"""The header that all pages of one DAG show."""

from __future__ import annotations

import msgspec

from tradewind.api.triage import HISTORY_MAX, usual
from tradewind.api.ui_shapes import PageDagHead
from tradewind.model.definition import NoSchedule, decode_schedule
from tradewind.model.errors import ScheduleError
from tradewind.store.port import Reader
from tradewind.timetables.describe import describe


def head_of(reader: Reader, dag_id: str, user: str) -> PageDagHead:
    """Read the head of a DAG for a user, whose favourites are marked. Raises NotFound."""
    details = msgspec.structs.replace(reader.dag_details(dag_id), is_favorite=reader.is_favorite(dag_id, user))
    display = reader.dag_displays([dag_id]).get(dag_id)
    text = None if display is None else schedule_text(display.schedule, has_assets=display.has_assets)
    return PageDagHead(
        details, text, usual(reader.usual_durations([dag_id], HISTORY_MAX)[dag_id]), reader.dag_warnings(dag_id=dag_id)
    )


def schedule_text(schedule: bytes, *, has_assets: bool) -> str | None:
    """A schedule in words; None where its cron expression cannot be read."""
    decoded = decode_schedule(schedule)
    try:
        sentence = describe(decoded)
    except ScheduleError:
        return None
    if not has_assets:
        return sentence
    besides = "" if isinstance(decoded, NoSchedule) else f", or: {sentence[:1].lower()}{sentence[1:].removesuffix('.')}"
    return f"When assets were updated{besides}."
