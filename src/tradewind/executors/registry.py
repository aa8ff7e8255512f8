"""The executors of a deployment by name, and which one runs a task. Pure: computed only from the settings and the task.

`core.executor` lists them, and the first one is the default. A task names another one with `executor=`. A task that names an
executor that the deployment does not have runs on the default executor: a DAG file for another deployment runs too, with a warning.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.executor_names import SEQUENTIAL, class_name, entries


class ExecutorEntry(NamedTuple):
    """One executor of the deployment."""

    name: str
    """Class name of the executor, for example `LocalExecutor`. Each attempt records it."""
    alias: str
    """A second name for DAG files. Empty: there is none."""
    parallelism: int
    """Maximum number of attempts at a time; 0: unlimited."""


class ExecutorRegistry:
    """See the module.

    Args:
        setting: the value of `core.executor`.
        parallelism: the value of `core.parallelism`: the limit of each executor. A `SequentialExecutor` runs one attempt at a time.
    """

    def __init__(self, setting: str, parallelism: int) -> None:
        self.entries = tuple(
            ExecutorEntry(name, alias, 1 if name == SEQUENTIAL else parallelism) for name, alias in entries(setting)
        )
        self.default = self.entries[0].name
        self.names = tuple(entry.name for entry in self.entries)
        self._by_name = {entry.name: entry.name for entry in self.entries}
        self._by_name.update((entry.alias, entry.name) for entry in self.entries if entry.alias)

    @property
    def has_several(self) -> bool:
        """Whether a task can choose between executors. Only then does admission count a limit for each executor."""
        return len(self.entries) > 1

    @property
    def parallelism(self) -> int:
        """Maximum number of attempts at a time over all executors; 0: unlimited."""
        limits = [entry.parallelism for entry in self.entries]
        return sum(limits) if all(limits) else 0

    def has(self, wanted: str | None) -> bool:
        """Return whether the deployment has the executor that a task names. A task that names no executor has the default
        executor.
        """
        return not wanted or class_name(wanted) in self._by_name

    def resolve(self, wanted: str | None) -> str:
        """Return the name of the executor that runs a task.

        Args:
            wanted: the name, import path or alias that the task gives; None: the task names no executor.
        """
        return self._by_name.get(class_name(wanted), self.default) if wanted else self.default
