"""`from airflow import DAG` costs at most 1.5 times as much as `from tradewind import DAG`, and so do files that import it.

Both are measured alternately in one run. The smallest of several values counts, because other processes only add to it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tradewind.parser.base_image import MANY_FILES
from tradewind.parser.config import ParserConfig
from tradewind.parser.parse_once import parse_folder

LIMIT = 1.5
ROUNDS = 7
TEXT = """
from {module} import DAG
from {operators} import PythonOperator

with DAG("d{number}", schedule=None):
    tasks = [PythonOperator(task_id=f"t{{i}}", python_callable=print) for i in range(10)]
    for before, after in zip(tasks, tasks[1:]):
        before >> after
"""
KINDS = {"tradewind": "tradewind.operators.python", "airflow": "airflow.operators.python"}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of the child processes of this work, and of their children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def process(code: str) -> float:
    """CPU time of a new Python process that executes this code."""
    return cpu_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, timeout=120))


def test_the_import_of_airflow_costs_little_more_than_that_of_tradewind() -> None:
    ours, theirs = "from tradewind import DAG", "import tradewind.airflow\nfrom airflow import DAG"
    measured = [(process(ours), process(theirs)) for _ in range(ROUNDS)]
    tradewind, airflow = (min(times) for times in zip(*measured, strict=True))
    assert airflow <= LIMIT * tradewind, f"{airflow * 1000:.0f} ms, with tradewind {tradewind * 1000:.0f} ms: {measured}"


def parse_all(folder: Path) -> None:
    """Have the parser's child processes read all files of a folder."""
    outcomes = parse_folder(ParserConfig(str(folder)))
    assert [outcome.problem for outcome in outcomes if outcome.problem] == []


def test_of_many_files_only_the_first_import_what_some_files_need(tmp_path: Path) -> None:
    """jsonschema, which checks params, takes longer than the rest of a small file."""
    text = """
import sys
from airflow.sdk import DAG, Param

word = "ready" if "jsonschema" in sys.modules else "imports"
with DAG(f"d{number}_{word}", schedule=None, params={"n": Param(1, type="integer")}):
    pass
"""
    for number in range(MANY_FILES + 2):
        (tmp_path / f"f{number}.py").write_text(text.replace("{number}", str(number)))
    outcomes = parse_folder(ParserConfig(str(tmp_path)))
    kinds = [dag.dag_id.partition("_")[2] for outcome in outcomes for dag in outcome.dags]
    assert (kinds.count("imports"), kinds.count("ready")) == (MANY_FILES - 1, 3)


def test_the_parse_of_airflow_files_takes_little_longer_than_that_of_tradewind_files(tmp_path: Path) -> None:
    for module, operators in KINDS.items():
        (tmp_path / module).mkdir()
        for number in range(50):
            text = TEXT.format(module=module, operators=operators, number=number)
            (tmp_path / module / f"f{number}.py").write_text(text)
    measured = [tuple(cpu_seconds(partial(parse_all, tmp_path / kind)) for kind in KINDS) for _ in range(3)]
    tradewind, airflow = (min(times) for times in zip(*measured, strict=True))
    assert airflow <= LIMIT * tradewind, f"{airflow:.2f} s, with tradewind {tradewind:.2f} s: {measured}"
