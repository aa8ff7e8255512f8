"""Operators that ask a person: the task waits in state `awaiting_input`, without a process, until somebody answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict
from urllib.parse import urlencode, urlsplit

from tradewind.execution.input_request import upsert_hitl_detail
from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BranchMixIn, SkipMixin
from tradewind.sdk import open_dags
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException, TaskAwaitingInput
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.params import ParamsDict

__all__ = [
    "ApprovalOperator",
    "HITLBranchOperator",
    "HITLEntryOperator",
    "HITLOperator",
    "HITLRejectException",
    "HITLTimeoutError",
    "HITLTriggerEventError",
    "HITLUser",
]


class HITLUser(TypedDict):
    """A person who may answer, or who has answered."""

    id: str
    name: str


class HITLTriggerEventError(Exception):
    """The wait for an answer has ended without an answer."""


class HITLTimeoutError(HITLTriggerEventError):
    """Nobody has answered in time, and the task has no defaults."""


class HITLRejectException(AirflowException):
    """A person rejected, and the task is an `ApprovalOperator` with `fail_on_reject`."""


class _WrongQuestion(DefinitionError, ValueError):
    """The arguments of a question do not fit together."""


class HITLOperator(BaseOperator):
    """Asks a person to choose among options, and to fill in fields.

    The return value is a mapping: `chosen_options`, `params_input` (field → value), `responded_at` and `responded_by_user`
    (`{id, name}`; None if the defaults were used).

    Args:
        subject, body: the question; templates. The body is Markdown.
        options: what can be chosen.
        defaults: the options that are used if nobody answers before `response_timeout`. Without them the task fails then.
        multiple: several options may be chosen.
        params: form fields; values, or `Param` with a description and a schema.
        notifiers: called before the task waits.
        assigned_users: who may answer; None: everybody who may edit the task instance.
        response_timeout: how long to wait. `execution_timeout`, the limit for the work of the task, is used if it is missing.
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
        assigned_users: HITLUser | Sequence[HITLUser] | None = None,
        response_timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if self.execution_timeout and not response_timeout:
            open_dags.warn_author(
                f"{type(self).__name__}: execution_timeout limits the wait for an answer, because response_timeout is missing; "
                "use response_timeout"
            )
            response_timeout, self.execution_timeout = self.execution_timeout, None
        self.subject = subject
        self.body = body
        self.options = list(options)
        self.defaults = [defaults] if isinstance(defaults, str) else None if defaults is None else list(defaults)
        self.multiple = multiple
        self.params = ParamsDict(params)
        self.notifiers = list(notifiers) if isinstance(notifiers, list | tuple) else [] if notifiers is None else [notifiers]
        self.assigned_users = [assigned_users] if isinstance(assigned_users, dict) else assigned_users
        self.response_timeout = response_timeout
        self.hitl_summary_extra: dict[str, Any] = {}
        self.validate_options()
        self.validate_params()
        self.validate_defaults()

    # --- checks ------------------------------------------------------------------------------------------------------

    def validate_options(self) -> None:
        """Raises ValueError if there are no options."""
        if not self.options:
            raise _WrongQuestion(f'{self._name_in_errors()}: "options" cannot be empty.')

    def validate_params(self) -> None:
        """Raises ValueError if a field has the name `_options`. Values are checked when the answer arrives."""
        if "_options" in self.params:
            raise _WrongQuestion(f'{self._name_in_errors()}: "_options" is not allowed in params')

    def validate_defaults(self) -> None:
        """Raises ValueError if a default is not among the options, or if there are several defaults without `multiple`."""
        if self.defaults is None:
            return
        if not set(self.defaults) <= set(self.options):
            raise _WrongQuestion(
                f'{self._name_in_errors()}: defaults "{self.defaults}" should be a subset of options "{self.options}"'
            )
        if len(self.defaults) > 1 and not self.multiple:
            raise _WrongQuestion(f'{self._name_in_errors()}: More than one defaults given when "multiple" is set to False.')

    def validate_chosen_options(self, chosen_options: Sequence[str]) -> None:
        """Raises ValueError for an option that the question does not have."""
        unknown = set(chosen_options) - set(self.options)
        if unknown:
            raise ValueError(f"Responses {unknown} not in {self.options}")

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Store the values of the fields.

        Raises:
            ValueError: the fields are not those of the question.
            ParamValidationError: a value does not fit the schema of its field.
        """
        if self.params and params_input and set(self.params) ^ set(params_input):
            raise ValueError(f"params_input {params_input} does not match params {self.params}")
        for name, value in params_input.items():
            self.params[name] = value

    # --- the question ----------------------------------------------------------------------------------------

    @property
    def serialized_params(self) -> dict[str, dict[str, Any]]:
        """The form fields by name: `{value, description, schema, source}`."""
        return {name: self.params.get_param(name).serialize() for name in self.params}

    @property
    def hitl_summary(self) -> dict[str, Any]:
        """The question, and later the answer, for listeners. Subclasses add to `hitl_summary_extra`."""
        return {
            "subject": self.subject,
            "body": self.body,
            "options": self.options,
            "defaults": self.defaults,
            "multiple": self.multiple,
            "assigned_users": self.assigned_users,
            "serialized_params": self.serialized_params or None,
            **self.hitl_summary_extra,
        }

    # --- asking and answering ----------------------------------------------------------------------------------------

    def execute(self, context: Any) -> Any:
        """Ask the question, call the notifiers, and wait.

        Raises:
            TaskAwaitingInput: always; the task continues in `execute_complete`.
        """
        upsert_hitl_detail(
            ti_id=context["task_instance"].id,
            options=self.options,
            subject=self.subject,
            body=self.body,
            defaults=self.defaults,
            multiple=self.multiple,
            params=self.serialized_params,
            assigned_users=[{"id": user["id"], "name": user["name"]} for user in self.assigned_users or ()],
        )
        until = None if self.response_timeout is None else datetime.now().astimezone() + self.response_timeout
        self.hitl_summary_extra["timeout_datetime"] = None if until is None else until.isoformat()
        self.log.info("Waiting for response")
        for notifier in self.notifiers:
            notifier(context)
        raise TaskAwaitingInput(method_name="execute_complete", timeout=self.response_timeout)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Check the answer, and return it.

        Raises:
            HITLTimeoutError: nobody has answered in time, and there are no defaults.
        """
        if "error" in event:
            self.hitl_summary_extra["error_type"] = event["error_type"]
            self.process_trigger_event_error(event)
        chosen, fields = event["chosen_options"], event["params_input"] or {}
        self.validate_chosen_options(chosen)
        self.validate_params_input(fields)
        answer = {
            "chosen_options": chosen,
            "params_input": fields,
            "responded_at": event["responded_at"],
            "responded_by_user": event["responded_by_user"],
        }
        self.hitl_summary_extra.update({**answer, "responded_at": event["responded_at"].isoformat()})
        return answer

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Raise the error of a wait that has ended without an answer."""
        if event["error_type"] == "timeout":
            raise HITLTimeoutError(event["error"])
        raise HITLTriggerEventError(event["error"])

    # --- links for notifiers -----------------------------------------------------------------------------------------

    def generate_link_to_ui(
        self,
        *,
        task_instance: Any,
        base_url: str | None = None,
        options: str | Sequence[str] | None = None,
        params_input: Mapping[str, Any] | None = None,
    ) -> str:
        """The URL of the page where the question is answered.

        Args:
            base_url: address of the web server; None: `api.base_url` of the settings.
            options, params_input: the options and values that the page shows in advance.

        Raises:
            ValueError: an unknown option or field, or no base URL.
        """
        chosen = [options] if isinstance(options, str) else list(options or ())
        if unknown := set(chosen) - set(self.options):
            raise ValueError(f"options {unknown} are not valid options")
        if unknown := set(params_input or ()) - set(self.params):
            raise ValueError(f"params {unknown} are not valid params")
        base = base_url or conf.get("api", "base_url", fallback=None)
        if not base:
            raise ValueError("Not able to retrieve base_url")
        query: dict[str, Any] = {"_options": chosen} if chosen else {}
        query |= {**(params_input or {}), "map_index": task_instance.map_index}
        where = f"/dags/{task_instance.dag_id}/runs/{task_instance.run_id}/tasks/{task_instance.task_id}/required_actions"
        parts = urlsplit(base)
        return parts._replace(path=where, query=urlencode(query), fragment="").geturl()

    @staticmethod
    def generate_link_to_ui_from_context(
        *,
        context: Mapping[str, Any],
        base_url: str | None = None,
        options: Sequence[str] | None = None,
        params_input: Mapping[str, Any] | None = None,
    ) -> str:
        """As `generate_link_to_ui`, for the running task: notifiers know only the context."""
        operator: HITLOperator = context["task"]
        return operator.generate_link_to_ui(
            task_instance=context["task_instance"], base_url=base_url, options=options, params_input=params_input
        )


class ApprovalOperator(HITLOperator, SkipMixin):
    """Asks a person to approve or reject. A rejection skips the downstream tasks.

    Args:
        ignore_downstream_trigger_rules: a rejection skips everything downstream, not only the direct downstream tasks.
        fail_on_reject: a rejection fails the task.
    """

    inherits_from_skipmixin = True
    FIXED_ARGS = ("options", "multiple")
    APPROVE, REJECT = "Approve", "Reject"

    def __init__(self, *, ignore_downstream_trigger_rules: bool = False, fail_on_reject: bool = False, **kwargs: Any) -> None:
        for name in self.FIXED_ARGS:
            if name in kwargs:
                raise _WrongQuestion(f"Passing {name} to ApprovalOperator is not allowed.")
        super().__init__(options=[self.APPROVE, self.REJECT], multiple=False, **kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules
        self.fail_on_reject = fail_on_reject
        self.hitl_summary_extra["ignore_downstream_trigger_rules"] = ignore_downstream_trigger_rules
        self.hitl_summary_extra["fail_on_reject"] = fail_on_reject

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Check the answer, and skip the downstream tasks after a rejection.

        Raises:
            HITLRejectException: a rejection with `fail_on_reject`.
        """
        answer = super().execute_complete(context, event)
        approved = answer["chosen_options"][0] == self.APPROVE
        self.hitl_summary_extra["approved"] = approved
        if approved:
            self.log.info("Approved. Proceeding with downstream tasks...")
            return answer
        if self.fail_on_reject:
            raise HITLRejectException('Receive "Reject"')
        if not self.downstream_task_ids:
            self.log.info("No downstream tasks; nothing to do.")
            return answer
        self.log.info("Skipping downstream tasks")
        self.skip(context["ti"], list(self._skipped(context["task"])))
        return answer

    def _skipped(self, task: BaseOperator) -> Iterator[BaseOperator]:
        every = self.ignore_downstream_trigger_rules
        tasks = task.get_flat_relatives(upstream=False) if every else task.get_direct_relatives(upstream=False)
        return (one for one in tasks if not one.is_teardown)


class HITLBranchOperator(BranchMixIn, HITLOperator):
    """Asks a person which branch to follow.

    Args:
        options_mapping: option → id of the task to follow; an option without an entry is the id itself.
    """

    inherits_from_skipmixin = True

    def __init__(self, *, options_mapping: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options_mapping = dict(options_mapping or {})
        self.validate_options_mapping()
        self.hitl_summary_extra["options_mapping"] = self.options_mapping

    def validate_options_mapping(self) -> None:
        """Raises ValueError for a key that is not an option, or a value that is not a text."""
        unknown = sorted(set(self.options_mapping) - set(self.options))
        if unknown:
            raise _WrongQuestion(
                f"{self._name_in_errors()}: `options_mapping` contains keys that are not in `options`: {unknown}"
            )
        wrong = {
            option: (task, type(task).__name__) for option, task in self.options_mapping.items() if not isinstance(task, str)
        }
        if wrong:
            raise _WrongQuestion(
                f"{self._name_in_errors()}: `options_mapping` values must be strings (task_ids).\nInvalid entries: {wrong}"
            )

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Follow the branches that were chosen, and return their task ids."""
        answer = super().execute_complete(context, event)
        branches = [self.options_mapping.get(option, option) for option in answer["chosen_options"]]
        self.hitl_summary_extra["branches_to_execute"] = branches
        return self.do_branch(context, branches)


class HITLEntryOperator(HITLOperator):
    """Asks a person to fill in fields. Without options, the only option is OK, and it is the default."""

    OK = "OK"

    def __init__(self, **kwargs: Any) -> None:
        if "options" not in kwargs:
            kwargs = {"defaults": [self.OK], **kwargs, "options": [self.OK]}
        super().__init__(**kwargs)
