"""Several runs under limits: at every time, the same tasks are started, queued and waiting as in Airflow 3.3.2."""

from __future__ import annotations

import pytest

from tests.conformance.golden import Json, agrees, specifications
from tests.conformance.story import answer

JUDGED = [spec for spec in specifications("B") if not spec.get("disputed")]


@pytest.mark.parametrize("spec", JUDGED, ids=lambda spec: spec["id"])
def test_slots_are_given_as_in_airflow(spec: Json) -> None:
    """Priorities, starts and ends of runs, queue decisions in their order, and final states agree."""
    response = answer(spec)
    if "unsupported" in response:
        pytest.skip(response["unsupported"])
    assert response["outcome"]["priority_weights"] == spec["expect"]["outcome"]["priority_weights"]
    assert agrees(spec, response)


def test_every_story_is_answered() -> None:
    """No specification is unsupported, so a skipped test cannot hide a difference."""
    for spec in JUDGED:
        assert "unsupported" not in answer(spec), spec["id"]
