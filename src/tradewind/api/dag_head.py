"""The header that all pages of one DAG show."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tradewind.api.triage import HISTORY_MAX, usual
from tradewind.api.ui_shapes import PageDagHead
from tradewind.model.definition import NoSchedule, decode_schedule
from tradewind.model.errors import ScheduleError
from tradewind.model.phrases import Phrase, english, phrase
from tradewind.store.port import Reader
from tradewind.store.port.dag_overview import DagDisplay
from tradewind.timetables.describe import describe, schedule_phrase


def head_of(reader: Reader, dag_id: str, user: str) -> PageDagHead:
    """Read the head of a DAG for a user, whose favourites are marked. Raises NotFound."""
    details = msgspec.structs.replace(reader.dag_details(dag_id), is_favorite=reader.is_favorite(dag_id, user))
    display = reader.dag_displays([dag_id]).get(dag_id)
    words = ScheduleWords(None, None) if display is None else schedule_words(display)
    return PageDagHead(
        details=details,
        schedule_text=words.text,
        schedule_phrase=words.phrase,
        usual=usual(reader.usual_durations([dag_id], HISTORY_MAX)[dag_id]),
        warnings=reader.dag_warnings(dag_id=dag_id),
        definition_warnings=list(reader.definition_warnings(dag_id)),
    )


class ScheduleWords(NamedTuple):
    """A schedule in words; None where its cron expression cannot be read."""

    text: str | None
    """An English sentence."""
    phrase: Phrase | None
    """The same for other languages, without the full stop."""


def schedule_words(display: DagDisplay) -> ScheduleWords:
    """Return the schedule of a DAG in words."""
    decoded = decode_schedule(display.schedule)
    try:
        words = schedule_phrase(decoded)
        text = describe(decoded)
    except ScheduleError:
        return ScheduleWords(None, None)
    if not display.has_assets:
        return ScheduleWords(text, words)
    if isinstance(decoded, NoSchedule):
        words = phrase("schedule_partitions") if display.has_partitions else phrase("schedule_assets")
    elif display.has_partitions:
        words = phrase("schedule_partitions_or", schedule=words)
    else:
        words = phrase("schedule_assets_or", schedule=words)
    return ScheduleWords(f"{english(words)}.", words)
