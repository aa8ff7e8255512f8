"""Several runs under limits: what is started, queued and left waiting at every moment is what Airflow 3.3.2 does."""

from __future__ import annotations

import pytest

from tests.conformance.golden import Json, agrees, specifications
from tests.conformance.story import answer

JUDGED = [spec for spec in specifications("B") if not spec.get("disputed")]


@pytest.mark.parametrize("spec", JUDGED, ids=lambda spec: spec["id"])
def test_slots_are_given_as_in_airflow(spec: Json) -> None:
    """Priorities, starts and ends of runs, queue decisions in their order, final states."""
    told = answer(spec)
    if "unsupported" in told:
        pytest.skip(told["unsupported"])
    assert told["outcome"]["priority_weights"] == spec["expect"]["outcome"]["priority_weights"]
    assert agrees(spec, told)


def test_every_story_is_answered() -> None:
    """Nothing may be called unsupported, so that a skip never hides anything."""
    for spec in JUDGED:
        assert "unsupported" not in answer(spec), spec["id"]
