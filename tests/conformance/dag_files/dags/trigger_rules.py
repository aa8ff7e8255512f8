"""Trigger rules over upstream tasks in every mix of states, and what the leaves make of a run."""

from golden_tasks import D, P, bad, ok, skip

RULES = [
    "all_success",
    "all_failed",
    "all_done",
    "all_skipped",
    "one_success",
    "one_failed",
    "one_done",
    "none_failed",
    "none_failed_min_one_success",
    "none_skipped",
    "always",
    "all_done_min_one_success",
]


def mk(dag_id, ups):
    with D(dag_id) as d:
        b = {"s": ok, "f": bad, "k": skip}
        us = [P(f"u{i}_{u}", b[u]) if u != "x" else (P(f"pre{i}", bad) >> P(f"u{i}_x")) for i, u in enumerate(ups)]
        for r in RULES:
            us >> P(f"r_{r}", trigger_rule=r)
    return d


for c in ["sf", "sk", "kf", "xs", "kk", "xk", "ff"]:
    globals()[c] = mk(c, c)
# always without upstream; leaf rules
with D("leaf_skipped") as d1:
    P("a", skip) >> P("b")
with D("leaf_all_done_after_fail") as d2:
    P("a", bad) >> P("b", trigger_rule="all_done")
with D("leaf_mixed") as d3:
    P("a", bad) >> P("b", trigger_rule="all_failed")
    P("c")
with D("upstream_failed_leaf") as d4:
    P("a", bad) >> P("b") >> P("c", trigger_rule="one_failed") >> P("d", trigger_rule="none_failed_min_one_success")
