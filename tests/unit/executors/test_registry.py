"""Which executor runs a task."""

from __future__ import annotations

from tradewind.executors.registry import ExecutorRegistry


def test_the_first_executor_is_the_default() -> None:
    registry = ExecutorRegistry("LocalExecutor,SequentialExecutor", 8)
    assert registry.resolve(None) == registry.resolve("") == registry.default == "LocalExecutor"
    assert registry.resolve("SequentialExecutor") == "SequentialExecutor"
    assert registry.has_several


def test_an_executor_has_a_name_an_import_path_and_an_alias() -> None:
    registry = ExecutorRegistry("LocalExecutor,one_by_one:airflow.executors.sequential_executor.SequentialExecutor", 8)
    for name in ("SequentialExecutor", "one_by_one", "airflow.executors.sequential_executor.SequentialExecutor"):
        assert (registry.has(name), registry.resolve(name)) == (True, "SequentialExecutor")


def test_a_name_that_the_deployment_does_not_have_means_the_default() -> None:
    registry = ExecutorRegistry("SequentialExecutor", 8)
    assert not registry.has("CeleryExecutor")
    assert registry.resolve("CeleryExecutor") == "SequentialExecutor"
    assert registry.has(None)
    assert registry.has("")


def test_each_executor_has_its_own_parallelism() -> None:
    assert ExecutorRegistry("LocalExecutor", 8).parallelism == 8
    assert ExecutorRegistry("SequentialExecutor", 8).parallelism == 1
    assert ExecutorRegistry("LocalExecutor,SequentialExecutor", 8).parallelism == 9
    assert ExecutorRegistry("SequentialExecutor,LocalExecutor", 0).parallelism == 0, "one of them has no limit"
