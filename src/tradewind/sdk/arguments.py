"""The arguments that every operator accepts: names, types, and how a value is checked and converted.

`READERS` lists the arguments that `BaseOperator` accepts. `NOT_SUPPORTED` lists Airflow's arguments that are not supported yet,
`RENAMED` lists older names. A name that is in none of these tables, and in no signature of the operator, is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from tradewind.model.definition import LOST_ATTEMPTS
from tradewind.model.errors import DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.executor_names import class_name
from tradewind.model.states import TRIGGER_RULE_ALIASES, TriggerRule, WeightRule
from tradewind.sdk import open_dags

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.taskgroup import TaskGroup

Hook = Callable[..., None]
Callback = Callable[..., Any]


class OperatorArguments(TypedDict, total=False):
    """Keyword arguments of every operator. Durations may be given as `timedelta` or as a number of seconds."""

    dag: DAG | None
    task_group: TaskGroup | None
    default_args: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    owner: str | None
    retries: int | None
    retry_delay: timedelta | float | None
    retry_exponential_backoff: bool | float | None
    lost_attempts: str | None
    max_retry_delay: timedelta | float | None
    start_date: datetime | None
    end_date: datetime | None
    depends_on_past: bool | None
    ignore_first_depends_on_past: bool | None
    wait_for_past_depends_before_skipping: bool | None
    wait_for_downstream: bool | None
    priority_weight: int | None
    weight_rule: WeightRule | str | None
    queue: str | None
    pool: str | None
    pool_slots: int | None
    execution_timeout: timedelta | None
    trigger_rule: TriggerRule | str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    do_xcom_push: bool | None
    multiple_outputs: bool | None
    doc: str | None
    doc_md: str | None
    doc_json: str | None
    doc_yaml: str | None
    doc_rst: str | None
    task_display_name: str | None
    logger_name: str | None
    run_as_user: str | None
    executor: str | None
    pre_execute: Hook | None
    post_execute: Hook | None
    render_template_as_native_obj: bool | None
    email: str | list[str] | None
    email_on_retry: bool | None
    email_on_failure: bool | None
    on_execute_callback: Callback | Sequence[Callback] | None
    on_failure_callback: Callback | Sequence[Callback] | None
    on_success_callback: Callback | Sequence[Callback] | None
    on_retry_callback: Callback | Sequence[Callback] | None
    on_skipped_callback: Callback | Sequence[Callback] | None
    sla: timedelta | None
    inlets: Any
    outlets: Any
    executor_config: Any
    resources: Any
    map_index_template: str | None
    # no reader: values that would have an effect are refused with an explanation (see NOT_SUPPORTED)
    retry_policy: Any
    deadline: Any
    allow_nested_operators: bool | None


# --- readers: check and convert one value -----------------------------------------------------------------------------


Reader = Callable[[str, Any], Any]
"""(name of the argument, given value) → value to keep. Raises DefinitionError with a message that starts with the name."""


def integer(minimum: int) -> Reader:
    """A reader of integers of at least `minimum`. It also reads a string of digits, as Airflow does."""

    def read(name: str, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise DefinitionError(f"{name} is {value!r}; it must be an integer") from None
        if number != value and not isinstance(value, str):
            raise DefinitionError(f"{name} is {value!r}; it must be an integer")
        if number < minimum and minimum == 0:
            open_dags.warn_author(f"{name} is {value!r}; it is replaced by 0")
            return 0
        if number < minimum:
            raise DefinitionError(f"{name} is {value!r}; it must be at least {minimum}")
        return number

    return read


def retries(name: str, value: Any) -> int:
    """A number of retries. Of a number with a fraction, the fraction is left out with a warning, as in Airflow."""
    if isinstance(value, float) and value == value and int(value) != value:
        open_dags.warn_author(f"{name} is {value!r}; it is replaced by {int(value)}")
        value = int(value)
    number: int = integer(0)(name, value)
    return number


def duration(name: str, value: Any) -> timedelta:
    """A timedelta, or a number of seconds. A negative one is replaced by 0, with a warning; Airflow accepts it."""
    if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
        raise DefinitionError(f"{name} is {value!r}; it must be a timedelta or a number of seconds")
    span = value if isinstance(value, timedelta) else timedelta(seconds=value)
    if span < timedelta(0):
        open_dags.warn_author(f"{name} is {value!r}; it is replaced by 0")
        return timedelta(0)
    return span


def timedelta_only(name: str, value: Any) -> timedelta:
    """A timedelta. Airflow accepts no number here."""
    if isinstance(value, int | float) and not isinstance(value, bool) and open_dags.generation() < 3:
        open_dags.warn_author(f"{name} is {value!r}, which is read as seconds; write timedelta(seconds=…)", DeprecationWarning)
    elif not isinstance(value, timedelta):
        raise DefinitionError(f"{name} is {value!r}; it must be a timedelta, such as timedelta(minutes=5)")
    return duration(name, value)


def date_time(name: str, value: Any) -> datetime:
    """A datetime (or subclass), a date, or a string in ISO 8601. A value without a time zone stays without: it is in the configured
    default time zone."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            found = _other_form(value)
        if found is not None:
            return found
    raise DefinitionError(f"{name} is {value!r}; it must be a datetime, or a string like 2026-01-31 or 2026-01-31T06:00:00Z")


def _other_form(text: str) -> datetime | None:
    """A date that is not in ISO 8601, such as `2020/1/31`, read as Airflow reads it. None: the text is not a date."""
    import pendulum  # lazy import: 80 ms, and few files have such dates

    try:
        found = pendulum.parse(text, strict=False, tz=None)
    except ValueError:
        return None
    return found if isinstance(found, datetime) and any(character.isdigit() for character in text) else None


def string(name: str, value: Any) -> str:
    """A text. Airflow 1 and 2 check no types, so other values of their files become texts, such as a dictionary as `doc_json`."""
    if isinstance(value, str):
        return value
    if open_dags.generation() < 3:
        open_dags.warn_author(f"{name} is {value!r:.200}; it must be a string, and its text is used")
        return str(value)
    raise DefinitionError(f"{name} is {value!r}; it must be a string")


def owner(name: str, value: Any) -> str:
    """A name, or several names separated by commas or in a list."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return string(name, str(value) if isinstance(value, int) else value)


def boolean(name: str, value: Any) -> bool:
    """A flag. Airflow 3 refuses a text, and "False" would be true."""
    if isinstance(value, str) and open_dags.generation() == 3:
        raise DefinitionError(f"{name} is {value!r}; it must be True or False")
    return bool(value)


def backoff(name: str, value: Any) -> float:
    """Unchanged: True means a factor of 2, as before Airflow 3.1, a number is the factor, 0 and False mean no backoff."""
    if not isinstance(value, int | float):
        raise DefinitionError(f"{name} is {value!r}; it must be True, False or a factor such as 2.0")
    if value < 0:
        open_dags.warn_author(f"{name} is {value!r}; it is replaced by 0")
        return 0
    return value


def backoff_factor(value: float) -> float:
    """The factor of `retry_exponential_backoff`."""
    return 2.0 if value is True else float(value)


def trigger_rule(name: str, value: Any) -> TriggerRule:
    """One of the thirteen trigger rules, as enum member, name or older name."""
    if type(value) is TriggerRule:
        return value
    rule_name = str(getattr(value, "value", value))
    try:
        return TRIGGER_RULE_ALIASES.get(rule_name) or TriggerRule(rule_name)
    except ValueError:
        names = [rule.value for rule in TriggerRule]
        guess = did_you_mean(rule_name, names)
        raise DefinitionError(f"{name} is {value!r}; it must be one of {', '.join(names)}.{guess}") from None


def weight_rule(name: str, value: Any) -> Any:
    """A weight rule, or a priority weight strategy: an object with `get_weight(ti)`, its class, or the import path of the class."""
    if type(value) is WeightRule:
        return value
    if isinstance(value, str) and "." in value:
        module, _, name_of_class = value.rpartition(".")
        try:
            value = getattr(importlib.import_module(module), name_of_class)
        except (ImportError, AttributeError) as error:
            raise DefinitionError(f"{name} is {value!r}, which cannot be imported: {error}") from None
    if hasattr(value, "get_weight"):
        return value() if isinstance(value, type) else value
    rule_name = getattr(value, "value", value)
    if not isinstance(rule_name, str):
        raise DefinitionError(f"{name} is {value!r}; it must be downstream, upstream, absolute or a PriorityWeightStrategy")
    try:
        return WeightRule(rule_name)
    except ValueError:
        names = [rule.value for rule in WeightRule]
        guess = did_you_mean(rule_name, names)
        raise DefinitionError(f"{name} is {value!r}; it must be one of {', '.join(names)}.{guess}") from None


def hook(name: str, value: Any) -> Hook:
    if not callable(value):
        raise DefinitionError(f"{name} is {value!r}; it must be a function that takes the context")
    return value  # type: ignore[no-any-return]


def unchanged(name: str, value: Any) -> Any:
    return value


def as_list(name: str, value: Any) -> list[Any]:
    """A list, tuple or set as a list; any other value as a list of one."""
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def callbacks(name: str, value: Any) -> list[Callback]:
    """A function that takes the context, a callable object such as a notifier, or a list of these.

    Airflow accepts anything, and writes an error into its log when it would call it.
    """
    found = as_list(name, value) if value else []
    for one in list(found):
        if not callable(one):
            open_dags.warn_author(f"{name} has {one!r}, which is not a function, and is ignored")
            found.remove(one)
    return found


def lost_attempts(name: str, value: Any) -> str:
    """`fail` or `repeat`: what the scheduler does with an attempt that had started and whose worker was lost."""
    found = string(name, value)
    if found not in LOST_ATTEMPTS:
        raise DefinitionError(
            f"{name} is {value!r}; it must be {' or '.join(LOST_ATTEMPTS)}.{did_you_mean(found, LOST_ATTEMPTS)}"
        )
    return found


def executor(name: str, value: Any) -> str:
    """The name of an executor, from its name, its alias or the import path of its class (`airflow.executors.…`).

    Which executors there are, the deployment decides (core.executor). An unknown name is a warning of the DAG.
    """
    return class_name(string(name, value))


def retry_policy(name: str, value: Any) -> Any:
    """A retry policy: an object whose `evaluate(exception, try_number, max_tries, context)` decides whether to retry."""
    if not value and not hasattr(value, "evaluate"):
        return None
    if not callable(getattr(value, "evaluate", None)):
        raise DefinitionError(f"{name} is {value!r}; it must be a RetryPolicy, such as ExceptionRetryPolicy(rules=[…])")
    return value


READERS: dict[str, Reader] = {
    "owner": owner,
    "retries": retries,
    "retry_delay": duration,
    "retry_exponential_backoff": backoff,
    "retry_policy": retry_policy,
    "lost_attempts": lost_attempts,
    "max_retry_delay": duration,
    "start_date": date_time,
    "end_date": date_time,
    "depends_on_past": boolean,
    "ignore_first_depends_on_past": boolean,
    "wait_for_past_depends_before_skipping": boolean,
    "wait_for_downstream": boolean,
    "priority_weight": integer(-(2**31)),
    "weight_rule": weight_rule,
    "queue": string,
    "pool": string,
    "pool_slots": integer(1),
    "execution_timeout": timedelta_only,
    "trigger_rule": trigger_rule,
    "max_active_tis_per_dag": integer(1),
    "max_active_tis_per_dagrun": integer(1),
    "do_xcom_push": boolean,
    "multiple_outputs": boolean,
    "doc": string,
    "doc_md": string,
    "doc_json": string,
    "doc_yaml": string,
    "doc_rst": string,
    "task_display_name": string,
    "logger_name": string,
    "run_as_user": string,
    "executor": executor,
    "pre_execute": hook,
    "post_execute": hook,
    "render_template_as_native_obj": boolean,
    "email": unchanged,
    "email_on_retry": boolean,
    "email_on_failure": boolean,
    "on_execute_callback": callbacks,
    "on_failure_callback": callbacks,
    "on_success_callback": callbacks,
    "on_retry_callback": callbacks,
    "on_skipped_callback": callbacks,
    "sla": duration,
    "inlets": as_list,
    "outlets": as_list,
    "executor_config": unchanged,
    "resources": unchanged,
    "map_index_template": string,
}
"""Argument → its reader. The value becomes an attribute of the same name (hooks: `_pre_execute_hook`, `_post_execute_hook`)."""

NOT_SUPPORTED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "deadline": ("give the deadline to the DAG, or give the task an sla", ()),
    "allow_nested_operators": ("remove it, because operators called inside another task are not checked", (True,)),
}
"""Airflow's arguments that are not supported yet: name → (what to do instead, values that are accepted without effect).

None, False, empty strings and empty collections are always accepted.
"""

CALLBACKS = ("on_execute_callback", "on_success_callback", "on_failure_callback", "on_retry_callback", "on_skipped_callback")
"""Arguments with callbacks of a task: called when it starts and when it reaches a state."""

RENAMED: dict[str, str] = {
    "task_concurrency": "max_active_tis_per_dag",
    "xcom_push": "do_xcom_push",
}
"""Name in Airflow 1 or 2 → name since then."""

NO_EFFECT = ("schedule_interval", "adhoc")
"""Arguments of tasks in Airflow 1, accepted without effect in its files."""

OWN_ARGUMENTS = ("task_id", "dag", "task_group", "default_args", "params")
"""Arguments that `BaseOperator` handles itself, without a reader."""

KNOWN_ARGUMENTS = frozenset((*READERS, *NOT_SUPPORTED, *RENAMED, *OWN_ARGUMENTS))
"""Every argument name that `BaseOperator` accepts."""


def refuse_unsupported(name: str, value: Any) -> None:
    """Accept values without effect; refuse all others.

    Raises:
        NotYetSupported: the argument would have an effect.
    """
    advice, neutral = NOT_SUPPORTED[name]
    if value is None or value is False or value in neutral:
        return
    if isinstance(value, str | list | tuple | dict | set) and not value:
        return
    raise NotYetSupported(f"the argument {name} is not supported yet; {advice}")
