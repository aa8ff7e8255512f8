"""A timetable of a plugin in a real deployment: it creates runs, fails alone, is repaired, and survives a restart."""

from __future__ import annotations

import os
import signal

from tests.acceptance.harness import Standalone

PLUGIN = """
from datetime import timedelta

from tradewind import AirflowPlugin
from tradewind.timetables.base import DagRunInfo, DataInterval, Timetable


class EverySecond(Timetable):
    def infer_manual_data_interval(self, *, run_after):
        return DataInterval(run_after - timedelta(hours=1), run_after)

    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        BREAKS
        if last_automated_data_interval is None:
            return DagRunInfo.exact(restriction.earliest)
        return DagRunInfo.exact(last_automated_data_interval.end + timedelta(seconds=1))


def shout(text):
    return text.upper()


class Ours(AirflowPlugin):
    name = "ours"
    timetables = [EverySecond]
    macros = [shout]
"""
DAG_FILE = """
from datetime import datetime

from tradewind import DAG
from tradewind.operators.bash import BashOperator
from calendars_of_ours import EverySecond

with DAG("ticking", schedule=EverySecond(), start_date=datetime(2026, 1, 1), catchup=True, is_paused_upon_creation=False):
    BashOperator(task_id="say", bash_command="echo {{ macros.ours.shout('hello') }}")
"""


def plugin(standalone: Standalone, breaks: str = "pass") -> None:
    folder = standalone.home / "plugins"
    folder.mkdir(exist_ok=True)
    draft = standalone.home / "draft.py"
    draft.write_text(PLUGIN.replace("BREAKS", breaks))
    draft.replace(folder / "calendars_of_ours.py")


def runs(standalone: Standalone) -> list[str]:
    with standalone.store() as store:
        return [row.run_id for row in store.runs_between("ticking", None, None) if row.run_type.value == "scheduled"]


def test_a_plugins_timetable_makes_runs_breaks_alone_and_survives(fresh: Standalone) -> None:
    plugin(fresh)
    fresh.write_dag("ticking.py", DAG_FILE)
    fresh.start()
    fresh.wait(lambda: len(runs(fresh)) >= 3, "three runs")
    first = runs(fresh)[0]
    assert first == "scheduled__2026-01-01T00:00:00+00:00"
    assert fresh.wait_run("ticking", first) == "success"
    log = next((fresh.home / "logs").rglob("say~*.log"))
    assert "HELLO" in log.read_text()
    by_hand = fresh.call("trigger", dag_id="ticking", run_id="by_hand", logical_date=1_800_000_000_000_000)
    assert by_hand["interval_start"] == 1_800_000_000_000_000 - 3_600_000_000
    with fresh.store() as store:
        assert '"ours"' in store.plugins()

    plugin(fresh, "raise ValueError('the moon is not known')")
    fresh.wait(lambda: "the moon is not known" in fresh.cli("dags", "list-import-errors", check=False), "the import error")
    why = fresh.call("why_dag", dag_id="ticking")
    assert any("the moon is not known" in blocker["sentence"] for blocker in why["blockers"])
    there = len(runs(fresh))
    plugin(fresh)
    fresh.wait(lambda: len(runs(fresh)) > there, "further runs, once it is mended")
    fresh.wait(lambda: "the moon" not in fresh.cli("dags", "list-import-errors", check=False), "no import error any more")

    scheduler = fresh.child("scheduler")
    assert scheduler is not None
    os.kill(scheduler, signal.SIGKILL)
    there = len(runs(fresh))
    fresh.wait(lambda: len(runs(fresh)) > there, "further runs after the scheduler's death")
    found = runs(fresh)
    assert len(set(found)) == len(found)
    assert found == sorted(found)
