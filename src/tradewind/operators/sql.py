"""Operators that run SQL. They need the extra `sql` (SQLAlchemy) and the driver of the database."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from tradewind.hooks.sql import DbApiHook, Handler, database_hook, fetch_all_handler, return_single_query_results
from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BranchMixIn, Choice
from tradewind.operators.callables import rendered_result
from tradewind.sdk.decorators import DecoratedOperator
from tradewind.sdk.exceptions import AirflowException, AirflowFailException
from tradewind.sdk.operator import BaseOperator

__all__ = [
    "BaseSQLOperator",
    "BranchSQLOperator",
    "SQLCheckOperator",
    "SQLExecuteQueryOperator",
    "SQLThresholdCheckOperator",
    "SQLValueCheckOperator",
]


_ELSEWHERE = dict.fromkeys(("SQLColumnCheckOperator", "SQLTableCheckOperator"), "operators.sql_checks")


def __getattr__(name: str) -> Any:
    """Lazy import: sql_checks.py imports this module."""
    if name not in ("SQLColumnCheckOperator", "SQLIntervalCheckOperator", "SQLTableCheckOperator"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("tradewind.operators.sql_checks"), name)


class BaseSQLOperator(BaseOperator):
    """Base class of database operators.

    Args:
        conn_id: the connection; a template.
        database: the database, instead of the connection's schema; a template.
        hook_params: arguments of the hook.
        retry_on_failure: False: a failed check fails the task without a retry.
    """

    template_fields: Collection[str] = ("conn_id", "database", "hook_params")
    template_ext: Sequence[str] = (".sql", ".json")
    template_fields_renderers: Mapping[str, str] = {"sql": "sql", "parameters": "json"}
    ui_color = "#cdaaed"

    def __init__(
        self,
        *,
        conn_id: str | None = None,
        database: str | None = None,
        hook_params: Mapping[str, Any] | None = None,
        retry_on_failure: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id or DbApiHook.default_conn_name
        self.database = database
        self.hook_params = hook_params or {}
        self.retry_on_failure = retry_on_failure

    def get_db_hook(self) -> Any:
        """The hook of the connection; see `database_hook`."""
        database = {} if self.database is None else {"database": self.database}
        return database_hook(self.conn_id, {**self.hook_params, **database})

    def _fail(self, message: str) -> NoReturn:
        raise (AirflowException if self.retry_on_failure else AirflowFailException)(message)


class SQLExecuteQueryOperator(BaseSQLOperator):
    """Runs SQL statements. The rows of the last statement are pushed as XCom.

    Args:
        sql: a statement, a list of statements, or the name of a `.sql` file; a template.
        parameters: parameters of the statements, in the driver's style; a template.
        autocommit: commit after each statement. Otherwise all statements are one transaction.
        handler: function from the cursor to the result of a statement.
        output_processor: function from the results and the column descriptions to the XCom.
        split_statements: `sql` is one string with several statements.
        return_last: push only the result of the last statement.
        show_return_value_in_logs: write the results to the log.
        requires_result_fetch: fetch the results even if nothing is pushed.
        conn_id, database, hook_params: see `BaseSQLOperator`.
    """

    template_fields: Collection[str] = ("sql", "parameters", *BaseSQLOperator.template_fields)

    def __init__(
        self,
        *,
        sql: str | list[str],
        parameters: Mapping[str, Any] | Iterable[Any] | None = None,
        autocommit: bool = False,
        handler: Handler = fetch_all_handler,
        output_processor: Callable[[list[Any], list[Any]], list[Any]] | None = None,
        split_statements: bool | None = None,
        return_last: bool = True,
        show_return_value_in_logs: bool = False,
        requires_result_fetch: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.parameters = parameters
        self.autocommit = autocommit
        self.handler = handler
        self.output_processor = output_processor
        self.split_statements = split_statements
        self.return_last = return_last
        self.show_return_value_in_logs = show_return_value_in_logs
        self.requires_result_fetch = requires_result_fetch

    def prepare_template(self) -> None:
        if isinstance(self.parameters, str):
            self.parameters = ast.literal_eval(self.parameters)

    def execute(self, context: Any) -> Any:
        hook = self.get_db_hook()
        fetched = self.do_xcom_push or self.requires_result_fetch
        found = hook.run(
            self.sql,
            autocommit=self.autocommit,
            parameters=self.parameters,
            handler=self.handler if fetched else None,
            split_statements=bool(self.split_statements),
            return_last=self.return_last,
        )
        if not self.do_xcom_push:
            return None
        single = return_single_query_results(self.sql, self.return_last, self.split_statements)
        results = [found] if single else found
        if self.show_return_value_in_logs:
            self.log.info("Results: %s", results)
        if self.output_processor is not None:
            results = self.output_processor(results, hook.descriptions)
        return results[-1] if single else results


class SQLDecoratedOperator(DecoratedOperator, SQLExecuteQueryOperator):
    """The operator of `@task.sql`: the function returns a statement or a list of them, which may contain templates."""

    template_fields: Collection[str] = ("op_args", "op_kwargs", "parameters", *BaseSQLOperator.template_fields)
    custom_operator_name = "@task.sql"

    def __init__(self, *, python_callable: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(python_callable=python_callable, kwargs_to_upstream={"sql": ""}, **kwargs)

    def execute(self, context: Any) -> Any:
        self.sql = rendered_result(self, context)
        return super().execute(context)


class SQLCheckOperator(BaseSQLOperator):
    """Fails unless every value of the query's first row is true (not 0, empty or null).

    Args:
        sql: the query; a template.
        parameters: parameters of the query, in the driver's style; a template.
        conn_id, database, hook_params, retry_on_failure: see `BaseSQLOperator`.
    """

    template_fields: Collection[str] = ("sql", "parameters", *BaseSQLOperator.template_fields)

    def __init__(self, *, sql: str, parameters: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.parameters = parameters

    def execute(self, context: Any) -> Any:
        row = self._row()
        if not all(row):
            self._fail(f"the check failed: the query {self.sql!r} returned {row}")

    def _row(self) -> tuple[Any, ...]:
        row = self.get_db_hook().get_first(self.sql, self.parameters)
        self.log.info("The first row is %s", row)
        if row is None:
            self._fail(f"the query {self.sql!r} returned no row")
        return tuple(row)


class SQLValueCheckOperator(SQLCheckOperator):
    """Fails unless every value of the query's first row equals the expected value.

    Args:
        pass_value: the expected value; a template.
        tolerance: allowed relative difference of numbers: 0.1 means ten percent in both directions.
        others: see `SQLCheckOperator`.
    """

    template_fields: Collection[str] = ("pass_value", *SQLCheckOperator.template_fields)

    def __init__(self, *, pass_value: Any, tolerance: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pass_value = pass_value
        self.tolerance = tolerance

    def execute(self, context: Any) -> None:
        row = self._row()
        if not all(self._holds(value) for value in row):
            within = f" within {self.tolerance:.0%}" if self.tolerance else ""
            self._fail(f"the check failed: the query {self.sql!r} returned {row}, expected {self.pass_value!r}{within}")

    def _holds(self, value: Any) -> bool:
        try:
            expected, found = float(self.pass_value), float(value)
        except (TypeError, ValueError):
            return str(value) == str(self.pass_value)
        spread = abs(expected) * (self.tolerance or 0)
        return expected - spread <= found <= expected + spread


class SQLThresholdCheckOperator(SQLCheckOperator):
    """Fails unless the first value of the query is between two bounds, both included.

    Args:
        min_threshold, max_threshold: a number, or a query that returns one; templates.
        others: see `SQLCheckOperator`.
    """

    template_fields: Collection[str] = ("min_threshold", "max_threshold", *SQLCheckOperator.template_fields)

    def __init__(self, *, min_threshold: Any, max_threshold: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.min_threshold = min_threshold
        self.max_threshold = max_threshold

    def execute(self, context: Any) -> None:
        value = self._row()[0]
        low, high = (self._bound(bound) for bound in (self.min_threshold, self.max_threshold))
        if value is None or not low <= float(value) <= high:
            self._fail(
                f"the check failed: the query {self.sql!r} returned {value!r}, which is not between {low:g} and {high:g}"
            )

    def _bound(self, bound: Any) -> float:
        try:
            return float(bound)
        except ValueError:
            found = self.get_db_hook().get_first(bound)
        if found is None:
            self._fail(f"the query {bound!r} for a threshold returned no row")
        return float(found[0])


_TRUE = frozenset({"true", "t", "yes", "y", "1", "on"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "off"})


class BranchSQLOperator(BranchMixIn, BaseSQLOperator):
    """Chooses one of two branches: is the first value of the query true (`true`, `yes`, `1` …) or false?

    Args:
        sql: the query; a template.
        follow_task_ids_if_true, follow_task_ids_if_false: ids of direct downstream tasks or task groups.
        parameters: parameters of the query, in the driver's style; a template.
        conn_id, database, hook_params: see `BaseSQLOperator`.
    """

    template_fields: Collection[str] = ("sql", "parameters", *BaseSQLOperator.template_fields)

    def __init__(
        self,
        *,
        sql: str,
        follow_task_ids_if_true: Choice,
        follow_task_ids_if_false: Choice,
        parameters: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(sql, str):
            raise DefinitionError(f"{self._name_in_errors()}: sql is {sql!r}; it must be one query, as a string")
        self.sql = sql
        self.parameters = parameters
        self.follow_task_ids_if_true = follow_task_ids_if_true
        self.follow_task_ids_if_false = follow_task_ids_if_false

    def execute(self, context: Any) -> Any:
        row = self.get_db_hook().get_first(self.sql, self.parameters)
        if not row:
            raise AirflowException(f"the query {self.sql!r} returned no row")
        chosen = self.follow_task_ids_if_true if self._is_true(row[0]) else self.follow_task_ids_if_false
        return self.do_branch(context, chosen)

    def _is_true(self, value: Any) -> bool:
        text = str(value).strip().lower()
        if isinstance(value, bool | int | float):
            return bool(value)
        if text not in _TRUE | _FALSE:
            raise AirflowException(f"the query {self.sql!r} returned {value!r}, which is neither true nor false")
        return text in _TRUE
