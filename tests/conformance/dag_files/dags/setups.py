"""Setups and teardowns."""

from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.sdk import TaskGroup, setup, task, task_group, teardown
from golden_tasks import D, P, bad, skip


def T(tid, **kw):
    return P(tid, **kw)


with D("basic_fail") as d1:
    s = P("s").as_setup()
    w = P("w", bad)
    t = P("t").as_teardown(setups=s)
    s >> w >> t
with D("td_fail") as d2:
    s = P("s").as_setup()
    w = P("w")
    t = P("t", bad).as_teardown(setups=s)
    s >> w >> t
with D("td_fail_dagrun") as d3:
    s = P("s").as_setup()
    w = P("w")
    t = P("t", bad).as_teardown(setups=s, on_failure_fail_dagrun=True)
    s >> w >> t
with D("setup_fail") as d4:
    s = P("s", bad).as_setup()
    w = P("w")
    t = P("t").as_teardown(setups=s)
    s >> w >> t
    w >> P("after")
with D("setup_skip") as d5:
    s = P("s", skip).as_setup()
    w = P("w")
    t = P("t").as_teardown(setups=s)
    s >> w >> t
    t >> P("after")
with D("two_setups") as d6:
    s1 = P("s1").as_setup()
    s2 = P("s2", bad).as_setup()
    w = P("w")
    t = P("t").as_teardown(setups=[s1, s2])
    [s1, s2] >> w >> t
with D("group_td") as d7:
    with TaskGroup("g") as g:
        s = P("s").as_setup()
        w = P("w")
        t = P("t", bad).as_teardown(setups=s)
        s >> w >> t
    g >> P("after")
with D("ctx") as d8:

    @setup
    def s():
        return "v"

    @teardown
    def t(x):
        return x

    a = s()
    b = t(a)
    with b:
        P("w1") >> P("w2", bad)
        P("w3")
    b >> P("after")
with D("only_td") as d9:
    w = P("w", bad)
    t = P("t").as_teardown()
    w >> t
with D("mapped_setup") as d10:

    @setup
    def s(x):
        if x == 2:
            raise ValueError()

    @teardown
    def t():
        pass

    ss = s.expand(x=[1, 2])
    tt = t()
    ss >> P("w") >> tt
    ss >> tt
    tt.as_teardown(setups=ss)
with D("mapped_td") as d11:
    s = P("s").as_setup()

    @teardown
    def t(x):
        if x == 2:
            raise ValueError()

    tt = t.expand(x=[1, 2])
    s >> P("w") >> tt
    s >> tt
with D("mapped_group") as d12:

    @task_group
    def g(x):
        @setup
        def s(x):
            if x == 2:
                raise ValueError()

        @task
        def w(x):
            if x == 1:
                raise ValueError()

        @teardown
        def t(x):
            pass

        a = s(x)
        b = w(x)
        c = t(x)
        a >> b >> c
        a >> c

    g.expand(x=[1, 2, 3]) >> P("after", trigger_rule="all_done")
with D("fail_fast", fail_fast=True) as d13:
    s = P("s").as_setup()
    w = P("w", bad)
    w2 = P("w2")
    t = P("t").as_teardown(setups=s)
    s >> w >> w2 >> t
with D("short_td") as d14:
    sc = ShortCircuitOperator(task_id="sc", python_callable=lambda: False)
    s = P("s").as_setup()
    w = P("w")
    t = P("t").as_teardown(setups=s)
    sc >> s >> w >> t
    sc2 = ShortCircuitOperator(task_id="sc2", python_callable=lambda: False)
    s2 = P("s2").as_setup()
    t2 = P("t2").as_teardown(setups=s2)
    s2 >> sc2 >> P("w2") >> t2
with D("branch_td") as d15:

    @task.branch
    def b():
        return "w1"

    s = P("s").as_setup()
    t = P("t").as_teardown(setups=s)
    bb = b()
    s >> bb >> [P("w1"), P("w2")] >> t
with D("nested") as d16:
    s1 = P("s1").as_setup()
    s2 = P("s2").as_setup()
    t2 = P("t2", bad).as_teardown(setups=s2)
    t1 = P("t1").as_teardown(setups=s1)
    s1 >> s2 >> P("w", bad) >> t2 >> t1
with D("td_skip") as d17:
    s = P("s").as_setup()
    w = P("w")
    t = P("t", skip).as_teardown(setups=s, on_failure_fail_dagrun=True)
    s >> w >> t
with D("td_only_leaf_failed_w") as d18:
    s = P("s").as_setup()
    w = P("w", bad)
    t = P("t").as_teardown(setups=s, on_failure_fail_dagrun=True)
    s >> w >> t
