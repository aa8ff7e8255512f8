"""`airflow.task.priority_strategy`: classes that compute priority weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["PriorityWeightStrategy"]


class PriorityWeightStrategy(ABC):
    """Base of strategies: `weight_rule=OurStrategy()`. It is called when the file is read, for the first try of each task."""

    @abstractmethod
    def get_weight(self, ti: Any) -> int:
        """The weight of a task instance, which has `task`, `priority_weight`, `try_number` and the ids."""

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> PriorityWeightStrategy:
        """A strategy from its JSON."""
        return cls(**data)

    def serialize(self) -> dict[str, Any]:
        """The strategy as JSON."""
        return {}
