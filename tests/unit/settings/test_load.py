"""Sources of settings, their order, and errors of invalid settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.model.errors import ConfigError
from tradewind.settings import explain, home, listing, load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def toml(folder: Path, text: str) -> str:
    (folder / "tradewind.toml").write_text(text)
    return str(folder / "tradewind.toml")


def problems(env: dict[str, str], folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(env, str(folder))
    return str(error.value).splitlines()


# --- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S93")
def test_environment_before_file_before_airflow_before_default(folder: Path) -> None:
    env = {"AIRFLOW__CORE__PARALLELISM": "4"}
    at_first = explain("core.parallelism", {}, str(folder))
    assert (at_first.value, at_first.source) == ("32", "default")
    by_airflow = explain("core.parallelism", env, str(folder))
    assert (by_airflow.value, by_airflow.source) == ("4", "environment variable AIRFLOW__CORE__PARALLELISM")
    path = toml(folder, "[core]\n\nparallelism = 8\n")
    by_file = explain("core.parallelism", env, str(folder))
    assert (by_file.value, by_file.source) == ("8", f"{path}:3")
    env["TRADEWIND__CORE__PARALLELISM"] = "16"
    by_env = explain("core.parallelism", env, str(folder))
    assert (by_env.value, by_env.source) == ("16", "environment variable TRADEWIND__CORE__PARALLELISM")
    assert by_env.shadowed == (f"{path}:3", "environment variable AIRFLOW__CORE__PARALLELISM")
    assert load(env, str(folder)).core.parallelism == 16


def test_config_file_can_be_chosen(folder: Path) -> None:
    toml(folder, "[api]\nport = 1\n")
    (folder / "other.toml").write_text("[api]\nport = 2\n")
    settings = load({"TRADEWIND_CONFIG": str(folder / "other.toml")}, str(folder))
    assert (settings.api.port, settings.config_file) == (2, str(folder / "other.toml"))
    assert load({}, str(folder)).config_file == str(folder / "tradewind.toml")


def test_a_chosen_config_file_must_exist(folder: Path) -> None:
    missing = str(folder / "missing.toml")
    assert problems({"TRADEWIND_CONFIG": missing}, folder) == [f"TRADEWIND_CONFIG names {missing}, but there is no such file"]


def test_a_home_without_a_file_is_fine(folder: Path) -> None:
    assert load({}, str(folder)).config_file is None


@pytest.mark.spec("S94")
@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.tradewind"),
        ({"HOME": "/home/ada", "TRADEWIND_HOME": "/srv/tw/"}, "/srv/tw"),
        ({"HOME": "/home/ada", "TRADEWIND_HOME": "~/tw"}, "/home/ada/tw"),
        ({"HOME": "/home/ada", "TRADEWIND_HOME": ""}, "/home/ada/.tradewind"),
    ],
)
def test_the_home_folder(env: dict[str, str], expected: str) -> None:
    assert home(env) == expected
    assert load(env).home == expected


# --- Airflow's names ------------------------------------------------------------------------------------------------


@pytest.mark.spec("S93")
@pytest.mark.parametrize(
    ("name", "text", "ours", "value"),
    [
        ("CORE__KILLED_TASK_CLEANUP_TIME", "90", "core.kill_grace", "90"),
        ("CORE__EXECUTE_TASKS_NEW_PYTHON_INTERPRETER", "True", "core.task_start", "fresh"),
        ("SCHEDULER__CREATE_CRON_DATA_INTERVALS", "True", "core.schedule_meaning", "airflow2"),
        ("SCHEDULER__CREATE_CRON_DATA_INTERVALS", "False", "core.schedule_meaning", "airflow3"),
        ("API_AUTH__JWT_EXPIRATION_TIME", "7200", "api.token_hours", "2"),
        ("LOGGING__LOGGING_LEVEL", "warn", "logging.level", "WARNING"),
        ("LOGGING__BASE_LOG_FOLDER", "/var/log/x", "logging.folder", "/var/log/x"),
        ("CORE__DAG_CONCURRENCY", "5", "core.max_active_tasks_per_dag", "5"),
        ("DAG_PROCESSOR__PARSING_PROCESSES", "3", "parser.processes", "3"),
        ("CORE__DEFAULT_TASK_EXECUTION_TIMEOUT", "3600", "core.default_task_execution_timeout", "3600"),
        ("CORE__DEFAULT_POOL_TASK_SLOT_COUNT", "7", "core.default_pool_slots", "7"),
        ("KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE", "/etc/pod.yaml", "kubernetes_executor.pod_template_file", "/etc/pod.yaml"),
        ("KUBERNETES__NAMESPACE", "jobs", "kubernetes_executor.namespace", "jobs"),  # the section until Airflow 2.4
        ("KUBERNETES_EXECUTOR__WORKER_PODS_PENDING_TIMEOUT", "300", "kubernetes_executor.worker_pods_pending_timeout", "300"),
    ],
)
def test_airflows_environment_is_understood(name: str, text: str, ours: str, value: str) -> None:
    found = explain(ours, {f"AIRFLOW__{name}": text}, "/h")
    assert (found.value, found.source) == (value, f"environment variable AIRFLOW__{name}")


def test_the_newest_airflow_name_counts() -> None:
    env = {"AIRFLOW__CORE__DAG_CONCURRENCY": "5", "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "6"}
    found = explain("core.max_active_tasks_per_dag", env, "/h")
    assert (found.value, found.shadowed) == ("6", ("environment variable AIRFLOW__CORE__DAG_CONCURRENCY",))


def test_airflow_variables_without_effect_are_listed_not_refused() -> None:
    env = {"AIRFLOW__CORE__FERNET_KEY": "", "AIRFLOW__SMTP__SMTP_HOST": "x", "AIRFLOW__CORE__PARALLELISM": "1"}
    assert load(env, "/h").unused == ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__SMTP__SMTP_HOST")


def test_an_invalid_airflow_value_is_an_error(folder: Path) -> None:
    assert problems({"AIRFLOW__CORE__EXECUTOR": "LocalKubernetesExecutor"}, folder) == [
        "environment variable AIRFLOW__CORE__EXECUTOR: core.executor = 'LocalKubernetesExecutor' must be one of LocalExecutor, "
        "SequentialExecutor, CeleryExecutor, KubernetesExecutor, or several of them with commas between. "
        "Did you mean 'KubernetesExecutor'?"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("LocalExecutor,CelryExecutor", "Did you mean 'CeleryExecutor'?"),
        ("LocalExecutor,localexecutor", "names LocalExecutor twice"),
        ("a:LocalExecutor,a:SequentialExecutor", "names a twice"),
        ("LocalExecutor;team=SequentialExecutor", "executors of teams, which are not supported yet"),
        (",", "must be one of LocalExecutor"),
    ],
)
def test_a_list_of_executors_that_cannot_be_read_is_an_error(folder: Path, text: str, problem: str) -> None:
    (found,) = problems({"TRADEWIND__CORE__EXECUTOR": text}, folder)
    assert problem in found


def test_variables_and_connections_are_not_settings() -> None:
    names = ("AIRFLOW_VAR_X", "AIRFLOW_CONN_X", "TRADEWIND_VAR_CORE_PARALLELISM", "TRADEWIND_CONN_X", "TRADEWIND_VAR__X")
    settings = load({**dict.fromkeys(names, "y"), "TRADEWIND_FAILPOINTS": "", "TRADEWIND_HOME": "/h"})
    assert settings.unused == ()


# --- misspelt -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TRADEWIND__CORE__PARALELISM", "Did you mean TRADEWIND__CORE__PARALLELISM?"),
        ("TRADEWIND__CORE__PORT", "Did you mean TRADEWIND__API__PORT?"),
        ("TRADEWIND__CROE__PARALLELISM", "Did you mean TRADEWIND__CORE__PARALLELISM?"),
        ("TRADEWIND__CORE__KILLED_TASK_CLEANUP_TIME", "This is Airflow's name; use TRADEWIND__CORE__KILL_GRACE."),
        ("TRADEWIND__core__parallelism", "Did you mean TRADEWIND__CORE__PARALLELISM?"),
        ("TRADEWIND__PARALLELISM", "there is no setting parallelism."),
        ("TRADEWIND__CORE__X__Y", "there is no setting core.x__y."),
        ("TRADEWIND_CORE__PARALLELISM", "Did you mean TRADEWIND__CORE__PARALLELISM?"),
        ("TRADEWIND_API_PORT", "Did you mean TRADEWIND__API__PORT?"),
    ],
)
def test_a_misspelt_variable_is_an_error_with_its_name_and_the_right_one(folder: Path, name: str, says: str) -> None:
    (result,) = problems({name: "1"}, folder)
    assert result.startswith(f"environment variable {name}")
    assert says in result


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[core]\n# note\nparalelism = 1\n", 3, "no setting core.paralelism. Did you mean core.parallelism?"),
        ("[core]\nport = 1\n", 2, "Did you mean api.port?"),
        ("\n[croe]\nx = 1\n", 2, "no section [croe]. Did you mean [core]? Sections: core, database,"),
        ("\nparallelism = 1\n", 2, "'parallelism' is outside of a [section]. Did you mean core.parallelism?"),
        ("api.host = 'x'\ncore.paralelism = 1\n", 2, "Did you mean core.parallelism?"),
        ('[ "core" ]\n"dag_concurrency" = 1\n', 2, "Airflow's name; use core.max_active_tasks_per_dag."),
        ("[core]\nparallelism = 1\nparallelism = 2\n", 3, "not valid TOML"),
        ("[core]\nparallelism = \n", 2, "not valid TOML"),
        ("[secrets]\nfernet_key = 'abc'\n", 2, "secrets.fernet_key is a secret and is not read from this file"),
        ("[core.parallelism]\nx = 1\n", None, "must be a whole number"),
        ("[api]\n[api.port2]\n", 1, "there is no setting api.port2. Did you mean api.port?"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_line(folder: Path, text: str, line: int | None, says: str) -> None:
    path = toml(folder, text)
    (received,) = problems({}, folder)
    assert received.startswith(f"{path}:{line}: " if line else path)
    assert says in received
    assert "abc" not in received


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / "tradewind.toml").write_bytes(b"[core]\nexecutor = '\xff'\n")
    assert "tradewind.toml: cannot be read" in problems({}, folder)[0]


def test_all_problems_are_reported_together(folder: Path) -> None:
    toml(folder, "[api]\nport = 99999\nprot = 1\n")
    result = problems({"TRADEWIND__CORE__EXECUTOR": "x", "TRADEWIND__A__B": "1"}, folder)
    assert len(result) == 4


def test_an_unknown_name_cannot_be_explained() -> None:
    with pytest.raises(ConfigError, match=r"no setting 'parallelism'\. Did you mean core\.parallelism\?"):
        explain("parallelism", {}, "/h")


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("core.parallelism", "0", 0),
        ("core.load_examples", "Yes", True),
        ("core.load_examples", "off", False),
        ("core.executor", "sequentialexecutor", "SequentialExecutor"),
        (
            "core.executor",
            "airflow.executors.local_executor.LocalExecutor, slow:SequentialExecutor",
            "LocalExecutor,slow:SequentialExecutor",
        ),
        ("core.kill_grace", "0.25", 0.25),
        ("core.default_task_execution_timeout", "None", None),
        ("core.default_task_execution_timeout", "", None),
        ("core.default_timezone", "utc", "UTC"),
        ("core.default_timezone", "Europe/Berlin", "Europe/Berlin"),
        ("core.dags_folder", "~/dags", "/home/ada/dags"),
        ("core.dags_folder", "$WHERE/${SUB}/../dags", "/srv/dags"),
        ("core.dags_folder", "flows", "/h/flows"),
        ("core.dags_folder", "$TRADEWIND_HOME/x", "/h/x"),
        ("database.max_page_count", "0", 0),
        ("api.host", " ::1 ", "::1"),
    ],
)
def test_texts_are_converted_to_typed_values(name: str, text: str, value: object) -> None:
    section, key = name.split(".")
    env = {"HOME": "/home/ada", "WHERE": "/srv", "SUB": "sub", f"TRADEWIND__{section}__{key}".upper(): text}
    found = getattr(getattr(load(env, "/h"), section), key)
    assert (found, type(found)) == (value, type(value))


def test_the_file_can_use_toml_types(folder: Path) -> None:
    toml(folder, "core = {parallelism = 3, load_examples = true}\n[scheduler]\nlease = 5\nretention_days = '7'\n")
    settings = load({}, str(folder))
    assert (settings.core.parallelism, settings.core.load_examples) == (3, True)
    assert (settings.scheduler.lease, settings.scheduler.lease_us, settings.scheduler.retention_days) == (5, 5_000_000, 7)
    assert isinstance(settings.scheduler.lease, float)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("core.parallelism", "many", "= 'many' must be a whole number of tasks between 0 and 100000"),
        ("core.parallelism", "-1", "= '-1' must be a whole number of tasks between 0 and 100000"),
        ("core.parallelism", "1.5", "must be a whole number"),
        ("core.parallelism", " ", "is empty; it must be a whole number"),
        ("core.load_examples", "perhaps", "must be true or false"),
        ("core.kill_grace", "nan", "must be a number of seconds between 0 and 86400"),
        ("core.kill_grace", "1e999", "must be a number of seconds"),
        ("core.default_task_execution_timeout", "0", "between 0.001 and 315360000, or none"),
        ("core.task_start", "forked", "must be one of template, fresh"),
        ("core.default_timezone", "Europe/Berln", "Did you mean 'Europe/Berlin'?"),
        ("core.default_timezone", "../../etc/passwd", "must be an IANA time zone"),
        ("core.dags_folder", "$NOWHERE/dags", "environment variable NOWHERE, which is not set"),
        ("core.dags_folder", "a\0b", "must be a path"),
        ("database.max_page_count", "5", "must be a whole number of pages 0 or between 64 and 4294967294"),
        ("api.port", "65536", "must be a whole number between 0 and 65535"),
    ],
)
def test_invalid_values_are_refused_with_the_valid_ones(folder: Path, name: str, text: str, says: str) -> None:
    variable = "TRADEWIND__" + name.upper().replace(".", "__")
    (result,) = problems({variable: text}, folder)
    assert result.startswith(f"environment variable {variable}: {name} ")
    assert says in result


@pytest.mark.parametrize("written", ["true", "1.5", "[1]", "2026-01-31"])
def test_toml_types_that_do_not_fit_are_refused(folder: Path, written: str) -> None:
    path = toml(folder, f"[core]\nparallelism = {written}\n")
    assert problems({}, folder)[0].startswith(f"{path}:2: core.parallelism = ")


def test_an_overridden_wrong_value_is_an_error(folder: Path) -> None:
    path = toml(folder, "[core]\nparallelism = 'x'\n")
    assert problems({"TRADEWIND__CORE__PARALLELISM": "3"}, folder)[0].startswith(f"{path}:2")


def test_two_settings_that_contradict_each_other_are_refused(folder: Path) -> None:
    (result,) = problems({"TRADEWIND__CORE__XCOM_MAX_BYTES": "2000"}, folder)
    assert result == "core.xcom_inline_max_bytes = 65536 must not be larger than core.xcom_max_bytes = 2000"


# --- what the code and the people get -------------------------------------------------------------------------------


def test_the_safety_net_scale_reaches_every_safety_net_and_nothing_else() -> None:
    plain, scaled = load({}, "/h"), load({"TRADEWIND__CORE__SAFETY_NET_SCALE": "100"}, "/h")
    changed = {
        f"{section}.{key}"
        for section in ("core", "database", "parser", "scheduler", "runner", "api", "logging", "secrets")
        for key in getattr(plain, section)._fields
        if getattr(getattr(plain, section), key) != getattr(getattr(scaled, section), key)
    }
    assert changed == {
        "core.safety_net_scale",
        "parser.rescan_interval",
        "scheduler.resubmit_interval",
        "scheduler.sweep_interval",
        "scheduler.wait_recheck_interval",
        "scheduler.retention_interval",
        "runner.start_retry_interval",
        "runner.verdict_resend_interval",
    }
    assert scaled.scheduler.sweep_interval_us == 3_000_000_000
    answer = scaled.explain("scheduler.sweep_interval")
    assert (answer.value, answer.effective) == ("30", "3000")
    assert plain.explain("scheduler.sweep_interval").effective is None


def test_a_secret_is_never_shown() -> None:
    settings = load({"TRADEWIND__SECRETS__FERNET_KEY": "hush-hush"}, "/h")
    assert settings.secrets.fernet_key == "hush-hush"
    assert settings.explain("secrets.fernet_key").value == "***"
    assert "hush-hush" not in repr(settings) + repr(settings.secrets) + repr(settings.listing())
    assert repr(load({}, "/h").secrets) == "Secrets(fernet_key=none)"


def test_the_listing_has_every_setting_with_value_and_meaning() -> None:
    rows = listing({}, "/h")
    assert [row.name for row in rows][:2] == ["core.dags_folder", "core.plugins_folder"]
    assert rows[0].value == rows[0].default == "/h/dags"
    assert all(row.description and row.env for row in rows)


def test_a_dollar_in_the_home_folder_is_literal() -> None:
    assert load({}, "/srv/$HOME").core.dags_folder == "/srv/$HOME/dags"


def test_the_system_time_zone_is_the_target_of_localtime(tmp_path: Path) -> None:
    from tradewind.settings.values import InvalidValue, _system_timezone

    zone = tmp_path / "zoneinfo" / "Asia" / "Tokyo"
    zone.parent.mkdir(parents=True)
    zone.touch()
    (tmp_path / "localtime").symlink_to(zone)
    assert _system_timezone(str(tmp_path / "localtime")) == "Asia/Tokyo"
    assert _system_timezone(str(tmp_path / "missing")) == "UTC"
    (tmp_path / "copy").touch()
    with pytest.raises(InvalidValue, match="write the name"):
        _system_timezone(str(tmp_path / "copy"))


def test_loading_settings_imports_no_heavy_module() -> None:
    code = (
        "import sys; from tradewind.settings import load; load({}, '/h');"
        "print([m for m in ('dataclasses', 'inspect', 'pathlib', 'tomllib', 'logging', 'msgspec', 'zoneinfo',"
        " 'hashlib', 'cryptography') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    assert done.stdout == "[]\n"


def test_words_by_folder_are_read_and_refused() -> None:
    name = "TRADEWIND__CORE__SCHEDULE_MEANING_OF_FOLDERS"
    core = load({name: " teams/new/ = Airflow3,./legacy=airflow2 "}, "/h").core
    assert core.schedule_meaning_of_folders == "legacy=airflow2, teams/new=airflow3"
    assert core.meanings == (("legacy", "airflow2"), ("teams/new", "airflow3"))
    assert load({}, "/h").core.meanings == ()
    for wrong, says in (
        ("legacy", "'legacy' is not a folder inside"),
        ("../x=airflow2", "inside the DAG folder"),
        ("a=airflow1", "one of"),
    ):
        with pytest.raises(ConfigError, match=says):
            load({name: wrong}, "/h")


def test_numbers_by_folder_are_read_and_refused() -> None:
    name = "TRADEWIND__CORE__MAX_ACTIVE_TASKS_ALL_RUNS_OF_FOLDERS"
    core = load({name: "teams/new=None, legacy = 16"}, "/h").core
    assert core.max_active_tasks_of_folders == (("legacy", 16), ("teams/new", None))
    assert load({}, "/h").core.max_active_tasks_of_folders == ()
    for wrong in ("legacy=many", "legacy=0", "legacy"):
        with pytest.raises(ConfigError, match="each number between 1 and"):
            load({name: wrong}, "/h")
