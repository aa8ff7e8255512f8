"""One run of a random workflow ends as it ends in Airflow 3.3.2: every state, every try, every attempt at its moment."""

from __future__ import annotations

import pytest

from tests.conformance.golden import Json, agrees, specifications
from tests.conformance.story import answer

JUDGED = [spec for spec in specifications("A") if not spec.get("disputed")]


@pytest.mark.parametrize("spec", JUDGED, ids=lambda spec: spec["id"])
def test_the_run_ends_as_in_airflow(spec: Json) -> None:
    """States and tries, the attempts with their times, and the edges that groups stand for."""
    told = answer(spec)
    if "unsupported" in told:
        pytest.skip(told["unsupported"])
    assert told["graph"] == spec["expect"]["graph"]
    assert agrees(spec, told)
    if told["outcome"] == spec["expect"]["outcome"]:
        assert told["trace"] == sorted(spec["expect"]["trace"])


def test_every_unmapped_workflow_is_answered() -> None:
    """Only mapping may be called unsupported, so that a skip never hides anything else."""
    for spec in JUDGED:
        told = answer(spec)
        mapped = any("expand" in part for part in (*spec["tasks"], *spec.get("groups", ())))
        assert ("unsupported" in told) == mapped, spec["id"]


def test_a_running_task_is_never_overwritten() -> None:
    """Where Airflow's scheduler skips a task that is running (disputed), ours lets it end."""
    disputed = [spec for spec in specifications("A") if spec.get("disputed") == ["running_overwritten"]]
    told = [answer(spec) for spec in disputed]
    traces = [attempt for one in told if "trace" in one for attempt in one["trace"]]
    assert traces
    assert all(result != "killed" for *_, result in traces)
