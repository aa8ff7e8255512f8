"""`airflow.api.common.experimental.pool`: functions for pools, as DAG files for Airflow 1 and 2 call them."""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat.exceptions import PoolNotFound
from tradewind.airflow.compat.models import Pool
from tradewind.sdk.exceptions import AirflowBadRequest

__all__ = ["create_pool", "delete_pool", "get_pool", "get_pools"]


def create_pool(name: str, slots: int | str, description: str = "", session: Any = None) -> Any:
    """Store a pool; see `Pool.create_or_update_pool`.

    Raises:
        AirflowBadRequest: the name is empty, or `slots` is no number.
    """
    return Pool.create_or_update_pool(name, slots_of(name, slots), description, session=session)


def slots_of(name: str, slots: int | str) -> int:
    """The number of slots of a pool that is made. Raises as `create_pool`."""
    if not (name and name.strip()):
        raise AirflowBadRequest("a pool needs a name")
    try:
        return int(slots)
    except ValueError:
        raise AirflowBadRequest(f"pool {name!r}: slots is {slots!r}; it must be a number") from None


def get_pool(name: str, session: Any = None) -> Any:
    """The pool with this name.

    Raises:
        AirflowBadRequest: the name is empty.
        PoolNotFound: there is no such pool.
    """
    if not (name and name.strip()):
        raise AirflowBadRequest("a pool needs a name")
    found = Pool.get_pool(name, session)
    if found is None:
        raise PoolNotFound(f"there is no pool {name!r}; there are {', '.join(pool.pool for pool in Pool.get_pools())}")
    return found


def get_pools(session: Any = None) -> list[Any]:
    """All pools."""
    return Pool.get_pools(session)


def delete_pool(name: str, session: Any = None) -> Any:
    """Delete a pool, and return it. Raises as `get_pool`, and AirflowException for the default pool."""
    get_pool(name, session)
    return Pool.delete_pool(name, session)
