"""`SerializedDAG` of Airflow 2, as tests of provider packages use it for extra links."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.models import DAG
from airflow.models.baseoperator import BaseOperator, BaseOperatorLink
from airflow.serialization.serialized_objects import DagSerialization, OperatorSerialization, SerializedDAG


class Link(BaseOperatorLink):
    name = "Console"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return f"https://console/{ti_key.task_id}"


class Query(BaseOperator):
    template_fields = ("sql",)
    ui_color = "#ff0000"
    operator_extra_links = (Link(),)

    def __init__(self, *, sql: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql = sql


def test_a_dag_as_json_data_and_back() -> None:
    with DAG("d", start_date=datetime(2022, 1, 1, tzinfo=UTC), schedule=None) as dag:
        Query(task_id="a", sql="select 1") >> Query(task_id="b", sql="select 2")
    written = SerializedDAG.to_dict(dag)
    first = written["dag"]["tasks"][0]
    assert first["sql"] == "select 1"
    assert first["_operator_extra_links"] == [{f"{__name__}.Link": {}}]
    read = SerializedDAG.from_json(SerializedDAG.to_json(dag))
    task = read.task_dict["a"]
    assert (read.dag_id, read.start_date, task.sql, task.task_type, task.ui_color) == (
        "d",
        datetime(2022, 1, 1, tzinfo=UTC),
        "select 1",
        "Query",
        "#ff0000",
    )
    assert task.downstream_task_ids == {"b"}
    assert task.get_extra_links(datetime(2022, 1, 1, tzinfo=UTC), "Console") == "https://console/a"
    assert isinstance(task.operator_extra_links[0], Link)


def test_the_names_of_airflow_3() -> None:
    with DAG("d", start_date=datetime(2022, 1, 1, tzinfo=UTC), schedule=None) as dag:
        task = Query(task_id="a", sql="select 1")
    written = DagSerialization.to_dict(dag)
    assert written == SerializedDAG.to_dict(dag)
    assert DagSerialization.serialize_dag(dag) == written["dag"]
    for read in (DagSerialization.from_dict(written), DagSerialization.deserialize_dag(written["dag"])):
        assert (read.dag_id, read.task_dict["a"].sql) == ("d", "select 1")
    again = OperatorSerialization.deserialize_operator(OperatorSerialization.serialize_operator(task))
    assert (again.task_id, again.sql, again.task_type) == ("a", "select 1", "Query")
