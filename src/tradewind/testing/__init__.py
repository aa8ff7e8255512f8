"""The kit for testing DAGs, and Tradewind itself.

    from tradewind.testing import run_dag

    def test_my_dag():
        run = run_dag(my_dag, logical_date=datetime(2026, 1, 31))
        assert run.state == "success"
        assert run.xcom("count_rows") == 42

`run_dag` is `dag.test()` without its printing. `FakeClock` moves when it is told to. `MemoryStore` is the store without a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.service.clock import ManualClock as FakeClock
from tradewind.store.memory import MemoryStore
from tradewind.testing.dag_test import TestedRun, TestedTask, run_dag_test

if TYPE_CHECKING:
    from tradewind.authoring.dag import DAG

__all__ = ["FakeClock", "MemoryStore", "TestedRun", "TestedTask", "run_dag"]


def run_dag(dag: DAG, **arguments: Any) -> TestedRun:
    """Run a DAG once in this process, silently. Arguments, result and errors as `dag_test.run_dag_test`."""
    return run_dag_test(dag, **{"say": _nothing, **arguments})


def _nothing(line: str) -> None:
    """Nobody listens."""
