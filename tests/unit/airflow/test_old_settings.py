"""Settings that DAG files of older releases read without a fallback."""

from __future__ import annotations

import pytest

from tradewind.sdk.conf import conf


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("core", "dag_concurrency", "16"),
        ("core", "killed_task_cleanup_time", "60"),
        ("kubernetes", "worker_container_repository", ""),
        ("kubernetes", "namespace", "default"),
        ("webserver", "dag_orientation", "LR"),
        ("scheduler", "min_file_process_interval", "30"),
    ],
)
def test_a_setting_of_an_older_release_has_its_default(section: str, key: str, value: str) -> None:
    assert conf.get(section, key) == value
    assert conf.get(section.upper(), key.upper()) == value


def test_old_log_folders_are_below_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/srv/airflow")
    assert conf.get("core", "BASE_LOG_FOLDER") == "/srv/airflow/logs"
    assert conf.get("scheduler", "child_process_log_directory") == "/srv/airflow/logs/scheduler"
