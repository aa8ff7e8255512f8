"""Setup and teardown: a resource is created before the work and removed after it, whatever the result of the work is.

Here the work fails. `remove_cluster` still runs, and it does not hide the failure: the state of the run does not depend on
teardowns. A
clear of `work` also clears `make_cluster` and `remove_cluster`.
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
