"""Actions with a preview: they change what was shown, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.page_world import PAGE, register, set_states
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition
from tradewind.model.states import RunState, TaskState
from tradewind.wire.commands import EditedTask, fingerprint

S = TaskState
TASKS = (TaskDefinition("a"), TaskDefinition("b", upstream=("a",)), TaskDefinition("c", upstream=("b",)))
DAG = f"{PAGE}/dags/sales"


@pytest.fixture
def failed(world: World) -> World:
    register(world, DagDefinition("sales", tasks=TASKS, schedule=CronSchedule(("0 0 * * *",)), start_date=1))
    run = world.run("sales", "r1")
    set_states(world, run, (S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    return world


def post(world: World, path: str, status: int = 200, role: str = "user", **body: Any) -> Any:
    answer = world.request("POST", f"{DAG}/{path}", role, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def states(world: World) -> list[str]:
    run = world.store.need_run("sales", "r1")
    return [state.value for _, _, _, state in world.store.task_instances_of(run, ["a", "b", "c"])]


def test_a_clear_changes_what_its_preview_showed(failed: World) -> None:
    wanted: dict[str, Any] = {"run_id": "r1", "tasks": ["b"], "downstream": True}
    seen = post(failed, "clear/preview", **wanted)
    assert (seen["total"], seen["runs"], seen["by_state"]) == (2, 1, {"failed": 1, "upstream_failed": 1})
    assert [(one["task_id"], one["count"]) for one in seen["by_task"]] == [("b", 1), ("c", 1)]
    assert (seen["task_instances"][0]["to"], seen["dry_run"]) == ("none", True)
    assert states(failed) == ["success", "failed", "upstream_failed"], "a preview changes nothing"
    done = post(failed, "clear", **wanted, fingerprint=seen["fingerprint"])
    assert (done["total"], done["dry_run"]) == (2, False)
    assert states(failed) == ["success", "none", "none"]


@pytest.mark.parametrize("choice", [True, False, None])
def test_a_clear_may_move_runs_to_the_newest_version(failed: World, choice: bool | None) -> None:
    wanted: dict[str, Any] = {"run_id": "r1", "tasks": ["b"], "run_on_latest_version": choice}
    post(failed, "clear", **wanted, fingerprint=post(failed, "clear/preview", **wanted)["fingerprint"])
    assert [call[2].get("latest_version") for call in failed.control.calls[-2:]] == [choice, choice]


def test_an_action_is_refused_when_it_would_change_something_else(failed: World) -> None:
    wanted: dict[str, Any] = {"run_id": "r1", "only_failed": True}
    seen = post(failed, "clear/preview", **wanted)
    run = failed.store.need_run("sales", "r1")
    set_states(failed, run, (S.SUCCESS, S.SUCCESS, S.FAILED), RunState.FAILED)
    refused = post(failed, "clear", 409, **wanted, fingerprint=seen["fingerprint"])
    assert "preview" in refused["detail"]
    assert states(failed) == ["success", "success", "failed"]
    assert failed.request("POST", f"{DAG}/clear", json=wanted).status_code == 422, "there is no action without a preview"


def test_a_mark_has_a_preview(failed: World) -> None:
    wanted: dict[str, Any] = {"run_id": "r1", "tasks": [["b", -1]], "state": "success"}
    seen = post(failed, "mark/preview", **wanted)
    assert [(one["task_id"], one["to"]) for one in seen["task_instances"]] == [("b", "success"), ("c", "none")]
    assert post(failed, "mark", 409, **{**wanted, "state": "skipped"}, fingerprint=seen["fingerprint"])["detail"]
    post(failed, "mark", **wanted, fingerprint=seen["fingerprint"])
    assert states(failed) == ["success", "success", "none"]


def test_an_attempt_that_only_goes_on_does_not_invalidate_a_preview() -> None:
    def changed(state: str, to: str = "restarting") -> list[EditedTask]:
        return [EditedTask("d", "r", "t", -1, state, to)]

    assert fingerprint(changed("queued")) == fingerprint(changed("running")) == fingerprint(changed("up_for_retry", "none"))
    assert fingerprint(changed("running")) != fingerprint(changed("success", "none"))
    assert fingerprint(changed("failed", "none")) != fingerprint(changed("failed", "success"))


def test_the_steps_of_a_large_clear_are_compared_one_by_one(failed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        run = failed.run("sales", f"more{number}", run_after=failed.clock.wall() + number + 1)
        set_states(failed, run, (S.FAILED, S.UPSTREAM_FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    monkeypatch.setattr("tradewind.scheduler.commands.clear.is_step_full", lambda touched, looked, most: touched > 0)
    wanted: dict[str, Any] = {"run_id": "r1", "future": True}
    seen = post(failed, "clear/preview", **wanted)
    assert (seen["runs"], seen["fingerprint"].count(".")) == (4, 3)
    late = failed.run("sales", "late", run_after=failed.clock.wall() + 100)
    set_states(failed, late, (S.FAILED, S.UPSTREAM_FAILED, S.UPSTREAM_FAILED), RunState.FAILED)
    assert "more runs" in post(failed, "clear", 409, **wanted, fingerprint=seen["fingerprint"])["detail"]


def test_a_backfill_has_a_preview(failed: World) -> None:
    wanted: dict[str, Any] = {"from_date": "2025-12-01T00:00:00Z", "to_date": "2025-12-03T00:00:00Z"}
    seen = post(failed, "backfill/preview", **wanted)
    assert (seen["total"], seen["by_outcome"], seen["backfill_id"]) == (3, {"new": 3}, None)
    other: dict[str, Any] = {**wanted, "to_date": "2025-12-04T00:00:00Z"}
    assert (
        "the number of its runs is 4 now" in post(failed, "backfill", 409, **other, fingerprint=seen["fingerprint"])["detail"]
    )
    assert post(failed, "backfill", **wanted, fingerprint=seen["fingerprint"])["backfill_id"] is not None


@pytest.mark.parametrize("path", ["clear/preview", "mark/preview"])
def test_unknown_names_and_roles(failed: World, path: str) -> None:
    more: dict[str, Any] = {"state": "failed"} if path.startswith("mark") else {}
    assert "r1" in post(failed, path, 404, run_id="r2", **more)["detail"]
    assert post(failed, path, 403, role="viewer", run_id="r1", **more)
