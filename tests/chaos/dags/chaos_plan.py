"""The script of the kill test: what every task does, and how every run has to end, whichever processes are killed.

Pure data: the DAG file builds its DAGs from the script, and the judge reads from it how they must end.
"""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """One task.

    `kind` is how it works: `python`, `big` (with a result that is too large for the database), `bash` (a BashOperator), `children`
    (Python that waits for a bash child), `daemon` (it leaves a daemonised grandchild behind), `defers` (it waits in a trigger).
    `ends` is how it ends: `ok`, `skip`, `fail` (always), `final` (no retry wanted), `late` (it fails until two attempts have
    said so and succeeds then), or `once` (it has no retries: it succeeds, or fails because it was lost, and never begins
    twice). `lost` is the argument `lost_attempts`.
    """

    after: tuple[str, ...] = ()
    ms: int = 20
    kind: str = "python"
    ends: str = "ok"
    rule: str = "all_success"
    retries: int = 60
    lost: str | None = None


def _chain(count: int, ms: int) -> dict[str, Step]:
    return {f"t{i}": Step((f"t{i - 1}",) if i else (), ms) for i in range(count)}


PLAN: dict[str, dict[str, Step]] = {
    "chain": _chain(12, 15),
    "fan": {
        "begin": Step(),
        **{f"w{i}": Step(("begin",), 5 + 60 * (i % 5)) for i in range(12)},
        "end": Step(tuple(f"w{i}" for i in range(12))),
    },
    "six": {
        "a": Step(),
        "b": Step(("a",)),
        "c": Step(("a",), 30),
        "d": Step(("b", "c")),
        "e": Step(("d",), 10, "bash"),
        "f": Step(("d",)),
    },
    "points": {
        "a": Step(kind="big"),
        "b": Step(("a",), kind="big"),
        "c": Step(("a",), 30, "daemon"),
        "d": Step(("b", "c"), 10, "bash"),
        "e": Step(("b",), 5),
        "f": Step(("a",), 5, "defers"),
    },
    "diamond": {
        "a": Step(ms=40),
        "b": Step(("a",), 800),
        "c": Step(("a",), 100, "bash", lost="repeat"),
        "d": Step(("b", "c"), 30),
    },
    "once": {"a": Step(ms=400, ends="once", retries=0)},
    "children": {
        "a": Step(ms=200, kind="children"),
        "b": Step(("a",), 250, "daemon"),
        "c": Step(("b",), 150, "bash"),
        "d": Step(("b",), 50, "daemon", "late"),
        "e": Step(("c", "d"), 300, "children"),
    },
    "trouble": {
        "a": Step(ms=30),
        "late": Step(("a",), 30, ends="late"),
        "skipped": Step(("a",), 30, ends="skip"),
        "below_skipped": Step(("skipped",)),
        "failing": Step(("a",), 60, ends="fail", retries=2, lost="repeat"),
        "final": Step(("a",), 60, ends="final"),
        "below_failing": Step(("failing",)),
        "cleanup": Step(("late", "failing", "final", "below_skipped"), 20, rule="all_done"),
    },
}


def task_ends(steps: dict[str, Step]) -> dict[str, str]:
    """Task → its final state. `PLAN` lists tasks after their upstream tasks."""
    found: dict[str, str] = {}
    for name, step in steps.items():
        above = [found[other] for other in step.after]
        if step.rule == "all_success" and any(state in ("failed", "upstream_failed") for state in above):
            found[name] = "upstream_failed"
        elif step.rule == "all_success" and "skipped" in above:
            found[name] = "skipped"
        else:
            found[name] = {"skip": "skipped", "fail": "failed", "final": "failed"}.get(step.ends, "success")
    return found


def run_ends(steps: dict[str, Step]) -> str:
    """The final state of a run, decided by its leaf tasks."""
    states = task_ends(steps)
    leaves = set(steps) - {other for step in steps.values() for other in step.after}
    return "failed" if any(states[leaf] in ("failed", "upstream_failed") for leaf in leaves) else "success"
