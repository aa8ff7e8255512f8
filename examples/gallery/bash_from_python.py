"""A command that Python creates, and tasks with a condition.

Bash runs the text that a @task.bash function returns. `run_if` checks a condition before the task, and skips the task if it is
false.
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
