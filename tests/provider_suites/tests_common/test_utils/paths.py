"""Folders of Airflow's repository, which does not exist here."""

from __future__ import annotations

from pathlib import Path

AIRFLOW_ROOT_PATH = AIRFLOW_CORE_SOURCES_PATH = AIRFLOW_PROVIDERS_ROOT_PATH = Path.cwd()
