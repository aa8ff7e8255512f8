"""Which module a DAG file imports if a file or folder beside it has the same name, and what its environment has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOAD = """
import sys
from tradewind.sdk.load import load_file
print(*load_file(sys.argv[1], sys.argv[2], analyse=False).dags)
"""
"""In a process of its own, because loading a file changes sys.path and sys.modules."""


def load(folder: Path, file: str, source: str) -> str:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    done = subprocess.run([sys.executable, "-c", LOAD, str(folder), file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_dag_file_named_like_a_module_does_not_hide_it(tmp_path: Path) -> None:
    source = "import wave\nfrom airflow import DAG\n\ndag = DAG(wave.open.__name__)\n"
    assert load(tmp_path, "wave.py", source) == "open"
    assert load(tmp_path, "sound/wave.py", source) == "open"


def test_a_folder_of_dag_files_named_like_a_package_does_not_hide_it(tmp_path: Path) -> None:
    (tmp_path / "xmlrpc").mkdir()
    (tmp_path / "xmlrpc" / "__init__.py").touch()
    source = "import xmlrpc.client\nfrom airflow import DAG\n\ndag = DAG(xmlrpc.client.ServerProxy.__name__)\n"
    assert load(tmp_path, "xmlrpc/first.py", source) == "ServerProxy"


def test_the_dag_folder_comes_before_the_folder_of_the_file(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "team"):
        place.mkdir(exist_ok=True)
        (place / "shared_names.py").write_text(f"NAME = {place.name!r}\n")
    (tmp_path / "team" / "own_names.py").write_text("NAME = 'own'\n")
    source = "import own_names, shared_names\nfrom airflow import DAG\n\ndag = DAG(own_names.NAME + '.' + shared_names.NAME)\n"
    assert load(tmp_path, "team/first.py", source) == f"own.{tmp_path.name}"


PROJECT = "from include.names import NAME\nfrom dags.helper import HELP\nfrom airflow import DAG\n\ndag = DAG(NAME + HELP)\n"


def make_project(folder: Path) -> Path:
    """A project with `include/` beside `dags/`; returns the DAG folder."""
    for file, text in {"include/names.py": "NAME = 'of_the_project'\n", "dags/helper.py": "HELP = '_and_its_dags'\n"}.items():
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(text)
    return folder / "dags"


def test_packages_beside_the_dag_folder_can_be_imported(tmp_path: Path) -> None:
    assert load(make_project(tmp_path), "first.py", PROJECT) == "of_the_project_and_its_dags"


def test_a_package_beside_the_dag_folder_does_not_hide_a_module(tmp_path: Path) -> None:
    (tmp_path / "wave.py").write_text("")
    source = "import wave\nfrom airflow import DAG\n\ndag = DAG(wave.open.__name__)\n"
    assert load(tmp_path / "dags", "first.py", source) == "open"


def test_a_folder_where_everybody_may_write_is_no_project(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(AssertionError, match="No module named 'include'"):
        load(make_project(tmp_path), "first.py", PROJECT)


def test_airflow_home_is_set_for_dag_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import os\nfrom airflow import DAG\n\ndag = DAG(os.path.basename(os.environ['AIRFLOW_HOME']))\n"
    monkeypatch.setenv("TRADEWIND_HOME", "/srv/our_home")
    monkeypatch.delenv("AIRFLOW_HOME", raising=False)
    assert load(tmp_path, "first.py", source) == "our_home"
    monkeypatch.setenv("AIRFLOW_HOME", "/opt/airflow")
    assert load(tmp_path, "first.py", source) == "airflow"
