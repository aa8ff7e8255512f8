"""Human-in-the-loop operators of Airflow 3.1. Files with them load; such a task fails when it runs: nobody can answer yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.operators.branch import BranchMixIn
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.params import ParamsDict

__all__ = ["ApprovalOperator", "HITLBranchOperator", "HITLEntryOperator", "HITLOperator"]


class HITLOperator(BaseOperator):
    """Asks a person to choose among options.

    Args:
        subject, body: the question; templates.
        options: what can be chosen.
        defaults: what counts when nobody answers in time.
        multiple: several options may be chosen.
        params: fields that the person fills in.
        notifiers, assigned_users: who is told and who may answer.
        response_timeout: how long to wait.
    """

    template_fields: Collection[str] = ("subject", "body")

    def __init__(
        self,
        *,
        subject: str,
        options: Sequence[str],
        body: str | None = None,
        defaults: str | Sequence[str] | None = None,
        multiple: bool = False,
        params: Mapping[str, Any] | None = None,
        notifiers: Any = None,
        assigned_users: Any = None,
        response_timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subject = subject
        self.body = body
        self.options = list(options)
        self.defaults = [defaults] if isinstance(defaults, str) else None if defaults is None else list(defaults)
        self.multiple = multiple
        self.params = ParamsDict(params)
        self.notifiers: list[Callable[..., Any]] = list(notifiers) if isinstance(notifiers, list | tuple) else []
        self.assigned_users = assigned_users
        self.response_timeout = response_timeout
        self._check()

    def _check(self) -> None:
        if not self.options:
            raise DefinitionError(f"{self._name_in_errors()}: options is empty; give what a person can choose")
        unknown = [default for default in self.defaults or () if default not in self.options]
        if unknown:
            raise DefinitionError(f"{self._name_in_errors()}: defaults has {unknown[0]!r}, which is not among the options")
        if self.defaults is not None and len(self.defaults) > 1 and not self.multiple:
            raise DefinitionError(f"{self._name_in_errors()}: there are several defaults; set multiple=True")

    def execute(self, context: Any) -> Any:
        """Fail.

        Raises:
            NotYetSupported: always.
        """
        raise NotYetSupported(
            "human-in-the-loop tasks cannot ask anybody yet; let a sensor wait for a variable, or trigger the rest as another DAG"
        )


class ApprovalOperator(HITLOperator):
    """Asks a person to approve or reject."""

    APPROVE, REJECT = "Approve", "Reject"

    def __init__(self, *, ignore_downstream_trigger_rules: bool = False, fail_on_reject: bool = False, **kwargs: Any) -> None:
        for name in ("options", "multiple"):
            if name in kwargs:
                raise DefinitionError(f"ApprovalOperator takes no argument {name!r}: its options are Approve and Reject")
        super().__init__(options=[self.APPROVE, self.REJECT], **kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules
        self.fail_on_reject = fail_on_reject


class HITLBranchOperator(BranchMixIn, HITLOperator):
    """Asks a person which branch to follow.

    Args:
        options_mapping: option → id of the task to follow; without, the option is the id.
    """

    def __init__(self, *, options_mapping: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options_mapping = dict(options_mapping or {})
        unknown = [option for option in self.options_mapping if option not in self.options]
        if unknown:
            raise DefinitionError(
                f"{self._name_in_errors()}: options_mapping has {unknown[0]!r}, which is not among the options"
            )


class HITLEntryOperator(HITLOperator):
    """Asks a person to fill in fields."""

    OK = "OK"

    def __init__(self, *, options: Sequence[str] = ("OK",), **kwargs: Any) -> None:
        super().__init__(options=options, **kwargs)
