"""A sensor that asks a database. It needs the extra `sql` (SQLAlchemy), and the driver of the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tradewind.hooks.sql import hook_of
from tradewind.model.errors import DefinitionError
from tradewind.sdk.exceptions import AirflowException
from tradewind.sensors.base import BaseSensorOperator


class SqlSensor(BaseSensorOperator):
    """Waits until a query gives something: a first value that is true, or what `success` says.

    Args:
        conn_id: the connection; a template.
        sql: the query; a template.
        parameters: as the driver writes them; a template.
        selector: takes what is judged from the first row; None: its first value.
        failure: function of that; true fails the task.
        success: function of that; true ends the wait. None: the value itself; 0, "0", empty and null mean "not yet".
        fail_on_empty: no row at all fails the task; else it means "not yet".
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
        records = hook_of(self.conn_id, self.hook_params).get_records(self.sql, self.parameters)
        if not records:
            if self.fail_on_empty:
                raise AirflowException(f"the query {self.sql!r} gave no row, and fail_on_empty is set")
            return False
        value = self.selector(records[0])
        if self.failure is not None and self.failure(value):
            raise AirflowException(f"the query {self.sql!r} gave {value!r}, which means failure")
        if self.success is not None:
            return bool(self.success(value))
        return str(value) not in ("0", "") and bool(value)
