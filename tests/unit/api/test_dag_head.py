"""The schedule of a DAG in words."""

from __future__ import annotations

import pytest

from tradewind.api.dag_head import schedule_words
from tradewind.model.definition import CronSchedule, NoSchedule, Schedule, encode_schedule
from tradewind.store.port.dag_overview import DagDisplay

NIGHTLY = CronSchedule(("0 2 * * *",))


@pytest.mark.parametrize(
    ("schedule", "has_assets", "has_partitions", "text"),
    [
        (NoSchedule(), False, False, "Only when it is triggered."),
        (NoSchedule(), True, False, "When assets were updated."),
        (NoSchedule(), True, True, "For each partition key, when its assets were updated."),
        (NIGHTLY, True, False, "When assets were updated, or: every day at 02:00 (UTC)."),
        (NIGHTLY, True, True, "For each partition key, when its assets were updated, or: every day at 02:00 (UTC)."),
    ],
)
def test_a_schedule_names_assets_and_partition_keys(
    schedule: Schedule, has_assets: bool, has_partitions: bool, text: str
) -> None:
    display = DagDisplay("d", "d.py", encode_schedule(schedule), None, has_assets, has_partitions, 1, None)
    words = schedule_words(display)
    assert words.text == text
    assert words.phrase is not None
