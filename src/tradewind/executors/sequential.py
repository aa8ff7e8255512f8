"""One attempt at a time: for debugging, and for DAGs that were written with that in mind."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.executors.local import KILL_GRACE, LocalExecutor, may_always_live


class SequentialExecutor(LocalExecutor):
    """A `LocalExecutor` whose parallelism is one, whatever is asked for."""

    name = "SequentialExecutor"

    def __init__(
        self, parallelism: int = 1, may_live: Callable[[str], bool] = may_always_live, kill_grace: int = KILL_GRACE
    ) -> None:
        super().__init__(1, may_live, kill_grace)
