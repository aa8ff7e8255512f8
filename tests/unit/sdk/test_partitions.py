"""Partition mappers against the recorded answers of Airflow 3.3.2, and what a DAG file with partitions becomes."""

from __future__ import annotations

import itertools
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


class Prefixed(partitions.PartitionMapper):
    def __init__(self, prefix: str, **more: Any) -> None:
        super().__init__(**more)
        self.prefix = prefix

    def to_downstream(self, key: str) -> Any:
        if key == "bad":
            raise KeyError(key)
        return (text for text in (self.prefix + key, self.prefix + "all"))

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        return datetime(2026, 1, 1) if downstream_key == "x-all" else None  # noqa: DTZ001 (read as UTC)

    def serialize(self) -> dict[str, Any]:
        return {**super().serialize(), "prefix": self.prefix}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> partitions.PartitionMapper:
        return cls(**data)


class Pair(partitions.Window):
    def to_upstream(self, decoded_downstream: Any) -> list[str]:
        return [f"{decoded_downstream}-1", f"{decoded_downstream}-2"]


class Endless(partitions.PartitionMapper):
    def to_downstream(self, key: str) -> Any:
        return (str(number) for number in itertools.count())


class Nothing(partitions.PartitionMapper):
    """Has no to_downstream."""


class Unrestorable(Prefixed):
    def serialize(self) -> dict[str, Any]:
        return {"prefix": object()}


def stored(mapper: partitions.PartitionMapper) -> partitions.PartitionMapper:
    """Return the mapper as a child process makes it from the definition."""
    value = partitions.PartitionedAssetTimetable(assets=Asset("a"), default_partition_mapper=mapper).rules().default
    assert isinstance(value, values.Custom)
    assert value.name == type(mapper).__name__
    return partitions.decode_mapper(value.spec, lambda module, name: {__name__: globals()}[module][name])


def mapped(mapper: partitions.PartitionMapper, key: str, date: int | None = None) -> Any:
    found = partitions.map_key(stored(mapper), key, date)
    return found.problem or [(target, facts.expected, facts.needed, facts.date) for target, facts in found.targets]


def test_a_mapper_of_users_is_asked_in_a_child_process() -> None:
    assert mapped(Stripped(), "eu::x") == [("x", None, 1, None)]
    january = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
    assert mapped(Prefixed("x-"), "eu") == [("x-eu", None, 1, None), ("x-all", None, 1, january)]
    assert mapped(Prefixed("x-", max_downstream_keys=1), "eu").endswith(
        "more than 1 keys, which are allowed (max_downstream_keys)"
    )
    assert mapped(Prefixed("x-"), "bad") == "the mapper Prefixed does not accept the partition key 'bad': KeyError: 'bad'"
    with pytest.raises(PartitionKeyError, match="Prefixed is user code, which can run only in a child process"):
        downstream_keys(Prefixed("x-").as_value(), "eu")


def test_a_window_of_users_says_which_keys_a_run_waits_for() -> None:
    rollup = partitions.RollupMapper(upstream_mapper=partitions.FixedKeyMapper("k"), window=Pair())
    assert mapped(rollup, "x") == [("k", ("k-1", "k-2"), 2, None)]
    one = partitions.RollupMapper(
        upstream_mapper=Stripped(), window=Pair(direction="backward"), wait_policy=partitions.MinimumCount(-1)
    )
    assert mapped(one, "eu::k") == [("k", ("k-1", "k-2"), 1, None)]
    assert stored(one).window.direction is partitions.Window.Direction.BACKWARD  # type: ignore[attr-defined]


def test_mappers_of_users_inside_those_of_airflow() -> None:
    of_parts = partitions.ProductMapper(Stripped(), partitions.StartOfDayMapper())
    assert mapped(of_parts, "eu::x|2026-03-01T10:00:00") == [
        ("x|2026-03-01", None, 1, to_micros(datetime(2026, 3, 1, tzinfo=UTC)))
    ]
    assert "has 1 parts" in mapped(of_parts, "x")
    chain = partitions.ChainMapper(Stripped(), Prefixed("x-"), partitions.AllowedKeyMapper(["x-a", "x-all"]))
    assert [one[0] for one in mapped(chain, "eu::a")] == ["x-a", "x-all"]
    fan_out = partitions.FanOutMapper(
        upstream_mapper=Stripped(), window=Pair(), downstream_mapper=partitions.IdentityMapper(max_downstream_keys=5)
    )
    assert [one[0] for one in mapped(fan_out, "eu::a")] == ["a-1", "a-2"]


def test_a_date_is_carried_by_the_mapper() -> None:
    class_of = partitions.ChainMapper(Stripped(), partitions.IdentityMapper())
    assert mapped(class_of, "k", 7) == [("k", None, 1, None)], "as in Airflow: only IdentityMapper carries it"


def test_what_a_mapper_of_users_must_not_do() -> None:
    assert "more than 1000 keys" in mapped(Endless(), "k")
    assert "has no to_downstream(self, key)" in mapped(Nothing(), "k")
    with pytest.raises(DefinitionError, match="Unrestorable cannot be stored: TypeError"):
        stored(Unrestorable("x"))

    class Inner(Stripped):
        """Cannot be found by its name."""

    with pytest.raises(DefinitionError, match="inside a function"):
        Inner().as_value()
    with pytest.raises(TypeError, match="Half defines encode_upstream without decode_downstream"):

        class Half(partitions.PartitionMapper):
            def encode_upstream(self, decoded: Any) -> str:
                return ""


@pytest.mark.parametrize(
    "mapper",
    [
        partitions.IdentityMapper(max_downstream_keys=3),
        partitions.StartOfWeekMapper(timezone="Asia/Taipei", input_format="%Y"),
        partitions.RollupMapper(
            upstream_mapper=partitions.StartOfMonthMapper(),
            window=partitions.MonthWindow(direction="backward"),
            wait_policy=partitions.MinimumCount(3),
            max_downstream_keys=9,
        ),
        partitions.RollupMapper(upstream_mapper=partitions.FixedKeyMapper("x"), window=partitions.SegmentWindow(["a", "b"])),
        partitions.FanOutMapper(upstream_mapper=partitions.StartOfDayMapper(), window=partitions.DayWindow()),
        partitions.ProductMapper(partitions.AllowedKeyMapper(["a"]), partitions.IdentityMapper(), delimiter="/"),
        partitions.ChainMapper(partitions.IdentityMapper(), partitions.StartOfYearMapper()),
    ],
)
def test_airflows_mappers_can_be_parts_of_those_of_users(mapper: partitions.PartitionMapper) -> None:
    made = partitions.decode(json.loads(json.dumps(partitions.encode(mapper))))
    assert made.as_value() == mapper.as_value()


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
