"""Every argument that any task takes: its name, its type, how its value is read, and what it is when it is not given.

One table (`READERS`) says what `BaseOperator` accepts. A name that is in none of the tables here is a spelling mistake;
a name in `LATER` is Airflow's, and what it does is not built yet; a name in `RENAMED` is an older spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from tradewind.model.definition import LOST_ATTEMPTS
from tradewind.model.errors import DefinitionError, NotYetSupported, did_you_mean
from tradewind.model.states import TRIGGER_RULE_ALIASES, TriggerRule, WeightRule

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
    # read by no reader: refused with a sentence when they say something (see LATER)
    retry_policy: Any
    deadline: Any
    allow_nested_operators: bool | None


# --- readers: one value in, the value as kept out ---------------------------------------------------------------------


Reader = Callable[[str, Any], Any]
"""(name of the argument, value given) → value kept. Raises DefinitionError with the end of a sentence."""


def whole(minimum: int) -> Reader:
    """A whole number of at least `minimum`; a text of digits is read too, as Airflow does."""

    def read(name: str, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise DefinitionError(f"{name} is {value!r}; it must be a whole number") from None
        if number != value and not isinstance(value, str):
            raise DefinitionError(f"{name} is {value!r}; it must be a whole number")
        if number < minimum:
            raise DefinitionError(f"{name} is {value!r}; it must be at least {minimum}")
        return number

    return read


def duration(name: str, value: Any) -> timedelta:
    """A timedelta, or a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
        raise DefinitionError(f"{name} is {value!r}; it must be a timedelta or a number of seconds")
    span = value if isinstance(value, timedelta) else timedelta(seconds=value)
    if span < timedelta(0):
        raise DefinitionError(f"{name} is {value!r}; it must not be negative")
    return span


def strict_duration(name: str, value: Any) -> timedelta:
    """A timedelta and nothing else: Airflow refuses numbers here."""
    if not isinstance(value, timedelta):
        raise DefinitionError(f"{name} is {value!r}; it must be a timedelta, such as timedelta(minutes=5)")
    return duration(name, value)


def moment(name: str, value: Any) -> datetime:
    """A datetime (any subclass), a date, or a text in ISO 8601. Without a zone it stays so: the configured one is meant."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise DefinitionError(f"{name} is {value!r}; it must be a datetime, or a text like 2026-01-31 or 2026-01-31T06:00:00Z")


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DefinitionError(f"{name} is {value!r}; it must be a text")
    return value


def flag(name: str, value: Any) -> bool:
    return bool(value)


def backoff(name: str, value: Any) -> float:
    """True means a factor of 2, as before Airflow 3.1; a number is the factor; 0 or False is off."""
    if value is True:
        return 2.0
    if not isinstance(value, int | float) or value < 0:
        raise DefinitionError(f"{name} is {value!r}; it must be True, False or a factor such as 2.0")
    return float(value)


def trigger_rule(name: str, value: Any) -> TriggerRule:
    """One of the thirteen rules, by member or name; older names are understood."""
    if type(value) is TriggerRule:
        return value
    word = str(getattr(value, "value", value))
    try:
        return TRIGGER_RULE_ALIASES.get(word) or TriggerRule(word)
    except ValueError:
        names = [rule.value for rule in TriggerRule]
        guess = did_you_mean(word, names)
        raise DefinitionError(f"{name} is {value!r}; it must be one of {', '.join(names)}.{guess}") from None


def weight_rule(name: str, value: Any) -> WeightRule:
    if type(value) is WeightRule:
        return value
    word = getattr(value, "value", value)
    if not isinstance(word, str):
        raise NotYetSupported(
            f"{name} is {value!r}: priority weight strategies of your own come with a later release; now it can be "
            "downstream, upstream or absolute"
        )
    try:
        return WeightRule(word)
    except ValueError:
        names = [rule.value for rule in WeightRule]
        guess = did_you_mean(word, names)
        raise DefinitionError(f"{name} is {value!r}; it must be one of {', '.join(names)}.{guess}") from None


def hook(name: str, value: Any) -> Hook:
    if not callable(value):
        raise DefinitionError(f"{name} is {value!r}; it must be a function that takes the context")
    return value  # type: ignore[no-any-return]


def anything(name: str, value: Any) -> Any:
    return value


def several(name: str, value: Any) -> list[Any]:
    """One thing or several of them, as a list."""
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def callbacks(name: str, value: Any) -> list[Callback]:
    """A function that takes the context, or several; also objects that can be called, such as notifiers."""
    found = several(name, value) if value else []
    for one in found:
        if not callable(one):
            raise DefinitionError(
                f"{name} has {one!r}; it must be a function that takes the context, or a list of such functions"
            )
    return found


def lost_attempts(name: str, value: Any) -> str:
    """`fail` or `repeat`: what becomes of an attempt that had started and was lost with its worker."""
    found = text(name, value)
    if found not in LOST_ATTEMPTS:
        raise DefinitionError(
            f"{name} is {value!r}; it must be {' or '.join(LOST_ATTEMPTS)}.{did_you_mean(found, LOST_ATTEMPTS)}"
        )
    return found


EXECUTORS = ("LocalExecutor", "SequentialExecutor")
"""Where tasks of one machine may ask to run; the setting core.executor says which of them there is."""


def executor(name: str, value: Any) -> str:
    """The name of an executor of one machine; Airflow's path of its class (`airflow.executors.…`) is understood."""
    found = text(name, value).rpartition(".")[2]
    if found not in EXECUTORS:
        raise NotYetSupported(
            f"{name} is {value!r}: executors for several machines come with a later release; now it can be "
            f"{' or '.join(EXECUTORS)}.{did_you_mean(found, EXECUTORS)}"
        )
    return found


READERS: dict[str, Reader] = {
    "owner": text,
    "retries": whole(0),
    "retry_delay": duration,
    "retry_exponential_backoff": backoff,
    "lost_attempts": lost_attempts,
    "max_retry_delay": duration,
    "start_date": moment,
    "end_date": moment,
    "depends_on_past": flag,
    "ignore_first_depends_on_past": flag,
    "wait_for_past_depends_before_skipping": flag,
    "wait_for_downstream": flag,
    "priority_weight": whole(-(2**31)),
    "weight_rule": weight_rule,
    "queue": text,
    "pool": text,
    "pool_slots": whole(1),
    "execution_timeout": strict_duration,
    "trigger_rule": trigger_rule,
    "max_active_tis_per_dag": whole(1),
    "max_active_tis_per_dagrun": whole(1),
    "do_xcom_push": flag,
    "multiple_outputs": flag,
    "doc": text,
    "doc_md": text,
    "doc_json": text,
    "doc_yaml": text,
    "doc_rst": text,
    "task_display_name": text,
    "logger_name": text,
    "run_as_user": text,
    "executor": executor,
    "pre_execute": hook,
    "post_execute": hook,
    "render_template_as_native_obj": flag,
    "email": anything,
    "email_on_retry": flag,
    "email_on_failure": flag,
    "on_execute_callback": callbacks,
    "on_failure_callback": callbacks,
    "on_success_callback": callbacks,
    "on_retry_callback": callbacks,
    "on_skipped_callback": callbacks,
    "sla": duration,
    "inlets": several,
    "outlets": several,
    "executor_config": anything,
    "resources": anything,
    "map_index_template": text,
}
"""Arguments that become attributes of the same name (hooks: `_pre_execute_hook`, `_post_execute_hook`)."""

LATER: dict[str, tuple[str, tuple[Any, ...]]] = {
    "deadline": ("whole DAGs (give it to the DAG; a task has an sla)", ()),
    "retry_policy": ("retry policies (raise AirflowFailException to end without another try)", ()),
    "allow_nested_operators": ("the check for operators executed inside another task", (True,)),
}
"""Airflow's arguments whose behaviour is not built yet: name → (what they belong to, values that change nothing).

None, False, empty texts and empty collections never change anything.
"""

CALLBACKS = ("on_execute_callback", "on_success_callback", "on_failure_callback", "on_retry_callback", "on_skipped_callback")
"""What is called when a task starts and when it has come to something."""

RENAMED: dict[str, str] = {
    "task_concurrency": "max_active_tis_per_dag",
    "xcom_push": "do_xcom_push",
}
"""Names of Airflow 1.x and 2.x for the same thing."""

PLACES = ("task_id", "dag", "task_group", "default_args", "params")
"""Arguments that `BaseOperator` takes by itself."""

KNOWN = frozenset((*READERS, *LATER, *RENAMED, *PLACES))
"""Every name that `BaseOperator` takes."""


def refuse_later(name: str, value: Any) -> None:
    """Accept a value that changes nothing; refuse any other.

    Raises:
        NotYetSupported: with the end of a sentence.
    """
    belongs, neutral = LATER[name]
    if value is None or value is False or value in neutral:
        return
    if isinstance(value, str | list | tuple | dict | set) and not value:
        return
    raise NotYetSupported(f"the argument {name} belongs to {belongs}, which comes with a later release; remove it for now")
