"""Custom timetables from the scheduler's side: it asks, goes on, and takes the answer when it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.commands import as_dict
from tests.unit.scheduler.bench import NOW, Bench, task
from tests.unit.scheduler.conftest import MakeBench
from tradewind.model.assets import AssetKey, AssetUse
from tradewind.model.definition import CronSchedule, CustomSchedule
from tradewind.model.errors import Conflict, NoDates
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND
from tradewind.model.states import RunType
from tradewind.scheduler.dags.custom_timetables import BUNDLE
from tradewind.scheduler.explain.why import why
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

CUSTOM = CustomSchedule("", "Workdays")


class Parser:
    """Answers as a timetable with a run each day would, or as it is told to."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.asked: list[TimetableQuestion] = []
        self.say: Callable[[TimetableQuestion], TimetableAnswer] = self.daily
        self.connect()

    def connect(self) -> None:
        self.waiting: list[TimetableQuestion] = []
        self.bench.scheduler.timetables.connect(self.waiting.append)

    @staticmethod
    def daily(ask: TimetableQuestion) -> TimetableAnswer:
        at = NOW if ask.last is None or ask.last[0] is None else ask.last[0] + DAY
        return TimetableAnswer(ask.number, (at, at, at + DAY, at + DAY, None, None, None))

    def answer(self) -> int:
        """Answer all that is asked; how many that were."""
        self.bench.process()
        count = 0
        while self.waiting:
            count += 1
            ask = self.waiting.pop(0)
            self.asked.append(ask)
            self.bench.scheduler.schedules.on_timetable_answer(self.say(ask))
            self.bench.process()
        return count


def broken(ask: TimetableQuestion) -> TimetableAnswer:
    return TimetableAnswer(ask.number, problem="ValueError: no holidays known", stack_trace="line 3")


def logical_dates(bench: Bench, dag_id: str = "d") -> list[int | None]:
    return [row.logical_date for row in bench.runs(dag_id)]


def import_errors(bench: Bench) -> list[str]:
    return sorted(bench.store.known_files(BUNDLE))


def test_the_timetable_is_asked_once_for_each_run(bench: Bench) -> None:
    parser = Parser(bench)
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW, catchup=True)
    assert parser.answer() == 1
    assert logical_dates(bench) == []
    bench.pass_time(DAY)
    assert parser.answer() == 1
    bench.pass_time(DAY)
    assert parser.answer() == 1
    assert logical_dates(bench) == [NOW, NOW + DAY]
    ask = parser.asked[-1]
    assert (ask.bundle, ask.file, ask.dag_id, ask.catchup, ask.earliest) == ("dags", "d.py", "d", True, NOW)
    assert ask.last == (NOW + DAY, NOW + DAY, NOW + 2 * DAY, NOW + 2 * DAY)
    bench.check()


def test_a_restart_asks_the_timetable_again(bench: Bench) -> None:
    parser = Parser(bench)
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW, catchup=True)
    parser.answer()
    bench.clock.advance(3 * DAY)
    bench.restart()
    parser.connect()
    assert parser.answer() == 4
    assert logical_dates(bench) == [NOW, NOW + DAY, NOW + 2 * DAY]
    bench.check()


def test_open_requests_are_sent_when_a_parser_connects(bench: Bench) -> None:
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW - DAY, catchup=True)
    assert (
        "no parser is running that could ask it"
        in as_dict(why(bench.store, bench.scheduler, "d", "a", None))["blockers"][0]["sentence"]
    )
    parser = Parser(bench)
    lost = list(parser.waiting)
    assert len(lost) == 1
    parser.connect()
    assert parser.waiting == lost, "a line that broke: the same question again"
    parser.answer()
    bench.scheduler.schedules.on_timetable_answer(parser.daily(lost[0]))
    bench.process()
    assert logical_dates(bench) == [NOW] or logical_dates(bench) == []
    bench.check()


def test_a_failing_timetable_affects_only_its_dag_and_is_asked_again(bench: Bench) -> None:
    parser = Parser(bench)
    parser.say = broken
    bench.dag("good", task("a", empty=True), schedule=CronSchedule(("0 * * * *",)), start_date=NOW)
    bench.dag("d", task("a"), schedule=CUSTOM, start_date=NOW)
    assert parser.answer() == 1
    assert import_errors(bench) == ["d.py::d"]
    assert "no holidays known" in as_dict(why(bench.store, bench.scheduler, "d", "a", None))["blockers"][0]["sentence"]
    scheduler = bench.scheduler
    bench.command("trigger", dag_id="d", run_id="r", interval_start=NOW, interval_end=NOW)
    blockers = as_dict(why(bench.store, scheduler, "d", "a", "r"))["next_run"]["blockers"]
    assert any(b["rule"] == "timetable" and "timetable Workdays" in b["sentence"] for b in blockers), blockers
    waits = []
    for _ in range(9):
        before = bench.clock.wall()
        while not parser.waiting:
            bench.next_timer()
        waits.append((bench.clock.wall() - before) // SECOND)
        parser.answer()
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert len(bench.runs("good")) == 1, "others are not held up"
    parser.say = Parser.daily
    while not parser.waiting:
        bench.next_timer()
    parser.answer()
    assert import_errors(bench) == []
    assert bench.scheduler.timetables.troubles == {}


def test_an_edited_file_has_its_timetable_asked_at_once(bench: Bench) -> None:
    parser = Parser(bench)
    parser.say = broken
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW, catchup=True)
    parser.answer()
    parser.say = Parser.daily
    assert parser.answer() == 0
    bench.scheduler.schedules.file_parsed("d")
    assert parser.answer() == 1
    assert import_errors(bench) == []
    bench.scheduler.schedules.file_parsed("d")
    assert parser.answer() == 1, "the code may say something else now"


@pytest.mark.parametrize("change", ["pause", "cron", "restart"])
def test_the_import_error_is_removed_with_its_cause(bench: Bench, change: str) -> None:
    parser = Parser(bench)
    parser.say = broken
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW)
    parser.answer()
    assert import_errors(bench) == ["d.py::d"]
    if change == "pause":
        bench.command("set_paused", dag_id="d", is_paused=True)
    elif change == "cron":
        bench.dag("d", task("a", empty=True), schedule=CronSchedule(("0 * * * *",)), start_date=NOW)
    else:
        bench.restart()
        assert import_errors(bench) == ["d.py::d"], "nobody knows better yet"
        parser.connect()
        parser.say = Parser.daily
        parser.answer()
    assert import_errors(bench) == []


def test_a_run_that_is_not_after_the_last_one_is_refused(bench: Bench) -> None:
    parser = Parser(bench)
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW, catchup=True)
    parser.say = lambda ask: TimetableAnswer(ask.number, (NOW, NOW, NOW, NOW, None, None, None))
    parser.answer()
    assert logical_dates(bench) == [NOW]
    assert "not after the last one" in bench.scheduler.timetables.troubles["d"].sentence
    bench.check()


def test_a_timetable_without_further_runs_is_asked_again_later(bench: Bench) -> None:
    parser = Parser(bench)
    parser.say = lambda ask: TimetableAnswer(ask.number)
    bench.dag("d", task("a", empty=True), schedule=CUSTOM, start_date=NOW, end_date=NOW + HOUR)
    assert parser.answer() == 1
    bench.pass_time(9 * MINUTE)
    assert parser.answer() == 0
    bench.pass_time(MINUTE)
    assert parser.answer() == 1
    parser.say = lambda ask: TimetableAnswer(ask.number, (NOW + DAY, NOW + DAY, NOW + DAY, NOW + DAY, None, None, None))
    bench.pass_time(10 * MINUTE)
    assert parser.answer() == 1
    bench.pass_time(2 * DAY)
    assert logical_dates(bench) == []


def test_paused_and_manual_only_dags_are_not_asked(make_bench: MakeBench) -> None:
    bench = make_bench()
    parser = Parser(bench)
    bench.dag("p", task("a"), schedule=CUSTOM, start_date=NOW, paused=True)
    bench.dag("m", task("a"), schedule=CustomSchedule("", "ByHand", manual_only=True), start_date=NOW)
    assert parser.answer() == 0
    bench.command("set_paused", dag_id="p", is_paused=False)
    assert parser.answer() == 1


def test_a_manual_run_asks_the_timetable(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=CUSTOM, start_date=NOW, paused=True)
    command = bench.ask_for("trigger", dag_id="d", run_id="r", logical_date=NOW)
    ask = bench.commands.timetable_question(command.command, 7)
    assert ask is not None
    assert (ask.number, ask.manual_at, ask.file) == (7, NOW, "d.py")
    with pytest.raises(Conflict, match="cannot be asked now; give the data interval"):
        bench.command("trigger", dag_id="d", run_id="r", logical_date=NOW)
    with pytest.raises(Conflict, match="gives no data interval for a manual run: ValueError: no holidays known"):
        bench.command("trigger", dag_id="d", run_id="r", logical_date=NOW, timetable_answer=broken(ask))
    bench.command(
        "trigger", dag_id="d", run_id="r", logical_date=NOW, timetable_answer=TimetableAnswer(7, interval=(NOW - DAY, NOW))
    )
    assert bench.run("r").interval_start == NOW - DAY
    given = bench.ask_for("trigger", dag_id="d", run_id="s", interval_start=NOW, interval_end=NOW)
    assert bench.commands.timetable_question(given.command, 8) is None


NAMING = CustomSchedule("", "Names", names_runs=True)


def test_the_timetable_names_scheduled_runs(bench: Bench) -> None:
    parser = Parser(bench)

    def named(ask: TimetableQuestion) -> TimetableAnswer:
        answer = parser.daily(ask)
        assert answer.run is not None
        return TimetableAnswer(ask.number, (*answer.run[:6], f"ours-{answer.run[0]}"))

    parser.say = named
    bench.dag("d", task("a", empty=True), schedule=NAMING, start_date=NOW, catchup=True)
    parser.answer()
    bench.pass_time(DAY)
    assert [row.run_id for row in bench.runs("d")] == [f"ours-{NOW}"]
    bench.check()


def test_the_timetable_names_manual_runs(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=NAMING, start_date=NOW, paused=True)
    span: dict[str, Any] = {"interval_start": NOW - DAY, "interval_end": NOW}
    ask = bench.commands.timetable_question(bench.ask_for("trigger", dag_id="d", logical_date=NOW, **span).command, 7)
    assert ask is not None
    assert (ask.interval, ask.dated, ask.run_type, ask.run_after) == ((NOW - DAY, NOW), True, "manual", NOW)
    assert bench.commands.timetable_question(bench.ask_for("trigger", dag_id="d", run_id="r", **span).command, 8) is None
    answer = TimetableAnswer(7, interval=(NOW - DAY, NOW), run_id="ours")
    assert bench.command("trigger", dag_id="d", logical_date=NOW, timetable_answer=answer, **span)["run_id"] == "ours"
    given = bench.command("trigger", dag_id="d", run_id="mine", timetable_answer=answer)
    assert given["run_id"] == "mine"


def test_an_asset_of_a_dag_with_a_custom_timetable_is_materialized(bench: Bench) -> None:
    asset = AssetKey("a", "s3://a")
    bench.dag("d", task("a"), schedule=NAMING, start_date=NOW, paused=True, asset_uses=(AssetUse("a", "outlet", asset),))
    ask = bench.commands.timetable_question(bench.ask_for("materialize_asset", name="a").command, 7)
    assert ask is not None
    assert (ask.dag_id, ask.run_type, ask.dated) == ("d", "asset_materialization", False)
    answer = TimetableAnswer(7, interval=(NOW - DAY, NOW), run_id="ours")
    assert bench.command("materialize_asset", name="a", timetable_answer=answer)["run_id"] == "ours"
    assert bench.commands.timetable_question(bench.ask_for("materialize_asset", name="b").command, 7) is None


def test_a_backfill_asks_the_timetable_once(bench: Bench) -> None:
    bench.dag("d", task("a"), schedule=CUSTOM, start_date=NOW - 30 * DAY, paused=False)
    span: dict[str, Any] = {"from_date": NOW - 3 * DAY, "to_date": NOW - DAY}
    ask = bench.commands.timetable_question(bench.ask_for("create_backfill", dag_id="d", **span).command, 7)
    assert ask is not None
    assert ask.between == (NOW - 3 * DAY, NOW - DAY)
    with pytest.raises(Conflict, match="its timetable Workdays cannot be asked for its runs: no parser is running"):
        bench.command("create_backfill", dag_id="d", **span)
    with pytest.raises(Conflict, match="cannot be asked for its runs: ValueError: no holidays known"):
        bench.command("create_backfill", dag_id="d", timetable_answer=broken(ask), **span)
    runs = tuple((at, at, at + DAY, at + DAY, None, None, f"ours-{at}") for at in (NOW - 3 * DAY, NOW - DAY))
    answer = TimetableAnswer(7, runs=runs)
    number = bench.command("create_backfill", dag_id="d", timetable_answer=answer, **span)["backfill"]["id"]
    bench.restart()
    bench.work()
    made = [row for row in bench.runs("d") if row.run_type is RunType.BACKFILL]
    assert [(row.run_id, row.logical_date) for row in made] == [(run[6], run[0]) for run in runs]
    row = bench.store.backfill(number)
    assert row is not None
    assert row.completed_at is not None
    bench.check()


@pytest.mark.parametrize(
    "schedule", [CustomSchedule("", "Once", periodic=False), CustomSchedule("", "Never", manual_only=True)]
)
def test_a_timetable_without_several_runs_has_no_backfill(bench: Bench, schedule: CustomSchedule) -> None:
    bench.dag("d", task("a"), schedule=schedule, paused=True)
    with pytest.raises(NoDates, match="has no fixed dates"):
        bench.command("create_backfill", dag_id="d", from_date=NOW - DAY, to_date=NOW - HOUR)
