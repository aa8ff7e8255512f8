"""One attempt at a time: for debugging, and for DAGs that were written with that in mind."""

from __future__ import annotations

from tradewind.executors.local import LocalExecutor


class SequentialExecutor(LocalExecutor):
    """A `LocalExecutor` whose parallelism is one."""

    name = "SequentialExecutor"

    def __init__(self) -> None:
        super().__init__(parallelism=1)
