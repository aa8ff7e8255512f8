"""The version of Airflow for the tests: 3.3."""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat.types import NOTSET, ArgNotSet

__all__ = ["NOTSET", "ArgNotSet"]


def get_base_airflow_version_tuple() -> tuple[int, int, int]:
    return 3, 3, 2


def __getattr__(name: str) -> Any:
    """`AIRFLOW_V_3_1_PLUS`: true up to 3.3; `AIRFLOW_V_3_0_1`: this release only; and the names that moved between releases."""
    if name.startswith("AIRFLOW_V_"):
        parts = name.removeprefix("AIRFLOW_V_").split("_")
        numbers = tuple(int(part) for part in parts if part.isdigit())
        here = get_base_airflow_version_tuple()
        return here[: len(numbers)] >= numbers if parts[-1] == "PLUS" else here == numbers
    if name == "remove_task_decorator":
        from airflow.utils.decorators import remove_task_decorator

        return remove_task_decorator
    if name == "XCOM_RETURN_KEY":
        return "return_value"
    import airflow.sdk

    return getattr(airflow.sdk, name)
