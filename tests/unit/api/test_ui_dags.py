"""The list of all DAGs for the web page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, counted_statements, register, set_states
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition
from tradewind.model.moments import SECOND
from tradewind.model.rows import ImportProblem, ParsedFile
from tradewind.model.states import RunState, TaskState

DONE = (TaskState.SUCCESS,)


def add(world: World, dag_id: str, **fields: Any) -> None:
    register(world, DagDefinition(dag_id, tasks=(TaskDefinition("t"),), **fields))


def found(world: World, query: str = "") -> Any:
    return world.json(f"{PAGE}/dags{query}")


def ids(world: World, query: str = "") -> list[str]:
    return [dag["dag_id"] for dag in found(world, query)["dags"]]


@pytest.fixture
def three(world: World) -> World:
    add(world, "orders", tags=("finance", "nightly"), owners=("ada",), display_name="Orders of the day", description="sums")
    add(
        world, "billing", tags=("finance",), owners=("bo",), schedule=CronSchedule(("0 6 * * *",)), schedule_summary="0 6 * * *"
    )
    add(world, "weather", owners=("ada",))
    set_states(world, world.run("orders", "r1", run_after=10), DONE, RunState.FAILED)
    set_states(world, world.run("orders", "r2", run_after=20), DONE, RunState.SUCCESS)
    set_states(world, world.run("weather", "r1", run_after=30), DONE, RunState.FAILED)
    world.run("weather", "r2", run_after=40)
    world.store.set_paused("weather", True, "ada", 1)
    return world


def test_a_dag_has_names_schedule_and_last_runs(three: World) -> None:
    orders, billing, weather = sorted(found(three)["dags"], key=lambda dag: str(dag["dag_id"] != "orders") + dag["dag_id"])
    assert (orders["display_name"], orders["tags"], orders["owners"]) == ("Orders of the day", ["finance", "nightly"], ["ada"])
    assert [(run["run_id"], run["state"]) for run in orders["last_runs"]] == [("r1", "failed"), ("r2", "success")]
    assert orders["last_runs"][0]["duration"] == 0.0
    assert (orders["failed"], orders["running"], orders["last_state"]) == (1, 0, "success")
    assert (billing["schedule"], billing["schedule_text"]) == ("0 6 * * *", "Every day at 06:00 (UTC).")
    assert (billing["last_runs"], billing["last_state"]) == ([], None)
    assert (weather["queued"], weather["failed"], weather["is_paused"], weather["last_state"]) == (1, 1, True, "queued")
    assert weather["last_runs"][1]["duration"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?search=DAY", {"orders"}),
        ("?search=order+sums", {"orders"}),
        ("?tag=finance", {"orders", "billing"}),
        ("?tag=finance&tag=nightly", {"orders"}),
        ("?owner=bo&owner=ada&paused=true", {"weather"}),
        ("?state=success&state=none", {"orders", "billing"}),
        ("?paused=false", {"orders", "billing"}),
        ("?import_error=true", set()),
    ],
)
def test_filters(three: World, query: str, expected: set[str]) -> None:
    assert set(ids(three, query)) == expected


def test_counts_say_what_a_filter_would_give_beside_the_others(three: World) -> None:
    counts = found(three, "?owner=ada&state=queued")["counts"]
    assert counts["last_state"] == {"success": 1, "queued": 1}, "of the DAGs of this owner, in any state"
    assert counts["owners"] == {"ada": 1}, "of the DAGs in this state"
    assert (counts["paused"], counts["unpaused"]) == (1, 0)
    assert found(three)["counts"]["tags"] == {"finance": 2, "nightly": 1}


def test_pages_do_not_overlap_in_any_order(three: World) -> None:
    add(three, "zebra")
    for order in ("dag_id", "-dag_id", "name", "next_run", "-last_run", "state"):
        seen: list[str] = []
        cursor = ""
        for _ in range(4):
            page = found(three, f"?limit=1&order={order}{cursor}")
            seen += [dag["dag_id"] for dag in page["dags"]]
            assert (page["total"], page["all_dags"]) == (4, 4)
            cursor = f"&cursor={page['next']}"
        assert page["next"] is None
        assert sorted(seen) == ["billing", "orders", "weather", "zebra"], order
    assert ids(three, "?order=name") == ["billing", "orders", "weather", "zebra"]
    assert ids(three, "?order=-last_run")[:2] == ["weather", "orders"]


def test_an_unknown_value_is_named_with_the_nearest(three: World) -> None:
    assert "'success'" in three.json(f"{PAGE}/dags?state=succes", 400)["detail"]
    assert "'name'" in three.json(f"{PAGE}/dags?order=nme", 400)["detail"]
    for cursor in ("x", "WyJhIl0", "W10"):
        assert "cursor" in three.json(f"{PAGE}/dags?cursor={cursor}", 400)["detail"]
    other = found(three, "?order=-last_run&limit=1")["next"]
    assert "another order" in three.json(f"{PAGE}/dags?order=name&cursor={other}", 400)["detail"]


def test_files_that_cannot_be_imported_are_counted(three: World) -> None:
    problem = ImportProblem("SyntaxError", "…", 3)
    three.store.register_file(ParsedFile("dags", "orders.py", "h", (), problem, 9, False, SECOND), paused_at_creation=False)
    answer = found(three)
    assert answer["broken_files"] == 1
    assert [dag["dag_id"] for dag in answer["dags"] if dag["has_import_error"]] == ["orders"]
    assert answer["counts"]["import_errors"] == 1


def test_the_same_answer_is_not_sent_twice(three: World) -> None:
    answer = three.get(f"{PAGE}/dags")
    assert three.get(f"{PAGE}/dags", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    three.store.set_paused("orders", True, "ada", 1)
    assert three.get(f"{PAGE}/dags", headers={"If-None-Match": answer.headers["etag"]}).status_code == 200


@pytest.mark.parametrize("dags", [2, 60])
def test_the_number_of_statements_does_not_depend_on_the_number_of_dags(
    world: World, monkeypatch: pytest.MonkeyPatch, dags: int
) -> None:
    for number in range(dags):
        add(world, f"dag{number}")
        world.run(f"dag{number}", "r1")
    with counted_statements(monkeypatch) as statements:
        assert len(found(world, "?limit=100")["dags"]) == dags
    assert len(statements) == 7
    with counted_statements(monkeypatch) as statements:
        found(world, "?limit=100")
    assert len(statements) == 6, "the names are known"


def test_favourites_belong_to_their_user(three: World) -> None:
    with three.store.engine.transaction():
        three.store.engine.run("INSERT INTO dag_favorite (user_name, dag_id) VALUES ('viewer', 'orders')")
    mine = three.json(f"{PAGE}/dags?favourite=true", role="viewer")
    assert [(dag["dag_id"], dag["is_favourite"]) for dag in mine["dags"]] == [("orders", True)]
    assert (mine["counts"]["favourites"], found(three)["counts"]["favourites"]) == (1, 0)
    assert len(ids(three, "?favourite=false")) == 3


def test_the_head_of_a_dag_is_also_in_its_cells(three: World) -> None:
    head = three.json(f"{PAGE}/dags/billing")
    assert (head["details"]["dag_id"], head["details"]["is_paused"], head["usual"]) == ("billing", False, None)
    assert head["schedule_text"] == "Every day at 06:00 (UTC)."
    assert three.json(f"{PAGE}/dags/billing/cells?head=true")["head"] == head
    assert three.json(f"{PAGE}/dags/billing/cells")["head"] is None


def test_cells_with_a_head_have_a_new_etag_when_the_dag_is_paused(three: World) -> None:
    path = f"{PAGE}/dags/billing/cells?head=true"
    etag = three.get(path).headers["etag"]
    assert three.get(path, headers={"If-None-Match": etag}).status_code == 304
    three.store.set_paused("billing", True, "ada", 2)
    assert three.get(path, headers={"If-None-Match": etag}).json()["head"]["details"]["is_paused"] is True


def test_the_head_of_a_dag_has_the_warnings_about_its_file(world: World) -> None:
    add(world, "quiet")
    add(world, "loud", warnings=("tags is the text 'one', which is read as one tag",))
    assert world.json(f"{PAGE}/dags/quiet")["definition_warnings"] == []
    assert world.json(f"{PAGE}/dags/loud")["definition_warnings"] == ["tags is the text 'one', which is read as one tag"]
