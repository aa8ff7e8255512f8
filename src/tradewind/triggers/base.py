"""The base classes of triggers, with Airflow's module name."""

from __future__ import annotations

from tradewind.sdk.trigger import (
    BaseEventTrigger,
    BaseTaskEndEvent,
    BaseTrigger,
    StartTriggerArgs,
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)

__all__ = [
    "BaseEventTrigger",
    "BaseTaskEndEvent",
    "BaseTrigger",
    "StartTriggerArgs",
    "TaskFailedEvent",
    "TaskSkippedEvent",
    "TaskSuccessEvent",
    "TriggerEvent",
]
