"""The table of settings, and the sections that are filled from it."""

from __future__ import annotations

import inspect

import pytest

from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND
from tradewind.settings import OPTIONS, SECRET_ENVIRONMENT, Option, load, sections
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import BY_AIRFLOW_NAME, BY_NAME, SECTIONS

TYPES = {
    "int": int,
    "float": float,
    "duration": float,
    "bool": bool,
    "str": str,
    "path": str,
    "choice": str,
    "by_folder": str,
    "executors": str,
    "timezone": str,
}


def section_class(section: str) -> type[Frozen]:
    found: type[Frozen] = getattr(sections, section.title().replace("_", ""))
    return found


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(OPTIONS)
    assert len({o.env for o in OPTIONS}) == len(OPTIONS)
    assert len(BY_AIRFLOW_NAME) == sum(len(o.airflow) for o in OPTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_has_exactly_the_fields_and_types_of_its_rows(section: str) -> None:
    rows = {o.key: TYPES[o.kind] | None if o.nullable else TYPES[o.kind] for o in OPTIONS if o.section == section}
    assert inspect.get_annotations(section_class(section), eval_str=True) == rows


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.kind == "duration"], ids=lambda o: o.name)
def test_each_duration_is_available_in_microseconds(option: Option) -> None:
    section = getattr(load({}, "/home/of/nobody"), option.section)
    seconds = getattr(section, option.key)
    expected = None if seconds is None else round(seconds * SECOND)
    assert getattr(section, f"{option.key}_us") == expected
    assert expected is None or isinstance(getattr(section, f"{option.key}_us"), int)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
def test_each_row_is_complete(option: Option) -> None:
    assert option.description.endswith(".")
    assert "\n" not in option.description
    assert option.key == option.key.lower()
    assert option.default is not None or option.nullable
    if option.kind in ("int", "float", "duration"):
        assert option.unit
        assert option.low is not None
        assert option.high is not None
    numbers_by_folder = option.kind == "by_folder" and not option.choices
    assert bool(option.choices) == (option.kind in ("choice", "by_folder", "executors") and not numbers_by_folder)
    assert not numbers_by_folder or (option.low is not None and option.high is not None)
    assert all(name.count(".") == 1 for name in option.airflow)


@pytest.mark.spec("S94", "S98")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core.dags_folder", "/h/dags"),
        ("core.parallelism", 32),
        ("core.executor", "LocalExecutor"),
        ("core.load_examples", False),
        ("core.dags_are_paused_at_creation", True),
        ("core.default_timezone", "UTC"),
        ("core.default_task_execution_timeout", None),
        ("core.kill_grace", 60.0),
        ("database.path", "/h/tradewind.db"),
        ("database.synchronous", "FULL"),
        ("parser.max_tasks_per_dag", 200_000),
        ("scheduler.lease", 30.0),
        ("runner.malloc", "malloc_hugetlb"),
        ("api.host", "127.0.0.1"),
        ("api.port", 8080),
        ("logging.folder", "/h/logs"),
        ("secrets.fernet_key", None),
    ],
)
def test_defaults(name: str, value: object) -> None:
    section, key = name.split(".")
    assert getattr(getattr(load({}, "/h"), section), key) == value


@pytest.mark.spec("S111")
def test_a_celery_worker_runs_sixteen_tasks_at_a_time() -> None:
    assert load({}, "/h").celery.worker_concurrency == 16
    assert load({"AIRFLOW__CELERY__WORKER_CONCURRENCY": "18"}, "/h").celery.worker_concurrency == 18


def test_environment_variables_with_secrets_are_known() -> None:
    assert sorted(SECRET_ENVIRONMENT) == [
        "AIRFLOW__CELERY__BROKER_URL",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "TRADEWIND__CELERY__BROKER_URL",
        "TRADEWIND__DATABASE__URL",
        "TRADEWIND__LDAP__BIND_PASSWORD",
        "TRADEWIND__LOGGING__REMOTE_STORAGE_OPTIONS",
        "TRADEWIND__OIDC__CLIENT_SECRET",
        "TRADEWIND__SECRETS__FERNET_KEY",
        "TRADEWIND__WORKER__TOKEN",
    ]


def test_the_store_is_the_file_or_a_server() -> None:
    assert load({}, "/h").store == "/h/tradewind.db"
    url = "postgresql+psycopg2://ann:s3cret@db/tw"
    for name in ("TRADEWIND__DATABASE__URL", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__SQL_ALCHEMY_CONN"):
        settings = load({name: url}, "/h")
        assert (settings.store, settings.store_name) == (url, "postgresql://ann@db/tw")
        assert settings.explain("database.url").value == "***"
    for foreign in ("sqlite:////opt/airflow/airflow.db", "mysql://root@db/airflow"):
        settings = load({"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": foreign}, "/h")
        assert settings.store == "/h/tradewind.db", "a database of Airflow that Tradewind cannot use is left alone"
    with pytest.raises(ConfigError, match=r"begins with 'mysql'.*postgresql://user:password@host") as refused:
        load({"TRADEWIND__DATABASE__URL": "mysql://root:s3cret@db/tw"}, "/h")
    assert "s3cret" not in str(refused.value)


def test_frozen_values_are_immutable_and_compare_by_content() -> None:
    one, two = load({}, "/h").api, load({}, "/h").api
    assert one == two
    assert hash(one) == hash(two)
    assert one != load({"TRADEWIND__API__PORT": "1"}, "/h").api
    with pytest.raises(AttributeError, match=r"Api\.port is frozen"):
        one.port = 1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del one.port


def test_a_frozen_value_requires_each_field_and_no_other() -> None:
    with pytest.raises(TypeError, match="needs a value for 'path'"):
        sections.Database(url=None, busy_timeout=1.0, max_page_count=0, synchronous="FULL")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no field 'colour'"):
        sections.Secrets(fernet_key=None, colour="red")  # type: ignore[call-arg]
