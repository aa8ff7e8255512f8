"""Operators that check tables and their columns. DAG files import them from `tradewind.operators.sql`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from tradewind.model.errors import DefinitionError, did_you_mean
from tradewind.operators.sql import BaseSQLOperator

COLUMN_CHECKS = {
    "null_check": "SUM(CASE WHEN {0} IS NULL THEN 1 ELSE 0 END)",
    "distinct_check": "COUNT(DISTINCT({0}))",
    "unique_check": "COUNT({0}) - COUNT(DISTINCT({0}))",
    "min": "MIN({0})",
    "max": "MAX({0})",
}
"""Name of a check → SQL expression for the number that is compared."""

BOUNDS: dict[str, Callable[[Any, Any, Any], bool]] = {
    "equal_to": lambda value, low, high: low <= value <= high,
    "greater_than": lambda value, low, high: value > low,
    "geq_to": lambda value, low, high: value >= low,
    "less_than": lambda value, low, high: value < high,
    "leq_to": lambda value, low, high: value <= high,
}
"""Name of a condition → function of (value, low, high): low and high are the bound minus and plus the tolerance."""


class _TableOperator(BaseSQLOperator):
    template_fields: Collection[str] = ("table", "partition_clause", *BaseSQLOperator.template_fields)

    def __init__(self, *, table: str, partition_clause: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if partition_clause and ";" in partition_clause:
            raise DefinitionError(f"{self._name_in_errors()}: partition_clause has a semicolon; it must be one SQL condition")
        self.table = table
        self.partition_clause = partition_clause

    def _where(self, check: Mapping[str, Any]) -> str:
        """The WHERE clause from the condition of the task and the condition of the check."""
        parts = [part for part in (self.partition_clause, check.get("partition_clause")) if part]
        return f" WHERE {' AND '.join(f'({part})' for part in parts)}" if parts else ""

    def _first_value(self, hook: Any, query: str) -> Any:
        row = hook.get_first(query)
        return None if row is None else row[0]

    def _fail_or_log(self, failed: list[str]) -> None:
        if failed:
            self._fail(f"{len(failed)} checks of {self.table} failed: {'; '.join(failed)}")
        self.log.info("All checks of %s passed", self.table)


class SQLColumnCheckOperator(_TableOperator):
    """Fails unless aggregated values of columns meet the given conditions.

    Args:
        table: name of the table; a template.
        column_mapping: column → check (`null_check`, `distinct_check`, `unique_check`, `min`, `max`) → conditions (`equal_to`,
            `greater_than`, `geq_to`, `less_than`, `leq_to`), optionally with `tolerance` (relative to the bound) and
            `partition_clause`.
        partition_clause: an SQL condition that selects rows; a template.
        accept_none: treat null as 0. Otherwise null meets no condition.
        conn_id, database, hook_params, retry_on_failure: see `BaseSQLOperator`.
    """

    def __init__(
        self, *, column_mapping: Mapping[str, Mapping[str, Mapping[str, Any]]], accept_none: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        for column, checks in column_mapping.items():
            for name, check in checks.items():
                self._check(column, name, check)
        self.column_mapping = column_mapping
        self.accept_none = accept_none

    def _check(self, column: str, name: str, check: Mapping[str, Any]) -> None:
        where = f"{self._name_in_errors()}: column_mapping[{column!r}]"
        if name not in COLUMN_CHECKS:
            raise DefinitionError(f"{where} has the unknown check {name!r}.{did_you_mean(name, COLUMN_CHECKS)}")
        known = (*BOUNDS, "tolerance", "partition_clause")
        for key in check:
            if key not in known:
                raise DefinitionError(f"{where}[{name!r}] has the unknown key {key!r}.{did_you_mean(key, known)}")
        given = BOUNDS.keys() & check.keys()
        if not given:
            raise DefinitionError(f"{where}[{name!r}] has no condition; it needs one of {', '.join(BOUNDS)}")
        for pair in ({"greater_than", "geq_to"}, {"less_than", "leq_to"}):
            if pair <= given:
                raise DefinitionError(f"{where}[{name!r}] has both {' and '.join(sorted(pair))}; remove one of them")
        if "equal_to" in given and len(given) > 1:
            raise DefinitionError(f"{where}[{name!r}] has equal_to together with other conditions; remove the others")

    def execute(self, context: Any) -> None:
        hook, failed = self.get_db_hook(), []
        for column, checks in self.column_mapping.items():
            for name, check in checks.items():
                expression = COLUMN_CHECKS[name].format(column)
                value = self._first_value(hook, f"SELECT {expression} FROM {self.table}{self._where(check)}")
                self.log.info("%s of %s is %s", name, column, value)
                if not self._holds(0 if value is None and self.accept_none else value, check):
                    expected = ", ".join(f"{key} {check[key]}" for key in BOUNDS if key in check)
                    failed.append(f"{name} of {column} is {value}, expected {expected}")
        self._fail_or_log(failed)

    def _holds(self, value: Any, check: Mapping[str, Any]) -> bool:
        if value is None:
            return False
        tolerance = check.get("tolerance")
        for key, holds in BOUNDS.items():
            if key in check:
                bound = check[key]
                # without a tolerance the bound may also be a string or a date
                spread = abs(bound) * tolerance if tolerance else None
                low, high = (bound, bound) if spread is None else (bound - spread, bound + spread)
                if not holds(value, low, high):
                    return False
        return True


class SQLTableCheckOperator(_TableOperator):
    """Fails unless SQL conditions hold for a table: for all its rows, or for aggregates of them.

    Args:
        table: name of the table; a template.
        checks: name → `check_statement` (`COUNT(*) > 10`, or `a + b < c`), optionally with `partition_clause`.
        partition_clause: an SQL condition that selects rows; a template.
        conn_id, database, hook_params, retry_on_failure: see `BaseSQLOperator`.
    """

    def __init__(self, *, checks: Mapping[str, Mapping[str, Any]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name, check in checks.items():
            if "check_statement" not in check:
                raise DefinitionError(f"{self._name_in_errors()}: checks[{name!r}] has no check_statement")
        self.checks = checks

    def execute(self, context: Any) -> None:
        hook, failed = self.get_db_hook(), []
        for name, check in self.checks.items():
            statement = check["check_statement"]
            case = f"SELECT CASE WHEN {statement} THEN 1 ELSE 0 END AS holds FROM {self.table}{self._where(check)}"
            value = self._first_value(hook, f"SELECT MIN(holds) FROM ({case}) AS rows_of_check")
            self.log.info("%s: %s", name, "holds" if value else "does not hold")
            if not value:
                failed.append(f"{name} ({statement})")
        self._fail_or_log(failed)


class SQLIntervalCheckOperator(BaseSQLOperator):
    """Compares metrics of a table on the day `ds` with those some days earlier, and fails if they differ too much.

    Args:
        table: name of the table.
        metrics_thresholds: SQL expression → the ratio at which the check fails.
        date_filter_column: column that holds the day, as `YYYY-MM-DD`.
        days_back: how many days earlier, as a negative number; the sign is ignored.
        ratio_formula: `max_over_min`, or `relative_diff`: the difference, divided by the older value.
        ignore_zero: the check of a metric passes if its value is 0 or null on one of the two days.
        conn_id, database, hook_params, retry_on_failure: see `BaseSQLOperator`.
    """

    template_fields: Collection[str] = ("sql1", "sql2", *BaseSQLOperator.template_fields)

    def __init__(
        self,
        *,
        table: str,
        metrics_thresholds: Mapping[str, float],
        date_filter_column: str = "ds",
        days_back: int | str = -7,
        ratio_formula: str | None = "max_over_min",
        ignore_zero: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        formula = ratio_formula or "max_over_min"
        if formula not in RATIOS:
            raise DefinitionError(
                f"{self._name_in_errors()}: ratio_formula is {formula!r}; it must be {' or '.join(RATIOS)}."
                f"{did_you_mean(formula, RATIOS)}"
            )
        self.table = table
        self.metrics_thresholds = metrics_thresholds
        self.metrics_sorted = sorted(metrics_thresholds)
        self.date_filter_column = date_filter_column
        self.days_back = -abs(int(days_back))
        self.ratio_formula = formula
        self.ignore_zero = ignore_zero
        metrics = ", ".join(self.metrics_sorted)
        select = f"SELECT {metrics} FROM {table} WHERE {date_filter_column}="
        self.sql1 = f"{select}'{{{{ ds }}}}'"
        self.sql2 = f"{select}'{{{{ macros.ds_add(ds, {self.days_back}) }}}}'"

    def execute(self, context: Any) -> None:
        hook = self.get_db_hook()
        before, today = hook.get_first(self.sql2), hook.get_first(self.sql1)
        for sql, row in ((self.sql2, before), (self.sql1, today)):
            if not row:
                self._fail(f"the query {sql!r} returned no row")
        failed = [
            f"{metric} is {new}; {-self.days_back} days before it was {old}"
            for metric, old, new in zip(self.metrics_sorted, before, today, strict=False)
            if not self._holds(metric, old, new)
        ]
        if failed:
            self._fail(f"the check failed: {'; '.join(failed)} ({self.ratio_formula})")

    def _holds(self, metric: str, old: Any, new: Any) -> bool:
        if not old or not new:
            return self.ignore_zero
        ratio = RATIOS[self.ratio_formula](float(new), float(old))
        self.log.info(
            "%s is %s; %s days before it was %s; %s is %s", metric, new, -self.days_back, old, self.ratio_formula, ratio
        )
        return ratio < float(self.metrics_thresholds[metric])


RATIOS: dict[str, Callable[[float, float], float]] = {
    "max_over_min": lambda new, old: max(new, old) / min(new, old),
    "relative_diff": lambda new, old: abs(new - old) / old,
}
"""Name of a formula → function of the value of the day and the earlier value."""
