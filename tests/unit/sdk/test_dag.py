"""DAG: arguments of Airflow 1, 2 and 3, reading attributes, and partial subsets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tradewind.model.dag_run_type import DagRunType
from tradewind.model.definition import DefinitionDefaults, NoSchedule
from tradewind.model.errors import DefinitionError, NotYetSupported, UnknownArgument
from tradewind.model.states import RunType
from tradewind.sdk.assets import Asset, AssetOrTimeSchedule
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.dependencies import Label
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.params import Param
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.timetables.simple import PartitionedAtRuntime


class TestArguments:
    def test_older_names_of_arguments_work(self) -> None:
        with pytest.warns(DeprecationWarning, match="in Airflow 2|web interface") as caught:
            dag = DAG("d", schedule_interval="@daily", concurrency=3, fail_stop=True, default_view="graph", orientation="LR")
        assert (dag.schedule, dag.max_active_tasks, dag.fail_fast) == ("@daily", 3, True)
        texts = [str(warning.message) for warning in caught]
        assert any("default_view" in text for text in texts)
        assert all(__file__ in warning.filename for warning in caught)

    def test_a_schedule_of_none_can_be_given_by_both_names(self) -> None:
        assert DAG("d", schedule_interval=None).schedule is None
        assert DAG("d", schedule=None).schedule_interval is None

    def test_two_schedules_are_an_error(self) -> None:
        with pytest.raises(DefinitionError, match="schedule and schedule_interval"):
            DAG("d", schedule="@daily", schedule_interval="@hourly")

    def test_of_two_schedules_one_may_be_none(self) -> None:
        with pytest.warns(UserWarning, match="schedule=None is used, as in Airflow 2"):
            assert DAG("d", schedule=None, schedule_interval="@hourly").schedule is None
        with pytest.warns(UserWarning, match="schedule='@daily' is used"):
            assert DAG("d", schedule="@daily", schedule_interval=None).schedule == "@daily"
        assert DAG("d", schedule_interval="@daily", timetable=None).schedule == "@daily"

    def test_a_misspelt_argument_is_an_error(self) -> None:
        with pytest.raises(UnknownArgument, match=r"'catchp'. Did you mean 'catchup'"):
            DAG("d", catchp=False)

    @pytest.mark.parametrize("given", ["manual", ["manual"], DagRunType.MANUAL, {DagRunType.MANUAL}])
    def test_allowed_run_types(self, given: Any) -> None:
        dag = DAG("d", schedule=None, allowed_run_types=given)
        assert dag.allowed_run_types == frozenset({RunType.MANUAL})
        assert DagRunType.MANUAL in list[object](dag.allowed_run_types or ()), "as authors compare it"
        assert to_definition(dag, "d.py", DefinitionDefaults()).allowed_run_types == (RunType.MANUAL,)
        assert DAG("d").allowed_run_types is None
        assert DAG("d", allowed_run_types=[]).allowed_run_types is None

    @pytest.mark.parametrize(
        ("schedule", "given", "says"),
        [
            ("@daily", "manual", "must contain 'scheduled', the type of the runs"),
            (Asset("a"), ["manual", "scheduled"], "must contain 'asset_triggered'"),
            (AssetOrTimeSchedule(timetable="@daily", assets=Asset("a")), "scheduled", "must contain 'asset_triggered'"),
            (None, "scheduled", "must contain 'manual', because the DAG has no schedule"),
            (PartitionedAtRuntime(), "scheduled", "must contain 'manual'"),
            (None, "manuel", "'manuel'; the types of runs are .* Did you mean 'manual'"),
        ],
    )
    def test_allowed_run_types_must_contain_that_of_the_schedule(self, schedule: Any, given: Any, says: str) -> None:
        with pytest.raises(DefinitionError, match=says):
            DAG("d", schedule=schedule, allowed_run_types=given)

    def test_scheduled_runs_can_be_excluded_beside_assets(self) -> None:
        both = AssetOrTimeSchedule(timetable="@daily", assets=Asset("a"))
        dag = DAG("d", schedule=both, start_date=datetime(2026, 1, 1, tzinfo=UTC), allowed_run_types="asset_triggered")
        assert to_definition(dag, "d.py", DefinitionDefaults()).schedule == NoSchedule()

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ({"dagrun_timeout": 60}, "dagrun_timeout is 60; it must be a timedelta"),
            ({"start_date": "soon"}, "start_date is 'soon'"),
            ({"catchup": "False"}, "catchup is 'False'; it must be True or False"),
            ({"tags": ["x" * 101]}, "1 to 100 characters"),
            ({"owner_links": {"me": "example.org"}}, "must begin with https://"),
            ({"default_args": [1]}, "must be a dictionary"),
        ],
    )
    def test_wrong_values_are_errors(self, arguments: dict[str, Any], says: str) -> None:
        with pytest.raises(DefinitionError, match=says) as caught:
            DAG("d", **arguments)
        assert f"DAG 'd' ({__file__}:" in str(caught.value)

    def test_values_that_airflow_accepts_are_read_with_a_warning(self) -> None:
        with pytest.warns(UserWarning, match="tags is the text 'abc', which is read as one tag"):
            assert DAG("d", tags="abc").tags == {"abc"}
        assert DAG("d", tags=["", "a"]).tags == {"a"}
        with pytest.warns(UserWarning, match="is no link to a web page, and is left out"):
            assert DAG("d", owner_links={"me": "javascript://x", "we": "ftp://x"}).owner_links == {"we": "ftp://x"}
        with pytest.warns(UserWarning, match="max_active_runs is -1: the DAG has no scheduled runs"):
            assert DAG("d", schedule="@daily", max_active_runs=-1).schedule is None
        with pytest.warns(UserWarning, match="contains no asset"):
            assert DAG("d", schedule={}).schedule is None
        assert DAG("d", max_active_tasks=0).max_active_tasks == 0

    @pytest.mark.parametrize("dag_id", ["übung", "전처리_dag", "数据.导入"])
    def test_ids_may_have_the_letters_of_any_script(self, dag_id: str) -> None:
        """As in Airflow."""
        dag = DAG(dag_id, schedule=None)
        with dag, TaskGroup(dag_id.replace(".", "_")):
            task = BaseOperator(task_id=dag_id)
        assert (dag.dag_id, task.task_id) == (dag_id, f"{dag_id.replace('.', '_')}.{dag_id}")

    @pytest.mark.parametrize("dag_id", ["a..b", "a b", "", "a/b", "😀", "x" * 251])
    def test_invalid_ids_are_errors(self, dag_id: str) -> None:
        with pytest.raises(DefinitionError, match="dag_id"):
            DAG(dag_id)

    @pytest.mark.spec("S16")
    def test_an_id_may_contain_dots(self) -> None:
        with DAG("openwork.jobchain.dep_day_57") as dag:
            BaseOperator("load")
        assert (dag.dag_id, dag.task_ids) == ("openwork.jobchain.dep_day_57", ["load"])

    def test_the_time_zone_of_a_dag_is_that_of_its_start_date(self) -> None:
        paris = ZoneInfo("Europe/Paris")
        assert DAG("d", start_date=datetime(2024, 1, 1, tzinfo=paris)).timezone_name == "Europe/Paris"
        naive = DAG("d", start_date=datetime(2024, 1, 1))  # noqa: DTZ001 (what authors write)
        assert naive.timezone_name is None
        assert naive.timezone.name == "UTC"
        inherited = DAG("d", default_args={"start_date": "2024-01-01T00:00:00+02:00"})
        assert inherited.default_args["start_date"] == datetime(2024, 1, 1, tzinfo=inherited.timezone)
        assert inherited.timezone_name == "+02:00"
        assert DAG("d", start_date=datetime(2024, 1, 1, tzinfo=UTC)).timezone_name == "UTC"

    def test_zones_of_pendulum_and_dateutil_are_accepted(self) -> None:
        import pendulum
        from dateutil import tz

        assert DAG("d", start_date=pendulum.datetime(2024, 1, 1, tz="Asia/Tokyo")).timezone_name == "Asia/Tokyo"
        assert DAG("d", start_date=datetime(2024, 1, 1, tzinfo=tz.gettz("Asia/Tokyo"))).timezone_name == "Asia/Tokyo"
        assert DAG("d", start_date=datetime(2024, 1, 1, tzinfo=pendulum.timezone("UTC"))).timezone_name == "UTC"

    def test_params_of_default_args_are_merged(self) -> None:
        dag = DAG("d", params={"a": 1, "b": Param(2, minimum=0)}, default_args={"params": {"c": 3}})
        assert dict(dag.params) == {"a": 1, "b": 2, "c": 3}
        assert "params" not in dag.default_args

    def test_doc_md_may_name_a_file_beside_the_dag_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        note = tmp_path / "note.md"
        note.write_text("# Note")
        assert DAG("d", doc_md=str(note)).doc_md == "# Note"
        assert DAG("d", doc_md="read note.md\nor not.md").doc_md == "read note.md\nor not.md"
        with pytest.warns(UserWarning, match=r"absent\.md"):
            assert DAG("d", doc_md="absent.md").doc_md == "absent.md"

    def test_a_dag_knows_where_it_was_created(self) -> None:
        dag = DAG("d")
        assert dag.fileloc == __file__
        assert dag.folder == str(Path(__file__).parent)


class TestLookingIn:
    def test_owner_and_tasks_can_be_read(self) -> None:
        with DAG("d") as dag:
            BaseOperator("b", owner="zoe")
            BaseOperator("a", owner="ann")
            BaseOperator("c", owner="zoe")
        assert dag.owner == "ann, zoe"
        assert dag.task_ids == ["b", "a", "c"]
        assert dag.task_count == 3
        assert "a" in dag
        assert dag.has_task("a")
        assert not dag.has_task("x")
        with pytest.raises(KeyError, match="no task or task group 'x'"):
            dag["x"]

    @pytest.mark.spec("S7")
    def test_add_task_adds_a_task(self) -> None:
        dag, task = DAG("d"), BaseOperator("t")
        dag.add_tasks([task])
        dag.add_task(task)
        assert dag.tasks == [task]
        with pytest.raises(DefinitionError, match="already belongs to DAG 'd'"):
            DAG("e").add_task(task)

    def test_a_task_belongs_to_the_innermost_open_dag(self) -> None:
        with DAG("outer") as outer:
            with DAG("inner") as inner:
                a = BaseOperator("a")
            b = BaseOperator("b")
        assert (a.dag, b.dag) == (inner, outer)


class TestValidate:
    def test_fail_fast_allows_only_some_trigger_rules(self) -> None:
        with DAG("d", fail_fast=True) as dag:
            BaseOperator("t", trigger_rule="all_done")
        with pytest.raises(DefinitionError, match=r"all_done of task 't'"):
            dag.validate()

    def test_default_args_that_no_operator_accepts_are_a_warning(self) -> None:
        with DAG("d", default_args={"retires": 3}) as dag:
            BaseOperator("t")
        with pytest.warns(UserWarning, match="'retires', which no operator of this DAG accepts. Did you mean 'retries'"):
            dag.validate()


class TestPartialSubset:
    @pytest.fixture
    def dag(self) -> DAG:
        with DAG("d") as dag:
            a = BaseOperator("a", retries=7)
            with TaskGroup("g", tooltip="tip"):
                b, c = BaseOperator("b"), BaseOperator("c")
                b >> Label("go") >> c
            a >> b
            c >> BaseOperator("end")
            BaseOperator("apart")
        return dag

    @pytest.mark.parametrize(
        ("chosen", "options", "kept"),
        [
            (["g.c"], {}, ["a", "g.b", "g.c"]),
            (["g.c"], {"include_upstream": False}, ["g.c"]),
            (["g.c"], {"include_upstream": False, "include_downstream": True}, ["g.c", "end"]),
            (["g.c"], {"include_upstream": False, "include_direct_upstream": True}, ["g.b", "g.c"]),
            (r"^a", {}, ["a", "apart"]),
            (r"g\.", {"include_upstream": False}, ["g.b", "g.c"]),
        ],
    )
    def test_partial_subset_selects_tasks(self, dag: DAG, chosen: Any, options: dict[str, bool], kept: list[str]) -> None:
        assert dag.partial_subset(chosen, **options).task_ids == kept

    def test_partial_subset_copies_and_leaves_the_original_unchanged(self, dag: DAG) -> None:
        part = dag.partial_subset(["g.c"])
        part.validate()
        assert part.get_task("g.c").upstream_list == [part.get_task("g.b")]
        assert part.get_task("g.c").downstream_list == []
        assert part.get_task("a").retries == 7
        assert part.get_task("a").dag is part
        assert part.task_group_dict["g"].tooltip == "tip"
        assert part.get_task("g.b").task_group is part.task_group_dict["g"]
        assert part.get_edge_info("g.b", "g.c") == {"label": "go"}
        assert len(dag.tasks) == 5
        assert dag.get_task("g.c").downstream_task_ids == {"end"}

    def test_partial_subset_with_an_unknown_task_is_an_error(self, dag: DAG) -> None:
        with pytest.raises(LookupError, match=r"no task 'g.d'"):
            dag.partial_subset(["g.d"])


def test_retry_delay_is_kept_as_written() -> None:
    with DAG("d", default_args={"retry_delay": timedelta(seconds=3)}):
        assert BaseOperator("t").retry_delay == timedelta(seconds=3)


class TestPositionalArguments:
    """Airflow 1.10 took all arguments of `DAG(...)` by position."""

    def test_they_have_the_order_of_airflow_1(self) -> None:
        start = datetime(2020, 1, 1, tzinfo=UTC)
        macros = {"double": lambda number: 2 * number}
        day, hour = "@daily", timedelta(hours=1)
        arguments: list[Any] = ["text", day, start, None, None, "/sql", None, macros, None, {"retries": 3}, 7, 2, hour]
        dag = DAG("d", *arguments)
        assert (dag.description, dag.template_searchpath, dag.default_args["retries"]) == ("text", ("/sql",), 3)
        assert (dag.max_active_tasks, dag.max_active_runs, dag.dagrun_timeout) == (7, 2, timedelta(hours=1))
        assert dag.user_defined_macros == macros

    def test_an_argument_that_is_given_twice_or_too_many_are_an_error(self) -> None:
        with pytest.raises(TypeError, match="multiple values for argument 'template_searchpath'"):
            DAG("d", None, None, None, None, None, "/sql", template_searchpath="/other")  # type: ignore[call-arg, arg-type, misc]
        with pytest.raises(TypeError, match="at most 27 positional arguments, but 30 were given"):
            DAG("d", *[None] * 29)


def test_a_task_may_call_what_stores_definitions_in_airflow() -> None:
    """astronomer-cosmos before 1.10 adds outlets to its task and then calls DAG.bulk_write_to_db([self.dag], session=…)."""
    dag = DAG("d", schedule=None)
    their_class: Any = DAG
    with pytest.warns(UserWarning, match=r"DAG.bulk_write_to_db\(\) changes nothing"):
        their_class.bulk_write_to_db([dag], session=None)
    with pytest.warns(UserWarning, match=r"dag.bulk_write_to_db\(\) changes nothing"):
        dag.bulk_write_to_db([dag])
    with pytest.raises(NotYetSupported, match=r"DAG.clear_dags\(\) needs Airflow's database"):
        their_class.clear_dags([dag])


def test_tags_that_were_set_to_none_later() -> None:
    """dag-factory sets dag.tags to what its file says, which may be nothing."""
    dag: Any = DAG("d", schedule=None, tags=["a"])
    dag.tags = None
    assert to_definition(dag, "d.py", DefinitionDefaults()).tags == ()
