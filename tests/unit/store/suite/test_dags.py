"""DAGs, their versions, and the files that define them."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, broken, commit, definition, new_run, parsed, step, with_dag, with_run
from tradewind.model.definition import CronSchedule, encode_schedule
from tradewind.model.errors import NotFound, NotReadYet
from tradewind.model.rows import ImportProblem, ParsedFile, SchedulePosition, UnreadFiles
from tradewind.store.port import Store


def register(store: Store, *definitions: object, file: str = "d.py", **fields: object) -> list[str]:
    return store.register_file(parsed(*definitions, file=file, **fields), paused_at_creation=False)  # type: ignore[arg-type]


def test_a_plan_has_what_the_next_run_needs(store: Store) -> None:
    cron = CronSchedule(("0 6 * * *",), interval_kind="data")
    one = definition("d", schedule=cron, start_date=NOW, end_date=NOW + 9, catchup=True, max_active_runs=3)
    assert register(store, one) == ["d"]
    plan = store.need_dag("d")
    assert (plan.dag_id, plan.file, plan.bundle, plan.is_paused, plan.is_active) == ("d", "d.py", "dags", False, True)
    assert (plan.schedule, plan.start_date, plan.end_date) == (encode_schedule(cron), NOW, NOW + 9)
    assert (plan.catchup, plan.max_active_runs, plan.schedule_epoch, plan.last) == (True, 3, 1, None)
    assert store.dag("d") == plan
    assert store.plans() == [plan]
    assert store.definition(plan.version) == store.current_definition("d") == one


def test_a_large_definition_is_read_as_it_was_written(store: Store) -> None:
    large = definition("d", {f"task_with_a_long_name_{i}": () for i in range(800)})
    register(store, large)
    assert store.current_definition("d") == large


def test_equal_content_is_the_same_version_and_changes_nothing(store: Store) -> None:
    register(store, definition())
    before = store.need_dag("d")
    assert register(store, definition(), at=NOW + 5) == []
    assert store.need_dag("d") == before


def test_a_version_with_runs_stays_beside_the_new_one(store: Store) -> None:
    register(store, definition(tasks=2))
    run = with_run(store)
    assert register(store, definition(tasks=4)) == ["d"]
    assert store.need_dag("d").version != run.version
    assert len(store.definition(run.version).tasks) == 2
    assert with_run(store, "r2").task_count == 4


def test_earlier_content_gets_its_old_version_again(store: Store) -> None:
    register(store, definition(tasks=2))
    first = with_run(store).version
    register(store, definition(tasks=3))
    with_run(store, "r2")
    assert register(store, definition(tasks=2)) == ["d"]
    assert store.need_dag("d").version == first


def test_a_version_without_runs_is_replaced_and_its_number_not_used_again(store: Store) -> None:
    numbers = []
    for tasks in range(1, 6):
        register(store, definition(tasks=tasks))
        numbers.append(store.need_dag("d").version)
        assert len(store.current_definition("d").tasks) == tasks
    assert len(set(numbers)) == 5
    with pytest.raises(NotFound, match=f"no DAG version {numbers[0]}"):
        store.definition(numbers[0])


def test_a_version_that_was_rolled_back_is_forgotten(store: Store) -> None:
    """The next version may get its number; then that definition must be found under it."""
    with_dag(store, "other")

    def taken_back() -> None:
        with store.transaction():
            register(store, definition(tasks=2))
            assert len(store.current_definition("d").tasks) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        taken_back()
    assert store.dag("d") is None
    register(store, definition(tasks=5))
    assert len(store.current_definition("d").tasks) == 5


def test_new_dags_are_paused_as_configured_unless_they_say_otherwise(store: Store) -> None:
    dags = [definition("a"), definition("b", is_paused_upon_creation=False), definition("c", is_paused_upon_creation=True)]
    store.register_file(parsed(*dags), paused_at_creation=True)
    assert [plan.is_paused for plan in store.plans()] == [True, False, True]
    store.register_file(parsed(*(definition(d.dag_id, 9, is_paused_upon_creation=True) for d in dags)), paused_at_creation=True)
    assert [plan.is_paused for plan in store.plans()] == [True, False, True]


def test_pausing_says_whether_it_changed_anything(store: Store) -> None:
    with_dag(store)
    assert store.set_paused("d", True, "ada", NOW)
    assert store.need_dag("d").is_paused
    assert not store.set_paused("d", True, "ada", NOW)
    assert store.set_paused("d", False, "ada", NOW)
    with pytest.raises(NotFound, match=r"no DAG 'dd'. Did you mean 'd'\?"):
        store.set_paused("dd", True, "ada", NOW)


def test_the_error_for_an_unknown_dag_names_the_nearest(store: Store) -> None:
    with_dag(store, "weather")
    assert store.dag("wether") is None
    for ask in (store.need_dag, store.current_definition):
        with pytest.raises(NotFound, match=r"There is no DAG 'wether'\. Did you mean 'weather'\?"):
            ask("wether")


def test_a_broken_file_keeps_its_last_good_version(store: Store) -> None:
    register(store, definition())
    before = store.need_dag("d")
    assert store.register_file(broken(), paused_at_creation=False) == []
    assert store.need_dag("d") == before
    assert store.dag_ids() == ["d"]


def test_a_dag_that_left_its_file_becomes_inactive_and_may_come_back(store: Store) -> None:
    register(store, definition("a"), definition("b"))
    assert register(store, definition("b")) == ["a"]
    assert [plan.is_active for plan in store.plans()] == [False, True]
    assert register(store, definition("a"), file="new.py") == ["a"]
    assert store.need_dag("a")[2] == "new.py"
    assert store.need_dag("a").is_active


def test_a_dag_id_belongs_to_the_file_that_had_it_first(store: Store) -> None:
    register(store, definition("a"), file="one.py")
    before = store.need_dag("a")
    assert register(store, definition("a", 9), definition("b"), file="two.py") == ["b"]
    assert store.need_dag("a") == before
    register(store, file="one.py")
    assert register(store, definition("a", 9), definition("b"), file="two.py") == ["a"]
    assert store.need_dag("a").file == "two.py"


def test_known_files_are_those_with_active_dags(store: Store) -> None:
    register(store, definition("a"), definition("b"), file="one.py")
    register(store, definition("c"), file="two.py", is_dynamic=True, file_hash="h2")
    register(store, definition("e"), file="gone.py")
    register(store, file="gone.py")
    assert store.known_files("dags") == {"one.py": ("hash of one.py", False), "two.py": ("h2", True)}
    register(store, definition("a"), definition("b"), file="one.py", file_hash="h3", is_dynamic=True)
    assert store.known_files("dags")["one.py"] == ("h3", True)
    assert store.known_files("elsewhere") == {}


@pytest.mark.spec("S229")
def test_missing_files_deactivate_their_dags(store: Store) -> None:
    register(store, definition("a"), definition("b"), file="one.py")
    register(store, definition("c"), file="two.py")
    assert sorted(store.forget_files("dags", ["one.py", "unknown.py"], NOW)) == ["a", "b"]
    assert store.forget_files("dags", ["one.py"], NOW) == []
    assert [plan.is_active for plan in store.plans()] == [False, False, True]


def test_a_run_continues_with_its_version_when_its_dag_is_inactive(store: Store) -> None:
    register(store, definition(tasks=3))
    run = with_run(store)
    store.forget_files("dags", ["d.py"], NOW)
    step(store, run.id, S.SCHEDULED)
    assert len(store.definition(run.version).tasks) == 3


def test_the_position_of_a_schedule_survives_a_new_version(store: Store) -> None:
    register(store, definition())
    position = SchedulePosition("d", None, (None, None, None, NOW), None)
    commit(store, positions=[position, SchedulePosition("nobody", None, None, None)])
    assert store.need_dag("d").last == (None, None, None, NOW)
    register(store, definition(tasks=7))
    assert store.need_dag("d").last == (None, None, None, NOW)
    assert new_run(store).version == store.need_dag("d").version


def test_a_file_with_an_import_error_is_parsed_again(store: Store) -> None:
    problem = ImportProblem("SyntaxError: oops", "trace", 3)
    store.register_file(
        ParsedFile("dags", "broken.py", "h1", (), problem, 1, False, NOW),
        paused_at_creation=False,
    )
    assert store.known_files("dags") == {"broken.py": ("", False)}


def test_a_run_gets_the_bundle_version_of_its_definition(store: Store) -> None:
    register(store, definition(tasks=1), bundle_version="one")
    first = with_run(store, "r1")
    stale = new_run(store, "r2")  # the creator has not seen the next version yet
    assert register(store, definition(tasks=2), bundle_version="two") == ["d"]
    second = store.create_run(stale)
    assert (first.bundle_version, first.task_count) == ("one", 1)
    assert (second.bundle_version, second.task_count) == ("two", 2)
    assert set(store.used_bundle_versions("dags")) == {"one", "two"}
    assert register(store, definition(tasks=3), bundle_version="three") == ["d"]
    assert set(store.used_bundle_versions("dags")) == {"one", "two", "three"}, "the next run gets the third"
    assert store.used_bundle_versions("other") == []


def test_a_dag_may_let_its_runs_follow_the_newest_version(store: Store) -> None:
    register(store, definition(disable_bundle_versioning=True), bundle_version="one")
    assert with_run(store).bundle_version is None


def test_an_unchanged_file_moves_to_the_next_bundle_version(store: Store) -> None:
    register(store, definition("a"), file="a.py", bundle_version="one")
    register(store, definition("b"), file="b.py", bundle_version="one")
    files = {"a.py": "hash of a.py", "b.py": "hash of an earlier reading", "none.py": "x"}
    assert store.move_to_bundle_version("dags", "two", files) == ["a"]
    assert [store.need_dag(name).bundle_version for name in ("a", "b")] == ["two", "one"]
    assert store.move_to_bundle_version("dags", "two", files) == []
    assert store.move_to_bundle_version("other", "three", files) == []


def test_equal_content_in_a_newer_bundle_version_is_a_change(store: Store) -> None:
    register(store, definition(), bundle_version="one")
    assert register(store, definition(), bundle_version="two") == ["d"]
    assert register(store, definition(), bundle_version="two") == []
    assert store.need_dag("d").bundle_version == "two"


def test_a_dag_id_of_another_bundle_is_an_error_that_names_the_bundle(store: Store) -> None:
    register(store, definition())
    store.register_file(parsed(definition(), file="e.py")._replace(bundle="other"), paused_at_creation=False)
    assert "d.py of the bundle dags" in store.import_problems()["other", "e.py"].message


def test_an_unknown_dag_may_be_in_a_file_that_is_not_read_yet(store: Store) -> None:
    assert store.unread_files() is None
    store.note_unread_files("dags", UnreadFiles(300, 37))
    store.note_unread_files("other", UnreadFiles(2, 1))
    with pytest.raises(NotReadYet, match="There is no DAG 'x' yet: 38 of 302 DAG files are still being read"):
        store.need_dag("x")
    store.note_unread_files("dags", UnreadFiles(300, 0))
    assert store.unread_files() == (2, 1)
    store.note_unread_files("other", UnreadFiles(2, 0))
    assert store.unread_files() is None
    store.note_unread_files("dags", UnreadFiles(300, 12))
    store.forget_unread_files()
    assert store.unread_files() is None
    with pytest.raises(NotFound, match="There is no DAG 'x'"):
        store.need_dag("x")
