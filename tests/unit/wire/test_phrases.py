"""Phrases in English, and on the wire."""

from __future__ import annotations

import msgspec
import pytest

from tradewind.model.phrases import Phrase, all_of, any_of, did_you_mean, english, phrase, quoted, recognised, semicolons, then
from tradewind.wire.explanations import Explanation


def test_parts_lists_and_states_are_put_together() -> None:
    running = phrase("task_in_state", task="a", state="running")
    tasks = phrase("and_others", items=[running, "b"])
    assert english(then(phrase("not_ended", tasks=tasks), None, phrase("paused"))) == (
        "Not ended: a (running), b and others. Its DAG is paused: unpause it."
    )


def test_a_sentence_after_a_colon_has_a_small_first_letter() -> None:
    reason = phrase("no_schedule")
    assert english(phrase("dag_has_no_date", dag="d", date="2026-01-01", reason=reason)) == (
        "DAG 'd' has no run of 2026-01-01: it has no schedule: it runs when it is triggered."
    )


@pytest.mark.parametrize(
    ("words", "both", "either"), [([], "", ""), (["a"], "a", "a"), (["a", "b", "c"], "a, b and c", "a or b or c")]
)
def test_several_words(words: list[str], both: str, either: str) -> None:
    assert english(all_of(words)) == both
    assert english(any_of(words)) == either


def test_helpers() -> None:
    assert english([*quoted(["a", "b"])]) == "'a', 'b'"
    assert english(semicolons([phrase("words", text=text) for text in "abc"])) == "a; b; c"
    assert did_you_mean("xyz", ["order"]) is None
    found = did_you_mean("ordr", ["order"])
    assert found is not None
    assert english(found) == "Did you mean 'order'?"


def test_a_stored_text_is_recognised() -> None:
    """Its template is found, unless the text is other words."""
    codes = ("run_reason_task", "run_reason_deadlock")
    found = recognised("g.a[3] is upstream_failed", codes)
    assert found == phrase("run_reason_task", task="g.a[3]", state="upstream_failed")
    stuck = recognised("deadlock: tasks that can never start: 2 (the first: a, b)", codes)
    assert stuck == phrase("run_reason_deadlock", count="2", tasks="a, b")
    assert recognised("it is marked failed by hand", codes) is None


def test_a_number_decides_between_two_words() -> None:
    assert english(phrase("max_active_runs", count=1, most=1)) == "1 run of the DAG is running; its max_active_runs is 1."
    assert english(phrase("max_active_runs", count=2, most=2)) == "2 runs of the DAG are running; its max_active_runs is 2."
    text = english(phrase("position", count=1))
    assert recognised(text, ("position",)) == phrase("position", count="1")


def test_arguments_are_data() -> None:
    """Braces in the name of a task are no placeholders."""
    assert english(phrase("ends_succeeds", task="{at} {0.__class__}")) == "{at} {0.__class__} succeeds"


def test_a_phrase_survives_the_wire() -> None:
    tasks = phrase("and_more", items=[phrase("task_not_started", task="a"), "b"], more=3)
    sent = phrase("not_ended", tasks=tasks)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Phrase) == sent


def test_an_answer_of_an_older_scheduler_can_be_read() -> None:
    """It has English sentences only."""
    answer = {
        "dag_id": "d",
        "run_id": "r",
        "run_state": "running",
        "task_id": "t",
        "map_index": -1,
        "state": None,
        "position": None,
        "earliest_start": None,
        "next_run": None,
        "callbacks": [],
        "blockers": [
            {
                "rule": "paused",
                "sentence": "Its DAG is paused: unpause it.",
                "ends_with": "the DAG is unpaused",
                "not_before": None,
                "command": None,
                "by_hand": True,
            }
        ],
        "workers": {"executor": "LocalExecutor", "attached": True, "live": 0, "parallelism": None},
        "next_event": {"event": "the DAG is unpaused", "at": None, "rule": "paused"},
    }
    found = msgspec.json.decode(msgspec.json.encode(answer), type=Explanation)
    assert found.blockers[0].reason is None
    assert found.next_event is not None
    assert found.next_event.ends is None
    assert found.callback_phrases == []
