"""Mapped tasks and mapped task groups."""

from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import get_current_context, task, task_group
from golden_tasks import D, P, bad, ok

with D("basic") as d1:

    @task
    def lst():
        return [1, 2, 3]

    @task
    def dct():
        return {"a": 1, "b": 2}

    @task
    def em():
        return []

    @task
    def add(x, y=0):
        return x + y

    @task
    def pair(x):
        return list(x)

    @task
    def total(v):
        return [list(v), len(v)]

    items = lst()
    total.override(task_id="t1")(add.expand(x=items))
    total.override(task_id="t2")(add.override(task_id="a2").partial(y=10).expand(x=[1, 2]))
    total.override(task_id="t3")(add.override(task_id="a3").expand(x=[1, 2], y=[10, 20]))
    pair.expand(x=dct())
    z = add.override(task_id="a4").expand(x=em())
    total.override(task_id="t4")(z)
    total.override(task_id="t5", trigger_rule="none_failed")(z)
    P("aft") << z
    P("aft2", trigger_rule="none_failed_min_one_success") << z
    P("aft3", trigger_rule="all_skipped") << z
with D("kwargs") as d2:

    @task
    def kw():
        return [{"x": 1, "y": 2}, {"x": 3, "y": 4}]

    @task
    def add(x, y):
        return x + y

    add.expand_kwargs(kw())
    add.override(task_id="b").expand_kwargs([{"x": 1, "y": 2}])
    add.override(task_id="c").partial(y=5).expand_kwargs([{"x": 1}, {"x": 2}])
    PythonOperator.partial(task_id="d", python_callable=lambda a: a).expand(op_args=[[1], ["x"]])
    PythonOperator.partial(task_id="e").expand_kwargs([{"python_callable": ok}, {"python_callable": bad}])
    BashOperator.partial(task_id="f", env={"A": "1"}).expand(bash_command=["echo $A", "echo x{{ ti.map_index }}"])
with D("zip") as d3:

    @task
    def a():
        return [1, 2, 3]

    @task
    def b():
        return ["x", "y"]

    @task
    def s(v):
        return v if not isinstance(v, tuple) else list(v)

    @task
    def t(v):
        return v

    A, B = a(), b()
    s.override(task_id="z").expand(v=A.zip(B))
    s.override(task_id="zl").expand(v=A.zip(B, fillvalue="-"))
    s.override(task_id="c").expand(v=A.concat(B))
    s.override(task_id="m").expand(v=A.map(lambda x: x * 2))

    def sk(x):
        if x == 2:
            raise AirflowSkipException("no")
        return x

    s.override(task_id="ms").expand(v=A.map(sk))
    s.override(task_id="zmc").expand(v=A.map(lambda x: x + 1).zip(B).map(lambda p: f"{p[0]}{p[1]}"))

    def boom(x):
        raise RuntimeError("boom")

    s.override(task_id="mb").expand(v=A.map(boom))
    s.override(task_id="idx").expand(v=[A, B])
    t.override(task_id="filter").expand(v=A.concat(B).map(lambda x: f"{x}"))
with D("group") as d4:

    @task
    def listed():
        return [1, 2]

    @task_group
    def g(x, y):
        @task
        def one(v):
            return v * 10

        @task
        def two(v, w):
            return [v, w]

        @task
        def only():
            return "o"

        return two(one(x), y), only()

    r = g.partial(y="Y").expand(x=listed())

    @task
    def col(v):
        return [str(i) for i in v]

    col(r[0])

    @task
    def pulls(**c):
        return {
            "two": list(c["ti"].xcom_pull(task_ids="g.two")),
            "m1": c["ti"].xcom_pull(task_ids="g.one", map_indexes=1),
            "m01": list(c["ti"].xcom_pull(task_ids="g.one", map_indexes=[0, 1])),
            "both": [str(x) for x in c["ti"].xcom_pull(task_ids=["g.one", "g.two"])],
        }

    pulls() << r[0]
with D("group_fail") as d5:

    @task_group
    def g(x):
        @task
        def one(v):
            if v == 2:
                raise ValueError()
            if v == 3:
                raise AirflowSkipException()
            return v

        @task
        def two(v):
            return v

        @task(trigger_rule="all_done")
        def three():
            pass

        t = two(one(x))
        t >> three()

    r = g.expand(x=[1, 2, 3])
    r >> P("after")
    r >> P("after_done", trigger_rule="all_done")
    r >> P("one_ok", trigger_rule="one_success")
with D("group_empty") as d6:

    @task
    def e():
        return []

    @task_group
    def g(x):
        @task
        def one(v):
            return v

        @task(trigger_rule="all_done")
        def two(v):
            return v

        return two(one(x))

    r = g.expand(x=e())
    r >> P("after")
    r >> P("after2", trigger_rule="none_failed")
with D("bad_types") as d7:

    @task
    def n():
        return None

    @task
    def i():
        return 3

    @task
    def st():
        return "abc"

    @task
    def tup():
        return (1, 2)

    @task
    def se():
        return {1, 2}

    @task
    def gen():
        return [None, None]

    @task
    def s(v):
        return repr(v)

    for f in (n, i, st, tup, se, gen):
        s.override(task_id="s_" + f.function.__name__ if hasattr(f, "function") else None).expand(v=f())
with D("kw_bad") as d71:

    @task
    def k1():
        return [{"x": 1}, {"q": 2}]

    @task
    def k2():
        return [1, 2]

    @task
    def k3():
        return {"x": 1}

    @task
    def s(x=0):
        return x

    for n, f in (("k1", k1), ("k2", k2), ("k3", k3)):
        s.override(task_id="s_" + n).expand_kwargs(f())
with D("names") as d9:

    @task(map_index_template="{{ my }}-{{ task.task_id }}")
    def s(v):
        get_current_context()["my"] = f"v{v}"

    s.expand(v=[1, 2])
    BashOperator.partial(task_id="b", map_index_template="{{ task.bash_command }}").expand(
        bash_command=["echo 1", "echo 2; exit 1"]
    )

    @task(map_index_template="{{ nothere }}")
    def q(v):
        pass

    q.expand(v=[1])

    @task(map_index_template="{{ v }}|{{ ti.map_index }}")
    def u(v):
        pass

    u.expand(v=[5, 6])
with D("mapped_over_mapped") as d10:

    @task
    def a(x):
        return x if x != 2 else None

    @task
    def s(v):
        return v

    @task
    def mm(x):
        return [x, x]

    s.expand(v=a.expand(x=[1, 2, 3]))

    @task
    def sumv(v):
        return [str(x) for x in v]

    sumv.expand(v=mm.expand(x=[1, 2]))
with D("partial_fail") as d11:

    @task(retries=1)
    def a(x, **c):
        if x == 1 and c["ti"].try_number == 1:
            raise ValueError()
        if x == 2:
            raise AirflowSkipException()
        if x == 3:
            raise AirflowFailException()
        return x

    m = a.expand(x=[0, 1, 2, 3])
    for r in (
        "all_success",
        "all_done",
        "one_success",
        "one_failed",
        "none_failed",
        "none_skipped",
        "all_done_min_one_success",
        "one_done",
    ):
        m >> P("r_" + r, trigger_rule=r)

    @task(trigger_rule="all_done")
    def get(v):
        return list(v)

    get(m)
with D("limits") as d12:

    @task(max_active_tis_per_dagrun=1)
    def a(x):
        return x

    a.expand(x=[0, 1, 2])
with D("cross") as d13:

    @task
    def a(x):
        return x

    @task
    def listed():
        return [1, 2]

    @task
    def s(x, y, z):
        return [x, y, z]

    s.expand(x=listed(), y=["a", "b"], z=a.expand(x=[8, 9]))
with D("multi") as d14:

    @task(multiple_outputs=True)
    def m():
        return {"a": [1, 2], "b": {"c": 1}}

    @task
    def s(v):
        return v

    o = m()
    s.override(task_id="s2")(o["b"])

    @task
    def d() -> dict:
        return {"q": 1, "w": 2}

    x = d()
    s.override(task_id="s3")(x["q"])

    @task
    def badkeys() -> dict:
        return {1: 2}

    badkeys()

    @task(multiple_outputs=True)
    def nodict():
        return [1]

    nodict()

    @task(multiple_outputs=True)
    def none():
        return None

    none()

    @task
    def missing():
        return {"a": 1}

    y = missing()
    s.override(task_id="s4")(y["zz"])
with D("maprender") as d1:

    @task
    def cmds():
        return ["echo {{ ds }}", "echo b"]

    @task
    def kws():
        return [{"bash_command": "echo {{ ds }}"}, {"bash_command": "echo c", "env": {"A": "{{ ds }}"}}]

    @task
    def id_(v, w=None):
        return [v, w]

    B = BashOperator
    B.partial(task_id="lit").expand(bash_command=["echo {{ ds }}", "echo {{ ti.map_index }}"])
    B.partial(task_id="xc").expand(bash_command=cmds())
    B.partial(task_id="kwlit").expand_kwargs([{"bash_command": "echo {{ ds }}", "env": {"X": "{{ ds }}"}}])
    B.partial(task_id="kwxc", append_env=True).expand_kwargs(kws())
    id_.override(task_id="tlit").expand(v=["{{ ds }}", ["{{ ds }}"], {"a": "{{ ds }}"}])
    id_.override(task_id="tpart").partial(w="{{ ds }}").expand(v=["x"])
    id_.override(task_id="txc").partial(w="{{ ts }}").expand(v=cmds())
    id_.override(task_id="tkw").expand_kwargs([{"v": "{{ ds }}", "w": "{{ ds_nodash }}"}])

    @task
    def kk():
        return [{"v": "{{ ds }}"}]

    id_.override(task_id="tkwx").expand_kwargs(kk())
    id_.override(task_id="tmap").expand(v=cmds.override(task_id="cmds2")().map(lambda c: c + " {{ ds }}"))

    @task_group
    def g(x):
        id_.override(task_id="a")(x)
        B(task_id="b", bash_command=x)
        id_.override(task_id="c")(x, w="{{ ds }}")

    g.expand(x=["echo {{ ds }}"])
    PythonOperator.partial(
        task_id="po", python_callable=lambda *a, **k: [list(a), k.get("q")], op_kwargs={"q": "{{ ds }}"}
    ).expand(op_args=[["{{ ds }}"], ["y"]])
    PythonOperator.partial(task_id="po2", python_callable=lambda **k: k.get("q")).expand(op_kwargs=[{"q": "{{ ds }}"}])


def boom(**c):
    raise RuntimeError("b")
