"""Validate parameter values against a JSON schema, with the library `jsonschema` as Airflow does, formats included.

`$schema` in the schema chooses the draft; the default is the newest (2020-12). Checked formats: `date`, `time` (HH:MM:SS),
`duration`, `uuid`, `email`, `ipv4`, `ipv6`, `regex`, and `date-time` (RFC 3339, with a UTC offset). Other formats, such as
Airflow's `multiline`, only choose the form field. A `$ref` is resolved inside the schema only; nothing is fetched from the network.

This module imports jsonschema. Import it only where a schema is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from tradewind.model.errors import DefinitionError, did_you_mean
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.params import as_json

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")

FORMATS = FormatChecker()
"""The formats of `FormatChecker`, plus two formats that it checks only if other libraries are installed."""

_LOOKS_LIKE = {
    "date": "a date like 2026-01-31",
    "date-time": "a date and time with a UTC offset, like 2026-01-31T06:00:00+00:00",
    "time": "a time like 06:00:00",
    "duration": "a duration like P1DT6H",
    "uuid": "a UUID like 123e4567-e89b-12d3-a456-426614174000",
    "email": "an e-mail address",
    "ipv4": "an IPv4 address like 192.0.2.1",
    "ipv6": "an IPv6 address like 2001:db8::1",
    "regex": "a regular expression",
}


def _is_date_time(value: object) -> bool:
    return not isinstance(value, str) or (value[10:11] in ("T", "t", " ") and datetime.fromisoformat(value).tzinfo is not None)


def _is_duration(value: object) -> bool:
    # lazy import: takes 80 ms, needed for this format only
    import pendulum

    if not isinstance(value, str):
        return True
    length = value.removeprefix("-")
    return length.startswith("P") and isinstance(pendulum.parse(length), pendulum.Duration)


FORMATS.checks("date-time", raises=ValueError)(_is_date_time)
FORMATS.checks("duration", raises=ValueError)(_is_duration)


def check_schema(value: Any, schema: Mapping[str, Any]) -> None:
    """Check a value against a schema.

    Args:
        value: a value that can be written as JSON; it is checked in its JSON form (a tuple is an array).
        schema: a JSON schema.

    Raises:
        ParamValidationError: the value does not fit; the message names the value and the rule.
        DefinitionError: the schema itself is invalid.
    """
    plain_schema = as_json(dict(schema))
    draft = validator_for(plain_schema, default=Draft202012Validator)
    try:
        draft.check_schema(plain_schema)
        validator = draft(plain_schema, format_checker=FORMATS, registry=REGISTRY)
        found = best_match(validator.iter_errors(as_json(value)))
    except SchemaError as error:
        raise DefinitionError(_wrong_schema(error)) from None
    except Unresolvable as error:
        raise DefinitionError(
            f"the schema refers to {error.ref!r}, which it does not contain; references are not fetched from elsewhere"
        ) from None
    if found is not None:
        raise ParamValidationError(_where(found.absolute_path) + _sentence(found))


def _wrong_schema(error: SchemaError) -> str:
    name = error.instance
    if error.absolute_path and error.absolute_path[-1] == "type" and isinstance(name, str):
        return f"the schema has the type {name!r}, which is not a JSON type.{did_you_mean(name, TYPES)}"
    path = "".join(f"[{step!r}]" for step in error.absolute_path)
    return f"the schema{path} is not a valid JSON schema: {error.message}"


def _where(path: Iterable[str | int]) -> str:
    return "".join(f"item {step}: " if isinstance(step, int) else f"{step!r}: " for step in path)


def _sentence(error: ValidationError) -> str:
    keyword, says, value = str(error.validator), cast(Any, error.validator_value), cast(Any, error.instance)
    if keyword == "required":
        return f"{', '.join(repr(name) for name in says if name not in value)} is missing"
    if keyword == "additionalProperties" and says is False:
        known = cast(dict[str, Any], error.schema).get("properties", {})
        names = ", ".join(repr(name) for name in value if name not in known)
        return f"{names} is not among {', '.join(map(repr, known))}"
    write = _SENTENCES.get(keyword)
    return str(error.message) if write is None else write(value, says)


def _of_type(value: Any, types: Any) -> str:
    return f"{value!r} is not of type {types if isinstance(types, str) else ' or '.join(types)}"


def _of_enum(value: Any, choices: list[Any]) -> str:
    guess = did_you_mean(value, [choice for choice in choices if isinstance(choice, str)]) if isinstance(value, str) else ""
    return f"{value!r} is not one of {', '.join(map(repr, choices))}.{guess}"


_SENTENCES: dict[str, Callable[[Any, Any], str]] = {
    "type": _of_type,
    "enum": _of_enum,
    "const": lambda value, only: f"{value!r} is not {only!r}, the only value allowed",
    "minimum": lambda value, least: f"{value!r} is less than the minimum of {least}",
    "maximum": lambda value, most: f"{value!r} is greater than the maximum of {most}",
    "exclusiveMinimum": lambda value, bound: f"{value!r} is not greater than {bound}",
    "exclusiveMaximum": lambda value, bound: f"{value!r} is not less than {bound}",
    "multipleOf": lambda value, step: f"{value!r} is not a multiple of {step}",
    "minLength": lambda value, least: f"{value!r} is shorter than {least} characters",
    "maxLength": lambda value, most: f"{value!r} is longer than {most} characters",
    "pattern": lambda value, pattern: f"{value!r} does not match the pattern {pattern}",
    "format": lambda value, name: f"{value!r} is not {_LOOKS_LIKE.get(name, f'of the format {name}')}",
    "minItems": lambda value, least: f"{value!r} has fewer than {least} items",
    "maxItems": lambda value, most: f"{value!r} has more than {most} items",
    "uniqueItems": lambda value, _: f"{value!r} has an item twice",
    "anyOf": lambda value, options: f"{value!r} fits none of the {len(options)} alternatives of anyOf",
}
"""Keyword → error message, from the value and the keyword's value. For other keywords the library's message is used."""
