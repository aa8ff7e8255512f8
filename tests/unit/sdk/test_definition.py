"""The definition of a DAG."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    DagDefinition,
    DefinitionDefaults,
    DeltaSchedule,
    GroupDefinition,
    NoSchedule,
    ParamDefinition,
    TaskDefinition,
    decode_definition,
    encode_definition,
)
from tradewind.model.errors import Conflict, CycleError, DefinitionError, ScheduleError
from tradewind.model.moments import DAY, HOUR, MINUTE, SECOND, to_micros
from tradewind.model.states import TriggerRule, WeightRule
from tradewind.scheduler.runs.params import check_conf
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.dependencies import Label
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.params import Param
from tradewind.sdk.taskgroup import TaskGroup


def define(dag: DAG, **defaults: Any) -> DagDefinition:
    return to_definition(dag, "folder/file.py", DefinitionDefaults(**defaults))


def task_of(**arguments: Any) -> TaskDefinition:
    with DAG("d") as dag:
        BaseOperator("t", **arguments)
    return define(dag).tasks[0]


class Nothing(BaseOperator):
    inherits_from_empty_operator = True

    def execute(self, context: Any) -> None: ...


class Something(Nothing):
    def execute(self, context: Any) -> None: ...


class TestTasks:
    def test_every_argument_is_in_the_definition(self) -> None:
        arguments: dict[str, Any] = {
            "retries": 3,
            "retry_delay": timedelta(seconds=5),
            "retry_exponential_backoff": True,
            "max_retry_delay": 60,
            "execution_timeout": timedelta(minutes=1),
            "depends_on_past": True,
            "ignore_first_depends_on_past": True,
            "wait_for_past_depends_before_skipping": True,
            "wait_for_downstream": True,
            "priority_weight": 7,
            "weight_rule": "upstream",
            "queue": "q",
            "pool": "p",
            "pool_slots": 2,
            "trigger_rule": "one_failed",
            "max_active_tis_per_dag": 4,
            "max_active_tis_per_dagrun": 5,
            "do_xcom_push": False,
            "owner": "me",
            "executor": "LocalExecutor",
            "run_as_user": pwd.getpwuid(os.getuid()).pw_name,
            "params": {"x": 1},
            "doc_md": "# Doc",
            "task_display_name": "A task",
        }
        expected = {
            **arguments,
            "retry_delay": 5 * SECOND,
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": MINUTE,
            "execution_timeout": MINUTE,
            "weight_rule": WeightRule.UPSTREAM,
            "trigger_rule": TriggerRule.ONE_FAILED,
            "doc": "# Doc",
            "display_name": "A task",
        }
        del expected["doc_md"], expected["task_display_name"]
        found = task_of(**arguments)
        assert {name: getattr(found, name) for name in expected} == expected

    def test_settings_replace_missing_arguments(self) -> None:
        with DAG("d") as dag:
            BaseOperator("open")
            BaseOperator("said", retries=0, retry_delay=timedelta(0))
        found = define(dag, retries=4, retry_delay=SECOND, max_active_tasks=2, max_active_runs=3, catchup=False)
        assert [(t.retries, t.retry_delay) for t in found.tasks] == [(4, SECOND), (0, 0)]
        assert (found.max_active_tasks, found.max_active_runs) == (2, 3)

    def test_attributes_that_are_set_later_are_used(self) -> None:
        with DAG("d") as dag:
            task = BaseOperator("t")
            task.trigger_rule = "all_done"  # type: ignore[assignment]
            task.retries = 6
        (found,) = define(dag).tasks
        assert (found.trigger_rule, found.retries) == (TriggerRule.ALL_DONE, 6)

    def test_a_wrong_attribute_that_is_set_later_is_an_error(self) -> None:
        with DAG("d") as dag:
            BaseOperator("t").trigger_rule = "all_dne"  # type: ignore[assignment]
        with pytest.raises(DefinitionError, match=r"DAG 'd' .*task 't': .*Did you mean 'all_done'"):
            define(dag)

    def test_operators_without_code_are_marked_as_empty(self) -> None:
        with DAG("d") as dag:
            Nothing("nothing")
            Something("something")
            Nothing("hooked", pre_execute=lambda context: None)
            BaseOperator("task")
        assert {t.task_id: t.empty for t in define(dag).tasks} == {
            "nothing": True,
            "something": False,
            "hooked": False,
            "task": False,
        }

    def test_dependencies_groups_and_labels(self) -> None:
        with DAG("d") as dag:
            with TaskGroup("g", tooltip="tip", group_display_name="G"):
                with TaskGroup("h"):
                    a = BaseOperator("a")
                b = BaseOperator("b")
            c = BaseOperator("c")
            b >> Label("x") >> c
            a >> c
        found = define(dag)
        assert found.groups == (
            GroupDefinition("g", tooltip="tip", display_name="G"),
            GroupDefinition("g.h", "g"),
        )
        assert [(t.task_id, t.group, t.upstream) for t in found.tasks] == [
            ("g.h.a", "g.h", ()),
            ("g.b", "g", ()),
            ("c", None, ("g.b", "g.h.a")),
        ]
        assert found.edge_labels == (("g.b", "c", "x"), ("g.h.a", "c", "x"))

    def test_references_to_other_dags(self) -> None:
        class Waits(BaseOperator):
            def __init__(self, *, external_dag_id: str, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.external_dag_id = external_dag_id

        with DAG("d") as dag:
            Waits(task_id="a", external_dag_id="upstream_dag")
            Waits(task_id="b", external_dag_id="{{ params.x }}")
        assert [t.waits_for for t in define(dag).tasks] == [("upstream_dag",), ()]


class TestDates:
    START = datetime(2024, 1, 1, tzinfo=UTC)

    def test_dates_from_default_args(self) -> None:
        with DAG("d", default_args={"start_date": self.START, "end_date": self.START + timedelta(9)}) as dag:
            BaseOperator("a")
            BaseOperator("b", start_date=self.START + timedelta(1))
        found = define(dag)
        assert found.start_date == to_micros(self.START)
        assert found.end_date == to_micros(self.START) + 9 * DAY
        assert [t.start_date for t in found.tasks] == [None, to_micros(self.START) + DAY]

    def test_a_task_does_not_start_before_its_dag(self) -> None:
        with DAG("d", start_date=self.START) as dag:
            BaseOperator("a", start_date=self.START - timedelta(1))
            BaseOperator("b", end_date=self.START + timedelta(1))
        found = define(dag)
        assert found.start_date == to_micros(self.START)
        assert found.tasks[0].start_date is None
        assert (found.end_date, found.tasks[1].end_date) == (None, to_micros(self.START) + DAY)

    @pytest.mark.spec("S21")
    def test_dates_without_a_zone_are_in_the_configured_one(self) -> None:
        dag = DAG("d", start_date=datetime(2024, 7, 1), schedule="0 6 * * *")  # noqa: DTZ001 (what authors write)
        found = define(dag, timezone="Europe/Paris")
        assert found.start_date == to_micros(datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Paris")))
        assert found.timezone == "Europe/Paris"
        assert isinstance(found.schedule, CronSchedule)
        assert found.schedule.timezone == "Europe/Paris"

    def test_the_time_zone_of_the_dag_wins(self) -> None:
        dag = DAG("d", start_date=datetime(2024, 7, 1, tzinfo=ZoneInfo("Asia/Tokyo")), schedule="@daily")
        found = define(dag, timezone="Europe/Paris")
        assert found.timezone == "Asia/Tokyo"
        assert isinstance(found.schedule, CronSchedule)
        assert found.schedule.timezone == "Asia/Tokyo"


class TestSchedules:
    def test_schedules_mean_intervals_with_airflow2(self) -> None:
        dag = DAG("d", schedule="@daily")
        new, old = define(dag).schedule, define(dag, schedule_meaning="airflow2").schedule
        assert isinstance(new, CronSchedule)
        assert isinstance(old, CronSchedule)
        assert (new.interval_kind, old.interval_kind) == ("trigger", "data")
        assert define(dag).schedule_summary == "@daily"
        assert dag.schedule_definition == new

    def test_a_dag_without_a_schedule_argument(self) -> None:
        assert define(DAG("d")).schedule == NoSchedule()
        assert define(DAG("d")).schedule_summary is None
        daily = define(DAG("d"), schedule_meaning="airflow2")
        assert isinstance(daily.schedule, DeltaSchedule)
        assert daily.schedule.delta.micros == 24 * HOUR
        assert define(DAG("d", schedule=None), schedule_meaning="airflow2").schedule == NoSchedule()

    def test_the_error_of_a_wrong_schedule_names_dag_and_line(self) -> None:
        with pytest.raises(ScheduleError, match=r"DAG 'd' \(.*test_definition.py:\d+\): .*99"):
            define(DAG("d", schedule="99 * * * *"))

    def test_catchup_needs_a_start_date(self) -> None:
        """Without one nothing is scheduled, as in Airflow, and the DAG says so."""
        for found in (define(DAG("d", schedule="@daily", catchup=True)), define(DAG("d", schedule="@daily"), catchup=True)):
            assert found.schedule == NoSchedule()
            assert any(text.startswith("start_date: neither the DAG nor a task has one") for text in found.warnings)
        assert define(DAG("d", schedule="@daily", catchup=False), catchup=True).catchup is False

    def test_continuous_runs_one_at_a_time(self) -> None:
        found = define(DAG("d", schedule="@continuous"))
        assert (found.schedule, found.max_active_runs) == (ContinuousSchedule(), 1)
        with pytest.raises(DefinitionError, match="must be 1, not 2"):
            define(DAG("d", schedule="@continuous", max_active_runs=2))


class TestParams:
    def test_params_keep_their_order(self) -> None:
        dag = DAG("d", params={"b": Param(1, "Bee", type="integer"), "a": Param(type="string")})
        assert define(dag).params == (
            ParamDefinition("b", True, 1, {"type": "integer"}, "Bee"),
            ParamDefinition("a", False, None, {"type": "string"}),
        )

    def test_a_default_may_ask_for_another_value(self) -> None:
        """As in Airflow: whoever triggers the DAG has to give a value that fits."""
        params = {"n": Param(None, type="integer")}
        found = define(DAG("d", params=params))
        assert found.params == (ParamDefinition("n", True, None, {"type": "integer"}),)
        check_conf(found, {"n": 1})
        with pytest.raises(Conflict, match="None is not of type integer"):
            check_conf(found, {})
        with pytest.raises(
            ParamValidationError, match=r"DAG 'd' .*parameter 'n': None is not of type integer .*has a schedule"
        ):
            define(DAG("d", schedule="@daily", params=params))

    def test_a_list_without_assets_is_no_schedule(self) -> None:
        with pytest.warns(UserWarning, match="contains no asset"):
            found = define(DAG("d", schedule=[]))
        assert (found.schedule, found.assets) == (NoSchedule(), None)

    def test_a_dag_with_a_schedule_needs_defaults_for_its_params(self) -> None:
        with pytest.raises(ParamValidationError, match=r"parameter 'n': no value .*has a schedule"):
            define(DAG("d", schedule="@daily", params={"n": Param(type="integer")}))


class TestCanonical:
    def test_encoding_and_decoding_gives_the_same_bytes(self) -> None:
        with DAG("d", schedule="@daily", tags=["b", "a"], params={"x": Param(1, minimum=0)}) as dag:
            BaseOperator("a", params={"p": [1]}) >> BaseOperator("b")
        found = define(dag)
        assert found.tags == ("a", "b")
        assert found.fileloc == "folder/file.py"
        assert decode_definition(encode_definition(found)) == found

    def test_other_processes_give_the_same_bytes(self) -> None:
        code = """
from tradewind import *
from tradewind.sdk.definition import to_definition
from tradewind.model.definition import DefinitionDefaults
from tradewind.model.definition import encode_definition, version_hash
with DAG("d", tags={"x", "y", "z"}, owner_links={"b": "https://b", "a": "https://a"}) as dag:
    tasks = [BaseOperator(f"t{n}", owner=f"o{n % 5}") for n in range(50)]
    set(tasks[:20]) >> BaseOperator("end")
    cross_downstream(set(tasks[20:30]), set(tasks[30:40]))
print(version_hash(encode_definition(to_definition(dag, "f.py", DefinitionDefaults()))))
"""
        hashes = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={"PYTHONHASHSEED": seed, "PATH": ""},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2", "3")
        }
        assert len(hashes) == 1

    def test_a_cycle_has_no_definition(self) -> None:
        with DAG("d") as dag:
            a, b = BaseOperator("a"), BaseOperator("b")
            a >> b >> a
        with pytest.raises(CycleError, match="a >> b >> a"):
            define(dag)


def test_the_meaning_of_schedules_may_differ_by_folder() -> None:
    defaults = DefinitionDefaults(meanings=(("legacy", "airflow2"), ("legacy/new", "airflow3")))
    kinds = {}
    for file in ("a.py", "legacy/a.py", "legacy/deep/a.py", "legacy/new/a.py", "legacy2/a.py"):
        schedule = to_definition(
            DAG("d", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC)), file, defaults
        ).schedule
        assert isinstance(schedule, CronSchedule)
        kinds[file] = schedule.interval_kind
    assert kinds == {
        "a.py": "trigger",
        "legacy/a.py": "data",
        "legacy/deep/a.py": "data",
        "legacy/new/a.py": "trigger",
        "legacy2/a.py": "trigger",
    }


def test_the_limit_over_all_runs_may_differ_by_folder() -> None:
    defaults = DefinitionDefaults(
        max_active_tasks_all_runs=9, max_active_tasks_of_folders=(("legacy", 16), ("legacy/new", None))
    )

    def limit(file: str, **given: Any) -> int | None:
        return to_definition(DAG("d", **given), file, defaults).max_active_tasks_all_runs

    found = {file: limit(file) for file in ("a.py", "legacy/a.py", "legacy/new/a.py")}
    assert found == {"a.py": 9, "legacy/a.py": 16, "legacy/new/a.py": None}
    assert limit("legacy/a.py", max_active_tasks_all_runs=2) == 2
