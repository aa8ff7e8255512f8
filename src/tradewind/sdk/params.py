"""Parameters of a DAG: each has a default, a JSON schema for its values (see `param_schema`) and a field in the trigger form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError, did_you_mean
from tradewind.sdk import open_dags
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.xcom_arg import ResolveMixin

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG


class _NotSet:
    """Marks a parameter without a default: a value must be given when a run is triggered."""

    def __repr__(self) -> str:
        return "(no value)"


NOTSET = _NotSet()


class Param:
    """One parameter.

    Args:
        default: the value used when none is given. Without a default, a value must be given.
        description: text shown beside the form field.
        schema: JSON schema (see `param_schema`) as keyword arguments: `Param(5, type="integer", minimum=1)`.
    """

    __slots__ = ("description", "schema", "source", "value")

    def __init__(self, default: Any = NOTSET, description: str | None = None, **schema: Any) -> None:
        # Airflow accepts the schema as keyword arguments or as one dictionary named schema
        nested = schema.pop("schema", None)
        if nested is not None:
            schema = {**nested, **schema}
        self.source: str | None = schema.pop("source", None)
        """Airflow's `dag` or `task`. It is kept for `serialize`."""
        self.value = default
        self.description = description
        self.schema = schema
        if default is not NOTSET and not (open_dags.generation() < CURRENT and _warn_not_json(default)):
            _check_json(default)
        if schema:
            _check_json(schema)

    def serialize(self) -> dict[str, Any]:
        """The parameter as a dictionary, by Airflow's names."""
        value = None if self.value is NOTSET else self.value
        return {"value": value, "description": self.description, "schema": self.schema, "source": self.source}

    @property
    def has_value(self) -> bool:
        return self.value is not NOTSET

    def resolve(self, value: Any = NOTSET, suppress_exception: bool = False) -> Any:
        """The effective value (`value` if given, else the default), checked against the schema.

        Raises:
            ParamValidationError: the value does not fit the schema, or there is none. With `suppress_exception` the result is None.
        """
        chosen = self.value if value is NOTSET else value
        try:
            if chosen is NOTSET:
                raise ParamValidationError("no value was given, and the parameter has no default")
            if value is not NOTSET:  # a default has been checked
                _check_json(chosen)
            if self.schema:
                # lazy import: jsonschema takes 70 ms to import; only parameters with a schema need it
                from tradewind.sdk.param_schema import check_schema

                check_schema(chosen, self.schema)
        except ParamValidationError:
            if suppress_exception:
                return None
            raise
        return chosen

    def dump(self) -> dict[str, Any]:
        """The parameter as plain values: `value`, `description`, `schema`."""
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
    """Parameters by name. Reading an item gives its value; `get_param` gives the `Param` object.

    Setting an existing name keeps the schema and changes the value, after checking it.
    """

    __slots__ = ("_params", "suppress_exception")

    def __init__(self, params: Mapping[str, Any] | None = None, suppress_exception: bool = False) -> None:
        self._params: dict[str, Param] = {}
        self.suppress_exception = suppress_exception
        items = params._params if isinstance(params, ParamsDict) else params or {}
        for name, value in items.items():
            if not isinstance(name, str):
                raise DefinitionError(f"the name of a parameter is {name!r}; it must be a string")
            self._params[name] = value if isinstance(value, Param) else Param(value)

    def __getitem__(self, name: str) -> Any:
        try:
            param = self._params[name]
        except KeyError:
            raise KeyError(f"there is no parameter {name!r}.{did_you_mean(name, self._params)}") from None
        try:
            return param.resolve(suppress_exception=self.suppress_exception)
        except ParamValidationError as error:
            raise _with_name(name, error) from None

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
            raise _with_name(name, error) from None
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
        """(name, Param) pairs in the order of definition."""
        return list(self._params.items())

    def update(self, *others: Any, **more: Any) -> None:
        """Add or replace parameters. A `ParamsDict` brings its schemas; plain values are checked against the existing schemas."""
        for other in others:
            if isinstance(other, ParamsDict):
                self._params.update(other._params)
            else:
                super().update(other)
        if more:
            super().update(**more)

    def validate(self) -> dict[str, Any]:
        """All values, checked.

        Raises:
            ParamValidationError: the message names the first parameter with an invalid value.
        """
        return self.dump() if self.suppress_exception else {name: self[name] for name in self._params}

    def dump(self) -> dict[str, Any]:
        """All values, unchecked; None for a parameter without a value."""
        return {name: param.value if param.has_value else None for name, param in self._params.items()}

    def deep_merge(self, values: Mapping[str, Any]) -> ParamsDict:
        """A copy with `values` in place of the defaults, checked: the parameters of a run that is triggered with these values."""
        merged = ParamsDict(self, self.suppress_exception)
        merged.update(values)
        return merged

    @staticmethod
    def filter_params_by_source(params: ParamsDict, source: str) -> ParamsDict:
        """All parameters. Here the parameters of a DAG are never merged into those of a task, so all have the same source."""
        return ParamsDict(params)

    def __repr__(self) -> str:
        return repr(self.dump())


class DagParam(ResolveMixin):
    """A DAG parameter as a task argument. The value is filled in when the task runs.

    A value in the conf of the run takes precedence over the default.
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


def check_fields(fields: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Check the values of form fields.

    Args:
        fields: name → `{value, description, schema}`. Values without a field are not checked.

    Raises:
        ParamValidationError: a value does not fit the schema of its field.
    """
    for name, value in values.items():
        schema = fields.get(name, {}).get("schema") or {}
        try:
            Param(NOTSET, **schema).resolve(value)
        except ParamValidationError as error:
            raise _with_name(name, error) from None


def _with_name(name: str, error: ParamValidationError) -> ParamValidationError:
    return ParamValidationError(f"parameter {name!r}: {error}")


def as_json(value: Any) -> Any:
    """The value after a round trip through JSON: keys become strings, tuples become lists."""
    return value if value is None or type(value) in (str, int, float, bool) else json.loads(json.dumps(value, default=str))


def _warn_not_json(value: Any) -> bool:
    """Warn about a value that cannot be written as JSON. Tasks get the value itself; the definition contains its text."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        open_dags.warn_author(
            f"the parameter {value!r} cannot be written as JSON; use strings, numbers, lists and dictionaries",
            DeprecationWarning,
        )
        return True
    return False


def _check_json(value: Any) -> None:
    if value is None or type(value) in (str, int, float, bool):
        return
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ParamValidationError(
            f"{value!r} cannot be written as JSON ({error}); use strings, numbers, booleans, None, lists and dictionaries"
        ) from None
