"""The thirteen trigger rules as a decision over counts of finished direct upstream task instances.

`decide` returns `RUN`, `WAIT` or the code of the state that the task instance gets at once. Source: Airflow 3.3.2's evaluator;
the truth tables in the tests enumerate it.

The counts: n expected, s succeeded, k skipped, f failed, u upstream_failed, r removed. All are finished when s+k+f+u+r = n.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.phrases import Phrase, phrase
from tradewind.model.states import TaskState, TriggerRule

RUN = -1
WAIT = -2

_SKIPPED = TaskState.SKIPPED.code
_UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED.code

Counts = tuple[int, int, int, int, int, int]
"""(n, s, k, f, u, r)."""

RULES: tuple[TriggerRule, ...] = tuple(TriggerRule)
RULE_CODES: dict[TriggerRule, int] = {rule: code for code, rule in enumerate(RULES)}


def _all_success(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if f or u:
        return _UPSTREAM_FAILED
    if k:
        return _SKIPPED
    return RUN if n - s - r <= 0 else WAIT


def _all_failed(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if s or k:
        return _SKIPPED
    return RUN if n - f - u - r <= 0 else WAIT


def _all_done(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    return RUN if s + k + f + u + r >= n else WAIT


def _all_done_min_one_success(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if k:
        return _SKIPPED
    if s + f + u < n - r:
        return WAIT
    return RUN if s else _UPSTREAM_FAILED


def _one_success(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if s:
        return RUN
    if s + k + f + u + r < n:
        return WAIT
    return _SKIPPED if k >= n else _UPSTREAM_FAILED


def _one_failed(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if f or u:
        return RUN
    return _SKIPPED if s + k + r >= n else WAIT


def _one_done(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if s or f:
        return RUN
    return _SKIPPED if k + u + r >= n else WAIT


def _none_failed(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if f or u:
        return _UPSTREAM_FAILED
    return RUN if n - s - k - r <= 0 else WAIT


def _none_failed_min_one_success(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if f or u:
        return _UPSTREAM_FAILED
    if s + k + r < n:
        return WAIT
    if s:
        return RUN
    return _SKIPPED if k >= n else _UPSTREAM_FAILED


def _none_skipped(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if k:
        return _SKIPPED
    return RUN if s + f + u + r >= n else WAIT


def _all_skipped(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    if s or f or u:
        return _SKIPPED
    return RUN if k >= n else WAIT


def _always(n: int, s: int, k: int, f: int, u: int, r: int) -> int:
    return RUN


_DECIDERS: dict[TriggerRule, Callable[[int, int, int, int, int, int], int]] = {
    TriggerRule.ALL_SUCCESS: _all_success,
    TriggerRule.ALL_FAILED: _all_failed,
    TriggerRule.ALL_DONE: _all_done,
    TriggerRule.ALL_DONE_MIN_ONE_SUCCESS: _all_done_min_one_success,
    # the counts only tell whether all are finished; rules/setups.py examines the setups
    TriggerRule.ALL_DONE_SETUP_SUCCESS: _all_done,
    TriggerRule.ONE_SUCCESS: _one_success,
    TriggerRule.ONE_FAILED: _one_failed,
    TriggerRule.ONE_DONE: _one_done,
    TriggerRule.NONE_FAILED: _none_failed,
    TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS: _none_failed_min_one_success,
    TriggerRule.NONE_SKIPPED: _none_skipped,
    TriggerRule.ALL_SKIPPED: _all_skipped,
    TriggerRule.ALWAYS: _always,
}
DECIDERS: tuple[Callable[[int, int, int, int, int, int], int], ...] = tuple(_DECIDERS[rule] for rule in RULES)
"""By rule code."""


def decide(rule: TriggerRule, counts: Counts) -> int:
    """Return `RUN`, `WAIT`, or the code of the state that the task instance gets. A task without upstream tasks always runs."""
    return RUN if counts[0] == 0 else _DECIDERS[rule](*counts)


def requirement(rule: TriggerRule, counts: Counts) -> Phrase:
    """Say in one sentence what the rule requires and how many upstream task instances have ended in which state."""
    n, s, k, f, u, r = counts
    ended: list[str | Phrase] = []
    if s:
        ended.append(phrase("count_succeeded", count=s))
    if k:
        ended.append(phrase("count_skipped", count=k))
    if f:
        ended.append(phrase("count_failed", count=f))
    if u:
        ended.append(phrase("count_upstream_failed", count=u))
    if r:
        ended.append(phrase("count_removed", count=r))
    have, required = ended or phrase("none_ended"), phrase(f"required_{rule.value}")
    return phrase("trigger_rule", rule=rule.value, required=required, expected=n, ended=have)
