"""A command that is put together in Python, and tasks with a condition.

What a @task.bash function returns is run by bash; `run_if` asks before the task does anything, and skips it where the answer is no.
"""

from __future__ import annotations

import shlex
from datetime import datetime

from tradewind import DAG, Param, task

with DAG(
    "bash_from_python",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"words": Param("to be or not to be", type="string"), "loud": False},
    tags=["example", "gallery"],
):

    @task.bash
    def count_words(params) -> str:
        return f"echo {shlex.quote(params['words'])} | wc -w"

    @task.run_if(lambda context: context["params"]["loud"], "nobody asked for it to be loud")
    @task.bash
    def shout(params) -> str:
        return f"echo {shlex.quote(params['words'].upper())}"

    count_words() >> shout()
