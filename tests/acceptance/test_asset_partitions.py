"""Asset partitions with the real command line and processes: keys of runs, of tasks and from outside."""

from __future__ import annotations

import pytest

from tests.acceptance.harness import Standalone

SOURCE = """
from airflow.sdk import (
    DAG, Asset, FixedKeyMapper, PartitionedAssetTimetable, PartitionedAtRuntime, RollupMapper, SegmentWindow, task,
)

sales = Asset("sales", uri="s3://shop/sales")

with DAG("load_sales", schedule=PartitionedAtRuntime()):
    @task(outlets=[sales])
    def load(outlet_events, partition_key):
        if partition_key == "all regions":
            outlet_events[sales].add_partitions(["us", "eu"])
        return partition_key

    load()

with DAG("use_region", schedule=PartitionedAssetTimetable(assets=sales)):
    @task
    def use(dag_run, partition_key, triggering_asset_events):
        return [dag_run.partition_key, partition_key, [one.partition_key for one in triggering_asset_events[sales]]]

    use()

regions = RollupMapper(upstream_mapper=FixedKeyMapper("world"), window=SegmentWindow(["us", "eu", "apac"]))
with DAG("sum_up", schedule=PartitionedAssetTimetable(assets=sales, default_partition_mapper=regions)):
    @task
    def add(dag_run, triggering_asset_events):
        return [dag_run.partition_key, sorted(one.partition_key for one in triggering_asset_events[sales])]

    add()
"""


@pytest.fixture(scope="module", autouse=True)
def shop(standalone: Standalone) -> None:
    standalone.write_dag("sales.py", SOURCE)
    for dag_id in ("load_sales", "use_region", "sum_up"):
        standalone.wait_dag(dag_id)
    standalone.cli("dags", "unpause", "load_sales", "use_region", "sum_up")


def results(standalone: Standalone, dag_id: str, task_id: str, count: int) -> list[object]:
    """The return values of the runs, sorted, once there are so many and all have succeeded."""
    ids = standalone.succeeded_runs(dag_id, count)
    return sorted((standalone.return_value(dag_id, run_id, task_id) for run_id in ids), key=str)


def test_keys_reach_the_runs_that_consume_them(standalone: Standalone) -> None:
    standalone.cli("dags", "trigger", "load_sales", "--partition-key", "all regions")
    assert results(standalone, "use_region", "use", 2) == [["eu", "eu", ["eu"]], ["us", "us", ["us"]]]
    answer = standalone.cli("why", "sum_up")
    assert "partition world: 0 of 1 asset updated; missing: sales; sales: 2 of 3 keys arrived; missing: apac" in answer
    standalone.cli("assets", "create-event", "sales", "--partition-key", "apac")
    assert results(standalone, "sum_up", "add", 1) == [["world", ["apac", "eu", "us"]]]
    assert len(results(standalone, "use_region", "use", 3)) == 3
    standalone.cli("assets", "materialize", "sales", "--partition-key", "mars")
    assert results(standalone, "use_region", "use", 4)[2] == ["mars", "mars", ["mars"]]
