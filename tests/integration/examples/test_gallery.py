"""Every DAG of the gallery runs, and shows the feature of its name. All of it in virtual time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.examples.conftest import EXAMPLES
from tradewind.execution.run_trigger import watch
from tradewind.model.moments import to_micros
from tradewind.model.waits import TriggerEnd
from tradewind.sdk.assets import Asset
from tradewind.sdk.load import MODULE_PREFIX, load_file
from tradewind.testing import (
    DagFolder,
    Simulation,
    TestedRun,
    assert_run,
    assert_states,
    log_of,
    manual_interval,
    run_dag,
    upcoming_runs,
    xcom_of,
)

GALLERY = EXAMPLES / "gallery"
ALL = sorted(path.stem for path in GALLERY.glob("*.py"))
SUNDAY = datetime(2026, 3, 15, tzinfo=UTC)
MONDAY = SUNDAY + timedelta(days=1)


@pytest.fixture(scope="module")
def gallery() -> Iterator[DagFolder]:
    """The DAGs, imported once."""
    path = list(sys.path)
    yield DagFolder.read(GALLERY)
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith(MODULE_PREFIX)]:
        del sys.modules[name]


def test_all_gallery_files_can_be_imported(gallery: DagFolder) -> None:
    """Without error or warning; each file holds the DAG of its name; each DAG is recognised as an example."""
    gallery.check()
    for file, dag_ids in gallery.files.items():
        assert Path(file).stem in dag_ids
        assert (GALLERY / file).read_text(encoding="utf-8").count("\n") <= 60
    for dag in gallery.dags.values():
        assert dag.tags == {"example", "gallery"}
        assert dag.is_paused_upon_creation in (None, True)


@pytest.mark.parametrize("name", ALL)
def test_each_file_has_a_docstring_and_reads_nothing_at_import(name: str) -> None:
    """Its text says what to see, and importing it depends on no clock, file or environment."""
    assert len((GALLERY / f"{name}.py").read_text(encoding="utf-8").split('"""')[1]) > 100
    assert load_file(str(GALLERY), f"{name}.py").volatile_because is None


def run(gallery: DagFolder, name: str, date: datetime = MONDAY, **more: object) -> TestedRun:
    """One run, begun at its date."""
    world = Simulation(gallery.dag(name), start=date)
    world.trigger(name, "r", logical_date=date, **more)  # type: ignore[arg-type]
    return world.play().run("r")


def test_taskflow(gallery: DagFolder) -> None:
    assert xcom_of(run(gallery, "taskflow"), "tell") == "14 in all, 2.8 on average"


def test_short_circuit(gallery: DagFolder) -> None:
    assert_states(run(gallery, "short_circuit"), write_letters="success", post_letters="success")
    assert_states(run(gallery, "short_circuit", SUNDAY), write_letters="skipped", post_letters="skipped", always="success")


@pytest.mark.spec("S306")
def test_trigger_rules(gallery: DagFolder) -> None:
    tested = run(gallery, "trigger_rules")
    assert_states(tested, clean_up="success", raise_the_alarm="success", celebrate="success", publish="upstream_failed")
    assert_run(tested, "failed")


def test_task_groups(gallery: DagFolder) -> None:
    tested = run(gallery, "task_groups")
    assert xcom_of(tested, "report.bind") == "a book of 12 pages"
    assert gallery.dag("task_groups").get_task("report.write").upstream_task_ids == {"clean.numbers.round", "clean.names"}


def test_waiting_for_a_file(gallery: DagFolder, tmp_path: Path) -> None:
    """It comes after half an hour, in which the sensor held no slot."""
    path = tmp_path / "letters.csv"
    world = Simulation(gallery.dag("waiting_for_a_file"), start=MONDAY)
    world.trigger("waiting_for_a_file", "r", conf={"path": str(path)})
    world.play(until=timedelta(minutes=30))
    assert_states(world.run("r"), arrived="up_for_reschedule")
    path.write_text("a letter")
    tested = world.play().run("r")
    assert xcom_of(tested, "count_bytes") == 8
    assert len(tested.attempts_of("arrived")) == 8
    assert world.now == MONDAY + timedelta(minutes=35)


def test_waiting_for_another_dag(gallery: DagFolder) -> None:
    world = Simulation(gallery.dag("waiting_for_another_dag"), gallery.dag("daily_load"), start=MONDAY)
    world.trigger("waiting_for_another_dag", "report", logical_date=MONDAY)
    world.trigger("daily_load", "load", logical_date=MONDAY, at=timedelta(minutes=90), run_after=MONDAY)
    assert_run(world.play().run("report"))
    assert world.now >= MONDAY + timedelta(minutes=90)


def test_xcoms(gallery: DagFolder) -> None:
    assert xcom_of(run(gallery, "xcoms"), "in_python") == {"texts": [12, "12 mm"], "samples": [3, 4, 5], "missing": None}


def test_jinja_and_macros(gallery: DagFolder) -> None:
    tested = run(gallery, "jinja_and_macros")
    assert xcom_of(tested, "dates") == "from 2026-03-09 to 2026-03-16, that is Monday"
    assert xcom_of(tested, "own") == "LYON! says the weather people"
    days = ["2026-03-16 2026-03-17 2026-03-18 "]
    assert xcom_of(tested, "nested") == ["weather_lyon", days, "celsius"]


def test_pools_and_priorities(gallery: DagFolder) -> None:
    world = Simulation(gallery.dag("pools_and_priorities"), pools={"telephone": 1})
    world.trigger("pools_and_priorities", "r")
    tested = world.play().run("r")
    assert [one.task_id for one in tested.attempts] == ["call_the_fire_brigade", "call_the_bank", "call_a_friend"]


def test_setups_and_teardowns(gallery: DagFolder) -> None:
    tested = run(gallery, "setups_and_teardowns")
    assert_states(tested, make_cluster="success", work="failed", remove_cluster="success")
    assert_run(tested, "failed")
    assert_run(run(gallery, "setups_and_teardowns", conf={"break_it": False}))


def test_time_zones(gallery: DagFolder) -> None:
    """At half past two, an hour later on the day without half past two, and once on the day with two of them."""
    dag = gallery.dag("time_zones")
    spring = upcoming_runs(dag, now=datetime(2026, 3, 28, 2, 0, tzinfo=UTC), count=3)
    assert [f"{one.run_after:%d %H:%M}" for one in spring] == ["28 01:30", "29 01:30", "30 00:30"]
    autumn = upcoming_runs(dag, now=datetime(2026, 10, 24, 1, 0, tzinfo=UTC), count=3)
    assert [f"{one.run_after:%d}" for one in autumn] == ["24", "25", "26"]
    assert xcom_of(run(gallery, "time_zones", spring[0].run_after), "tell_the_time") == "02:30 in Paris, 01:30 in UTC"


@pytest.mark.spec("S400")
def test_custom_operator(gallery: DagFolder) -> None:
    tested = run(gallery, "custom_operator", conf={"name": "Grace"})
    assert xcom_of(tested, "greet") == "Good day, Grace of 2026-03-16"
    assert "greeting Grace of 2026-03-16 in run r" in log_of(tested, "greet")


def test_trigger_another_dag(gallery: DagFolder) -> None:
    """Here the other DAG's run is only announced: a DAG is tried alone."""
    tested = run(gallery, "trigger_another_dag")
    assert_run(tested)
    assert "printing_house" in log_of(tested, "order_a_book")
    assert xcom_of(run(gallery, "printing_house", conf={"title": "Moby-Dick"}), "print_book") == "printed: Moby-Dick"


def test_latest_only(gallery: DagFolder) -> None:
    world = Simulation(gallery.dag("latest_only"), start=datetime(2026, 1, 4, 12, tzinfo=UTC), follow_schedules=True)
    world.play(until=timedelta(hours=1))
    assert [one.tasks["send_mail"].state for one in world.runs()] == ["skipped", "skipped", "skipped", "success"]
    assert {one.tasks["store"].state for one in world.runs()} == {"success"}


def test_weekend_branch(gallery: DagFolder) -> None:
    assert_states(run(gallery, "weekend_branch"), rest="skipped", work="success")
    assert_states(run(gallery, "weekend_branch", SUNDAY), rest="success", work="skipped")


@pytest.mark.spec("S283")
def test_depends_on_past(gallery: DagFolder) -> None:
    world = Simulation(gallery.dag("depends_on_past"), start=datetime(2026, 1, 5, 12, tzinfo=UTC), follow_schedules=True)
    world.play(until=timedelta(hours=1))
    assert [xcom_of(one, "balance") for one in world.runs()] == [1, 3, 6, 10, 15]


def test_several_schedules(gallery: DagFolder) -> None:
    week = upcoming_runs(gallery.dag("several_schedules"), now=MONDAY, count=8)
    assert [f"{one.run_after:%a %H}" for one in week][1:] == [
        "Mon 08",
        "Tue 08",
        "Wed 08",
        "Thu 08",
        "Fri 08",
        "Sat 09",
        "Mon 08",
    ]


def test_callbacks(gallery: DagFolder) -> None:
    tested = run(gallery, "callbacks")
    assert "CALLBACK good, try 1: all is well" in log_of(tested, "good")
    assert [line for line in log_of(tested, "bad").splitlines() if line.startswith("CALLBACK")] == [
        "CALLBACK bad, try 1: the printer is out of paper",
        "CALLBACK bad, try 2: the printer is out of paper",
    ]


def test_skipping_and_giving_up(gallery: DagFolder) -> None:
    tested = run(gallery, "skipping_and_giving_up")
    assert_states(tested, nothing_new="skipped", wrong_password="failed", bad_line="success")
    assert [tested.tasks[name].try_number for name in ("nothing_new", "wrong_password", "bad_line")] == [1, 1, 3]


def test_data_intervals(gallery: DagFolder) -> None:
    tested = run_dag(gallery.dag("data_intervals"), logical_date=datetime(2026, 3, 16, 7, tzinfo=UTC))
    assert "at BETWEEN '2026-03-16 0" in xcom_of(tested, "query")
    (planned,) = upcoming_runs(gallery.dag("data_intervals"), now=MONDAY, count=1)
    assert planned.data_interval_end == planned.run_after
    assert to_micros(planned.run_after) - to_micros(planned.data_interval_start or MONDAY) == 3600 * 10**6


def test_dynamic_mapping(gallery: DagFolder) -> None:
    tested = run(gallery, "dynamic_mapping", conf={"cities": ["Lyon", "Oslo", "Rome"]})
    assert xcom_of(tested, "total") == 12
    assert xcom_of(tested, "compare")[:3] == ["Lyon in 2025", "Lyon in 2026", "Oslo in 2025"]
    assert [one.map_index for one in tested.instances_of("prepare.announce")] == [0, 1, 2]


def test_virtual_environment(gallery: DagFolder) -> None:
    """In real time: an environment is really made."""
    tested = run_dag(gallery.dag("virtual_environment"))
    assert_run(tested)
    assert xcom_of(tested, "tell") == "3 on average, isolated: True"


def test_bash_from_python(gallery: DagFolder) -> None:
    quiet, loud = run(gallery, "bash_from_python"), run(gallery, "bash_from_python", conf={"loud": True})
    assert xcom_of(quiet, "count_words") == "6"
    assert_states(quiet, shout="skipped")
    assert xcom_of(loud, "shout") == "TO BE OR NOT TO BE"


def test_custom_timetable(gallery: DagFolder) -> None:
    dag = gallery.dag("custom_timetable")
    planned = upcoming_runs(dag, now=MONDAY, count=3)
    assert [f"{one.run_after:%d %b %H}" for one in planned] == ["31 Jan 18", "28 Feb 18", "31 Mar 18"]
    assert manual_interval(dag, MONDAY, now=MONDAY) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    assert xcom_of(run_dag(dag, logical_date=MONDAY), "close_the_books") == "closed: March 2026"


def test_deferrable_operator(gallery: DagFolder) -> None:
    run = run_dag(gallery.dags["deferrable_operator"])
    assert xcom_of(run, "load") == 120
    first, second = run.attempts
    assert first.waits is not None
    assert first.waits.method == "finished"
    assert "wrote 120 rows" in second.log


def test_human_in_the_loop(gallery: DagFolder) -> None:
    """Nobody answers, so the defaults count after an hour."""
    run = run_dag(gallery.dags["human_in_the_loop"])
    assert_run(run, "success")
    assert xcom_of(run, "fill_in")["params_input"] == {"copies": 1}
    assert xcom_of(run, "publish") == "1 copies"


def test_every_gallery_file_has_a_test() -> None:
    """A new example comes with its test."""
    assert [name for name in ALL if f"test_{name}" not in globals()] == []


def follow(gallery: DagFolder, *dag_ids: str, days: float = 1) -> Simulation:
    """These DAGs by their schedules, from Monday on."""
    world = Simulation(*map(gallery.dag, dag_ids), start=MONDAY, follow_schedules=True)
    world.play(until=MONDAY + timedelta(days=days))
    return world


def results(world: Simulation, dag_id: str, task_id: str) -> list[object]:
    """What the task returned in each run, the oldest first."""
    rows = world.store.runs_between(dag_id, None, None)
    return [xcom_of(world.run(row.run_id, dag_id), task_id) for row in rows]


def test_assets_and_conditions(gallery: DagFolder) -> None:
    world = follow(gallery, "orders_of_the_day", "prices_of_the_day", "assets_and_conditions", days=1.5)
    assert results(world, "assets_and_conditions", "report") == [{"orders": 120, "prices": 30}] * 2
    alone = follow(gallery, "orders_of_the_day", "assets_and_conditions", days=1.5)
    assert results(alone, "assets_and_conditions", "report") == []


def test_assets_from_functions(gallery: DagFolder) -> None:
    world = follow(gallery, "assets_from_functions", "cleaned", "archive", "audit", days=0.05)
    assert results(world, "cleaned", "cleaned") == [[1, 2, 3]] * 2
    assert results(world, "audit", "look") == [["file:///data/archive/2026-01"]] * 2


def test_asset_watcher(gallery: DagFolder, tmp_path: Path) -> None:
    """The trigger of the watcher fires for the file; the run without an event finds nothing."""
    condition = gallery.dags["asset_watcher"].asset_condition
    assert isinstance(condition, Asset)
    (watcher,) = condition.watchers
    trigger = type(watcher.trigger)(directory=str(tmp_path), filename="orders.csv", poke_interval=0.01)
    payloads: list[bytes] = []

    async def emit(payload: bytes) -> None:
        payloads.append(payload)

    (tmp_path / "orders.csv").touch()
    assert asyncio.run(watch(trigger, emit)) == TriggerEnd()
    assert payloads == [b'{"filepath":"%s"}' % str(tmp_path / "orders.csv").encode()]
    assert list(tmp_path.iterdir()) == []
    assert xcom_of(run_dag(gallery.dags["asset_watcher"]), "load") == []
