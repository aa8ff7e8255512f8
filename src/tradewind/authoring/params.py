"""Parameters of a DAG: a default, a JSON schema that values must fit, and a form field drawn from both.

Understood of JSON schema: `type` (a name or a list of names), `enum`, `const`, `minimum`, `maximum`, `exclusiveMinimum`,
`exclusiveMaximum`, `multipleOf`, `minLength`, `maxLength`, `pattern`, `format` (`date`, `date-time`, `time`), `items`,
`minItems`, `maxItems`, `uniqueItems`, `properties`, `required`, `additionalProperties`, `anyOf`. Other keywords are kept for
the form and check nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from tradewind.authoring.exceptions import ParamValidationError
from tradewind.authoring.xcom_arg import ResolveMixin
from tradewind.model.errors import DefinitionError, did_you_mean

if TYPE_CHECKING:
    from tradewind.authoring.dag import DAG


class _NotSet:
    """No default: a value must be given when a run is triggered."""

    def __repr__(self) -> str:
        return "(no value)"


NOTSET = _NotSet()


class Param:
    """One parameter.

    Args:
        default: value when none is given; left out, a value must be given.
        description: shown beside the form field.
        schema: JSON schema (see the module's text), as keyword arguments: `Param(5, type="integer", minimum=1)`.
    """

    __slots__ = ("description", "schema", "value")

    def __init__(self, default: Any = NOTSET, description: str | None = None, **schema: Any) -> None:
        # Airflow writes the schema either as keywords or as one dictionary named schema
        nested = schema.pop("schema", None)
        if nested is not None:
            schema = {**nested, **schema}
        schema.pop("source", None)
        self.value = default
        self.description = description
        self.schema = schema
        if default is not NOTSET:
            _check_json(default)
        if schema:
            _check_json(schema)

    @property
    def has_value(self) -> bool:
        return self.value is not NOTSET

    def resolve(self, value: Any = NOTSET, suppress_exception: bool = False) -> Any:
        """The value that counts (`value` when given, else the default), checked against the schema.

        Raises:
            ParamValidationError: it does not fit, or there is none; with `suppress_exception`, None is returned.
        """
        chosen = self.value if value is NOTSET else value
        try:
            if chosen is NOTSET:
                raise ParamValidationError("no value is given, and there is no default")
            _check_json(chosen)
            check_schema(chosen, self.schema)
        except ParamValidationError:
            if suppress_exception:
                return None
            raise
        return chosen

    def dump(self) -> dict[str, Any]:
        """As plain values: `value`, `description`, `schema`."""
        return {
            "value": None if self.value is NOTSET else self.value,
            "description": self.description,
            "schema": self.schema,
        }

    def __repr__(self) -> str:
        return f"Param({self.value!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Param):
            return NotImplemented
        return (self.value, self.description, self.schema) == (other.value, other.description, other.schema)

    __hash__ = None  # type: ignore[assignment]


class ParamsDict(MutableMapping[str, Any]):
    """Parameters by name. Reading gives values; `get_param` gives the `Param` behind one.

    Setting a name that exists keeps its schema and changes its value, which is checked.
    """

    __slots__ = ("_params", "suppress_exception")

    def __init__(self, params: Mapping[str, Any] | None = None, suppress_exception: bool = False) -> None:
        self._params: dict[str, Param] = {}
        self.suppress_exception = suppress_exception
        items = params._params if isinstance(params, ParamsDict) else params or {}
        for name, value in items.items():
            if not isinstance(name, str):
                raise DefinitionError(f"the name of a parameter is {name!r}; it must be a text")
            self._params[name] = value if isinstance(value, Param) else Param(value)

    def __getitem__(self, name: str) -> Any:
        try:
            param = self._params[name]
        except KeyError:
            raise KeyError(f"there is no parameter {name!r}.{did_you_mean(name, self._params)}") from None
        try:
            return param.resolve(suppress_exception=self.suppress_exception)
        except ParamValidationError as error:
            raise _about(name, error) from None

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, Param):
            self._params[name] = value
            return
        known = self._params.get(name)
        if known is None:
            self._params[name] = Param(value)
            return
        try:
            known.resolve(value, suppress_exception=self.suppress_exception)
        except ParamValidationError as error:
            raise _about(name, error) from None
        changed = Param(value, known.description)
        changed.schema = known.schema
        self._params[name] = changed

    def __delitem__(self, name: str) -> None:
        del self._params[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def get_param(self, name: str) -> Param:
        return self._params[name]

    def param_items(self) -> list[tuple[str, Param]]:
        """(name, Param) in the author's order."""
        return list(self._params.items())

    def update(self, *others: Any, **more: Any) -> None:
        """Lay others over it. Those of a `ParamsDict` come with their schemas; plain values are checked."""
        for other in others:
            if isinstance(other, ParamsDict):
                self._params.update(other._params)
            else:
                super().update(other)
        if more:
            super().update(**more)

    def validate(self) -> dict[str, Any]:
        """Every value, checked.

        Raises:
            ParamValidationError: naming the first parameter that does not fit.
        """
        return self.dump() if self.suppress_exception else {name: self[name] for name in self._params}

    def dump(self) -> dict[str, Any]:
        """Every value, unchecked; None for one that has none."""
        return {name: param.value if param.has_value else None for name, param in self._params.items()}

    def deep_merge(self, values: Mapping[str, Any]) -> ParamsDict:
        """A copy with `values` laid over it, checked: what a run sees that is triggered with these values."""
        merged = ParamsDict(self, self.suppress_exception)
        merged.update(values)
        return merged

    def __repr__(self) -> str:
        return f"ParamsDict({self.dump()!r})"


class DagParam(ResolveMixin):
    """A parameter of a DAG as a value for task arguments: replaced when the task runs.

    The value triggered with counts, then the default.
    """

    __slots__ = ("_name", "dag")

    def __init__(self, dag: DAG, name: str, default: Any = NOTSET) -> None:
        self.dag = dag
        self._name = name
        if default is not NOTSET:
            dag.params[name] = default
        elif name not in dag.params:
            dag.params[name] = Param()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        run = context.get("dag_run")
        conf = (getattr(run, "conf", None) or {}) if run is not None else {}
        if self._name in conf:
            return conf[self._name]
        params = context.get("params")
        return params[self._name] if params is not None and self._name in params else self.dag.params[self._name]

    def __str__(self) -> str:
        return f"{{{{ params[{self._name!r}] }}}}"

    def __repr__(self) -> str:
        return f"DagParam({self.dag.dag_id}.{self._name})"


def _about(name: str, error: ParamValidationError) -> ParamValidationError:
    return ParamValidationError(f"parameter {name!r}: {error}")


def _check_json(value: Any) -> None:
    if value is None or type(value) in (str, int, float, bool):
        return
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ParamValidationError(
            f"{value!r} cannot be written as JSON ({error}); use texts, numbers, lists, objects"
        ) from None


# --- the part of JSON schema that is understood -----------------------------------------------------------------------

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}


def check_schema(value: Any, schema: Mapping[str, Any]) -> None:
    """Does a value fit a schema?

    Raises:
        ParamValidationError: with the rule that it breaks.
        DefinitionError: the schema names a type that does not exist.
    """
    if "type" in schema:
        _check_type(value, schema["type"])
    if "const" in schema and value != schema["const"]:
        raise ParamValidationError(f"{value!r} is not {schema['const']!r}, the only value allowed")
    if "enum" in schema and value not in list(schema["enum"]):
        listed = ", ".join(repr(choice) for choice in schema["enum"])
        guess = did_you_mean(value, [c for c in schema["enum"] if isinstance(c, str)]) if isinstance(value, str) else ""
        raise ParamValidationError(f"{value!r} is not one of {listed}.{guess}")
    if schema.get("anyOf") and not any(_fits(value, option) for option in schema["anyOf"]):
        raise ParamValidationError(f"{value!r} fits none of the {len(schema['anyOf'])} alternatives of anyOf")
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        _check_number(value, schema)
    elif isinstance(value, str):
        _check_text(value, schema)
    elif isinstance(value, list | tuple):
        _check_list(value, schema)
    elif isinstance(value, Mapping):
        _check_object(value, schema)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        check_schema(value, schema)
    except ParamValidationError:
        return False
    return True


def _check_type(value: Any, declared: Any) -> None:
    names = [declared] if isinstance(declared, str) else list(declared)
    for name in names:
        if name not in _TYPES:
            raise DefinitionError(f"the schema names the type {name!r}, which JSON does not have.{did_you_mean(name, _TYPES)}")
        if _TYPES[name](value):
            return
    raise ParamValidationError(f"{value!r} is not of type {' or '.join(names)}")


def _check_number(value: float, schema: Mapping[str, Any]) -> None:
    if "minimum" in schema and value < schema["minimum"]:
        raise ParamValidationError(f"{value!r} is less than the minimum of {schema['minimum']}")
    if "maximum" in schema and value > schema["maximum"]:
        raise ParamValidationError(f"{value!r} is greater than the maximum of {schema['maximum']}")
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        raise ParamValidationError(f"{value!r} is not greater than {schema['exclusiveMinimum']}")
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        raise ParamValidationError(f"{value!r} is not less than {schema['exclusiveMaximum']}")
    if "multipleOf" in schema and value % schema["multipleOf"]:
        raise ParamValidationError(f"{value!r} is not a multiple of {schema['multipleOf']}")


def _check_text(value: str, schema: Mapping[str, Any]) -> None:
    if "minLength" in schema and len(value) < schema["minLength"]:
        raise ParamValidationError(f"{value!r} is shorter than {schema['minLength']} characters")
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        raise ParamValidationError(f"{value!r} is longer than {schema['maxLength']} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise ParamValidationError(f"{value!r} does not match the pattern {schema['pattern']}")
    reader = _FORMATS.get(schema.get("format", ""))
    if reader is not None:
        kind, read = reader
        try:
            read(value)
        except ValueError:
            raise ParamValidationError(f"{value!r} is not {kind}") from None


def _zoned(value: str) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(value)
    return moment


_FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "date": ("a date like 2026-01-31", date.fromisoformat),
    "date-time": ("a date and time with a zone, like 2026-01-31T06:00:00+00:00", _zoned),
    "time": ("a time like 06:00:00", time.fromisoformat),
}


def _check_list(value: list[Any] | tuple[Any, ...], schema: Mapping[str, Any]) -> None:
    if "minItems" in schema and len(value) < schema["minItems"]:
        raise ParamValidationError(f"{value!r} has fewer than {schema['minItems']} items")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        raise ParamValidationError(f"{value!r} has more than {schema['maxItems']} items")
    if schema.get("uniqueItems") and any(item in value[:place] for place, item in enumerate(value)):
        raise ParamValidationError(f"{value!r} has an item twice")
    if isinstance(schema.get("items"), Mapping):
        for place, item in enumerate(value):
            try:
                check_schema(item, schema["items"])
            except ParamValidationError as error:
                raise ParamValidationError(f"item {place}: {error}") from None


def _check_object(value: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    for name in schema.get("required", ()):
        if name not in value:
            raise ParamValidationError(f"{name!r} is missing")
    properties = schema.get("properties", {})
    for name, item in value.items():
        if name in properties:
            try:
                check_schema(item, properties[name])
            except ParamValidationError as error:
                raise ParamValidationError(f"{name!r}: {error}") from None
        elif schema.get("additionalProperties") is False:
            raise ParamValidationError(f"{name!r} is not among {', '.join(map(repr, properties))}")
