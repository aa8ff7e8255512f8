"""`airflow.sdk.definitions.retry_policy`: classes that decide from the exception whether a failed task is retried."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from tradewind.airflow.compat.module_loading import import_string

__all__ = ["ChainRetryPolicy", "ExceptionRetryPolicy", "RetryAction", "RetryDecision", "RetryPolicy", "RetryRule"]

log = logging.getLogger(__name__)


class RetryAction(Enum):
    """The action after a failure."""

    RETRY = "retry"
    FAIL = "fail"
    DEFAULT = "default"


@dataclass(frozen=True)
class RetryDecision:
    """The decision of a policy. `retry_delay` None: the delay of the task."""

    action: RetryAction = RetryAction.DEFAULT
    retry_delay: timedelta | None = None
    reason: str | None = None

    @classmethod
    def fail(cls, reason: str | None = None) -> RetryDecision:
        """Fail without a further try."""
        return cls(RetryAction.FAIL, reason=reason)

    @classmethod
    def retry(cls, delay: timedelta | None = None, reason: str | None = None) -> RetryDecision:
        """Retry, if the task has tries left."""
        return cls(RetryAction.RETRY, delay, reason)

    @classmethod
    def default(cls) -> RetryDecision:
        """Retry as if there were no policy."""
        return cls()


class RetryPolicy(ABC):
    """Base of policies: subclasses define `evaluate`."""

    @abstractmethod
    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Decide about a failure."""

    def serialize(self) -> dict[str, Any]:
        """The policy as JSON.

        Raises:
            NotImplementedError: the policy does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement serialize()")

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> RetryPolicy:
        """A policy from its JSON.

        Raises:
            NotImplementedError: the policy does not define it.
        """
        raise NotImplementedError(f"{cls.__name__} must implement deserialize()")


@dataclass
class RetryRule:
    """The action for some exceptions, given as classes or as full names."""

    exception: type[BaseException] | str | list[type[BaseException] | str]
    action: RetryAction = RetryAction.RETRY
    retry_delay: timedelta | None = None
    reason: str | None = None
    match_subclasses: bool = True

    def __post_init__(self) -> None:
        for listed in self._listed():
            if isinstance(listed, str) and "." not in listed:
                raise ValueError(
                    f"RetryRule exception string must be a dotted import path (e.g. 'builtins.ValueError'), got {listed!r}"
                )

    def _listed(self) -> list[type[BaseException] | str]:
        return self.exception if isinstance(self.exception, list) else [self.exception]

    def _classes(self) -> Iterator[type[BaseException]]:
        for listed in self._listed():
            if isinstance(listed, type):
                yield listed
                continue
            try:
                yield import_string(listed)
            except (ImportError, AttributeError):
                log.warning("Could not import exception class %r, it will not match", listed)

    @property
    def exception_path(self) -> str:
        """Full names of the exceptions, separated by commas."""
        return ",".join(
            listed if isinstance(listed, str) else f"{listed.__module__}.{listed.__qualname__}" for listed in self._listed()
        )

    def matches(self, exc: BaseException) -> bool:
        """Whether the rule applies to this exception."""
        classes = tuple(self._classes())
        return isinstance(exc, classes) if self.match_subclasses else type(exc) in classes

    def serialize(self) -> dict[str, Any]:
        """The rule as JSON."""
        paths = self.exception_path.split(",")
        found: dict[str, Any] = {
            "exception": paths if len(paths) > 1 else paths[0],
            "action": self.action.value,
            "match_subclasses": self.match_subclasses,
        }
        if self.retry_delay is not None:
            found["retry_delay"] = self.retry_delay.total_seconds()
        if self.reason is not None:
            found["reason"] = self.reason
        return found

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> RetryRule:
        """A rule from its JSON."""
        delay = data.get("retry_delay")
        return cls(
            exception=data["exception"],
            action=RetryAction(data["action"]),
            retry_delay=None if delay is None else timedelta(seconds=delay),
            reason=data.get("reason"),
            match_subclasses=data.get("match_subclasses", True),
        )


class ExceptionRetryPolicy(RetryPolicy):
    """Rules in order: the first one that matches decides."""

    def __init__(self, rules: list[RetryRule], default: RetryAction = RetryAction.DEFAULT) -> None:
        self.rules = rules
        self.default = default

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Decide about a failure."""
        for rule in self.rules:
            if rule.matches(exception):
                reason = rule.reason or f"Matched rule for {type(exception).__name__}"
                return RetryDecision(rule.action, rule.retry_delay, reason)
        return RetryDecision(self.default)

    def serialize(self) -> dict[str, Any]:
        """The policy as JSON."""
        rules = [rule.serialize() for rule in self.rules]
        return {"__type": "ExceptionRetryPolicy", "rules": rules, "default": self.default.value}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> ExceptionRetryPolicy:
        """A policy from its JSON."""
        rules = [RetryRule.deserialize(rule) for rule in data["rules"]]
        return cls(rules, RetryAction(data.get("default", "default")))


class ChainRetryPolicy(RetryPolicy):
    """Policies in order: the first policy that does not return DEFAULT decides."""

    def __init__(self, policies: list[RetryPolicy]) -> None:
        self.policies = policies

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Decide about a failure."""
        for policy in self.policies:
            decision = policy.evaluate(exception, try_number, max_tries, context)
            if decision.action is not RetryAction.DEFAULT:
                return decision
        return RetryDecision.default()
