"""Branches, short circuits and LatestOnlyOperator."""

from datetime import datetime

from airflow.providers.standard.operators.datetime import BranchDateTimeOperator
from airflow.providers.standard.operators.latest_only import LatestOnlyOperator
from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.providers.standard.operators.weekday import BranchDayOfWeekOperator
from airflow.sdk import TaskGroup, task
from golden_tasks import D, P

with D("nested") as d:

    @task.branch
    def b1():
        return "b2"

    @task.branch
    def b2():
        return ["x", "g.y"]

    with TaskGroup("g") as g:
        y = P("y")
        z = P("z")
        y >> P("y2")
    x = P("x")
    o = P("other")
    b = b1()
    bb = b2()
    b >> [bb, o]
    bb >> [x, y, z, P("w")]
    [x, o, g] >> P("join", trigger_rule="none_failed_min_one_success")
    [x, o] >> P("join_all")
    [o] >> P("join_done", trigger_rule="all_done")
with D("group_target") as d2:

    @task.branch
    def pick():
        return "g1"

    with TaskGroup("g1") as g1:
        P("a") >> P("b")
        P("c")
    with TaskGroup("g2") as g2:
        P("a") >> P("b")
    pick() >> [g1, g2]
    [g1, g2] >> P("end", trigger_rule="none_failed")
with D("none") as d3:

    @task.branch
    def pick():
        return None

    pick() >> [P("a"), P("b")]
with D("empty") as d31:

    @task.branch
    def pick():
        return []

    pick() >> [P("a"), P("b", trigger_rule="always")]
with D("bad_target") as d4:

    @task.branch
    def pick():
        return "nothere"

    pick() >> [P("a"), P("b")]
with D("not_downstream") as d5:

    @task.branch
    def pick():
        return "c"

    c = P("c")
    pick() >> [P("a"), P("b")]
with D("bad_type") as d6:

    @task.branch
    def pick():
        return {"a": 1}

    pick() >> [P("a"), P("b")]
with D("int_type") as d61:

    @task.branch
    def pick():
        return 3

    pick() >> [P("a"), P("b")]
with D("join_direct") as d7:
    # branch follows a; join is downstream both of branch and a
    @task.branch
    def pick():
        return "a"

    p = pick()
    a = P("a")
    j = P("j", trigger_rule="none_failed_min_one_success")
    b = P("b")
    p >> [a, b, j]
    a >> j
    b >> j
with D("short") as d8:
    s = ShortCircuitOperator(task_id="s", python_callable=lambda: False)
    s >> P("a") >> P("b", trigger_rule="all_done") >> P("c", trigger_rule="always")
    s2 = ShortCircuitOperator(task_id="s2", python_callable=lambda: 0, ignore_downstream_trigger_rules=False)
    s2 >> P("d") >> P("e", trigger_rule="all_done")
    s2 >> P("d2", trigger_rule="always")
    s3 = ShortCircuitOperator(task_id="s3", python_callable=lambda: "yes")
    s3 >> P("f")

    @task.short_circuit
    def s4():
        return None

    s4() >> P("g4")

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def s5():
        return []

    s5() >> P("h") >> P("h2", trigger_rule="none_failed")
with D("latest") as d9:
    LatestOnlyOperator(task_id="l") >> P("a") >> P("b", trigger_rule="all_done")
with D("mapped_in_branch") as d11:

    @task.branch
    def pick():
        return "m"

    @task
    def m(x):
        return x

    @task
    def n(x):
        return x

    pick() >> [m.expand(x=[1, 2]), n.expand(x=[1, 2])]
with D("branch_mapped") as d12:

    @task.branch
    def pick(x):
        return "a" if x == 1 else "b"

    pick.expand(x=[1, 1]) >> [P("a"), P("b")]
with D("branch_xcom") as d13:

    @task.branch
    def pick():
        return ["a"]

    @task
    def show(x, **c):
        return [x, c["ti"].xcom_pull(task_ids="pick", key="skipmixin_key")]

    p = pick()
    p >> [P("a"), P("b")]
    show(p)
with D("branch_fail_retry") as d14:

    @task.branch(retries=1)
    def pick(**c):
        if c["ti"].try_number == 1:
            raise ValueError("x")
        return "b"

    pick() >> [P("a"), P("b")]
with D("datetime") as d15:
    BranchDateTimeOperator(
        task_id="x",
        follow_task_ids_if_true="a",
        follow_task_ids_if_false="b",
        target_lower=datetime(2026, 6, 1),
        target_upper=datetime(2026, 6, 3),
        use_task_logical_date=True,
    ) >> [P("a"), P("b")]
    BranchDayOfWeekOperator(
        task_id="y", follow_task_ids_if_true="c", follow_task_ids_if_false=["d"], week_day="Tuesday", use_task_logical_date=True
    ) >> [P("c"), P("d")]
with D("branchall") as d:

    @task.branch
    def all_():
        return ["a", "b"]

    all_() >> [P("a"), P("b")]

    @task.branch
    def nodown():
        return None

    nodown()
    ShortCircuitOperator(task_id="scnone", python_callable=lambda: False)
    s = P("s").as_setup()
    t = P("t").as_teardown(setups=s)
    sc = ShortCircuitOperator(task_id="sctd", python_callable=lambda: False)
    s >> sc >> t

    @task
    def xc(**c):
        return [
            c["ti"].xcom_pull(task_ids=x, key=k)
            for x in ("all_", "nodown", "scnone", "sctd")
            for k in ("return_value", "skipmixin_key")
        ]

    [x for x in d.tasks if not x.is_setup] >> xc.override(trigger_rule="all_done")()
