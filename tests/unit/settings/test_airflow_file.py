"""An airflow.cfg that the environment names: what is used, what is only readable, and what is ignored with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tradewind.cli.compose.user_code import user_settings
from tradewind.model.errors import ConfigError
from tradewind.sdk.conf import SettingsReader
from tradewind.sdk.conf_renames import names_of
from tradewind.settings import load
from tradewind.settings.airflow_options import NO_MEANING, READABLE, UNKNOWN, USED, known_options, outcome_of

TEXT = """
[core]
dags_folder = {AIRFLOW_HOME}/dags
dag_concurrency = 7
executor = NoSuchExecutor
fernet_key = canary
sql_alchemy_conn = postgres://u:canary@h/a

[scheduler]
max_threads = 3

[logging]
base_log_folder = /airflow/logs

[team]
bucket = s3://$WHERE/x
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "airflow.cfg").write_text(TEXT)
    return {"AIRFLOW_HOME": str(tmp_path), "TRADEWIND_HOME": "/h", "WHERE": "there"}


def test_its_values_are_used_under_the_names_of_all_generations(env: dict[str, str], tmp_path: Path) -> None:
    settings = load(env)
    assert settings.core.dags_folder == f"{tmp_path}/dags"
    assert settings.core.max_active_tasks_per_dag == 7
    assert settings.parser.processes == 3
    assert settings.explain("core.max_active_tasks_per_dag").source == f"{tmp_path}/airflow.cfg (core.dag_concurrency)"
    assert settings.logging.folder == "/h/logs", "Airflow writes to the folder of its file"
    assert settings.secrets.fernet_key is None


def test_every_other_source_overrides_it(env: dict[str, str]) -> None:
    assert load({**env, "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "8"}).core.max_active_tasks_per_dag == 8
    assert load({**env, "TRADEWIND__CORE__MAX_ACTIVE_TASKS_PER_DAG": "9"}).core.max_active_tasks_per_dag == 9


def test_a_value_that_cannot_be_used_stops_nothing(env: dict[str, str]) -> None:
    settings = load(env)
    assert settings.core.executor == "LocalExecutor"
    (sentence,) = settings.ignored
    assert "core.executor = 'NoSuchExecutor' is not used" in sentence


def test_a_broken_or_missing_file_stops_nothing(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text("no section\n")
    (sentence,) = load(env).ignored
    assert "airflow.cfg cannot be read" in sentence
    assert load({**env, "AIRFLOW_CONFIG": "/nowhere/airflow.cfg"}).ignored == ()
    assert load({"TRADEWIND_HOME": "/h"}).airflow.path is None, "only a file that the environment names is read"


def test_dag_files_read_it_without_credentials(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__CORE__PARALLELISM", "AIRFLOW__TEAM__BUCKET"):
        monkeypatch.delenv(name, raising=False)
    found = user_settings(load(env))
    assert "canary" not in "".join(found.values())
    reader = SettingsReader()
    reader.install(found)
    assert reader.get("team", "bucket") == "s3://there/x"
    assert reader.get("core", "dag_concurrency") == "7"
    assert reader.get("core", "max_active_tasks_per_dag") == "7"
    assert reader.getsection("team") == {"bucket": "s3://there/x"}


def test_settings_without_a_value_are_not_set_for_user_code(tmp_path: Path) -> None:
    reader = SettingsReader()
    reader.install(user_settings(load({"TRADEWIND_HOME": str(tmp_path)})))
    assert reader.get("logging", "remote_base_log_folder", fallback="there") != "none"
    assert "none" not in {reader.get("core", "default_task_execution_timeout"), reader.get("logging", "remote_log_conn_id")}


@pytest.mark.parametrize(
    ("host", "base_url", "address"),
    [
        ("127.0.0.1", None, "http://localhost:8123"),
        ("0.0.0.0", None, "http://localhost:8123"),
        ("vm-1", None, "http://vm-1:8123"),
        ("fe80::1", None, "http://[fe80::1]:8123"),
        ("127.0.0.1", "https://flows.example.com", "https://flows.example.com"),
    ],
)
def test_links_in_tasks_begin_with_the_address_of_the_web_server(
    tmp_path: Path, host: str, base_url: str | None, address: str
) -> None:
    env = {"TRADEWIND_HOME": str(tmp_path), "TRADEWIND__API__HOST": host, "TRADEWIND__API__PORT": "8123"}
    found = user_settings(load({**env, "TRADEWIND__API__BASE_URL": base_url} if base_url else env))
    assert found["api.base_url"] == found["webserver.base_url"] == address


def test_dag_files_read_a_renamed_setting_under_each_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__WEBSERVER__BASE_URL", "https://flows.example")
    assert SettingsReader().get("api", "base_url") == "https://flows.example"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://new.example")
    assert SettingsReader().get("api", "base_url") == "https://new.example"
    assert SettingsReader().get("webserver", "base_url") == "https://flows.example"


def test_names_form_groups() -> None:
    assert names_of("core.base_log_folder") == ("logging.base_log_folder", "core.base_log_folder")
    assert names_of("scheduler.statsd_allow_list")[0] == "metrics.metrics_allow_list"
    assert names_of("team.bucket") == ("team.bucket",)
    assert len({names_of(name) for name in names_of("scheduler.task_queued_timeout")}) == 1


def test_a_secret_may_be_the_output_of_a_command(tmp_path: Path) -> None:
    base = {"TRADEWIND_HOME": str(tmp_path)}
    assert load({**base, "AIRFLOW__CORE__FERNET_KEY_CMD": "echo from-command"}).secrets.fernet_key == "from-command"
    both = {"AIRFLOW__CORE__FERNET_KEY_CMD": "echo from-command", "AIRFLOW__CORE__FERNET_KEY": "plain"}
    assert load({**base, **both}).secrets.fernet_key == "plain"
    with pytest.raises(ConfigError, match="FERNET_KEY_CMD: the command ended with status 1"):
        load({**base, "AIRFLOW__CORE__FERNET_KEY_CMD": "false"})
    with pytest.raises(ConfigError, match="cannot be started"):
        load({**base, "AIRFLOW__CORE__FERNET_KEY_CMD": "/no/such/program"})
    with pytest.raises(ConfigError, match="secrets backends"):
        load({**base, "AIRFLOW__CORE__FERNET_KEY_SECRET": "path"})


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("core.parallelism", USED, "core.parallelism"),
        ("webserver.web_server_port", USED, "api.port"),
        ("scheduler.max_threads", USED, "parser.processes"),
        ("core.sql_alchemy_conn", USED, "database.url"),
        ("database.sql_alchemy_conn", USED, "database.url"),
        ("celery.broker_url", USED, "celery.broker_url"),
        ("celery.result_backend", NO_MEANING, "executor"),
        ("scheduler.statsd_on", USED, "metrics.statsd_on"),
        ("scheduler.statsd_allow_list", USED, "metrics.metrics_allow_list"),
        ("metrics.otel_on", USED, "metrics.otel_on"),
        ("scheduler.stat_name_handler", NO_MEANING, "metrics_allow_list"),
        ("sentry.sentry_dsn", USED, "sentry.sentry_dsn"),
        ("smtp.smtp_host", READABLE, "conf.get"),
        ("team.bucket", READABLE, "conf.get"),
        ("core.paralelism", UNKNOWN, "core.parallelism"),
    ],
)
def test_what_a_setting_has_become(name: str, kind: str, text: str) -> None:
    found = outcome_of(name)
    assert found.kind == kind
    assert text in found.text


def test_every_option_of_each_release_has_an_outcome() -> None:
    for section, names in known_options().items():
        for name in names:
            found = outcome_of(f"{section}.{name}")
            assert found.kind != UNKNOWN, f"{section}.{name}"
            assert found.text


def test_an_empty_prefix_of_metrics_means_none(tmp_path: Path) -> None:
    """Services and tasks must send the same names."""
    env = {"TRADEWIND_HOME": str(tmp_path), "AIRFLOW__METRICS__STATSD_PREFIX": "", "AIRFLOW__METRICS__STATSD_HOST": ""}
    found = load(env)
    assert (found.metrics.statsd_prefix, found.metrics.statsd_host) == (None, "localhost")
    assert user_settings(found)["metrics.statsd_prefix"] == ""
    assert user_settings(load({"TRADEWIND_HOME": str(tmp_path)}))["metrics.statsd_prefix"] == "airflow"
