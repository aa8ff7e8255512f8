"""The `airflow` namespace: every name of the table leads somewhere, under all its modules, and nothing else is found."""

from __future__ import annotations

import importlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tradewind
import tradewind.airflow
from tradewind.airflow import finder, names

OPTIONAL = {"fsspec", "fsspec.implementations", "upath", "sqlalchemy"}
"""Third-party packages that come with provider packages: names that need them are missing without them."""


def offered() -> list[tuple[str, str]]:
    """(module of Airflow, name) of the whole table."""
    return [
        (module, name)
        for module in sorted(names.modules())
        for name in names.public_names_of(module)
        if not str(names.find(module, name)).startswith("airflow.providers.")
    ]


def test_every_name_of_the_table_is_there() -> None:
    pairs = offered()
    assert len(pairs) > 500
    missing = []
    for module, name in pairs:
        try:
            getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            if getattr(error, "name", None) not in OPTIONAL:
                missing.append(f"{module}.{name}: {error}")
    assert missing == []


@pytest.mark.parametrize(
    ("places", "ours"),
    [
        ("airflow airflow.models airflow.models.dag airflow.sdk airflow.sdk.definitions.dag", "DAG"),
        ("airflow.models airflow.models.baseoperator airflow.sdk airflow.sdk.bases.operator", "BaseOperator"),
        ("airflow.models airflow.models.variable airflow.sdk", "Variable"),
        ("airflow.utils.trigger_rule airflow.sdk", "TriggerRule"),
        ("airflow.exceptions airflow airflow.sdk.exceptions", "AirflowException"),
    ],
)
def test_a_class_is_the_same_under_all_its_names(places: str, ours: str) -> None:
    """So that `isinstance` and `except` agree, whatever generation a file was written for."""
    assert {getattr(importlib.import_module(place), ours) for place in places.split()} == {getattr(tradewind, ours)}


@pytest.mark.parametrize(
    "place", ["airflow.utils.log.secrets_masker", "airflow.sdk.log", "airflow.sdk.execution_time.secrets_masker"]
)
def test_the_secrets_masker_is_real(place: str) -> None:
    masker = importlib.import_module(place)
    assert masker.mask_secret is tradewind.mask_secret
    assert masker.redact({"password": "x", "host": "y"}) == {"password": "***", "host": "y"}
    assert masker.should_hide_value_for_key("db_password")


def test_operators_of_three_generations_are_one_class() -> None:
    from airflow.operators import BashOperator as first
    from airflow.operators.bash import BashOperator as third
    from airflow.operators.bash_operator import BashOperator as second
    from airflow.operators.dummy_operator import DummyOperator
    from airflow.operators.empty import EmptyOperator
    from airflow.providers.standard.operators.bash import BashOperator as fourth

    assert first is second is third is fourth
    assert DummyOperator is EmptyOperator


def test_an_unknown_module_raises_and_names_the_nearest() -> None:
    """Provider packages probe with `except ImportError`, so a module must not be found by chance."""
    with pytest.raises(ModuleNotFoundError, match=r"airflow\.operators\.bash") as caught:
        importlib.import_module("airflow.operators.bahs")
    assert caught.value.name == "airflow.operators.bahs"


def test_an_unknown_name_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"NoSuchThing.*no release of Airflow has it there"):
        exec("from airflow.models import NoSuchThing")
    with pytest.raises(ImportError, match="Did you mean 'Variable'"):
        exec("from airflow.models import Varaible")
    assert not hasattr(importlib.import_module("airflow.models"), "NoSuchThing")


def test_a_name_of_a_provider_package_that_is_not_installed_names_the_package() -> None:
    """The module is there, because the package dropped other names of it that Tradewind has."""
    with pytest.raises(ImportError, match="tradewind providers install snowflake"):
        exec("from airflow.providers.snowflake.operators.snowflake import SnowflakeSqlApiOperator")


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("airflow.providers.google.cloud.operators.gcs", "google"),
        ("airflow.providers.apache.hive.hooks.hive", "apache-hive"),
        ("airflow.providers.cncf.kubernetes.operators.pod", "cncf-kubernetes"),
        ("airflow.providers.postgres.hooks.postgres", "postgres"),
    ],
)
def test_a_missing_provider_names_its_package(module: str, package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"tradewind providers install {package}$"):
        importlib.import_module(module)


def run(code: str, *, path: Path | None = None, **environment: str) -> str:
    """The output of a fresh Python that runs this code."""
    env = {"PATH": "/usr/bin:/bin", **({"PYTHONPATH": str(path)} if path else {}), **environment}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_installed_provider_is_found_where_it_is(tmp_path: Path) -> None:
    """Provider wheels ship no `airflow/__init__.py`."""
    package = tmp_path / "airflow" / "providers" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from airflow.models import BaseOperator\n\nclass AcmeOperator(BaseOperator):\n    pass\n"
    )
    code = (
        "import tradewind.airflow\nfrom airflow.providers.acme import AcmeOperator\n"
        "from airflow.providers.standard.operators.bash import BashOperator\nprint(AcmeOperator.__mro__[1].__module__)"
    )
    assert run(code, path=tmp_path).startswith("tradewind.")


def test_beside_a_genuine_airflow_the_namespace_stays_off(tmp_path: Path) -> None:
    (tmp_path / "airflow" / "models").mkdir(parents=True)
    (tmp_path / "airflow" / "__init__.py").write_text("genuine = True\n")
    code = "import tradewind.airflow, airflow; print(hasattr(airflow, 'genuine'))"
    assert run(code, path=tmp_path) == "True"
    assert run(code, path=tmp_path, **{finder.SWITCH_VARIABLE: "on"}) == "False"


def test_importing_airflow_loads_nothing_heavy() -> None:
    heavy = ("jinja2", "pendulum", "sqlalchemy", "pydantic", "tradewind.operators.bash")
    code = f"import tradewind.airflow\nfrom airflow import DAG\nimport sys\nprint(*(n for n in {heavy!r} if n in sys.modules))"
    assert run(code) == ""


def test_example_dags_import_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "example_dags" / "libs"
    folder.mkdir(parents=True)
    for place in (folder, folder.parent):
        (place / "__init__.py").write_text("")
    (folder / "helper.py").write_text("answer = 42\n")
    code = "import tradewind.airflow\nfrom airflow.example_dags.libs.helper import answer\nprint(answer)"
    assert run(code, path=tmp_path / "example_dags") == "42"


HELPERS = """
import tradewind.airflow
from datetime import datetime, timezone
from airflow import DAG
from airflow.example_dags.libs.helper import print_stuff
from airflow.example_dags.plugins.workday import AfterWorkdayTimetable
from airflow.example_dags.subdags.subdag import subdag
from airflow.operators.subdag_operator import SubDagOperator
from airflow.timetables.base import DataInterval, TimeRestriction

start = datetime(2024, 3, 1, tzinfo=timezone.utc)  # a Friday
with DAG("d", start_date=start, schedule=None) as dag:
    SubDagOperator(task_id="section", subdag=subdag("d", "section", {"start_date": start}))
times = AfterWorkdayTimetable()
first = times.next_dagrun_info(last_automated_data_interval=None, restriction=TimeRestriction(start, None, True))
second = times.next_dagrun_info(last_automated_data_interval=first.data_interval, restriction=TimeRestriction(start, None, True))
manual = times.infer_manual_data_interval(run_after=first.run_after.replace(day=4, hour=5))
print(len(dag.tasks), first.logical_date.day, second.logical_date.day, manual.start.day)
"""


def test_helpers_of_the_examples_are_there_without_the_examples(tmp_path: Path) -> None:
    assert run(HELPERS, path=tmp_path) == "5 1 4 1"


def test_alerts_of_the_dashboard_do_not_break_local_settings() -> None:
    from airflow.api_fastapi.common.types import UIAlert as OfAirflow3
    from airflow.www.utils import UIAlert

    assert (UIAlert("Hello", category="warning", html=True).message, OfAirflow3(text="Hello").text) == ("Hello", "Hello")


# --- what only Airflow has --------------------------------------------------------------------------------------------


def test_days_ago_is_midnight_in_utc() -> None:
    from airflow.utils.dates import days_ago

    found = days_ago(2)
    today = datetime.now(UTC).date()
    assert (found.hour, found.minute, found.tzinfo) == (0, 0, UTC)
    assert today - found.date() in (timedelta(days=2), timedelta(days=1))


def test_date_range_ends_at_its_end_or_its_count() -> None:
    from airflow.utils.dates import date_range

    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert [day.day for day in date_range(start, datetime(2026, 1, 3, tzinfo=UTC))] == [1, 2, 3]
    assert len(date_range(start, num=4, delta=timedelta(hours=1))) == 4


def test_round_time_takes_the_nearer_step() -> None:
    from airflow.utils.dates import round_time

    assert round_time(datetime(2026, 1, 1, 10, 40, tzinfo=UTC), timedelta(hours=1)) == datetime(2026, 1, 1, 11, tzinfo=UTC)
    assert round_time(datetime(2026, 1, 1, 10, 20, tzinfo=UTC), timedelta(hours=1)) == datetime(2026, 1, 1, 10, tzinfo=UTC)


def test_states_compare_with_texts() -> None:
    from airflow.utils.state import DagRunState, State, TaskInstanceState

    assert State.SUCCESS == "success" == TaskInstanceState.SUCCESS == DagRunState.SUCCESS
    assert State.FAILED in State.finished
    assert State.QUEUED in State.unfinished


def test_apply_defaults_leaves_an_operator_as_it_is() -> None:
    from airflow.models import BaseOperator
    from airflow.utils.decorators import apply_defaults

    class Old(BaseOperator):
        @apply_defaults
        def __init__(self, table: str, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)
            self.table = table

    with tradewind.DAG("d", default_args={"table": "sales"}) as dag:
        task = Old(task_id="t")
    assert (task.table, dag.task_ids) == ("sales", ["t"])


def test_logging_mixin_logs_under_the_name_of_the_class() -> None:
    from airflow.utils.log.logging_mixin import LoggingMixin

    class Helper(LoggingMixin):
        pass

    assert Helper().log.name == f"{__name__}.Helper"


def test_prune_dict_drops_none_at_every_depth() -> None:
    from airflow.utils.helpers import prune_dict

    assert prune_dict({"a": None, "b": {"c": None, "d": 0}, "e": [None, 1]}) == {"b": {"d": 0}, "e": [1]}
    assert prune_dict({"a": "", "b": {"c": 0}, "d": [0, 1]}, mode="truthy") == {"d": [1]}


def test_modules_in_other_folders_airflow_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's package is extended by folders `airflow` on `sys.path`, and some packages on PyPI put their modules there."""
    for path, text in {
        "airflow/provider_of_mine/hooks/queue.py": "class Queue: pass\n",
        "airflow/operators/of_mine.py": "from airflow.models import BaseOperator\nclass Mine(BaseOperator): pass\n",
        "airflow/models_of_mine.py": "VALUE = 1\n",
        "airflow/operators/bash.py": "raise AssertionError('Tradewind has this module')\n",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "airflow/provider_of_mine/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    try:
        assert importlib.import_module("airflow.provider_of_mine.hooks.queue").Queue
        assert importlib.import_module("airflow.models_of_mine").VALUE == 1
        mine = importlib.import_module("airflow.operators.of_mine").Mine
        assert issubclass(mine, tradewind.BaseOperator)
        assert importlib.import_module("airflow.operators.bash").BashOperator
        with pytest.raises(ModuleNotFoundError, match=r"airflow\.provider_of_mine\.nothing"):
            importlib.import_module("airflow.provider_of_mine.nothing")
    finally:
        for name in set(sys.modules) - before:
            if "of_mine" in name:
                del sys.modules[name]


def test_a_genuine_airflow_is_no_such_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "airflow/models").mkdir(parents=True)
    (tmp_path / "airflow/only_genuine.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="only_genuine"):
        importlib.import_module("airflow.only_genuine")
