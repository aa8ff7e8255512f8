"""Setup and teardown: a resource that is made before the work and taken away after it, whatever became of the work.

The work fails here. `remove_cluster` runs all the same, and does not hide the failure: teardowns do not count for the run. Clearing
`work` clears `make_cluster` and `remove_cluster`, too.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, setup, task, teardown

with DAG(
    "setups_and_teardowns",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"break_it": True},
    tags=["example", "gallery"],
):

    @setup
    def make_cluster() -> str:
        return "cluster-7"

    @task
    def work(cluster: str, params) -> str:
        if params["break_it"]:
            raise ConnectionError(f"{cluster} does not answer")
        return f"done on {cluster}"

    @teardown
    def remove_cluster(cluster: str) -> str:
        return f"{cluster} is gone"

    cluster = make_cluster()
    work(cluster) >> remove_cluster(cluster)
