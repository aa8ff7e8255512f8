"""What only Airflow 3 has: retry policies, weight strategies, and names whose behaviour comes later."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out
from tradewind import DAG
from tradewind.model.definition import DefinitionDefaults, NoSchedule
from tradewind.model.errors import DefinitionError
from tradewind.model.partitions import PartitionRules, Rollup, StartOf, TimeWindow
from tradewind.model.states import Outcome, WeightRule
from tradewind.sdk.definition import to_definition
from tradewind.sdk.load import load_file
from tradewind.sdk.operator import BaseOperator

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryDecision, RetryPolicy, RetryRule  # isort: skip
from airflow.task.priority_strategy import PriorityWeightStrategy  # isort: skip


class Fails(BaseOperator):
    def execute(self, context: Any) -> None:
        raise ValueError("bad value")


def attempt(policy: Any) -> Any:
    with DAG("d", schedule=None):
        task = Fails(task_id="t", retries=3, retry_policy=policy)
    return carry_out(task)


RULES = {
    "fail": RetryRule(exception=ValueError, action=RetryAction.FAIL),
    "soon": RetryRule(exception="builtins.ValueError", action=RetryAction.RETRY, retry_delay=timedelta(seconds=7)),
    "other": RetryRule(exception=KeyError, action=RetryAction.FAIL),
}


@pytest.mark.parametrize(
    ("rule", "outcome", "delay"),
    [("fail", Outcome.FAILED_FINAL, None), ("soon", Outcome.FAILED, 7_000_000), ("other", Outcome.FAILED, None)],
)
def test_a_retry_policy_decides_by_the_exception(world: World, rule: str, outcome: Outcome, delay: int | None) -> None:
    result = attempt(ExceptionRetryPolicy(rules=[RULES[rule]]))
    assert (result.outcome, result.retry_delay) == (outcome, delay)


def test_a_policy_that_fails_decides_nothing(world: World) -> None:
    class Broken(RetryPolicy):
        def evaluate(self, *args: Any, **kwargs: Any) -> RetryDecision:
            raise RuntimeError("broken")

    result = attempt(Broken())
    assert (result.outcome, result.retry_delay) == (Outcome.FAILED, None)


class ByName(PriorityWeightStrategy):
    def get_weight(self, ti: Any) -> int:
        return len(ti.task_id) + int(ti.priority_weight) + int(ti.try_number)


def test_a_weight_strategy_is_asked_when_the_file_is_read() -> None:
    with DAG("d", schedule=None) as dag:
        Fails(task_id="abc", priority_weight=10, weight_rule=ByName())
    found = to_definition(dag, "f.py", DefinitionDefaults())
    assert (found.tasks[0].weight_rule, found.tasks[0].priority_weight) == (WeightRule.ABSOLUTE, 14)
    assert any("weight_rule of task abc" in warning for warning in found.warnings)


def test_a_weight_strategy_that_fails_is_an_error_of_its_task() -> None:
    class Broken(ByName):
        def get_weight(self, ti: Any) -> int:
            raise RuntimeError("broken")

    with DAG("d", schedule=None) as dag:
        Fails(task_id="abc", weight_rule=Broken)  # type: ignore[arg-type]  # a class instead of an object
    with pytest.raises(DefinitionError, match=r"task 'abc': the weight strategy Broken failed.*broken"):
        to_definition(dag, "f.py", DefinitionDefaults())


SOURCE = """
from airflow.sdk import DAG, Asset, AssetWatcher, AssetAccessControl, RollupMapper, StartOfDayMapper, DayWindow, WaitForAll
from airflow.partition_mappers.temporal import ToDailyMapper
from airflow.sdk import ToHourlyMapper
from airflow.sdk import CronPartitionTimetable, PartitionedAssetTimetable, PartitionedAtRuntime, NEVER_EXPIRE, macros, result
from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLEntryOperator, HITLOperator
from airflow.providers.standard.triggers.file import DirectoryFileDeleteTrigger

watched = Asset("a", watchers=[AssetWatcher(name="w", trigger=DirectoryFileDeleteTrigger(directory="/tmp", filename="x"))])
assert ToDailyMapper is StartOfDayMapper
mapper = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow(), wait_policy=WaitForAll())

with DAG("watched", schedule=[watched]):
    ApprovalOperator(task_id="approve", subject="Go on?") >> HITLOperator(task_id="ask", subject="Which?", options=["x", "y"])
    HITLBranchOperator(task_id="branch", subject="Where?", options=["x", "y"], options_mapping={"x": "approve"})
    HITLEntryOperator(task_id="enter", subject="What?", params={"name": ""})
with DAG("cron", schedule=CronPartitionTimetable("0 6 * * *", timezone="UTC")):
    pass
with DAG("assets", schedule=PartitionedAssetTimetable(assets=Asset("b"), default_partition_mapper=mapper)):
    pass
with DAG("runtime", schedule=PartitionedAtRuntime()):
    pass
"""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_with_later_features_load(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(SOURCE)
    loaded = load_file(str(tmp_path), "later.py", analyse=False)
    found = {name: to_definition(dag, "later.py", DefinitionDefaults()) for name, dag in loaded.dags.items()}
    assert found.keys() == {"watched", "cron", "assets", "runtime"}
    assert found["cron"].schedule_summary is not None
    assert found["assets"].assets is not None
    daily = StartOf("day", "UTC", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d")
    assert found["assets"].assets.partitions == PartitionRules(Rollup(daily, TimeWindow("day")))
    assert found["runtime"].schedule == NoSchedule(partitioned_at_runtime=True)


def test_questions_to_people_are_checked() -> None:
    from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLBranchOperator, HITLOperator

    with DAG("d", schedule=None):
        with pytest.raises(DefinitionError, match="cannot be empty"):
            HITLOperator(task_id="a", subject="?", options=[])
        with pytest.raises(DefinitionError, match="should be a subset of options"):
            HITLOperator(task_id="b", subject="?", options=["x"], defaults=["y"])
        with pytest.raises(DefinitionError, match="More than one defaults"):
            HITLOperator(task_id="c", subject="?", options=["x", "y"], defaults=["x", "y"])
        with pytest.raises(DefinitionError, match="Passing options to ApprovalOperator"):
            ApprovalOperator(task_id="d", subject="?", options=["x"])
        with pytest.raises(DefinitionError, match="options_mapping"):
            HITLBranchOperator(task_id="e", subject="?", options=["x"], options_mapping={"y": "a"})


def test_the_name_of_a_timetable_in_pre_releases() -> None:
    from airflow.sdk import PartitionAtRuntime, PartitionedAtRuntime

    assert PartitionAtRuntime is PartitionedAtRuntime
