"""DAG files in zip archives of the DAG folder, as Airflow loads them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import tradewind.airflow  # noqa: F401  Airflow's names
from tradewind.doctor.examine import examine
from tradewind.parser.config import ParserConfig
from tradewind.parser.folder import scan_folder
from tradewind.parser.parse_once import dag_files, parse_once
from tradewind.parser.sources import Sources
from tradewind.platform.clock import SystemClock

FILES = {
    "etl.py": "from airflow import DAG\nfrom ours.names import NAME\nwith DAG(NAME, schedule=None) as dag:\n    pass\n",
    "more.py": "from airflow import DAG\nimport helper\nd = DAG(helper.name('more'))\n",
    "helper.py": "def name(text):\n    return text + '_of_zip'\n",
    "ours/__init__.py": "",
    "ours/names.py": "NAME = 'etl_of_zip'\n",
    "ours/dag_of_airflow.py": "raise AssertionError('only files at the root are DAG files')\n",
}


def archive(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return path


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text("from airflow import DAG\nd = DAG('plain')\n")
    archive(tmp_path / "packed.zip", FILES)
    archive(tmp_path / "data.zip", {"rows.csv": "dag,airflow\n"})
    (tmp_path / "broken.zip").write_bytes(b"dag airflow")
    return tmp_path


def test_an_archive_with_dags_is_one_dag_file(dags: Path) -> None:
    assert {"packed.zip", "data.zip", "broken.zip", "plain.py"} == set(scan_folder(str(dags)).files)
    assert dag_files(ParserConfig(str(dags))) == ["packed.zip", "plain.py"]


def test_the_files_at_its_root_are_dag_files_with_the_modules_beside_them(dags: Path) -> None:
    outcome = parse_once(str(dags / "packed.zip"))
    assert outcome.problem is None, outcome.problem
    assert sorted(dag.dag_id for dag in outcome.dags) == ["etl_of_zip", "more_of_zip"]


def test_an_error_names_the_file_in_the_archive(tmp_path: Path) -> None:
    archive(tmp_path / "wrong.zip", {"wrong.py": "from airflow import DAG\n\n1 / 0\n"})
    problem = parse_once(str(tmp_path / "wrong.zip")).problem
    assert problem is not None
    assert "ZeroDivisionError" in problem.message
    assert "wrong.zip/wrong.py" in problem.stack_trace


def test_a_changed_archive_is_read_again(dags: Path) -> None:
    sources = Sources(str(dags), "", SystemClock().wall)
    before = sources.fingerprint("packed.zip")
    archive(dags / "packed.zip", FILES)
    assert sources.fingerprint("packed.zip") == before, "written again with the same content"
    archive(dags / "packed.zip", {**FILES, "ours/names.py": "NAME = 'other'\n"})
    assert sources.fingerprint("packed.zip") != before


def test_an_ignore_file_excludes_an_archive(dags: Path) -> None:
    (dags / ".airflowignore").write_text("packed.zip\n")
    assert dag_files(ParserConfig(str(dags))) == ["plain.py"]


def test_the_doctor_reads_the_files_of_an_archive(dags: Path) -> None:
    (report,) = examine(ParserConfig(str(dags)), (), ["packed.zip"]).reports
    assert (report.verdict, report.dags and sorted(report.dags)) == ("loads", ["etl_of_zip", "more_of_zip"])


def test_a_dag_bag_reads_archives(dags: Path) -> None:
    from airflow.models import DagBag

    bag = DagBag(str(dags))
    assert bag.import_errors == {}
    assert set(bag.dags) == {"plain", "etl_of_zip", "more_of_zip"}
