"""The operator of `@task.stub`: a task whose code is in another language than Python."""

from __future__ import annotations

from typing import Any

from tradewind.model.errors import NotYetSupported
from tradewind.sdk.decorators import DecoratedOperator


class StubDecoratedOperator(DecoratedOperator):
    """Stands in the DAG for a task that a program in Go or Java would run. Such programs do not run here: the task fails.

    The function has no code of its own; `queue` names the workers that would run the program.
    """

    custom_operator_name = "@task.stub"

    def execute(self, context: Any) -> Any:
        raise NotYetSupported(
            f"the code of task {self.task_id!r} is not in Python (@task.stub, queue {self.queue!r}); "
            "workers run only tasks in Python. Call the program from @task.bash or @task.docker instead"
        )
