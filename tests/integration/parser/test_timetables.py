"""Custom timetables in real child processes: their answers and their failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.parser.running_parser import DEADLINE_SECONDS, RunningParser, dag_text
from tradewind.model.definition import CustomSchedule, decode_definition, encode_schedule
from tradewind.model.moments import DAY, iso, parse_moment
from tradewind.model.partitions import Custom, KeyFacts, MappedKey
from tradewind.parser.config import ParserConfig
from tradewind.parser.parse_once import ask_once, parse_once
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

WORKDAYS = '''
from datetime import timedelta
import pendulum
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from tradewind.timetables.base import DagRunInfo, DataInterval, Timetable


class Workdays(Timetable):
    """Runs from Monday to Friday at a fixed hour."""

    def __init__(self, hour, breaks=""):
        self.hour, self.breaks = hour, breaks

    def serialize(self):
        return {"hour": self.hour, "breaks": self.breaks}

    @classmethod
    def deserialize(cls, data):
        return cls(**data)

    @property
    def summary(self):
        return f"workdays at {self.hour}"

    def infer_manual_data_interval(self, *, run_after):
        start = run_after.start_of("day")
        return DataInterval(start, start.add(days=1))

    def next_dagrun_info(self, *, last_automated_data_interval, restriction):
        exec(self.breaks)
        if last_automated_data_interval is not None:
            start = last_automated_data_interval.start.add(days=1)
        elif restriction.earliest is None:
            return None
        else:
            start = restriction.earliest.start_of("day").add(hours=self.hour)
        while start.weekday() > 4:
            start = start.add(days=1)
        if restriction.latest is not None and start > restriction.latest:
            return None
        return DagRunInfo.interval(start, start.add(days=1))


with DAG("d", schedule=Workdays(HOUR, BREAKS), start_date=pendulum.datetime(2026, 1, 1)):
    EmptyOperator(task_id="a")
'''


def written(folder: Path, hour: int = 6, breaks: str = "") -> None:
    (folder / "d.py").write_text(WORKDAYS.replace("HOUR", str(hour)).replace("BREAKS", repr(breaks)))


def schedule_in(folder: Path) -> CustomSchedule:
    outcome = parse_once(str(folder / "d.py"))
    assert outcome.problem is None, outcome.problem
    definition = decode_definition(outcome.dags[0].definition)
    assert isinstance(definition.schedule, CustomSchedule)
    return definition.schedule


def ask(folder: Path, schedule: CustomSchedule, timeout: int = int(DEADLINE_SECONDS * 1e6), **more: object) -> TimetableAnswer:
    question = TimetableQuestion(3, "d", "dags-folder", "d.py", encode_schedule(schedule), **more)  # type: ignore[arg-type]
    return ask_once(ParserConfig(str(folder), timeout=timeout), question)


def test_a_timetable_in_the_dag_file_is_stored_and_called(tmp_path: Path) -> None:
    written(tmp_path)
    schedule = schedule_in(tmp_path)
    assert (schedule.module, schedule.name, schedule.data) == ("", "Workdays", b'{"breaks": "", "hour": 6}')
    friday = parse_moment("2026-01-02T00:00Z")
    answer = ask(tmp_path, schedule, earliest=friday, catchup=True)
    assert answer.problem is None
    assert answer.run is not None
    assert [iso(moment) for moment in answer.run[:4]] == [f"2026-01-0{day}T06:00:00Z" for day in (2, 2, 3, 3)]
    assert answer.run[4:] == (None, None, None), "the schedule has no partitions"
    following = ask(tmp_path, schedule, last=answer.run[:4], earliest=friday, catchup=True)
    assert following.run is not None
    assert iso(following.run[0]) == "2026-01-05T06:00:00Z"
    assert ask(tmp_path, schedule, last=answer.run[:4], latest=friday + DAY) == TimetableAnswer(3)
    manual = ask(tmp_path, schedule, manual_at=friday + DAY // 3)
    assert manual.interval == (friday, friday + DAY)


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("raise ValueError('no holidays known')", "ValueError: no holidays known"),
        ("import os; os._exit(3)", "calling it ended the process: os._exit(3)"),
        ("raise SystemExit(4)", "calling it called sys.exit(4)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "calling it ended the process: SIGKILL"),
        ("bytearray(1 << 40)", "calling it needs more than 2048 MiB"),
    ],
)
def test_a_failing_timetable_harms_only_its_child_process(tmp_path: Path, breaks: str, says: str) -> None:
    written(tmp_path, breaks=breaks)
    answer = ask(tmp_path, schedule_in(tmp_path), earliest=0)
    assert answer.run is None
    assert says in (answer.problem or "")


def test_a_timetable_that_hangs_is_stopped(tmp_path: Path) -> None:
    written(tmp_path, breaks="while True: pass")
    answer = ask(tmp_path, schedule_in(tmp_path), timeout=2_000_000, earliest=0)
    assert "calling it took longer than 2 s (setting parser.timeout)" in (answer.problem or "")


def test_many_hanging_timetables_do_not_block_dag_files(tmp_path: Path) -> None:
    written(tmp_path, breaks="while True: pass")
    schedule = schedule_in(tmp_path)
    running = RunningParser(tmp_path, timeout=3_000_000, processes=2)
    received: list[TimetableAnswer] = []
    for number in range(2):
        question = TimetableQuestion(number, "d", "dags-folder", "d.py", encode_schedule(schedule), earliest=0)
        running.children.ask(question, received.append)
    running.write("other.py", dag_text("other"))
    try:
        running.children.start()
        running.service.on_scheduler_connected()
        running.until(lambda: "other" in running.store.dags())
        assert received == [], "both still hang"
        running.until(lambda: len(received) == 2)
        assert all("took longer than 3 s" in (one.problem or "") for one in received)
    finally:
        running.close()


def test_a_timetable_sees_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND__SECRETS__FERNET_KEY", "s3cret")
    written(tmp_path, breaks="import os; raise ValueError(sorted(k for k, v in os.environ.items() if 's3cret' in v))")
    assert "ValueError: []" in (ask(tmp_path, schedule_in(tmp_path), earliest=0).problem or "")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Gone", "d.py does not contain the class Gone any more"),
        ("EmptyOperator", "is not a subclass of Timetable any more"),
    ],
)
def test_a_removed_timetable_class_is_named(tmp_path: Path, name: str, says: str) -> None:
    written(tmp_path)
    assert says in (ask(tmp_path, CustomSchedule("", name), earliest=0).problem or "")


def test_a_timetable_in_a_module_beside_the_dag_file(tmp_path: Path) -> None:
    text = WORKDAYS.replace("HOUR", "6").replace("BREAKS", "''")
    head, _, tail = text.partition("\n\nwith DAG")
    (tmp_path / "our_calendars.py").write_text(head)
    (tmp_path / "d.py").write_text(
        "import pendulum\nfrom tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\n"
        "from our_calendars import Workdays\nwith DAG" + tail
    )
    schedule = schedule_in(tmp_path)
    assert (schedule.module, schedule.name) == ("our_calendars", "Workdays")
    assert ask(tmp_path, schedule, earliest=parse_moment("2026-01-02")).run is not None


MAPPERS = """
from airflow.sdk import DAG, Asset, FixedKeyMapper, PartitionedAssetTimetable, RollupMapper
from airflow.partition_mappers.base import PartitionMapper
from airflow.partition_mappers.window import Window


class Upper(PartitionMapper):
    def to_downstream(self, key):
        if key == "exit":
            raise SystemExit(3)
        return key.upper()


class Two(Window):
    def to_upstream(self, decoded_downstream):
        return ["eu", "us"]


MAPPER = {"upper": Upper(), "two": RollupMapper(upstream_mapper=FixedKeyMapper("both"), window=Two())}["WHICH"]
with DAG("d", schedule=PartitionedAssetTimetable(assets=Asset("a"), default_partition_mapper=MAPPER)):
    pass
"""


@pytest.mark.parametrize(
    ("which", "key", "targets"),
    [("upper", "eu", (("EU", KeyFacts()),)), ("two", "eu", (("both", KeyFacts(("eu", "us"), 2)),))],
)
def test_a_partition_mapper_in_the_dag_file_is_stored_and_called(tmp_path: Path, which: str, key: str, targets: Any) -> None:
    (tmp_path / "d.py").write_text(MAPPERS.replace("WHICH", which))
    outcome = parse_once(str(tmp_path / "d.py"))
    assert outcome.problem is None, outcome.problem
    assets = decode_definition(outcome.dags[0].definition).assets
    assert assets is not None
    assert assets.partitions is not None
    assert isinstance(assets.partitions.default, Custom)
    question = TimetableQuestion(3, "d", "dags-folder", "d.py", b"", mapper=assets.partitions.default.spec, keys=((key, None),))
    answer = ask_once(ParserConfig(str(tmp_path), timeout=int(DEADLINE_SECONDS * 1e6)), question)
    assert answer == TimetableAnswer(3, mapped=(MappedKey(targets),))


def test_a_partition_mapper_that_ends_its_process_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "d.py").write_text(MAPPERS.replace("WHICH", "upper"))
    assets = decode_definition(parse_once(str(tmp_path / "d.py")).dags[0].definition).assets
    assert assets is not None
    assert assets.partitions is not None
    assert isinstance(assets.partitions.default, Custom)
    question = TimetableQuestion(
        3, "d", "dags-folder", "d.py", b"", mapper=assets.partitions.default.spec, keys=(("exit", None),)
    )
    answer = ask_once(ParserConfig(str(tmp_path), timeout=int(DEADLINE_SECONDS * 1e6)), question)
    assert answer.problem is not None
    assert answer.mapped == ()
