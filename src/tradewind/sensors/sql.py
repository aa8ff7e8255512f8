"""A sensor that runs a query. It needs the extra `sql` (SQLAlchemy) and the driver of the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tradewind.hooks.sql import database_hook
from tradewind.model.errors import DefinitionError
from tradewind.sdk.exceptions import AirflowException
from tradewind.sensors.base import BaseSensorOperator


class SqlSensor(BaseSensorOperator):
    """Waits until a query returns a true first value, or a value for which `success` returns true.

    Args:
        conn_id: the connection; a template.
        sql: the query; a template.
        parameters: parameters of the query, in the driver's style; a template.
        selector: function from the first row to the value that is checked. Default: the first value of the row.
        failure: function of the value; a true result fails the task.
        success: function of the value; a true result ends the wait. None: the value itself is checked; 0, "0", empty and null
            mean that the sensor continues to wait.
        fail_on_empty: a result without rows fails the task. Otherwise the sensor continues to wait.
        hook_params: arguments of the hook.
    """

    template_fields: Collection[str] = ("conn_id", "sql", "hook_params", "parameters")
    template_ext: Sequence[str] = (".hql", ".sql")
    template_fields_renderers: Mapping[str, str] = {"sql": "sql", "parameters": "json"}
    ui_color = "#7c7287"

    def __init__(
        self,
        *,
        conn_id: str,
        sql: str,
        parameters: Any = None,
        success: Callable[[Any], Any] | None = None,
        failure: Callable[[Any], Any] | None = None,
        selector: Callable[[Any], Any] = itemgetter(0),
        fail_on_empty: bool = False,
        hook_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, function in (("success", success), ("failure", failure), ("selector", selector)):
            if function is not None and not callable(function):
                raise DefinitionError(f"{self._name_in_errors()}: {name} is {function!r}; it must be a function")
        self.conn_id = conn_id
        self.sql = sql
        self.parameters = parameters
        self.success = success
        self.failure = failure
        self.selector = selector
        self.fail_on_empty = fail_on_empty
        self.hook_params = hook_params or {}

    def poke(self, context: Any) -> bool:
        records = database_hook(self.conn_id, self.hook_params).get_records(self.sql, self.parameters)
        if not records:
            if self.fail_on_empty:
                raise AirflowException(f"the query {self.sql!r} returned no row, and fail_on_empty is set")
            return False
        value = self.selector(records[0])
        if self.failure is not None and self.failure(value):
            raise AirflowException(f"the query {self.sql!r} returned {value!r}, for which the function failure is true")
        if self.success is not None:
            return bool(self.success(value))
        return str(value) not in ("0", "") and bool(value)
