"""Where user code imports from: the plugins folder, the project, and Airflow's names."""

from __future__ import annotations

import os
import stat
import sys

PLUGINS_FOLDER = "TRADEWIND__CORE__PLUGINS_FOLDER"
"""Environment variable with the path of the plugins folder."""


def serve_airflow_names() -> None:
    """Make `from airflow import …` import Tradewind's names in this process."""
    from tradewind.airflow.finder import activate  # lazy import: it has a higher rank, and provides the names of this package

    activate()


def tradewind_home() -> str:
    """The home folder of this process."""
    return os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")


def set_airflow_home() -> None:
    """Set `AIRFLOW_HOME` if it is not set: DAG files build paths with it, because the images of Airflow set it."""
    os.environ.setdefault("AIRFLOW_HOME", tradewind_home())


def plugins_folder() -> str:
    """The plugins folder of this process. The composition root sets the environment variable for the processes it starts."""
    found = os.environ.get(PLUGINS_FOLDER) or os.environ.get("AIRFLOW__CORE__PLUGINS_FOLDER")
    if found:
        return os.path.abspath(os.path.expanduser(found))
    return os.path.join(tradewind_home(), "plugins")


def project_folder(bundle: str) -> str:
    """The folder that holds a DAG folder. Projects have `include/` and `plugins/` beside `dags/`, and the images of Astronomer and
    many Docker files make the packages of this folder importable.
    """
    return os.path.dirname(os.path.abspath(bundle))


def add_project_folder(folder: str) -> None:
    """Make modules of the project folder importable, after everything else; not of a folder such as /tmp, where everybody may
    put a module.
    """
    if folder not in sys.path and os.path.isdir(folder) and not os.stat(folder).st_mode & stat.S_IWOTH:
        sys.path.append(folder)


def is_of_project(module: str, file: str, project: str) -> bool:
    """Whether a module was imported from the project folder: not from a virtual environment or another source folder in it."""
    return file.startswith(tuple(os.path.join(project, module.partition(".")[0]) + end for end in (os.sep, ".py")))


def add_config_folders() -> None:
    """Make modules of `config/` in the home folder and in `$AIRFLOW_HOME` importable, after everything else, as in Airflow:
    settings name classes there (`core.xcom_backend = my_xcom.MyXCom`). Not those of a folder where everybody may put a module.
    """
    homes = (tradewind_home(), os.environ.get("AIRFLOW_HOME"))
    for folder in (os.path.join(home, "config") for home in homes if home):
        if folder not in sys.path and os.path.isdir(folder) and not os.stat(folder).st_mode & stat.S_IWOTH:
            sys.path.append(folder)


def add_plugins_folder(folder: str) -> None:
    """Make modules of the plugins folder importable, after everything else."""
    if folder not in sys.path and os.path.isdir(folder):
        sys.path.append(folder)
