"""`airflow.utils.helpers`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from functools import reduce
from itertools import filterfalse, tee
from typing import Any, TypeVar

from tradewind.airflow.compat.types import ArgNotSet
from tradewind.sdk.exceptions import AirflowException

__all__ = [
    "as_flattened_list",
    "as_tuple",
    "ask_yesno",
    "at_most_one",
    "check_cycle",
    "chunks",
    "convert_camel_to_snake",
    "exactly_one",
    "is_container",
    "is_set",
    "merge_dicts",
    "parse_template_string",
    "partition",
    "prune_dict",
    "reduce_in_chunks",
    "render_template_to_string",
    "test_cycle",
    "validate_instance_args",
    "validate_key",
]

T = TypeVar("T")
S = TypeVar("S")

_KEY = re.compile(r"^[\w.-]+$")
_CAMEL = re.compile(r"(?<!^)(?<![A-Z_])([A-Z])")


def validate_key(k: str, max_length: int = 250) -> None:
    """Check an id.

    Raises:
        TypeError: the id is not a string.
        AirflowException: the id is too long, or has other characters than letters, digits, `_`, `-` and `.`.
    """
    if not isinstance(k, str):
        raise TypeError(f"The key has to be a string and is {type(k)}:{k}")
    if len(k) > max_length:
        raise AirflowException(f"The key has to be less than {max_length} characters")
    if not _KEY.match(k):
        raise AirflowException(
            f"The key {k!r} has to be made of alphanumeric characters, dashes, dots and underscores exclusively"
        )


def is_container(obj: Any) -> bool:
    """Whether the value can be iterated and is not a text."""
    return hasattr(obj, "__iter__") and not isinstance(obj, str)


def as_tuple(obj: Any) -> tuple[Any, ...]:
    """A tuple of the elements of a container, or of a single value."""
    return tuple(obj) if is_container(obj) else (obj,)


def as_flattened_list(iterable: Iterable[Iterable[T]]) -> list[T]:
    """One list of all elements of several iterables."""
    return [element for inner in iterable for element in inner]


def chunks(items: list[T], chunk_size: int) -> Generator[list[T], None, None]:
    """Parts of a list, each of at most `chunk_size` elements.

    Raises:
        ValueError: `chunk_size` is no positive number.
    """
    if chunk_size <= 0:
        raise ValueError("Chunk size must be a positive integer")
    for start in range(0, len(items), chunk_size):
        yield items[start : start + chunk_size]


def reduce_in_chunks(function: Callable[[S, list[T]], S], iterable: list[T], initializer: S, chunk_size: int = 0) -> S:
    """Reduce a list by chunks; 0 means one chunk."""
    if not iterable:
        return initializer
    return reduce(function, chunks(iterable, chunk_size or len(iterable)), initializer)


def convert_camel_to_snake(camel_str: str) -> str:
    """`CamelCase` → `camel_case`."""
    return _CAMEL.sub(r"_\1", camel_str).lower()


def merge_dicts(dict1: Mapping[Any, Any], dict2: Mapping[Any, Any]) -> dict[Any, Any]:
    """A new dictionary with the items of both. Values of the second have priority; nested dictionaries are merged."""
    merged: MutableMapping[Any, Any] = dict(dict1)
    for key, value in dict2.items():
        known = merged.get(key)
        merged[key] = merge_dicts(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return dict(merged)


def partition(pred: Callable[[T], bool], iterable: Iterable[T]) -> tuple[Iterable[T], Iterable[T]]:
    """(the elements for which the condition is false, those for which it is true)."""
    first, second = tee(iterable)
    return filterfalse(pred, first), filter(pred, second)


def prune_dict(val: Any, mode: str = "strict") -> Any:
    """Remove None (`strict`) or all false values (`truthy`) from a dictionary or list, at any depth.

    Raises:
        ValueError: an unknown mode.
    """
    if mode not in ("strict", "truthy"):
        raise ValueError("allowable values for `mode` include 'truthy' and 'strict'")

    def dropped(value: Any) -> bool:
        return value is None if mode == "strict" else not value

    if isinstance(val, dict):
        kept = {}
        for key, value in val.items():
            if dropped(value):
                continue
            inner = prune_dict(value, mode=mode) if isinstance(value, list | dict) else value
            if not (isinstance(value, list | dict) and mode == "truthy" and not inner):
                kept[key] = inner
        return kept
    if isinstance(val, list):
        found = []
        for value in val:
            if dropped(value):
                continue
            inner = prune_dict(value, mode=mode) if isinstance(value, list | dict) else value
            if not (isinstance(value, list | dict) and mode == "truthy" and not inner):
                found.append(inner)
        return found
    return val


def is_set(val: Any) -> bool:
    """Whether an argument was given."""
    return not isinstance(val, ArgNotSet) and val is not ArgNotSet and val is not None


def exactly_one(*args: Any) -> bool:
    """Whether exactly one of these is true."""
    if is_container(args[0]):
        raise ValueError("Not supported for iterable args. Use `*` to unpack your iterable in the function call.")
    return sum(map(bool, args)) == 1


def at_most_one(*args: Any) -> bool:
    """Whether at most one of these is set."""
    return sum(map(is_set, args)) <= 1


def parse_template_string(template_string: str) -> tuple[str | None, Any]:
    """(text, None), or (None, Jinja template) if the text contains a template."""
    if "{{" not in template_string:
        return template_string, None
    import jinja2  # lazy import: only where a template is given

    return None, jinja2.Template(template_string)


def render_template_to_string(template: Any, context: Mapping[str, Any]) -> str:
    """The text of a rendered template."""
    return str(template.render(**context))


def validate_instance_args(instance: object, expected_arg_types: dict[str, Any]) -> None:
    """Check the types of attributes that are set.

    Raises:
        TypeError: an attribute has another type.
    """
    for name, kind in expected_arg_types.items():
        value = getattr(instance, name, None)
        if value and not isinstance(value, kind):
            raise TypeError(f"'{name}' has an invalid type {type(value)} with value {value}, expected type is {kind}")


def ask_yesno(question: str, default: bool | None = None) -> bool:
    """Return the default, or False: a process that reads DAG files or runs tasks cannot ask a person."""
    return bool(default)


def check_cycle(dag: Any) -> None:
    """Check that the dependencies of a DAG have no cycle.

    Raises:
        CycleError: the message names the tasks of the cycle.
    """
    dag.topological_sort()


test_cycle = check_cycle
