"""Runs for partition keys: which keys are complete, what consumes which event, and what happens with keys that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.model.assets import AllOf, AnyOf, AssetKey, AssetSchedule, AssetUse, Condition
from tradewind.model.definition import CronSchedule, NoSchedule
from tradewind.model.errors import Conflict
from tradewind.model.moments import DAY, HOUR, SECOND
from tradewind.model.partitions import (
    Allowed,
    CronPartition,
    Custom,
    FanOut,
    Fixed,
    Identity,
    KeyFacts,
    MappedKey,
    Mapper,
    PartitionRules,
    Rollup,
    SegmentWindow,
    StartOf,
)
from tradewind.model.states import RunType
from tradewind.scheduler.assets.answers import waits_for_assets
from tradewind.wire.messages import AssetUpdate, TimetableAnswer, TimetableQuestion

A, B = (AssetKey(name, f"s3://bucket/{name}") for name in "ab")
REGIONS = SegmentWindow(("apac", "eu", "us"))
HOURLY = StartOf("hour", "UTC", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H")


def consumer(bench: Bench, mapper: Mapper = Identity(), condition: Condition = A, dag_id: str = "c", **more: Any) -> None:
    schedule = AssetSchedule(condition, partitions=PartitionRules(mapper))
    bench.dag(dag_id, task("t"), assets=schedule, **more)


def emit(bench: Bench, key: str | None, asset: AssetKey = A) -> int:
    found = bench.command("create_asset_event", name=asset.name, uri=asset.uri, partition_key=key)
    return int(found["id"])


def keys(bench: Bench, dag_id: str = "c") -> list[str | None]:
    return [row.partition_key for row in bench.runs(dag_id)]


def waits(bench: Bench, dag_id: str = "c") -> str:
    return waits_for_assets(bench.store, bench.store.need_dag(dag_id)) or ""


def test_an_event_with_a_key_starts_a_run_with_this_key(bench: Bench) -> None:
    consumer(bench)
    number = emit(bench, "eu")
    (row,) = bench.runs("c")
    assert (row.partition_key, row.partition_date, row.run_type, row.logical_date) == (
        "eu",
        None,
        RunType.ASSET_TRIGGERED,
        None,
    )
    assert [event.id for event in bench.store.asset_events_of_run(row.id)] == [number]
    assert bench.store.waiting_partitions("c") == []


def test_a_task_passes_the_key_of_its_run_or_its_own_keys_on(bench: Bench) -> None:
    outlets = (AssetUse("make", "outlet", A),)
    bench.dag("p", task("make"), schedule=NoSchedule(partitioned_at_runtime=True), asset_uses=outlets)
    consumer(bench)
    bench.trigger("p", "r1", partition_key="k")
    bench.finish("r1.make", assets=(AssetUpdate(A.name, A.uri),))
    assert keys(bench) == ["k"]
    bench.trigger("p", "r2")
    bench.finish(
        "r2.make", assets=(AssetUpdate(A.name, A.uri, partition_key="x"), AssetUpdate(A.name, A.uri, partition_key="y"))
    )
    assert keys(bench) == ["k", "x", "y"]


def test_a_key_twice_is_two_runs(bench: Bench) -> None:
    consumer(bench)
    emit(bench, "eu")
    bench.clock.advance(SECOND)
    emit(bench, "eu")
    assert keys(bench) == ["eu", "eu"]


def test_an_event_with_a_key_does_not_count_for_a_dag_without_partitions(bench: Bench) -> None:
    bench.dag("plain", task("t"), assets=AssetSchedule(A))
    emit(bench, "eu")
    assert bench.runs("plain") == []
    emit(bench, None)
    (row,) = bench.runs("plain")
    assert row.partition_key is None
    assert len(bench.store.asset_events_of_run(row.id)) == 1


def test_an_event_without_a_key_does_not_count_for_a_dag_with_partitions(bench: Bench) -> None:
    consumer(bench)
    emit(bench, None)
    assert bench.runs("c") == []
    assert waits(bench) == (
        "no event with a partition key waits for the DAG; event 1 was dropped: the event has no partition key, and the DAG's "
        "schedule needs one"
    )


def test_all_assets_have_to_come_with_the_same_key(bench: Bench) -> None:
    consumer(bench, HOURLY, AllOf((A, B)))
    emit(bench, "2026-01-01T10:05:00")
    emit(bench, "2026-01-01T11:05:00", B)
    assert keys(bench) == []
    assert waits(bench) == (
        "partition 2026-01-01T10: 1 of 2 assets updated; missing: b. partition 2026-01-01T11: 1 of 2 assets updated; missing: a"
    )
    emit(bench, "2026-01-01T10:55:00", B)
    (row,) = bench.runs("c")
    assert (row.partition_key, row.partition_date) == ("2026-01-01T10", NOW + 10 * HOUR)


def test_a_rollup_waits_for_all_keys_of_its_window(bench: Bench) -> None:
    consumer(bench, Rollup(Fixed("all"), REGIONS))
    emit(bench, "us")
    emit(bench, "us")
    emit(bench, "mars")
    emit(bench, "eu")
    assert keys(bench) == []
    assert waits(bench) == "partition all: 0 of 1 asset updated; missing: a; a: 2 of 3 keys arrived; missing: apac"
    emit(bench, "apac")
    (row,) = bench.runs("c")
    assert row.partition_key == "all"
    assert len(bench.store.asset_events_of_run(row.id)) == 5


def test_a_rollup_may_start_early(bench: Bench) -> None:
    consumer(bench, Rollup(Fixed("all"), REGIONS, minimum=-1))
    emit(bench, "us")
    assert keys(bench) == []
    emit(bench, "eu")
    assert keys(bench) == ["all"]


def test_a_rollup_that_can_never_start_says_so(bench: Bench) -> None:
    consumer(bench, Rollup(Fixed("all"), REGIONS, minimum=4))
    for region in REGIONS.segments:
        emit(bench, region)
    assert keys(bench) == []
    assert "waits for 4 keys, but its window has 3" in waits(bench)


def test_a_fan_out_creates_a_run_for_each_part_whatever_max_active_runs_says(bench: Bench) -> None:
    consumer(bench, FanOut(Identity(), REGIONS, Identity()), max_active_runs=1)
    number = emit(bench, "x")
    rows = bench.runs("c")
    assert [row.partition_key for row in rows] == ["apac", "eu", "us"]
    assert [row.state.value for row in rows] == ["running", "queued", "queued"]
    assert [[event.id for event in bench.store.asset_events_of_run(row.id)] for row in rows] == [[number]] * 3
    assert len({row.run_id for row in rows}) == 3


@pytest.mark.parametrize(
    ("mapper", "key"), [(Allowed(("us",)), "eu"), (HOURLY, "no date"), (FanOut(Identity(), REGIONS, Identity(), most=2), "x")]
)
def test_a_key_that_does_not_fit_starts_nothing_and_the_event_is_kept(bench: Bench, mapper: Mapper, key: str) -> None:
    consumer(bench, mapper)
    consumer(bench, dag_id="other")
    number = emit(bench, key)
    assert keys(bench) == []
    assert keys(bench, "other") == [key]
    dropped = bench.store.dropped_asset_event("c")
    assert dropped is not None
    assert dropped[0] == number
    assert repr(key) in dropped[1]
    assert dropped[1] in waits(bench)
    assert bench.store.asset_events(name="a")[0].id == number


def test_a_paused_dag_gets_no_keys(bench: Bench) -> None:
    consumer(bench)
    bench.command("set_paused", dag_id="c", is_paused=True)
    emit(bench, "eu")
    bench.command("set_paused", dag_id="c", is_paused=False)
    assert keys(bench) == []


def test_keys_that_wait_survive_a_restart(bench: Bench) -> None:
    consumer(bench, Rollup(Fixed("all"), REGIONS))
    emit(bench, "us")
    emit(bench, "eu")
    bench.restart()
    emit(bench, "apac")
    assert keys(bench) == ["all"]


def test_other_mappers_drop_the_keys_that_wait(bench: Bench) -> None:
    consumer(bench, Rollup(Fixed("all"), REGIONS))
    emit(bench, "us")
    consumer(bench, Rollup(Fixed("all"), SegmentWindow(("us",))))
    assert bench.store.waiting_partitions("c") == []
    emit(bench, "us")
    assert keys(bench) == ["all"]


def test_a_cron_partition_passes_its_key_and_date_on(bench: Bench) -> None:
    hourly = CronSchedule(("0 0 * * *",), partition=CronPartition("%Y-%m-%d", -1))
    uses = (AssetUse("make", "outlet", A),)
    bench.dag("p", task("make"), schedule=hourly, start_date=NOW, catchup=True, asset_uses=uses)
    consumer(bench)
    (row,) = bench.runs("p")
    assert (row.run_id, row.partition_key) == ("scheduled__2026-01-01T00:00:00+00:00__2025-12-31", "2025-12-31")
    assert (row.logical_date, row.interval_start, row.partition_date) == (None, None, NOW - DAY)
    bench.finish(f"{row.run_id}.make", assets=(AssetUpdate(A.name, A.uri),))
    (made,) = bench.runs("c")
    assert (made.partition_key, made.partition_date) == ("2025-12-31", NOW - DAY)


def test_a_key_is_only_for_dags_with_partitions(bench: Bench) -> None:
    bench.dag("plain", task("t"))
    consumer(bench, HOURLY)
    with pytest.raises(Conflict, match="DAG plain is not partitioned"):
        bench.trigger("plain", "r", partition_key="x")
    with pytest.raises(Conflict, match="does not accept the partition key 'x'"):
        bench.trigger("c", "r", partition_key="x")
    with pytest.raises(Conflict, match="partition_key is empty"):
        bench.trigger("c", "r", partition_key=" ")
    bench.trigger("c", "r", partition_key="2026-01-01T05")
    (row,) = bench.runs("c")
    assert row.partition_date == NOW + 5 * HOUR


# --- mappers of users ----------------------------------------------------------------------------------------------------

OURS = Custom("Ours", b"{}")


class Mapping:
    """The parser's side: answers as it is told to."""

    def __init__(self, bench: Bench, say: Callable[[str], MappedKey]) -> None:
        self.bench, self.say = bench, say
        self.asked: list[TimetableQuestion] = []
        self.connect()

    def connect(self) -> None:
        self.bench.scheduler.timetables.connect(self.asked.append)
        self.bench.scheduler.mappers.send_again()

    def answer(self, problem: str | None = None) -> list[tuple[str, ...]]:
        """Answer all that is asked; the keys of each question."""
        answered = []
        while self.asked:
            ask = self.asked.pop(0)
            answered.append(tuple(key for key, _ in ask.keys))
            found = () if problem else tuple(self.say(key) for key, _ in ask.keys)
            self.bench.scheduler.schedules.on_timetable_answer(TimetableAnswer(ask.number, mapped=found, problem=problem))
            self.bench.process()
        return answered


def to(*targets: str, **facts: Any) -> MappedKey:
    return MappedKey(tuple((target, KeyFacts(**facts)) for target in targets))


def test_a_mapper_of_users_is_asked_for_each_event(bench: Bench) -> None:
    consumer(bench, OURS)
    parser = Mapping(bench, lambda key: to(key.upper(), "all", date=NOW))
    emit(bench, "eu")
    assert keys(bench) == []
    assert waits(bench).startswith("the partition mapper of the DAG is asked for the keys of events")
    (ask,) = parser.asked
    assert (ask.dag_id, ask.file, ask.mapper, ask.keys) == ("c", "c.py", b"{}", (("eu", None),))
    emit(bench, "us")
    assert parser.answer() == [("eu",), ("us",)]
    rows = bench.runs("c")
    assert sorted((row.partition_key, row.partition_date) for row in rows) == [
        ("EU", NOW),
        ("US", NOW),
        ("all", NOW),
        ("all", NOW),
    ]
    bench.check()


def test_events_that_come_together_are_asked_together(bench: Bench) -> None:
    """Also after a restart, and if another asset of the DAG was examined before."""
    schedule = AssetSchedule(AnyOf((A, B)), partitions=PartitionRules(Identity(), by_name=(("a", OURS),)))
    bench.dag("c", task("t"), assets=schedule)
    for key in ("x", "y", "z"):
        emit(bench, key)
    emit(bench, "k", B)
    assert keys(bench) == ["k"]
    bench.restart()
    bench.process()
    parser = Mapping(bench, lambda key: to(key * 2))
    assert parser.answer() == [("x", "y", "z")]
    assert sorted(map(str, keys(bench))) == ["k", "xx", "yy", "zz"]
    bench.check()


def test_a_window_of_users_holds_the_run_back(bench: Bench) -> None:
    consumer(bench, OURS)
    parser = Mapping(bench, lambda key: to("both", expected=("eu", "us"), needed=2))
    emit(bench, "eu")
    parser.answer()
    assert keys(bench) == []
    assert waits(bench) == "partition both: 0 of 1 asset updated; missing: a; a: 1 of 2 keys arrived; missing: us"
    emit(bench, "us")
    parser.answer()
    assert keys(bench) == ["both"]
    bench.check()


def test_a_mapper_of_users_may_refuse_a_key(bench: Bench) -> None:
    consumer(bench, OURS)
    parser = Mapping(bench, lambda key: to("x") if key == "good" else MappedKey(problem="ValueError: no such region"))
    emit(bench, "bad")
    parser.answer()
    assert waits(bench).endswith("event 1 was dropped: ValueError: no such region")
    emit(bench, "good")
    parser.answer()
    assert keys(bench) == ["x"]


def test_a_key_that_kills_the_child_process_affects_no_other_key(bench: Bench) -> None:
    consumer(bench, OURS)
    for key in ("a", "b"):
        emit(bench, key)
    bench.restart()
    bench.process()
    parser = Mapping(bench, to)
    first = parser.asked.pop(0)
    assert len(first.keys) == 2
    bench.scheduler.schedules.on_timetable_answer(TimetableAnswer(first.number, problem="it took too long"))
    bench.process()
    (second,) = parser.asked
    assert second.keys == (("a", None),)
    parser.asked.clear()
    bench.scheduler.schedules.on_timetable_answer(TimetableAnswer(second.number, problem="it took too long"))
    bench.process()
    assert parser.answer() == [("b",)]
    assert keys(bench) == ["b"]
    bench.check()


def test_open_requests_to_mappers_are_sent_to_the_next_parser(bench: Bench) -> None:
    consumer(bench, OURS)
    emit(bench, "eu")
    parser = Mapping(bench, to)
    assert len(parser.asked) == 1
    lost = parser.asked[0]
    parser.connect()
    assert [ask.number for ask in parser.asked] == [lost.number] * 2
    assert parser.answer() == [("eu",), ("eu",)], "the second answer changes nothing"
    assert keys(bench) == ["eu"]


def test_other_mappers_drop_what_waits_for_those_of_users(bench: Bench) -> None:
    consumer(bench, OURS)
    parser = Mapping(bench, to)
    emit(bench, "eu")
    consumer(bench, Identity())
    assert parser.answer() == [("eu",)]
    assert keys(bench) == []
    emit(bench, "us")
    assert keys(bench) == ["us"]
    bench.check()
