"""`tradewind import-airflow`, against databases that genuine releases of Airflow have made."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.commands import incoming, plain
from tests.unit.cli.conftest import Run
from tradewind.api.auth import airflow_passwords
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.cli.import_airflow.database import open_database
from tradewind.cli.import_airflow.decisions import decide_pause, decide_role, decide_run, lives, role_of, run_type, task_state
from tradewind.cli.import_airflow.source import Source
from tradewind.cli.import_airflow.values import Keys, Unreadable, conf_of_run, micros, unpickled, xcom_value
from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.definition import CronSchedule, DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import NotFound, WrongArgument
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.platform.clock import SystemClock
from tradewind.settings import load

DATABASES = Path(__file__).with_name("airflow_databases")
RELEASES = ("1.10.15", "2.2.5", "2.11.0", "3.3.2")
KEY = "5h4mXqjeQR3Hq0yGRr6DOBcmJkB3hGZqwWnV8hmTzzI="
OTHER_KEY = "GEVnPFZNrBCEGVFQX6iIUvN3vdgmSHkIyQMLaP7SLiE="

DAGS = """
from datetime import datetime
from airflow import DAG
from airflow.operators.bash import BashOperator

for dag_id, names, schedule in (
    ("daily_etl", ("extract", "transform", "load"), "0 6 * * *"),
    ("broken", ("fails", "after"), None),
    ("half", ("make", "use"), None),
    ("resting", ("only",), "@hourly"),
):
    with DAG(dag_id, start_date=datetime(2024, 1, 1), schedule_interval=schedule) as dag:
        before = None
        for name in names:
            task = BashOperator(task_id=name, bash_command="echo {{ ti.xcom_pull('make') }}")
            if before is not None:
                before >> task
            before = task
    globals()[dag_id] = dag

from airflow.decorators import task

with DAG("mapped", start_date=datetime(2024, 1, 1), schedule=None) as mapped:
    @task
    def numbers():
        return [1, 2, 3]

    @task
    def double(number):
        return 2 * number

    double.expand(number=numbers())
"""


@pytest.fixture(params=RELEASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return create(tmp_path, request.param)


def create(folder: Path, release: str) -> Path:
    """A SQLite file with the tables and rows of a release."""
    path = folder / f"airflow-{release}.db"
    connection = sqlite3.connect(path)
    connection.executescript((DATABASES / f"{release}.sql").read_text(encoding="utf-8"))
    connection.commit()
    connection.close()
    return path


def change(database: Path, sql: str, *values: object) -> None:
    connection = sqlite3.connect(database)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


@pytest.fixture
def folder(home: Path) -> Path:
    """A home folder with the DAG files of the team."""
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "team.py").write_text(DAGS)
    return home


def imported(run: Run, database: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Import, and return the counts by subject."""
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--all-runs", *options, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return {row["what"]: row for row in json.loads(done.stdout)}


def states(run: Run, dag_id: str, run_id: str) -> dict[str, str | None]:
    rows = json.loads(run("tasks", "states-for-dag-run", dag_id, run_id, "-o", "json").stdout)
    return {row["task_id"]: row["state"] for row in rows}


def test_everything_of_each_release_is_taken_over_once(run: Run, folder: Path, database: Path) -> None:
    dry = imported(run, database, "--dry-run")
    assert not (folder / "tradewind.db").exists()
    counts = imported(run, database)
    assert {name: (row["imported"] + row["unchanged"], row["left_out"]) for name, row in counts.items() if name != "runs"} == {
        name: (row["in_airflow"], 0) for name, row in counts.items() if name != "runs"
    }
    assert dry["variables"]["imported"] == counts["variables"]["imported"] == 2
    assert run("variables", "get", "bucket").stdout == "s3://prices\n"
    assert json.loads(run("variables", "get", "settings").stdout) == {"a": 1}
    shop = json.loads(run("connections", "get", "shop_db", "--show-values", "-o", "json").stdout)
    shop = shop[0] if isinstance(shop, list) else shop
    assert (shop["host"], shop["login"], shop["password"], shop["port"]) == ("db.example", "reader", "s3cret", 5432)
    assert json.loads(shop["extra"]) == {"sslmode": "require"}
    pools = {row["pool"]: row["slots"] for row in json.loads(run("pools", "list", "-o", "json").stdout)}
    assert (pools["closed"], pools["etl"]) == (0, 3)
    assert states(run, "broken", "r1") == {"fails": "failed", "after": "upstream_failed"}
    assert states(run, "half", "h1") == {"make": "success", "use": None}
    xcom = json.loads(run("xcom", "get", "half", "make", "h1").stdout)
    assert xcom == {"rows": 3, "names": ["a", "b"]}
    again = imported(run, database)
    assert {name: row["imported"] for name, row in again.items()} == dict.fromkeys(counts, 0)
    assert {name: row["unchanged"] for name, row in again.items()} == {
        name: row["imported"] + row["unchanged"] for name, row in counts.items()
    }


def test_the_schedule_continues_behind_the_last_run(run: Run, folder: Path, database: Path) -> None:
    imported(run, database)
    runs = json.loads(run("dags", "list-runs", "daily_etl", "-o", "json").stdout)
    assert {one["run_type"] for one in runs} == {"scheduled"}
    latest = max(one["run_after"] for one in runs)
    following = run("dags", "next-execution", "daily_etl").stdout.strip()
    assert following == latest.replace(f"-{latest[8:10]}T", f"-{int(latest[8:10]) + 1:02}T")


@pytest.mark.parametrize("release", ["2.11.0", "3.3.2"])
def test_mapped_tasks_keep_their_instances(run: Run, folder: Path, tmp_path: Path, release: str) -> None:
    imported(run, create(tmp_path, release))
    rows = json.loads(run("tasks", "states-for-dag-run", "mapped", "m1", "-o", "json").stdout)
    assert [(row["task_id"], row["map_index"], row["state"]) for row in rows] == [
        ("numbers", -1, "success"),
        *(("double", index, "success") for index in range(3)),
    ]


def test_a_missing_administrator_is_mentioned(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    words = ("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--only", "users", "--dry-run")
    assert "no user is an administrator" not in run(*words).stderr
    change(database, "UPDATE ab_user_role SET role_id = (SELECT id FROM ab_role WHERE name = 'Viewer')")
    assert "no user is an administrator: tradewind users create -u NAME -r admin" in run(*words).stderr


def test_users_come_with_their_roles_and_passwords(run: Run, folder: Path, tmp_path: Path) -> None:
    from tradewind.api.auth.accounts import Accounts
    from tradewind.cli.accounts import accounts_of

    database = create(tmp_path, "2.11.0")
    change(database, "UPDATE ab_user SET password = ? WHERE username = 'ann'", generate_hash("open sesame"))
    change(database, "UPDATE ab_user SET password = NULL WHERE username = 'bob'")
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--only", "users")
    assert done.exit_code == 0, done.stderr
    assert "tradewind users reset-password -u bob" in done.stderr
    assert "reset-password -u ann" not in done.stderr
    users = {row["username"]: row["role"] for row in json.loads(run("users", "list", "-o", "json").stdout)}
    assert users == {"ann": "admin", "bob": "viewer"}
    with accounts_of(load()) as store:
        accounts = Accounts(lambda: store, SystemClock(), session_seconds=60, session_idle_seconds=60)
        assert accounts.check_password("ann", "open sesam") is None
        assert (store.password("ann") or "").startswith("pbkdf2:")
        account = accounts.check_password("ann", "open sesame")
        assert account == store.account("ann")
        assert (store.password("ann") or "").startswith("$argon2id$"), "the hash becomes one of our own at the login"
        assert accounts.check_password("ann", "open sesame") is not None


def generate_hash(password: str, salt: str = "aNzugCMEUnyt1oIW") -> str:
    """As Werkzeug writes it."""
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), 1000).hex()
    return f"pbkdf2:sha256:1000${salt}${digest}"


def test_hashes_of_passwords() -> None:
    scrypt = hashlib.scrypt(b"secret", salt=b"salt", n=1024, r=8, p=1).hex()
    assert airflow_passwords.verify(f"scrypt:1024:8:1$salt${scrypt}", "secret")
    assert not airflow_passwords.verify(f"scrypt:1024:8:1$salt${scrypt}", "Secret")
    for other in (
        "",
        "ldap",
        "md5$salt$00",
        "pbkdf2:sha256:99999999999$a$00",
        "scrypt:1000:8:1$a$00",
        "scrypt:1048576:99:1$a$00",
    ):
        assert not airflow_passwords.is_airflow_hash(other)
        assert not airflow_passwords.verify(other, "secret")


def test_custom_roles_come_with_their_grants(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    change(database, "INSERT INTO ab_role VALUES (77, 'Analysts')")
    change(database, "INSERT INTO ab_user_role VALUES (77, 2, 77)")
    change(database, "DELETE FROM ab_user_role WHERE user_id = 2 AND role_id <> 77")
    for table in ("ab_permission", "ab_view_menu"):
        change(database, f"CREATE TABLE {table} (id INTEGER, name TEXT)")
    change(database, "CREATE TABLE ab_permission_view (id INTEGER, permission_id INTEGER, view_menu_id INTEGER)")
    change(database, "CREATE TABLE ab_permission_view_role (id INTEGER, permission_view_id INTEGER, role_id INTEGER)")
    given = (("can_read", "DAGs"), ("can_edit", "DAG:half"), ("can_create", "DAG Runs"), ("can_edit", "Pools"))
    for number, (action, name) in enumerate(given):
        change(database, "INSERT INTO ab_permission VALUES (?, ?)", number, action)
        change(database, "INSERT INTO ab_view_menu VALUES (?, ?)", number, name)
        change(database, "INSERT INTO ab_permission_view VALUES (?, ?, ?)", number + 50, number, number)
        change(database, "INSERT INTO ab_permission_view_role VALUES (?, ?, 77)", number, number + 50)
    counts = imported(run, database, "--only", "roles", "--only", "users", "--dry-run")
    assert counts["roles"]["imported"] == 1
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--only", "roles", "--only", "users")
    assert "role Analysts: custom roles only have permissions for DAGs. Left out: can_edit on Pools" in done.stderr
    roles = {row["name"]: row["may"] for row in json.loads(run("roles", "list", "-o", "json").stdout)}
    assert roles["Analysts"] == "read *, edit half"
    bob = next(row for row in json.loads(run("users", "list", "-o", "json").stdout) if row["username"] == "bob")
    assert (bob["role"], bob["roles"]) == ("public", "Analysts")
    again = imported(run, database, "--only", "roles", "--only", "users")
    assert (again["roles"]["unchanged"], again["users"]["unchanged"]) == (1, 2)


def test_grants_of_a_role() -> None:
    decided = decide_role([("can_edit", "DAG:etl"), ("can_delete", "DAG:etl")])
    assert decided.grants == {("etl", "delete")}, "without the permission to create runs, edit would permit more than before"
    assert decided.left_out == ["can_edit on DAG:etl, because the role may not create DAG runs"]
    assert decide_role([("can_dag_read", "all_dags"), ("can_dag_edit", "etl")]).grants == {("*", "read"), ("etl", "edit")}
    assert decide_role([("can_read", "Website"), ("menu_access", "Browse"), ("can_edit", "My Password")]) == (frozenset(), [])


def test_values_without_their_key_are_left_out(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", OTHER_KEY, "--only", "variables", "-o", "json")
    assert json.loads(done.stdout)[0]["left_out"] == 2
    assert "no given Fernet key fits" in done.stderr
    both = run(
        "import-airflow", f"sqlite:///{database}", "--fernet-key", f"{OTHER_KEY},{KEY}", "--only", "variables", "-o", "json"
    )
    assert json.loads(both.stdout)[0]["imported"] == 2
    wrong = run("import-airflow", f"sqlite:///{database}", "--fernet-key", "short")
    assert wrong.exit_code == 1
    assert "32 bytes" in wrong.stderr


def test_what_exists_here_is_replaced_only_on_request(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    run("variables", "set", "bucket", "s3://mine")
    counts = imported(run, database, "--only", "variables")
    assert (counts["variables"]["imported"], counts["variables"]["left_out"]) == (1, 1)
    assert run("variables", "get", "bucket").stdout == "s3://mine\n"
    assert imported(run, database, "--only", "variables", "--overwrite")["variables"]["imported"] == 1
    assert run("variables", "get", "bucket").stdout == "s3://prices\n"


def heartbeat(database: Path) -> None:
    """Let the scheduler of this Airflow live."""
    change(database, "DELETE FROM job")
    change(
        database,
        "INSERT INTO job (id, job_type, state, latest_heartbeat) VALUES (1, 'SchedulerJob', 'running', datetime('now'))",
    )


def test_a_dag_that_airflow_runs_stays_paused_here(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    heartbeat(database)
    change(database, "UPDATE dag SET is_paused = dag_id <> 'daily_etl'")
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--activate")
    assert "Airflow runs it" in done.stderr
    assert not active(run)
    one = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--activate", "--dag-id", "half")
    assert one.exit_code == 0, one.stderr
    assert active(run) == {"half"}
    run("dags", "unpause", "daily_etl")
    run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY)
    assert active(run) == {"half"}, "Airflow runs daily_etl, so it must not run here"


def test_when_airflow_has_stopped_its_active_dags_run_here(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    change(database, "UPDATE dag SET is_paused = dag_id NOT IN ('daily_etl', 'broken')")
    imported(run, database)
    assert not active(run)
    imported(run, database, "--activate")
    assert active(run) == {"daily_etl", "broken"}


def active(run: Run) -> set[str]:
    rows = json.loads(run("dags", "list", "-o", "json").stdout)
    return {row["dag_id"] for row in rows if not row["is_paused"]}


def test_runs_that_airflow_executes_wait_for_a_later_import(run: Run, folder: Path, tmp_path: Path) -> None:
    database = create(tmp_path, "2.11.0")
    change(database, "UPDATE task_instance SET state = 'running' WHERE dag_id = 'half' AND task_id = 'use'")
    done = run("import-airflow", f"sqlite:///{database}", "--fernet-key", KEY, "--only", "runs")
    assert "run h1 of DAG half: Airflow executes it: use is running" in done.stderr
    change(database, "UPDATE task_instance SET state = 'success' WHERE dag_id = 'half'")
    change(database, "UPDATE dag_run SET state = 'success' WHERE dag_id = 'half'")
    assert imported(run, database, "--only", "runs")["runs"]["imported"] == 1
    assert states(run, "half", "h1") == {"make": "success", "use": "success"}


def test_tasks_that_the_dag_has_lost_or_won_since(run: Run, folder: Path, tmp_path: Path) -> None:
    """The imported run keeps what it had; when it is cleared, it follows the present DAG."""
    database = create(tmp_path, "2.11.0")
    changed = DAGS.replace('("fails", "after")', '("first", "fails", "last")')
    (folder / "dags" / "team.py").write_text(changed)
    imported(run, database)
    assert states(run, "broken", "r1") == {"fails": "failed", "after": "upstream_failed"}
    assert run("tasks", "clear", "broken", "--run-id", "r1", "-t", "fails", "-y").exit_code == 0
    assert states(run, "broken", "r1")["fails"] is None


def test_a_dag_without_a_file_here_is_named(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "dags" / "team.py").write_text(DAGS.replace('"half"', '"other"'))
    done = run("import-airflow", f"sqlite:///{create(tmp_path, '2.11.0')}", "--fernet-key", KEY)
    assert done.exit_code == 0
    assert "DAG half is not in the DAG folder here" in done.stderr


def test_wrong_databases_are_refused(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "other.db").touch()
    (tmp_path / "text.db").write_text("no database" * 100)
    for words, sentence in (
        ([f"sqlite:///{tmp_path}/missing.db"], "there is no SQLite file"),
        ([f"sqlite:///{tmp_path}/other.db"], "no database of Airflow"),
        ([f"sqlite:///{tmp_path}/text.db"], "is not a SQLite database"),
        (["oracle://scott:tiger@host/x"], "begins with 'oracle'"),
        ([], "tradewind import-airflow postgresql://"),
    ):
        done = run("import-airflow", *words)
        assert done.exit_code == 1
        assert sentence in done.stderr
        assert "tiger" not in done.stderr


def test_a_dag_that_airflow_does_not_have_is_refused(run: Run, folder: Path, tmp_path: Path) -> None:
    done = run("import-airflow", f"sqlite:///{create(tmp_path, '2.11.0')}", "--dag-id", "hlaf")
    assert done.exit_code == 1
    assert "Did you mean 'half'?" in done.stderr


# --- decisions and values ---------------------------------------------------------------------------------------------


def test_decisions_about_runs() -> None:
    paused, active_dag = {"is_paused": True, "scheduler_lives": True}, {"is_paused": False, "scheduler_lives": True}
    stopped = {"is_paused": False, "scheduler_lives": False}
    assert decide_run("success", [("a", "success")], **active_dag).state is RunState.SUCCESS
    assert decide_run("running", [("a", "success"), ("b", None)], **paused).state is RunState.QUEUED
    assert decide_run("running", [("a", "success"), ("b", None)], **stopped).state is RunState.QUEUED
    assert decide_run("running", [("a", "success"), ("b", None)], **active_dag).state is None
    for busy in ("running", "queued", "deferred", "sensing", "up_for_reschedule", "awaiting_input"):
        assert decide_run("running", [("a", busy)], **stopped).state is None


def test_decisions_about_pauses() -> None:
    def decided(paused_there: bool, lives_there: bool, activate: bool, named: bool, paused_here: bool) -> bool | None:
        return decide_pause(
            paused_there=paused_there, scheduler_lives=lives_there, activate=activate, is_named=named, paused_here=paused_here
        ).paused

    assert decided(False, True, True, True, True) is None, "Airflow runs it"
    assert decided(False, True, False, False, False) is True, "Airflow runs it"
    assert decided(False, False, True, False, True) is False
    assert decided(True, False, True, False, True) is None, "nobody runs it, and nobody asked for it by name"
    assert decided(True, True, True, True, True) is False
    assert decided(True, True, False, False, False) is None, "it was moved before"


def test_types_states_and_roles() -> None:
    assert run_type("dataset_triggered", "x") is RunType.ASSET_TRIGGERED
    assert run_type(None, "scheduled__2020-01-01T00:00:00+00:00") is RunType.SCHEDULED
    assert run_type(None, "backfill_2020-01-01T00:00:00+00:00") is RunType.BACKFILL
    assert run_type(None, "trig__1") is RunType.MANUAL
    assert [task_state(one) for one in ("success", "up_for_retry", None, "no_status")] == [
        TaskState.SUCCESS,
        TaskState.NONE,
        TaskState.NONE,
        TaskState.NONE,
    ]
    assert [role_of(names) for names in (["Viewer", "Op"], ["Public"], ["Team"], ["Admin"])] == ["op", "public", None, "admin"]
    assert lives(0, 59_000_000)
    assert not lives(0, 61_000_000)
    assert not lives(None, 0)


def test_moments_of_each_driver() -> None:
    assert micros("2024-01-02 06:00:00.000000") == micros("2024-01-02T06:00:00+00:00") == 1_704_175_200_000_000
    assert micros(None) is None
    with pytest.raises(Unreadable):
        micros("soon")


def test_a_pickle_that_would_run_code_is_not_loaded() -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return print, ("executed",)

    with pytest.raises(Unreadable, match=r"builtins\.print"):
        unpickled(pickle.dumps(Evil()))
    assert unpickled(pickle.dumps({"a": {1, 2}}, protocol=2)) == {"a": {1, 2}}
    with pytest.raises(Unreadable):
        unpickled(b"\x80\x04broken")
    assert conf_of_run(pickle.dumps({"day": "monday"})) == {"day": "monday"}
    assert conf_of_run('{"day": 1}') == {"day": 1}
    assert conf_of_run(None) == {}
    with pytest.raises(Unreadable, match="list"):
        conf_of_run("[1]")


def test_values_of_xcoms() -> None:
    assert xcom_value(b'{"rows": 3}') == {"rows": 3}
    assert xcom_value('"{\\"rows\\": 3}"') == '{"rows": 3}', "a text that looks like JSON stays a text"
    assert xcom_value('"a plain text"') == "a plain text"
    marked = '{"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, 2]}'
    assert xcom_value(marked) == (1, 2)
    moment = '{"__classname__": "datetime.datetime", "__version__": 2, "__data__": {"timestamp": 0.0, "tz": ["UTC"]}}'
    assert xcom_value(moment).isoformat() == "1970-01-01T00:00:00+00:00"
    with pytest.raises(Unreadable, match=r"pandas\.core\.frame\.DataFrame"):
        xcom_value('{"__classname__": "pandas.core.frame.DataFrame", "__data__": ""}')


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("uuid.UUID", '"00000000-0000-0000-0000-000000000005"', UUID(int=5)),
        ("datetime.date", '"2024-02-29"', date(2024, 2, 29)),
        ("datetime.datetime", '{"timestamp": 0.0, "tz": null}', datetime(1970, 1, 1)),  # noqa: DTZ001
        ("datetime.datetime", '{"timestamp": 0.0, "tz": "CEST"}', datetime(1970, 1, 1, tzinfo=UTC)),
        ("pendulum.tz.timezone.Timezone", '"Europe/Berlin"', ZoneInfo("Europe/Berlin")),
        ("pendulum.tz.timezone.FixedTimezone", "-3600", timezone(timedelta(hours=-1))),
        ("numpy.int64", "7", 7),
        ("decimal.Decimal", "1.5", Decimal("1.5")),
        ("shop.Order", '{"id": 3, "paid": {"__classname__": "builtins.tuple", "__data__": [1]}}', {"id": 3, "paid": (1,)}),
        ("shop.date", '{"day": 3}', {"day": 3}),
    ],
)
def test_values_of_marked_classes(name: str, data: str, value: object) -> None:
    assert xcom_value(f'{{"__classname__": "{name}", "__version__": 2, "__data__": {data}}}') == value


@pytest.mark.parametrize("zone", ['"Europe/Berlin"', "3600"])
def test_moments_of_pendulum_keep_their_offset(zone: str) -> None:
    stored = (
        f'{{"__classname__": "pendulum.datetime.DateTime", "__data__": {{"timestamp": 0.0, "tz": [{zone}, "x", 1, true]}}}}'
    )
    found = xcom_value(stored)
    assert found.isoformat() == "1970-01-01T01:00:00+01:00"
    assert found.add(days=1).day == 2


# --- a database with assets, partitions, notes, retries and groups ------------------------------------------------------

ASSET_DAGS = """
from datetime import datetime
from airflow.sdk import DAG, Asset, CronPartitionTimetable, task

prices, other = Asset(name="prices", uri="s3://bucket/prices"), Asset(name="other", uri="s3://bucket/other")

@task
def work(): ...

with DAG("producer", schedule=None):
    work.override(task_id="make", outlets=[prices])()
with DAG("consumer", schedule=[prices, other]):
    work.override(task_id="read")()
with DAG("only_prices", schedule=[prices]):
    work.override(task_id="use")()
with DAG("values", schedule=None):
    for name in ("kinds", "more", "more__1"):
        work.override(task_id=name)()
with DAG("retrying", schedule=None):
    for name in ("flaky", "hopeless", "after", "choose", "left", "right"):
        work.override(task_id=name)()
with DAG("unfinished", schedule=None):
    for name in ("first", "second"):
        work.override(task_id=name)()
daily = CronPartitionTimetable("0 0 * * *", timezone="UTC")
with DAG("partitions", schedule=daily, start_date=datetime(2026, 11, 25), catchup=True):
    work.override(task_id="part", outlets=[other])()
"""


@pytest.fixture
def assets(run: Run, home: Path, tmp_path: Path) -> Any:
    """The store after the import of this database, and the database itself."""
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "assets.py").write_text(ASSET_DAGS)
    database = create(tmp_path, "3.3.2-assets")
    counts = imported(run, database, "--all-xcoms")
    assert {name: (row["imported"] + row["unchanged"], row["left_out"]) for name, row in counts.items()} == {
        name: (row["in_airflow"], 0) for name, row in counts.items()
    }
    assert (counts["runs"]["imported"], counts["assets"]["imported"]) == (11, 5)
    store, _ = open_commands(load())
    yield store, database
    store.close()


def test_a_schedule_with_partitions_continues_behind_its_last_run(assets: Any, run: Run) -> None:
    store, _ = assets
    run_after = micros("2026-11-27T00:00:00+00:00")
    assert store.need_dag("partitions").last == (None, None, None, run_after)
    assert run("dags", "next-execution", "partitions").stdout.strip() == "2026-11-28T00:00:00Z"
    keys = {row["partition_key"] for row in json.loads(run("dags", "list-runs", "partitions", "-o", "json").stdout)}
    assert keys == {f"2026-11-{day}T00:00:00" for day in (25, 26, 27)}


def test_asset_events_wait_for_the_same_dags_once(assets: Any, run: Run) -> None:
    store, database = assets
    assert [(one.asset.name, one.last) for one in store.waiting_assets("consumer")] == [("prices", 5)]
    assert store.waiting_assets("only_prices") == []
    again = imported(run, database)
    assert (again["assets"]["imported"], again["assets"]["unchanged"]) == (0, 5)
    assert [(one.asset.name, one.last) for one in store.waiting_assets("consumer")] == [("prices", 5)]


def test_an_event_that_airflow_consumes_later_does_not_wait_any_more(assets: Any, run: Run) -> None:
    store, database = assets
    fields = "dag_id, run_id, run_type, state, run_after, clear_number, span_status"
    change(
        database,
        f"INSERT INTO dag_run (id, {fields}) VALUES (99, 'consumer', 'c', 'asset_triggered', 'success', '2026-11-27', 0, '')",
    )
    change(database, "INSERT INTO dagrun_asset_event SELECT 99, id FROM asset_event WHERE asset_id = 1")
    change(database, "DELETE FROM asset_dag_run_queue")
    imported(run, database)
    assert store.waiting_assets("consumer") == []


def test_events_do_not_wait_here_for_a_dag_that_airflow_may_run(run: Run, home: Path, tmp_path: Path) -> None:
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "assets.py").write_text(ASSET_DAGS)
    database = create(tmp_path, "3.3.2-assets")
    heartbeat(database)
    imported(run, database, "--only", "assets")
    store, _ = open_commands(load())
    try:
        assert store.waiting_assets("consumer") == []
    finally:
        store.close()


def test_notes_and_earlier_tries_are_imported(assets: Any, run: Run) -> None:
    store, _ = assets
    assert store.need_run("retrying", "r1").note == "as expected"
    retrying = store.need_run("retrying", "r1")
    tries = [(one.try_number, one.outcome) for one in store.attempts("retrying", "r1", "flaky")]
    assert tries == [(1, "failed"), (2, "failed"), (3, "success")]
    fences = [one.fence for one in store.attempts_of_run(retrying.id) if one.try_number == 3]
    assert fences == [3], "a clear has to give a greater fence"


def test_roles_of_groups_count(assets: Any, run: Run) -> None:
    users = {row["username"]: row["role"] for row in json.loads(run("users", "list", "-o", "json").stdout)}
    assert users == {"ann": "admin", "bob": "op", "cid": "public"}


def test_only_the_right_key_decrypts() -> None:
    from cryptography.fernet import Fernet

    token = Fernet(KEY.encode()).encrypt(b"s3cret").decode()
    assert Keys([OTHER_KEY, KEY]).decrypt(token, True) == "s3cret"
    assert Keys([]).decrypt("plain", False) == "plain"
    with pytest.raises(Unreadable, match="--fernet-key"):
        Keys([]).decrypt(token, 1)


def test_a_url_of_another_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongArgument):
        open_database("mssql+pyodbc://x")
    with pytest.raises(NotFound):
        open_database("sqlite:////nowhere/x.db")
    assert Source(open_database(str(create(tmp_path, "1.10.15")))).release == "Airflow 1.10"


# --- the commands behind ----------------------------------------------------------------------------------------------


def definition() -> DagDefinition:
    tasks = (TaskDefinition("a"), TaskDefinition("b", upstream=("a",)))
    return DagDefinition("d", tasks, schedule=CronSchedule(("0 0 * * *",)), start_date=0, catchup=True)


@pytest.fixture
def commands(home: Path) -> Any:
    settings = load()
    settings.paths.prepare()
    store, found = open_commands(settings)
    data = encode_definition(definition())
    dags = [["d", data, version_hash(data)]]
    call(
        found,
        "register_file",
        {"bundle": "dags-folder", "file": "d.py", "file_hash": "x", "dags": dags, "duration": 1, "at": 1},
    )
    yield found
    store.close()


def call(commands: Any, name: str, args: dict[str, Any]) -> Any:
    import os

    asked = incoming("an op", name, args, "test")
    return plain(commands.run(asked._replace(op=os.urandom(8).hex()))[0], asked.command)


def run_of(run_id: str, **fields: Any) -> dict[str, Any]:
    base = {"dag_id": "d", "run_id": run_id, "run_type": "scheduled", "state": "success", "logical_date": 10, "queued_at": 1}
    return {**base, "interval_start": 10, "interval_end": 20, "run_after": 20, **fields}


def test_one_run_that_cannot_be_stored_does_not_stop_the_others(commands: Any) -> None:
    tasks = [{"task_id": "a", "state": "success", "started_at": 1, "ended_at": 2}, {"task_id": "b", "state": "skipped"}]
    runs = [
        run_of("one", tasks=tasks),
        run_of("bad/../id" + "x" * 300, logical_date=11),
        run_of("elsewhere", dag_id="unknown"),
        run_of("two", logical_date=12, tasks=tasks),
        run_of("twin", logical_date=12),
    ]
    result = call(commands, "import_runs", {"runs": runs, "origin": "Airflow 2"})
    assert (result["created"], result["existing"], len(result["refused"])) == (2, 1, 2)
    row = commands.store.need_run("d", "one")
    assert row.state is RunState.SUCCESS
    assert [entry.cause for entry in commands.store.journal(row.id)] == ["imported from Airflow 2"] * 2
    assert commands.store.need_dag("d").version == row.version


def test_a_run_with_other_tasks_has_a_version_of_its_own(commands: Any) -> None:
    gone = [{"task_id": "b", "state": "success"}, {"task_id": "gone", "state": "failed", "operator": "HiveOperator"}]
    call(commands, "import_runs", {"runs": [run_of("one", tasks=gone)], "origin": "Airflow 2"})
    store = commands.store
    row = store.need_run("d", "one")
    assert row.version != store.need_dag("d").version
    assert [(task.task_id, task.operator, task.upstream) for task in store.definition(row.version).tasks] == [
        ("b", "BaseOperator", ()),
        ("gone", "HiveOperator", ()),
    ]


def test_a_schedule_moves_only_forward(commands: Any) -> None:
    day = 86_400_000_000
    assert call(commands, "import_position", {"dag_id": "d", "logical_date": 5 * day})["moved"]
    assert commands.store.need_dag("d").last == (5 * day, 5 * day, 6 * day, 6 * day)
    assert not call(commands, "import_position", {"dag_id": "d", "logical_date": 4 * day})["moved"]
    assert commands.store.need_dag("d").last == (5 * day, 5 * day, 6 * day, 6 * day)


def test_xcoms_are_stored_as_tasks_read_them(run: Run, folder: Path, tmp_path: Path) -> None:
    imported(run, create(tmp_path, "3.3.2"), "--all-xcoms")
    with_store, _ = open_commands(load())
    try:
        number = with_store.need_run("half", "h1").id
        ((_, _, data, spill),) = with_store.xcoms(number, ["make"], "return_value")
        assert spill is None
        assert decode_xcom(data) == {"rows": 3, "names": ["a", "b"]}
    finally:
        with_store.close()
