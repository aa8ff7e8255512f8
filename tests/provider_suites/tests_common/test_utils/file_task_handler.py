"""Log messages."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator
from typing import Any


def extract_events(logs: Iterable[Any], skip_source_info: bool = True) -> list[str]:
    """The texts of log messages, without the group that names the log's sources."""

    def of_sources(message: Any) -> bool:
        return not hasattr(message, "timestamp") or message.event == "::endgroup::" or hasattr(message, "sources")

    return [one.event for one in (itertools.dropwhile(of_sources, iter(logs)) if skip_source_info else logs)]


def convert_list_to_stream(input_list: list[str]) -> Iterator[str]:
    yield from input_list


def mock_parsed_logs_factory(event_prefix: str, start_datetime: datetime.datetime, count: int) -> list[Any]:
    """`count` messages, one each second."""
    import pendulum
    from airflow.utils.log.file_task_handler import StructuredLogMessage

    found = []
    for n in range(count):
        at = pendulum.instance(start_datetime + datetime.timedelta(seconds=n))
        found.append((at, n, StructuredLogMessage(timestamp=at, event=f"{event_prefix} Event {n}")))
    return found
