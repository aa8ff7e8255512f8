"""The trigger rules compared with a table that was written by hand, for every combination of up to four upstream tasks."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from tradewind.kernel import reference
from tradewind.kernel.trigger_rules import RUN, WAIT, decide, requirement
from tradewind.model.phrases import english
from tradewind.model.states import TASK_STATES, TaskState, TriggerRule

S = TaskState
LETTERS = {
    "s": S.SUCCESS,
    "k": S.SKIPPED,
    "f": S.FAILED,
    "u": S.UPSTREAM_FAILED,
    "r": S.REMOVED,
    ".": S.RUNNING,  # has not ended
}

# Lines are tried from the top. `some`: one of these letters is there; `only`: no other letter is there; `none`: none of these is.
# `.` is an upstream task that has not ended, so `none .` reads "all are done".
TABLE: dict[str, list[tuple[str, str, str]]] = {
    "all_success": [("some", "fu", "upstream_failed"), ("some", "k", "skipped"), ("none", ".", "run")],
    "all_failed": [("some", "sk", "skipped"), ("none", ".", "run")],
    "all_done": [("none", ".", "run")],
    "all_done_min_one_success": [
        ("some", "k", "skipped"),
        ("some", ".", "wait"),
        ("some", "s", "run"),
        ("none", "s", "upstream_failed"),
    ],
    "one_success": [
        ("some", "s", "run"),
        ("some", ".", "wait"),
        ("only", "k", "skipped"),
        ("none", "s", "upstream_failed"),
    ],
    "one_failed": [("some", "fu", "run"), ("none", ".", "skipped")],
    "one_done": [("some", "sf", "run"), ("none", ".", "skipped")],
    "none_failed": [("some", "fu", "upstream_failed"), ("none", ".", "run")],
    "none_failed_min_one_success": [
        ("some", "fu", "upstream_failed"),
        ("only", "k", "skipped"),
        ("some", ".", "wait"),
        ("some", "s", "run"),
        ("none", "s", "upstream_failed"),
    ],
    "none_skipped": [("some", "k", "skipped"), ("none", ".", "run")],
    "all_skipped": [("some", "sfu", "skipped"), ("only", "k", "run")],
    "always": [("none", "", "run")],
}

# One upstream task: the whole truth, cell by cell.        s       k       f       u       r       .
SINGLE: dict[str, tuple[str, str, str, str, str, str]] = {
    "all_success": ("run", "skipped", "upstream_failed", "upstream_failed", "run", "wait"),
    "all_failed": ("skipped", "skipped", "run", "run", "run", "wait"),
    "all_done": ("run", "run", "run", "run", "run", "wait"),
    "all_done_min_one_success": ("run", "skipped", "upstream_failed", "upstream_failed", "upstream_failed", "wait"),
    "all_done_setup_success": ("run", "run", "run", "run", "run", "wait"),
    "one_success": ("run", "skipped", "upstream_failed", "upstream_failed", "upstream_failed", "wait"),
    "one_failed": ("skipped", "skipped", "run", "run", "skipped", "wait"),
    "one_done": ("run", "skipped", "run", "skipped", "skipped", "wait"),
    "none_failed": ("run", "run", "upstream_failed", "upstream_failed", "run", "wait"),
    "none_failed_min_one_success": ("run", "skipped", "upstream_failed", "upstream_failed", "upstream_failed", "wait"),
    "none_skipped": ("run", "skipped", "run", "run", "run", "wait"),
    "all_skipped": ("skipped", "run", "skipped", "skipped", "wait", "wait"),
    "always": ("run", "run", "run", "run", "run", "run"),
}


def by_table(rule: str, letters: str) -> str:
    """Return what the table says for these upstream tasks."""
    present = set(letters)
    for word, named, outcome in TABLE[rule]:
        met = {"some": present & set(named), "only": present <= set(named), "none": not present & set(named)}[word]
        if met:
            return outcome
    return "wait"


def counted(letters: str) -> tuple[int, int, int, int, int, int]:
    s, k, f, u, r = (letters.count(letter) for letter in "skfur")
    return len(letters), s, k, f, u, r


def shown(verdict: int) -> str:
    return {RUN: "run", WAIT: "wait"}.get(verdict) or TASK_STATES[verdict].value


@pytest.mark.spec("S279", "S305")
@pytest.mark.parametrize("rule", list(TABLE))
def test_every_combination_of_up_to_four_upstream_states(rule: str) -> None:
    """Machine and reference agree with the table."""
    for count in range(1, 5):
        for mix in combinations_with_replacement("skfur.", count):
            letters = "".join(mix)
            expected = by_table(rule, letters)
            assert shown(decide(TriggerRule(rule), counted(letters))) == expected, letters
            slow = reference.trigger_rule(TriggerRule(rule), [LETTERS[letter] for letter in letters])
            assert {None: "wait", S.SCHEDULED: "run"}.get(slow) or slow.value == expected, letters  # type: ignore[union-attr]


@pytest.mark.parametrize("rule", list(SINGLE))
def test_one_upstream_task(rule: str) -> None:
    """Cell by cell."""
    got = tuple(shown(decide(TriggerRule(rule), counted(letter))) for letter in "skfur.")
    assert got == SINGLE[rule]


def verdicts(rule: str, *mixes: str) -> set[str]:
    """Return the verdicts after each of these combinations of upstream tasks, as letters of `LETTERS`."""
    return {shown(decide(TriggerRule(rule), counted(letters))) for letters in mixes}


@pytest.mark.spec("S294")
def test_always_runs_whatever_is_upstream() -> None:
    assert verdicts("always", ".", "s.", "f", "k", "sfku.") == {"run"}


@pytest.mark.spec("S298")
def test_all_success_is_upstream_failed_behind_any_failure() -> None:
    assert verdicts("all_success", "f", "u", "sf", "su", "f.", "ku", "fk.") == {"upstream_failed"}


@pytest.mark.spec("S299")
def test_all_success_is_skipped_behind_a_skip_where_nothing_failed() -> None:
    assert verdicts("all_success", "k", "sk", "k.") == {"skipped"}
    assert verdicts("all_done", "k", "sk") == {"run"}, "a rule of another kind is not skipped by that"


@pytest.mark.spec("S300")
def test_all_failed_is_skipped_behind_a_success_or_a_skip() -> None:
    assert verdicts("all_failed", "s", "k", "fs", "fk", "s.") == {"skipped"}
    assert verdicts("all_failed", "f", "fu", "u") == {"run"}


@pytest.mark.spec("S301")
def test_one_success_fails_upstream_when_all_are_done_without_success() -> None:
    assert verdicts("one_success", "k", "kk") == {"skipped"}
    assert verdicts("one_success", "f", "fk", "u") == {"upstream_failed"}, "as since Airflow 2.3"
    assert verdicts("one_success", "k.", "f.") == {"wait"}
    assert verdicts("one_success", "s.", "sf") == {"run"}


@pytest.mark.spec("S302")
def test_one_failed_is_skipped_when_all_are_done_without_a_failure() -> None:
    assert verdicts("one_failed", "s", "k", "sk") == {"skipped"}
    assert verdicts("one_failed", ".", "s.", "k.") == {"wait"}
    assert verdicts("one_failed", "f.", "u.", "fs") == {"run"}


@pytest.mark.spec("S304")
def test_none_skipped_is_skipped_behind_a_skip() -> None:
    assert verdicts("none_skipped", "k", "sk", "fk", "k.") == {"skipped"}
    assert verdicts("none_skipped", "s", "f", "u") == {"run"}


@pytest.mark.spec("S305", "S306")
def test_every_trigger_rule_is_in_the_truth_table() -> None:
    """The tables contain all thirteen rules; the rule about setups has more tests elsewhere."""
    assert set(SINGLE) == {rule.value for rule in TriggerRule}
    assert set(TABLE) == set(SINGLE) - {"all_done_setup_success"}


@pytest.mark.spec("S293")
@pytest.mark.parametrize("rule", list(TriggerRule))
def test_without_upstream_tasks_every_rule_is_met(rule: TriggerRule) -> None:
    """S293: the task instance did not have any upstream tasks."""
    assert decide(rule, (0, 0, 0, 0, 0, 0)) == RUN


def test_the_sentence_counts_upstream_tasks_by_state() -> None:
    """The sentence names the rule, the number of upstream tasks, and what has ended."""
    result = english(requirement(TriggerRule.ALL_SUCCESS, (5, 2, 0, 1, 0, 0)))
    assert "all_success" in result
    assert "of 5, 2 succeeded, 1 failed" in result
    assert "none has ended" in english(requirement(TriggerRule.ONE_DONE, (2, 0, 0, 0, 0, 0)))
