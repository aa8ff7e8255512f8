"""Text and templates in fields, as strings and as native objects; params."""

from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import (
    BaseOperator,
    ExceptionRetryPolicy,
    RetryAction,
    RetryRule,
    task,
)
from golden_tasks import D, P, bad, failhard

with D("native", render_template_as_native_obj=True) as d2:

    @task
    def show(v):
        return [type(v).__name__, repr(v)]

    for i, v in enumerate(
        [
            "1",
            "1.5",
            "007",
            "[1, 2]",
            "{'a': 1}",
            "None",
            "True",
            "null",
            "text",
            "a, b",
            "'q'",
            '"q"',
            "1,2",
            " 1",
            "1 ",
            "x\n",
            "1\n",
            "",
            "2024-01-01",
            "1e3",
            "(1,)",
            "{1,2}",
            "b'x'",
            "1+1",
            "-5",
            "0x10",
            "a\nb",
            "...",
            "__import__('os')",
            "[1, {{ 2 }}]",
            "{{ 'a' }}1",
            "'{{ 1 }}'",
            "{{ '1' }}",
            "{{ [1] }}{{ 2 }}",
            "1_000",
            "{{ 1 }}\n",
            "# c",
            "{{ none }}{{ 1 }}",
            "inf",
            "['a', \"b\"]",
        ]
    ):
        show.override(task_id=f"n{i:02}")(v)
    show.override(task_id="nested")({"a": ["1", {"b": "[1]"}], "c": ("2", 3)})
    PythonOperator(task_id="op", python_callable=lambda *a, **k: repr([a, k["x"]]), op_args=["1"], op_kwargs={"x": "2"})
    BashOperator(task_id="b", bash_command="echo 5")
    BashOperator(task_id="b2", bash_command="true", env={"A": "1"})
with D("text") as d3:

    @task
    def show(v):
        return repr(v)

    for i, v in enumerate(
        [
            "a\n",
            "a\n\n",
            "a\r\nb",
            "a\rb\n",
            " {{ 1 }} \n",
            "{{ 1 }}\n\n",
            "{{ 'x\n' }}",
            "\n",
            "a\x0bb",
            "{{ 1 }}\r\n",
            "a\n{{ 1 }}",
            "#{{ 1 }}",
            "{# c #}x",
            "{{ '{{ ds }}' }}",
            "{% raw %}{{ x }}{% endraw %}",
            "{{ds}}",
            "{{- ds -}} x",
            "{{ ds",
            "{%",
            "{#",
            "}}",
            "a {{ x.y.z if false else 1 }}",
        ]
    ):
        show.override(task_id=f"x{i:02}")(v)
    show.override(task_id="nested")({"a\n": ["x\n", {"b": "y\r\n"}], "c": ("z\n", 3)})
with D("selfparams", params={"p": 1, "q": 2}) as d4:

    class PO(BaseOperator):
        template_fields = ("f",)

        def __init__(self, f="{{ params }}", **k):
            super().__init__(**k)
            self.f = f
            self.seen = repr(dict(self.params)) if self.params else "none"

        def execute(self, context):
            return [
                self.f,
                repr({k: self.params[k] for k in self.params}),
                repr(context["task"].params.get("p") if hasattr(context["task"].params, "get") else 0),
                self.seen,
            ]

    PO(task_id="a")
    PO(task_id="b", params={"q": 5, "r": 6})
    PO(task_id="c", f="{{ task.params }}|{{ dag.params }}", params={"r": 1})
    PO.partial(task_id="m", params={"r": 9}).expand(f=["x"])


def upto(n, exc=ValueError):
    def f(**c):
        if c["ti"].try_number <= n:
            raise exc("x")
        return c["ti"].try_number

    return f


with D("policy") as d2:
    pol = ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=ValueError, action=RetryAction.FAIL, reason="v"),
            RetryRule(exception=KeyError, action=RetryAction.RETRY, retry_delay=timedelta(seconds=0)),
            RetryRule(exception="builtins.OSError", action=RetryAction.FAIL),
        ]
    )
    P("a", bad, retries=2, retry_policy=pol)

    def k():
        raise KeyError("x")

    P("b", k, retries=2, retry_policy=pol)

    def o():
        raise FileNotFoundError("x")

    P("c", o, retries=2, retry_policy=pol)

    def z():
        return 1 / 0

    P("d", z, retries=1, retry_policy=pol)
    P("e", k, retries=0, retry_policy=pol)
    P("f", failhard, retries=2, retry_policy=pol)
