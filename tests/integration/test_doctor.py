"""`tradewind doctor` loads files in child processes, and `--fix` changes no meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tradewind.cli.main import cli
from tradewind.model.errors import NotFound

OLD = """
from datetime import datetime
from airflow import DAG
from airflow.operators.dummy_operator import DummyOperator

dag = DAG("old", start_date=datetime(2020, 1, 1), schedule_interval="0 6 * * *", concurrency=2)
DummyOperator(task_id="a", dag=dag)
"""
# the two classes are different to the file: a fix would change which task it defines
STUBBORN = """
from datetime import datetime
from airflow import DAG
from airflow.operators.dummy_operator import DummyOperator

with DAG("stubborn", start_date=datetime(2020, 1, 1)):
    DummyOperator(task_id="DummyOperator" if "DummyOperator" in globals() else "other")
"""
BROKEN = "from airflow import DAG\nfrom nowhere import nothing\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    found = tmp_path / "files"
    found.mkdir()
    (found / "old.py").write_text(OLD)
    return found


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *arguments], standalone_mode=False)


def test_a_folder_is_examined_without_a_change(folder: Path) -> None:
    (folder / "broken.py").write_text(BROKEN)
    done = doctor(str(folder), "-o", "json")
    assert done.return_value == 1, done.output
    rows = {row["file"]: row for row in json.loads(done.stdout)}
    assert (rows["broken.py"]["verdict"], rows["old.py"]["verdict"]) == ("cannot load", "loads with notes")
    assert rows["old.py"]["dags"] == ["old"]
    shown = doctor(str(folder))
    assert shown.stdout.startswith("2 DAG files: 0 load, 1 load with notes, 1 cannot load")
    assert "broken.py:2: ModuleNotFoundError: No module named 'nowhere'" in shown.stdout
    assert (folder / "old.py").read_text() == OLD


def test_fix_asks_first(folder: Path) -> None:
    done = doctor(str(folder), "--fix")
    assert done.return_value == 1
    assert "+from airflow.providers.standard.operators.empty import EmptyOperator" in done.stdout
    assert "confirm with --yes" in done.stderr
    assert (folder / "old.py").read_text() == OLD


def test_fix_keeps_the_mode_and_restores_files_whose_dags_would_change(folder: Path) -> None:
    (folder / "old.py").chmod(0o640)
    (folder / "stubborn.py").write_text(STUBBORN)
    done = doctor(str(folder), "--fix", "--yes")
    assert done.return_value == 1, done.output
    assert "stubborn.py was restored: its DAGs would have changed" in done.stderr
    assert "1 file written." in done.stdout
    assert (folder / "stubborn.py").read_text() == STUBBORN
    assert "EmptyOperator(task_id" in (folder / "old.py").read_text()
    assert (folder / "old.py").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["old.py", "stubborn.py"]
    (folder / "stubborn.py").unlink()
    again = doctor(str(folder), "--fix", "--yes")
    assert (again.return_value, again.stdout) == (0, "There is nothing to fix.\n")


def test_a_requirements_file_is_examined(folder: Path) -> None:
    path = folder / "requirements.txt"
    path.write_text("apache-airflow==2.9.3\napache-airflow-providers-http\n")
    done = doctor(str(path))
    assert done.return_value == 0, done.output
    assert f"tradewind providers install -r {path}" in done.stdout
    assert "2.9.3" in done.stdout


def test_a_folder_without_dag_files_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    (tmp_path / "empty").mkdir()
    done = doctor(str(tmp_path / "empty"))
    assert isinstance(done.exception, NotFound)
    assert "there is no DAG file" in str(done.exception)


READS_THE_DATABASE = """
from datetime import datetime
from airflow import DAG, settings
from airflow.models import Connection, Variable

known = settings.Session().query(Connection.conn_id).filter(Connection.conn_id.ilike("%erp%")).all()
Variable.set("seen", len(known))
dag = DAG("reads", start_date=datetime(2020, 1, 1), tags=[Variable.get("owner", "nobody"), Variable.get("seen")])
"""


def test_before_the_first_start_the_database_counts_as_empty(folder: Path) -> None:
    (folder / "reads.py").write_text(READS_THE_DATABASE)
    (row,) = json.loads(doctor(str(folder / "reads.py"), "-o", "json").stdout)
    assert (row["verdict"], row["dags"]) == ("loads with notes", ["reads"])
    assert any(note["text"].startswith("change of variable seen at the top level: nothing is stored") for note in row["notes"])


def test_a_module_beside_the_folder_is_found(folder: Path) -> None:
    """Projects have dags/, plugins/ and their own packages side by side."""
    project = folder.parent
    (project / "plugins" / "team_plugin").mkdir(parents=True)
    (project / "src" / "team_package").mkdir(parents=True)
    (folder / "one.py").write_text("from airflow import DAG\nfrom team_plugin.operators import Load\n")
    (folder / "two.py").write_text("from airflow import DAG\nfrom team_package.operators import Load\n")
    shown = " ".join(doctor(str(folder)).stdout.split())
    assert f"Set TRADEWIND__CORE__PLUGINS_FOLDER={project.resolve() / 'plugins'}" in shown
    assert f"Add PYTHONPATH={project.resolve() / 'src'} to the environment of Tradewind" in shown


def test_a_provider_package_that_a_plugin_needs_is_listed(folder: Path) -> None:
    plugins = folder.parent / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "team.py").write_text("import airflow.providers.sendgrid.utils.emailer\n")
    (folder / "one.py").write_text("from airflow import DAG\nfrom team import Load\n")
    shown = doctor(str(folder)).stdout
    assert "Install them: tradewind providers install sendgrid" in shown
    assert shown.count("tradewind providers install sendgrid") == 2  # the error is not cut
