"""Older names of arguments of provider packages."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tradewind.execution.context import Context, current_context
from tradewind.model.definition import DefinitionDefaults
from tradewind.model.errors import UnknownArgument
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.open_dags import collecting
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.variables import BaseHook


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
        task = Query(task_id="a", bql="select 1", bigquery_conn_id="ours")  # type: ignore[call-arg]
    assert (task.sql, task.gcp_conn_id) == ("select 1", "ours")


class ListOperations(BaseOperator):
    """As an operator of google is today: it requires the present name."""

    def __init__(self, *, request_filter: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request_filter = request_filter


def test_a_required_argument_may_have_its_older_name() -> None:
    with pytest.warns(DeprecationWarning, match="filter was renamed to request_filter"):
        assert ListOperations(task_id="a", filter={"name": "x"}).request_filter == {"name": "x"}  # type: ignore[call-arg]


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
    with pytest.warns(UserWarning, match="has no delegate_to any more"):
        assert Query(task_id="a", sql="select 1", delegate_to="someone").sql == "select 1"


class Decorated(BaseOperator):
    """As the class of `@task`, which hands on all arguments but its own."""

    def __init__(self, *, python_callable: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.python_callable = python_callable


class Delegating(BaseOperator):
    """As operators of a package whose argument has the name of one that other packages have dropped."""

    def __init__(self, *, sql: str, hook_params: Any = None, bigquery_conn_id: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sql, self.hook_params, self.bigquery_conn_id = sql, hook_params, bigquery_conn_id


class DecoratedDelegating(Decorated, Delegating):
    """As `@task.sql`: the first base class does not take the arguments of the second."""


@pytest.mark.filterwarnings("error")
def test_an_argument_that_a_later_base_class_takes_is_handed_on() -> None:
    task = DecoratedDelegating(task_id="a", python_callable=print, sql="", hook_params={"b": 1}, bigquery_conn_id="c")
    assert (task.hook_params, task.bigquery_conn_id) == ({"b": 1}, "c")


class Job(BaseOperator):
    """As operators of amazon and google are today."""

    def __init__(
        self, *, container_overrides: Any = None, wait_for_completion: bool = True, bucket_name: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.given = (container_overrides, wait_for_completion, bucket_name)


def test_arguments_of_the_packages_of_2022_get_their_present_names() -> None:
    with pytest.warns(DeprecationWarning, match="in the provider package|has no sync") as said:
        task = Job(task_id="a", overrides={"command": []}, await_result=False, destination_bucket="b", sync=True)
    assert task.given == ({"command": []}, False, "b")
    assert len(said) == 4


class Container(BaseOperator):
    """As the operator of docker is today."""

    def __init__(self, *, image: str, auto_remove: str = "never", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.image = image
        self.auto_remove = auto_remove


class Swarm(Container):
    """Passes the argument on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)


class OlderContainer(BaseOperator):
    """As the operator of docker was in 2021."""

    def __init__(self, *, auto_remove: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.auto_remove = auto_remove


@pytest.mark.parametrize("operator", [Container, Swarm])
@pytest.mark.parametrize(("older", "present"), [(True, "success"), (False, "never")])
def test_an_older_value_gets_the_present_one(operator: Any, older: bool, present: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"auto_remove={older} is an older value; use auto_remove='{present}'"):
        assert operator(task_id="a", image="i", auto_remove=older).auto_remove == present


def test_default_args_may_have_older_values() -> None:
    with DAG("d", schedule=None, default_args={"auto_remove": True}):
        assert Container(task_id="a", image="i").auto_remove == "success"


def test_a_package_of_that_time_gets_its_value() -> None:
    assert OlderContainer(task_id="a", auto_remove=True).auto_remove is True


class OfProvider(BaseOperator):
    """An operator of a provider package."""

    __module__ = "airflow.providers.ours.operators.ours"

    def __init__(self, *, path: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.path = path


class Derived(OfProvider):
    """An operator of an author."""


@pytest.mark.parametrize("operator", [OfProvider, Derived])
def test_an_argument_that_a_provider_package_has_dropped_is_a_warning_in_an_older_file(operator: Any) -> None:
    with collecting(2), pytest.warns(DeprecationWarning, match="takes no argument 'file_path'.*older release"):
        operator(task_id="a", file_path="x")
    with collecting(3), pytest.raises(UnknownArgument, match="file_path"):
        operator(task_id="b", file_path="x")
    with collecting(2), pytest.raises(UnknownArgument, match="file_path"):
        Query(task_id="c", sql="select 1", file_path="x")


class Clusters(BaseOperator):
    """As an operator of Dataproc is today: it requires the region."""

    __module__ = "airflow.providers.google.cloud.operators.dataproc"

    def __init__(self, *, region: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.region = region


def test_an_argument_that_is_required_today_has_its_older_default() -> None:
    with collecting(generation=1), pytest.warns(DeprecationWarning, match="requires region today; it is 'global'"):
        assert Clusters(task_id="a").region == "global"  # type: ignore[call-arg]
    with collecting(generation=3), pytest.raises(TypeError, match="needs the argument region"):
        Clusters(task_id="b")  # type: ignore[call-arg]


def test_jars_of_a_language_are_the_jars_of_the_job() -> None:
    class Job(BaseOperator):
        def __init__(self, *, dataproc_jars: list[str], **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.dataproc_jars = dataproc_jars

    with pytest.warns(DeprecationWarning, match="dataproc_pyspark_jars was renamed to dataproc_jars"):
        assert Job(task_id="a", dataproc_pyspark_jars=["gs://b/j.jar"]).dataproc_jars == ["gs://b/j.jar"]  # type: ignore[call-arg]


class PresentHook(BaseHook):
    """As a hook of a provider package."""

    __module__ = "airflow.providers.google.common.hooks.base_google"

    def __init__(self, gcp_conn_id: str = "google_cloud_default", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gcp_conn_id = gcp_conn_id


class OwnHook(PresentHook):
    """As a hook of an author, who hands the older name on."""

    __module__ = "our_hooks"

    def __init__(self, google_cloud_storage_conn_id: str) -> None:
        super().__init__(google_cloud_storage_conn_id=google_cloud_storage_conn_id, delegate_to=None)


def test_a_hook_gets_the_present_name_of_an_older_argument() -> None:
    with pytest.warns(DeprecationWarning, match="bigquery_conn_id was renamed to gcp_conn_id"):
        assert PresentHook(bigquery_conn_id="ours").gcp_conn_id == "ours"
    with pytest.warns(DeprecationWarning, match="has no delegate_to any more"):
        assert OwnHook("ours").gcp_conn_id == "ours"
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        PresentHook(nonsense=1)


class GCSHook(BaseHook):
    """As the hook of the package google."""

    __module__ = "airflow.providers.google.cloud.hooks.gcs"

    def upload(self, bucket_name: str, object_name: str, data: str = "") -> tuple[str, str, str]:
        return bucket_name, object_name, data

    def copy(self, source_bucket: str) -> str:
        return source_bucket

    async def exists(self, bucket_name: str) -> str:
        return bucket_name


def test_a_method_of_a_hook_gets_the_present_names_of_older_arguments() -> None:
    hook: Any = GCSHook()
    with pytest.warns(DeprecationWarning, match=r"GCSHook\.upload") as warned:
        assert hook.upload(bucket="b", object="o", data="x", multipart=True) == ("b", "o", "x")
    assert [str(one.message).partition(" in ")[0] for one in warned] == [
        "GCSHook.upload: bucket was renamed to bucket_name",
        "GCSHook.upload: object was renamed to object_name",
        "GCSHook.upload: the provider package has no multipart any more; it has no effect",
    ]
    assert hook.upload("b", "o") == ("b", "o", "")
    with pytest.raises(TypeError, match="unexpected keyword argument 'bucket'"):
        hook.copy("a", bucket="b")
    with pytest.raises(TypeError, match="unexpected keyword argument 'generation'"):
        hook.upload("b", "o", generation=3)
    assert inspect.iscoroutinefunction(hook.exists)


def test_a_task_creates_operators_as_its_file_does() -> None:
    with collecting(generation=1):
        dag = DAG("d", schedule=None)
        task = Query(task_id="a", sql="select 1", dag=dag)
    with current_context(Context({"dag": dag, "task": task})), pytest.warns(DeprecationWarning, match="Airflow 1 ignored it"):
        Query(task_id="inside", sql="select 1", nonsense=1)
    with pytest.raises(UnknownArgument, match="nonsense"):
        Query(task_id="outside", sql="select 1", nonsense=1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_dag_has_a_warning_for_an_argument_without_effect() -> None:
    with collecting(generation=1), DAG("d", schedule=None) as dag:
        Query(task_id="a", sql="select 1", nonsense=1)
        Query(task_id="b", sql="select 1", nonsense=2, adhoc=True)
    warning = "nonsense of task a and 1 more: Query does not take this argument, so it has no effect"
    assert to_definition(dag, "d.py", DefinitionDefaults()).warnings == (warning,)
