"""Partition mappers against the recorded answers of Airflow 3.3.2, and what a DAG file with partitions becomes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tradewind.model import partitions as values
from tradewind.model.errors import DefinitionError
from tradewind.model.moments import iso, to_micros
from tradewind.sdk import partitions
from tradewind.sdk.assets import Asset
from tradewind.timetables import Bounds, RunTimes, next_run
from tradewind.timetables.partition_keys import PartitionKeyError, downstream_keys, key_date
from tradewind.timetables.trigger import CronPartitionTimetable

GOLDEN = json.loads((Path(__file__).parent.parent / "timetables/golden/partition_keys.json").read_text())
NAMES = {name: getattr(partitions, name) for name in dir(partitions) if name[0] != "_"}


@pytest.mark.parametrize("case", GOLDEN["mappers"], ids=lambda case: f"{case['mapper']} {case['key']}")
def test_a_mapper_gives_the_keys_that_airflow_gives(case: dict[str, Any]) -> None:
    mapper = eval(case["mapper"], dict(NAMES))
    if "error" in case:
        with pytest.raises(PartitionKeyError):
            mapper.to_downstream(case["key"])
        return
    found = mapper.to_downstream(case["key"])
    keys = [found] if isinstance(found, str) else list(found)
    assert (sorted(keys) if "Segment" in case["mapper"] else keys) == case["downstream"]
    if "upstream" in case:
        assert sorted(mapper.to_upstream(keys[0])) == case["upstream"]
    if case["date"] == "error":
        with pytest.raises(PartitionKeyError):
            mapper.to_partition_date(keys[0])
        return
    dates = [mapper.to_partition_date(one) for one in case["downstream"][:2]]
    expected = [None if one is None else datetime.fromisoformat(one) for one in case["date"]]
    assert dates == expected


@pytest.mark.parametrize("case", GOLDEN["cron"], ids=lambda case: f"{case['cron']} {case['timezone']} {case['arguments']}")
def test_a_cron_partition_has_airflows_runs_keys_and_dates(case: dict[str, Any]) -> None:
    schedule = CronPartitionTimetable(case["cron"], timezone=case["timezone"], **case["arguments"]).as_schedule()
    start = to_micros(datetime(2024, 3, 9, 7, 30, tzinfo=UTC))
    last: RunTimes | None = None
    for run_after, key, date in case["runs"]:
        last = next_run(schedule, last, Bounds(start, None, True), start)
        assert last is not None
        assert (last.logical_date, last.start, last.end, last.partition_key) == (None, None, None, key)
        assert last.run_after == to_micros(datetime.fromisoformat(run_after))
        assert last.partition_date == to_micros(datetime.fromisoformat(date))


def test_a_cron_partition_timetable_is_made_again_from_its_arguments() -> None:
    made = CronPartitionTimetable("0 * * * *", timezone="Asia/Taipei", run_offset=-2, key_format="%H", run_immediately=True)
    assert CronPartitionTimetable.deserialize(made.serialize()) == made


def test_an_event_gives_at_most_as_many_keys_as_its_mapper_allows() -> None:
    mapper = values.Fixed("x", most=1)
    assert downstream_keys(mapper, "a") == ["x"]
    window = values.SegmentWindow(("a", "b", "c"))
    assert downstream_keys(values.FanOut(values.Identity(), window, values.Identity(), most=3), "k") == ["a", "b", "c"]
    with pytest.raises(PartitionKeyError, match=r"gives 3 keys .* at most 2 are allowed"):
        downstream_keys(values.FanOut(values.Identity(), window, values.Identity(), most=2), "k")


class Stripped(partitions.PartitionMapper):
    def to_downstream(self, key: str) -> str:
        return key.removeprefix("eu::")


def test_a_mapper_of_the_authors_own_gives_no_keys_and_says_so() -> None:
    rules = partitions.PartitionedAssetTimetable(assets=Asset("a"), default_partition_mapper=Stripped()).rules()
    assert rules.default == values.Unsupported("Stripped")
    assert Stripped().to_downstream("eu::x") == "x"
    with pytest.raises(PartitionKeyError, match=r"Stripped is not one of Airflow's"):
        downstream_keys(rules.default, "x")


def test_each_asset_has_its_mapper() -> None:
    a, b = Asset("a", uri="s3://x/a"), Asset("b", uri="s3://x/b")
    daily = partitions.StartOfDayMapper()
    rules = partitions.PartitionedAssetTimetable(
        assets=a & b, partition_mapper_config={a: daily, Asset.ref(name="c"): partitions.FixedKeyMapper("all")}
    ).rules()
    assert rules.mapper("a", "s3://x/a") == daily.as_value()
    assert rules.mapper("c", "s3://x/c") == values.Fixed("all")
    assert rules.mapper("b", "s3://x/b") == values.Identity()
    assert iso(key_date(rules.mapper("a", ""), "2026-03-01")) == "2026-03-01T00:00:00Z"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: partitions.RollupMapper(upstream_mapper=partitions.IdentityMapper(), window=partitions.DayWindow()),
        lambda: partitions.FanOutMapper(upstream_mapper=partitions.IdentityMapper(), window=partitions.HourWindow()),
        lambda: partitions.MinimumCount(0),
        lambda: partitions.SegmentWindow([]),
        lambda: partitions.FixedKeyMapper(""),
        lambda: partitions.IdentityMapper(max_downstream_keys=0),
        lambda: partitions.ProductMapper(partitions.IdentityMapper()),
        lambda: partitions.StartOfWeekMapper(output_format="%Y %Y"),
        lambda: partitions.StartOfDayMapper(timezone="Mars/Olympus"),
        lambda: partitions.PartitionedAssetTimetable(assets=Asset("a"), default_partition_mapper="x"),  # type: ignore[arg-type]
        lambda: CronPartitionTimetable("0 * * * *", timezone="UTC", run_offset=1.5),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments_are_errors(wrong: Any) -> None:
    with pytest.raises(DefinitionError):
        wrong()
