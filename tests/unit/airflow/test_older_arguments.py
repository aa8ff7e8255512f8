"""Older names of arguments of provider packages."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator


class Query(BaseOperator):
    """As a provider's operator of today."""

    def __init__(self, *, sql: str, gcp_conn_id: str = "google_cloud_default", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.gcp_conn_id = gcp_conn_id


class OwnQuery(Query):
    """As a subclass of an author, who kept the name of that time."""

    def __init__(self, *, bigquery_conn_id: str, **kwargs: Any) -> None:
        super().__init__(bigquery_conn_id=bigquery_conn_id, **kwargs)
        self.bigquery_conn_id = bigquery_conn_id


def test_an_older_name_gets_the_present_one() -> None:
    with pytest.warns(DeprecationWarning, match="bigquery_conn_id was renamed to gcp_conn_id"):
        task = Query(task_id="a", bql="select 1", bigquery_conn_id="ours")
    assert (task.sql, task.gcp_conn_id) == ("select 1", "ours")


def test_a_subclass_may_accept_the_older_name() -> None:
    with pytest.warns(DeprecationWarning, match="was renamed to gcp_conn_id"):
        task = OwnQuery(task_id="a", sql="select 1", bigquery_conn_id="ours")
    assert (task.bigquery_conn_id, task.gcp_conn_id) == ("ours", "ours")


def test_default_args_may_have_older_names() -> None:
    with DAG("d", schedule=None, default_args={"google_cloud_storage_conn_id": "ours"}):
        assert Query(task_id="a", sql="select 1").gcp_conn_id == "ours"
        assert Query(task_id="b", sql="select 1", gcp_conn_id="mine").gcp_conn_id == "mine"


def test_the_present_name_wins() -> None:
    with pytest.warns(DeprecationWarning, match="was renamed to gcp_conn_id"):
        assert Query(task_id="a", sql="select 1", bigquery_conn_id="old", gcp_conn_id="new").gcp_conn_id == "new"


def test_an_argument_without_another_name_has_no_effect() -> None:
    with pytest.warns(DeprecationWarning, match="has no delegate_to any more"):
        assert Query(task_id="a", sql="select 1", delegate_to="someone").sql == "select 1"


class Job(BaseOperator):
    """As operators of amazon and google are today."""

    def __init__(
        self, *, container_overrides: Any = None, wait_for_completion: bool = True, bucket_name: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.given = (container_overrides, wait_for_completion, bucket_name)


def test_arguments_of_the_packages_of_2022_get_their_present_names() -> None:
    with pytest.warns(DeprecationWarning, match="in the provider package|has no sync") as said:
        task = Job(task_id="a", overrides={"command": []}, await_result=False, destination_bucket="b", sync=True)  # type: ignore[call-arg]
    assert task.given == ({"command": []}, False, "b")
    assert len(said) == 4
