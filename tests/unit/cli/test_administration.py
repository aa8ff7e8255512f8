"""The administration commands: `db`, `config`, `users`, `providers`, `plugins`, keys; and commands that exist only in Airflow."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run, carry_out
from tests.unit.cli.test_dag_commands import finish_runs
from tradewind.api.auth.passwords import PasswordCheck
from tradewind.cli.accounts import accounts_of
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.cli.locks import home_lock, writer_lock
from tradewind.model.accounts import ROLES, Account, AccountSession
from tradewind.provider_packages import installed, offers
from tradewind.settings import load
from tradewind.store.accounts import open_accounts
from tradewind.store.crypto import generate_key

# --- db -----------------------------------------------------------------------------------------------------------------


def test_clean_deletes_old_runs_except_the_newest(run: Run, known: Path) -> None:
    for day in (1, 2, 3):
        run("dags", "trigger", "alpha", "-r", f"r{day}", "-l", f"2024-01-0{day}")
    run("dags", "trigger", "beta", "-r", "last")
    finish_runs("alpha")
    words = ("db", "clean", "--clean-before-timestamp", "2030-01-01")
    assert json.loads(run(*words, "--dry-run", "-o", "json").stdout) == [{"dag_id": "alpha", "runs": 2}]
    assert run(*words, input="n\n").exit_code == 1
    assert len(json.loads(run("dags", "list-runs", "alpha", "-o", "json").stdout)) == 3
    assert run(*words, "--exclude-dag-ids", "alpha", "-y").stderr == "There are no runs to delete.\n"
    assert run(*words, "-y").stdout == "Deleted 2 runs of 1 DAG.\n"
    assert [row["run_id"] for row in json.loads(run("dags", "list-runs", "alpha", "-o", "json").stdout)] == ["r3"]
    assert "'alpha'" in run(*words, "--dag-ids", "alhpa", "-y").stderr
    assert run(*words, "-t", "xcom", "-y").exit_code == 2


def test_reset_asks_and_is_refused_while_a_service_runs(run: Run, known: Path) -> None:
    assert run("db", "reset", input="n\n").exit_code == 1
    settings = load()
    for lock in (writer_lock(settings), home_lock(settings)):
        lock.acquire()
        refused = run("db", "reset", "-y")
        lock.release()
        assert refused.exit_code == 1
        assert str(os.getpid()) in refused.stderr
    assert json.loads(run("dags", "list", "-o", "json").stdout) != []
    assert "A new database is created." in run("db", "reset", "-y").stdout
    assert json.loads(run("dags", "list", "-o", "json").stdout) == []
    run("db", "reset", "-y", "--skip-init")
    assert not (known / "tradewind.db").exists()


def test_a_move_of_a_running_installation_is_refused_with_the_commands(run: Run, known: Path) -> None:
    lock = home_lock(load())
    lock.acquire()
    lock.write_note("http://127.0.0.1:8080")
    refused = run("db", "move", "postgresql://me:secret@localhost/tradewind", "-y")
    lock.release()
    assert refused.exit_code == 1
    pid = os.getpid()
    assert refused.stderr.splitlines() == [
        f"tradewind: standalone is already running on this home folder (process {pid} at http://127.0.0.1:8080); stop it first:",
        f"  kill {pid} && tail --pid={pid} -f /dev/null    # running tasks have 60 s to finish (runner.drain_timeout)",
        "  tradewind db move URL",
        "  export TRADEWIND__DATABASE__URL=URL",
        "  tradewind standalone",
        "A task that does not finish in time costs a try, and is tried again after the move.",
    ]


def test_reset_deletes_the_reports_of_all_worker_hosts(run: Run, known: Path) -> None:
    (known / "spool-w2").mkdir()
    (known / "spool-w2" / "report").touch()
    assert run("db", "reset", "-y").exit_code == 0
    assert not (known / "spool-w2").exists(), "a report of the old database would be applied to a run of the new one"
    assert (known / "spool").is_dir()


@pytest.mark.parametrize(
    ("password", "why"),
    [("short", "5 of at least 8 characters"), ("it-is-Ann-again", "contain the user name"), ("", "0 of at least 8 characters")],
)
def test_a_weak_password_is_refused(run: Run, known: Path, password: str, why: str) -> None:
    done = run("users", "create", "-u", "ann", "-r", "viewer", "-p", password)
    assert (done.exit_code, why in done.stderr) == (2, True)
    assert json.loads(run("users", "list", "-o", "json").stdout) == []
    assert run("users", "create", "-u", "ann", "-r", "viewer", "-p", "correct-horse").exit_code == 0
    assert run("users", "reset-password", "-u", "ann", "-p", password).exit_code == 2


def test_backup_writes_a_database_and_overwrites_nothing(run: Run, known: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert run("db", "backup", str(target)).exit_code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "exists" in run("db", "backup", str(target)).stderr
    os.replace(target, known / "tradewind.db")
    assert [row["dag_id"] for row in json.loads(run("dags", "list", "-o", "json").stdout)] == ["alpha", "beta"]


def test_a_database_of_an_older_release_can_be_backed_up_before_it_is_migrated(run: Run, known: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(known / "tradewind.db")) as database:
        database.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
        database.commit()
    refused = run("dags", "list").stderr
    assert "has schema 1, this release needs" in refused
    assert "first, to be able to go back: tradewind db backup FILE" in refused
    target = tmp_path / "before.db"
    assert run("db", "backup", str(target)).exit_code == 0
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() == ("1",)


def test_accounts_are_in_a_backup_and_restored_where_there_are_none(run: Run, known: Path, tmp_path: Path) -> None:
    def names() -> list[str]:
        return [row["username"] for row in json.loads(run("users", "list", "-o", "json").stdout)]

    copy = tmp_path / "copy.db"
    assert run("users", "create", "-u", "ann", "-r", "viewer", "-p", "correct-horse").exit_code == 0
    assert f"The accounts were copied to {copy}.accounts." in run("db", "backup", str(copy)).stdout
    assert stat.S_IMODE(Path(f"{copy}.accounts").stat().st_mode) == 0o600
    assert run("users", "delete", "-u", "ann", "-y").exit_code == 0
    assert run("users", "create", "-u", "bob", "-r", "viewer", "-p", "correct-horse").exit_code == 0
    stay = run("db", "restore", str(copy), "-y")
    assert (stay.exit_code, "The accounts of this machine stay as they are" in stay.stdout) == (0, True), stay.stderr
    assert names() == ["bob"]
    done = run("db", "restore", str(copy), "-y", "--accounts")
    assert (done.exit_code, "The previous accounts are now in" in done.stdout) == (0, True), done.stderr
    assert names() == ["ann"]
    for file in known.glob("accounts.db*"):
        file.unlink()
    assert run("db", "restore", str(copy), "-y").exit_code == 0
    assert names() == ["ann"]
    assert list(known.glob("accounts.db.restoring*")) == []


def test_restored_accounts_have_no_valid_login(run: Run, known: Path, tmp_path: Path) -> None:
    assert run("users", "create", "-u", "ann", "-r", "viewer", "-p", "correct-horse").exit_code == 0
    store = open_accounts(str(known / "accounts.db"), "", 1)
    stamp = store.need_account("ann").stamp
    store.create_session(AccountSession("s", "ann", 1, 1, 2**50, "", "", ""), "hash", 5)
    store.close()
    copy = tmp_path / "copy.db"
    run("db", "backup", str(copy))
    assert run("db", "restore", str(copy), "-y", "--accounts").exit_code == 0
    store = open_accounts(str(known / "accounts.db"), "", 1)
    assert store.need_account("ann").stamp != stamp
    assert store.sessions() == []
    store.close()


def test_a_file_that_holds_no_accounts_is_refused(run: Run, known: Path, tmp_path: Path) -> None:
    assert run("users", "create", "-u", "ann", "-r", "viewer", "-p", "correct-horse").exit_code == 0
    copy = tmp_path / "copy.db"
    run("db", "backup", str(copy))
    Path(f"{copy}.accounts").write_text("hello " * 1000)
    done = run("db", "restore", str(copy), "-y", "--accounts")
    assert (done.exit_code, "holds no accounts of Tradewind" in done.stderr) == (1, True)
    assert [row["username"] for row in json.loads(run("users", "list", "-o", "json").stdout)] == ["ann"]


def test_other_db_commands(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("db", "check-migrations").exit_code == 0
    assert "db restore" in run("db", "downgrade", "-n", "2.0.0", "-y").stderr
    assert "no archive" in run("db", "export-archived", "--output-path", "x").stdout
    assert "up to date" in run("db", "init").stdout
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert run("db", "shell", "SELECT dag_id FROM dag ORDER BY 1").stdout == "dag_id\nalpha\nbeta\n"
    assert run("db", "shell", "DELETE FROM dag").exit_code == 1
    assert "sqlite3" in run("db", "shell").stderr
    (known / "tradewind.db").unlink()
    done = run("db", "check-migrations", "-t", "0")
    assert (done.exit_code, "is missing" in done.stderr) == (1, True)


def test_rotate_fernet_key_encrypts_with_the_newest_key(run: Run, known: Path) -> None:
    run("variables", "set", "name", "canary-value", "--description", "what for")
    run("connections", "add", "a", "--conn-uri", "postgres://me:canary@db:5432/x?ssl=yes")
    key_file = known / "fernet.key"
    key_file.write_text(generate_key() + "\n" + key_file.read_text())
    done = run("rotate-fernet-key")
    assert "Encrypted 1 variable and 1 connection with key" in done.stdout
    key_file.write_text(key_file.read_text().splitlines()[0] + "\n")
    assert run("variables", "get", "name").stdout == "canary-value\n"
    (row,) = json.loads(run("connections", "get", "a", "--show-values", "-o", "json").stdout)
    assert (row["password"], json.loads(row["extra"])) == ("canary", {"ssl": "yes"})
    assert "Nothing to do: every variable and connection is encrypted with the newest key" in run("rotate-fernet-key").stdout


# --- users --------------------------------------------------------------------------------------------------------------


def login(name: str, password: str) -> Account | None:
    with accounts_of(load()) as store:
        return store.account(name) if PasswordCheck().is_right(store.password(name), password) else None


def test_a_created_user_can_log_in(run: Run, home: Path) -> None:
    assert run("users", "list").exit_code == 0
    assert run("users", "create", "-u", "ada", "-r", "Admin", "-p", "first-secret", "-e", "a@b.c").exit_code == 0
    assert "logins" not in run("users", "create", "-u", "bob", "-r", "viewer", input="second-secret\nsecond-secret\n").stdout
    assert stat.S_IMODE(os.stat(load().paths.accounts).st_mode) == 0o600
    assert login("ada", "first-secret") is not None
    assert login("bob", "second-secret") is not None
    assert run("users", "create", "-u", "ada", "-r", "op", "-p", "x").exit_code == 1
    assert run("users", "reset-password", "-u", "ada", "-p", "third-secret").exit_code == 0
    assert (login("ada", "first-secret"), login("ada", "third-secret") is not None) == (None, True)
    assert "before: viewer" in run("users", "add-role", "-u", "bob", "-r", "op").stdout
    shown = json.loads(run("users", "list", "-o", "json").stdout)
    assert [(row["username"], row["role"], row["email"]) for row in shown] == [("ada", "admin", "a@b.c"), ("bob", "op", "")]
    assert "only admin" in run("users", "delete", "-u", "ada", "-y").stderr
    assert "only admin" in run("users", "add-role", "-u", "ada", "-r", "op").stderr
    assert "only admin" in run("users", "disable", "-u", "ada").stderr
    assert run("users", "delete", "-u", "bob", "-y").stdout == "User bob is deleted.\n"
    assert "'ada'" in run("users", "delete", "-u", "adda", "-y").stderr


def test_logout_ends_all_logins_but_keeps_the_password(run: Run, home: Path) -> None:
    run("users", "create", "-u", "ada", "-r", "viewer", "-p", "first-secret")
    before = login("ada", "first-secret")
    assert run("users", "logout", "-u", "ada").exit_code == 0
    after = login("ada", "first-secret")
    assert before is not None
    assert after is not None
    assert before.stamp != after.stamp, "tokens carry the stamp"
    assert run("users", "add-role", "-u", "ada", "-r", "op").exit_code == 0
    last = login("ada", "first-secret")
    assert last is not None
    assert last.stamp == after.stamp, "another change of the user does not bring old tokens back"
    assert "'ada'" in run("users", "logout", "-u", "adda").stderr


def test_the_roles_are_those_of_the_server(run: Run) -> None:
    assert [row["name"] for row in json.loads(run("roles", "list", "-o", "json").stdout)] == list(ROLES)


# --- config -------------------------------------------------------------------------------------------------------------


def test_an_airflow_config_is_checked_and_converted(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "airflow.cfg"
    file.write_text(
        "[core]\nparallelism = 7\nexecutor = DaskExecutor\nfernet_key = canary\nhostname_callable = x\n"
        "donot_pickle = True\n"
        "[smtp]\nsmtp_password = canary\n"
    )
    done = run("config", "lint", "--file", str(file))
    assert done.exit_code == 1
    assert "core.hostname_callable" in done.stdout
    assert "core.parallelism" not in done.stdout
    assert "core.donot_pickle" not in done.stdout  # Airflow's default
    assert "canary" not in done.stdout
    assert run("config", "lint", "--file", str(file), "--section", "api").exit_code == 0
    shown = run("config", "update", "--file", str(file))
    assert "is not converted" in shown.stdout
    assert "Nothing was changed" in shown.stderr
    assert not (home / "tradewind.toml").exists()
    assert run("config", "update", "--file", str(file), "--fix").exit_code == 0
    assert "canary" not in (home / "tradewind.toml").read_text()
    assert run("config", "get-value", "core.parallelism").stdout == "7\n"
    again = run("config", "update", "--file", str(file), "--fix")
    assert (again.exit_code, "was not changed" in again.stderr) == (1, True)
    monkeypatch.setenv("AIRFLOW__CORE__HOSTNAME_CALLABLE", "x")
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", "team.xcoms.Backend")  # has an effect in the processes of tasks
    linted = run("config", "lint").stdout
    assert "AIRFLOW__CORE__HOSTNAME_CALLABLE" in linted
    assert "AIRFLOW__CORE__XCOM_BACKEND" not in linted
    assert "no airflow.cfg" in run("config", "update").stderr


def test_config_list_shows_the_requested_columns(run: Run, home: Path) -> None:
    plain = run("config", "list", "--section", "core").stdout
    assert "TRADEWIND__CORE__PARALLELISM" not in plain
    assert "TRADEWIND__CORE__PARALLELISM" in run("config", "list", "--section", "core", "-V", "-d", "-a").stdout


def test_anonymized_info_has_no_names(run: Run, known: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(known.parent))
    assert str(known.parent) in run("info").stdout
    assert str(known.parent) not in run("info", "--anonymize").stdout


# --- packages -----------------------------------------------------------------------------------------------------------


def test_provider_packages_and_their_hooks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "providers", dict)
    offers.hooks.cache_clear()
    assert "No provider package is installed" in run("providers", "list").stderr
    assert "has executors" in run("providers", "executors").stderr
    info = {
        "description": "`Postgres`",
        "connection-types": [{"connection-type": "postgres", "hook-class-name": "x.Hook"}],
    }
    package = installed.Provider("apache-airflow-providers-postgres", "6.0", info, None)
    monkeypatch.setattr(installed, "providers", lambda: {package.package: package})
    offers.hooks.cache_clear()
    assert "6.0" in run("providers", "list").stdout
    (row,) = json.loads(run("providers", "hooks", "-o", "json").stdout)
    assert row["class"] == "x.Hook"
    assert "apache-airflow-providers-postgres" in run("providers", "get", "apache-airflow-providers-postgras").stderr
    offers.hooks.cache_clear()


def test_plugins_are_those_that_the_parser_found(run: Run, known: Path) -> None:
    assert "has found no plugins" in run("plugins").stderr
    store, commands = open_commands(load())
    found = {"name": "ours", "source": "$PLUGINS_FOLDER/ours.py", "macros": ["ours.days"], "recorded_only": ["listeners"]}
    problem = {"file": "bad.py", "message": "SyntaxError: no", "stack_trace": "", "line": 3}
    carry_out(commands, "register_plugins", {"plugins": [found], "problems": [problem], "at": 1})
    store.close()
    done = run("plugins")
    assert done.exit_code == 1
    assert "ours.days" in done.stdout
    assert "these parts have no effect yet: listeners" in done.stderr
    assert "bad.py cannot be loaded: SyntaxError" in done.stderr
    assert json.loads(run("plugins", "-o", "json").stdout) == [found]


# --- what is not here ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["triggerer", "--capacity", "3"], 1, "no service has to be started"),
        (["kerberos", "principal", "-k", "x"], 1, "k5start"),
        (["webserver", "-p", "80"], 2, "tradewind api-server"),
        (["list_dags"], 2, "tradewind dags list"),
    ],
)
def test_commands_only_in_airflow_print_the_alternative(run: Run, words: list[str], code: int, hint: str) -> None:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert hint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_each_setting_of_airflow_is_explained(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "airflow.cfg").write_text(
        "[core]\nparallelism = 7\nparalelism = 8\nfernet_key = canary\n"
        "[celery]\nbroker_url = canary\nresult_backend = canary\n[team]\nbucket = b\n"
    )
    monkeypatch.setenv("AIRFLOW_CONFIG", str(tmp_path / "airflow.cfg"))
    done = run("config", "airflow", "-o", "json")
    assert done.exit_code == 0
    assert "canary" not in done.stdout
    meanings = {row["setting"]: row["meaning"] for row in json.loads(done.stdout)}
    assert meanings["core.parallelism"] == "used as core.parallelism"
    assert meanings["core.paralelism"].endswith("Did you mean core.parallelism?")
    assert "secret" in meanings["celery.broker_url"]
    assert "has no meaning here" in meanings["celery.result_backend"]
    assert "conf.get" in meanings["team.bucket"]
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "")
    rows = {
        row["setting"]: row for row in json.loads(run("config", "airflow", "-o", "json").stdout) if "AIRFLOW" in row["source"]
    }
    assert (rows["core.load_examples"]["value"], rows["core.load_examples"]["meaning"]) == (
        "False",
        "used as core.load_examples",
    )
    assert rows["core.fernet_key"]["meaning"] == "is empty, so it is not used"
    assert run("config", "get-value", "core", "parallelism").stdout == "7\n"
    assert run("config", "get-value", "team", "bucket").stdout == "b\n"
    assert run("config", "get-value", "webserver", "web_server_port").exit_code == 0
    assert len(json.loads(run("config", "airflow", "--unknown", "-o", "json").stdout)) == 1
