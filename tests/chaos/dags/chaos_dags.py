"""The DAGs of the kill test, built from `chaos_plan`."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from chaos_marks import Marks
from chaos_plan import PLAN, Step
from chaos_trigger import Soon

from tradewind import DAG, AirflowFailException, AirflowSkipException
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator
from tradewind.sdk.operator import BaseOperator


def work(step: list[Any], **context: Any) -> str:
    """Do what the script says. Returns the attempt, which downstream tasks record as the value that they saw."""
    after, ms, kind, ends = step
    ti = context["ti"]
    marks = Marks(ti.dag_id, ti.run_id, ti.task_id, ti.try_number)
    marks.write("start")
    if after:
        marks.write("saw", seen=dict(zip(after, ti.xcom_pull(task_ids=after), strict=True)))
    if kind == "big":
        ti.xcom_push(key="big", value=str(marks.who["attempt"]) + "x" * 200_000)  # a new file for each attempt
    if kind == "daemon":
        marks.daemon()
    if kind == "children":
        marks.child(ms)
    else:
        time.sleep(ms / 1000)
    if ends == "skip":
        marks.write("end", how="skip")
        raise AirflowSkipException("the script says so")
    if ends == "final":
        marks.write("end", how="fail")
        raise AirflowFailException("the script says so")
    if ends == "fail" or (ends == "late" and marks.said("fail") < 2):
        marks.write("end", how="fail")
        raise RuntimeError("the script says so")
    marks.write("end", how="ok")
    return str(marks.who["attempt"])


def cheer(context: Any) -> None:
    """Called by the process of the task after its result, or by another process if that one died."""
    print(f"well done, {context['ti'].task_id}")


class Deferring(BaseOperator):
    """Waits for a trigger first; the attempt that continues does what the script says."""

    def __init__(self, *, step: list[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step

    def execute(self, context: Any) -> None:
        self.defer(trigger=Soon(0.1), method_name="resume")

    def resume(self, context: Any, event: Any) -> str:
        assert event == "soon"
        return work(self.step, **context)


def operator(name: str, step: Step) -> Any:
    common: dict[str, Any] = {
        "task_id": name,
        "retries": step.retries,
        "retry_delay": timedelta(milliseconds=50),
        "trigger_rule": step.rule,
        "lost_attempts": step.lost,
    }
    if step.kind == "bash":
        script = Path(__file__).with_name("chaos_bash.sh")
        return BashOperator(bash_command=f"bash {script} {step.ms / 1000} ", **common)
    arguments = [list(step.after), step.ms, step.kind, step.ends]
    if step.kind == "big":
        common["on_success_callback"] = cheer
    if step.kind == "defers":
        return Deferring(step=arguments, **common)
    return PythonOperator(python_callable=work, op_kwargs={"step": arguments}, **common)


for dag_id, steps in PLAN.items():
    with DAG(dag_id, schedule=None, max_active_runs=100, is_paused_upon_creation=False) as dag:
        made = {name: operator(name, step) for name, step in steps.items()}
        for name, step in steps.items():
            for other in step.after:
                made[other] >> made[name]
    globals()[dag_id] = dag
