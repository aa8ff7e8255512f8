"""The commands of Airflow 1.10, 2 and 3, and the command of Tradewind for each of them.

One table. A form is a command of Airflow, or a command with the option that chooses its action (`variables --set`). A form
names the command of Tradewind, or has a sentence that says what to use instead. Options with the same name in Airflow and
Tradewind need no rule.
"""

from __future__ import annotations

from typing import NamedTuple


class OptionRule(NamedTuple):
    """How an option of Airflow is translated.

    Attributes:
        names: the spellings of the option. Long ones have hyphens.
        values: how many words follow it.
        to: the option of Tradewind, also with a fixed value (`--reprocess-behavior failed`); `{}`: its value becomes an argument.
        dropped: why the option has no effect; "": no message is printed.
        refused: why the command cannot be executed with the option.
    """

    names: tuple[str, ...]
    values: int
    to: str | None = None
    dropped: str | None = None
    refused: str | None = None


class Form(NamedTuple):
    """One command of Airflow.

    Attributes:
        airflow: the words of the command.
        tradewind: the words of the command of Tradewind; empty: there is no such command, see `sentence`.
        since, until: the first and last generation of Airflow that has the command.
        when: the option that chooses this form, where one command of Airflow does several things.
        values: how many words follow the option `when`; they become arguments.
        options: rules for the options that are different.
        arguments: a text for each argument that changes, with `{}` for its value.
        sentence: what to use instead.
        added: options of Tradewind that give the command the behaviour that it has in Airflow, such as not to ask.
        unneeded: there is nothing to do: the command prints `sentence` and succeeds, so that scripts continue.
    """

    airflow: str
    tradewind: str
    since: int
    until: int
    when: tuple[str, ...] = ()
    values: int = 0
    options: tuple[OptionRule, ...] = ()
    arguments: tuple[str, ...] = ()
    sentence: str = ""
    unneeded: bool = False
    added: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The form as a user types it."""
        return " ".join((self.airflow, *self.when[-1:]))


def _to(names: str, to: str, values: int = 1) -> OptionRule:
    return OptionRule(tuple(names.split()), values, to=to)


def _drop(names: str, why: str = "", values: int = 0) -> OptionRule:
    return OptionRule(tuple(names.split()), values, dropped=why)


def _refuse(names: str, why: str, values: int = 0) -> OptionRule:
    return OptionRule(tuple(names.split()), values, refused=why)


def _same(group: str, verbs: str, since: int, until: int, *options: OptionRule) -> tuple[Form, ...]:
    """Commands that have the same words in Airflow and in Tradewind."""
    names = [f"{group} {verb}".strip() for verb in verbs.split()]
    return tuple(Form(name, name, since, until, options=options) for name in names)


def _answer(names: str, since: int, until: int, sentence: str, *, unneeded: bool = False) -> tuple[Form, ...]:
    """Commands that Tradewind does not have. Names are separated by commas."""
    return tuple(Form(name.strip(), "", since, until, sentence=sentence, unneeded=unneeded) for name in names.split(","))


_NOT_PICKLED = "code is not pickled: tasks are loaded from their DAG file"
_ONE_SERVER = "the web server is one process"
_NO_SUB_DAGS = "a sub-DAG is a task group of its DAG here"

IGNORED_OPTIONS = (
    _drop("--color --deprecation-warning", values=1),
    _drop("-o --output", values=1),
    _drop("-y --yes"),
    _drop("--dev --no-color --hide-sensitive --show-values"),
    _drop("-S -sd --subdir", "the parser reads the DAG files, and commands read the database", 1),
    _drop("-B --bundle-name", "the parser reads the DAG files, and commands read the database", 1),
)
"""Options without effect, for commands of Tradewind that do not have them."""

_RUN = (
    _drop("-l --local", "a task always runs under the worker host of this machine"),
    _drop("-r --raw", "a task always runs under the worker host of this machine"),
    _drop("-p --pickle", _NOT_PICKLED, 1),
    _drop("--ship-dag", _NOT_PICKLED),
    _drop("-j --job-id", "attempts have no job ids", 1),
    _drop("--cfg-path", "settings are not passed in files", 1),
    _drop("-int -N --interactive", "a task has no terminal"),
    _drop("--no-shut-down-logging --read-from-db"),
)

_BACKFILL = (
    _to("-s --start-date", "--from-date"),
    _to("-e --end-date", "--to-date"),
    _to("-c --conf", "--dag-run-conf"),
    _to("-dr -n --dry-run", "--dry-run", 0),
    _to("--reset-dagruns", "--reprocess-behavior completed", 0),
    _to("--rerun-failed-tasks", "--reprocess-behavior failed", 0),
    _to("-B --run-backwards", "--run-backwards", 0),
    _drop("-l --local", "the runs are executed by the scheduler"),
    _drop("-x --donot-pickle", _NOT_PICKLED),
    _drop("--delay-on-limit", "a run starts as soon as the limit allows", 1),
    _drop("--continue-on-failures", "a failed run does not stop the others"),
    _drop("-I --ignore-first-depends-on-past", "the first run of a DAG has no past to depend on"),
    _refuse(
        "-t --task-regex", "a backfill runs whole runs; to repeat some tasks: tradewind tasks clear DAG -t REGEX -s … -e …", 1
    ),
    _refuse("-m --mark-success", "to mark tasks without running them: tradewind tasks mark DAG success -s … -e …"),
    _refuse("-i --ignore-dependencies", "tasks of a backfill follow their dependencies; for one task: tradewind tasks run -i"),
    _refuse("--pool", "a task uses the pool of its DAG; for one task: tradewind tasks run --pool", 1),
    _refuse("--disable-retry", "tasks are retried as the DAG file says"),
    _refuse("--treat-dag-as-regex --treat-dag-id-as-regex", "give one DAG at a time"),
)

_CLEAR = (
    _to("-c --no-confirm", "--yes", 0),
    _to("-dx --dag-regex", "--dag-regex", 0),
    _drop("-x --exclude-subdags -X -xp --exclude-parentdag", _NO_SUB_DAGS),
)

_TEST = (
    _to("-tp --task-params", "--task-params"),
    _refuse("-dr -n --dry-run", "to see the templates of a task: tradewind tasks render"),
    _refuse("-pm -m --post-mortem", "set a breakpoint in the task: it opens the debugger in this terminal"),
    _drop("--map-index", "the task is tested with the arguments of its DAG file", 1),
)

_WEB = (
    _to("-hn -H --hostname", "--host"),
    _drop("-w --workers", _ONE_SERVER, 1),
    _drop("-k --workerclass", _ONE_SERVER, 1),
    _drop("-t --worker-timeout", _ONE_SERVER, 1),
    _drop("-A --access-logfile --access-logformat -L", "requests are written to the log of the service (--log-file)", 1),
    _drop("-E --error-logfile", "errors are written to the log of the service (--log-file)", 1),
    _refuse(
        "--ssl-cert --ssl-key --ssl-ca-file --ssl-cert-reqs",
        "TLS is the task of a proxy in front (docs/how-to/secure-it.md)",
        1,
    ),
    _drop("-d --debug", "see the setting logging.level"),
    _drop("--apps", _ONE_SERVER, 1),
    _drop("--proxy-headers", "name the proxies in the setting api.trusted_proxies"),
    _drop("--log-config", "see the section [logging] of the settings", 1),
)

_SCHEDULER = (
    _to("--num-runs", "--num-runs"),
    _drop("-i --only-idle", "-n counts passes over the DAG files"),
)

_WORKER = (
    _to("-cn -H --celery-hostname", "--name"),
    _drop("-p --do-pickle", _NOT_PICKLED),
    _drop("-u --umask", "set the umask of the service", 1),
    _drop("-t --team", "one installation serves one team", 1),
)

_CONNECTION = (_to("--conn-id", "{}"),)

_MIGRATE = (
    _drop("--from-revision --from-version -r --to-revision -n --to-version", "the newest schema is the only one", 1),
    _refuse("-s --show-sql-only", "the migrations are in tradewind/store/migrations"),
    _drop("-m --use-migration-files --no-reserialize-dags"),
)

_CELERY = "Tradewind does not have this command; to see the workers: tradewind info"
_QUEUES = "a worker host gets its queues at its start: tradewind worker-host --queues NAME"
_NO_KUBERNETES = (
    "Tradewind does not have this command: the scheduler deletes the pods of its KubernetesExecutor itself, and "
    "kubernetes_executor.pod_template_file is the file that describes them"
)
_GRANTS = "a role has grants for DAGs: tradewind roles grant, tradewind roles revoke; see: tradewind roles list"
_ROLES_KNOWN = "built-in roles have fixed permissions, so there is nothing to synchronise; see: tradewind roles list"
_ARCHIVE = "`db clean` deletes rows and keeps no archive; make a copy first: tradewind db backup FILE"
_NO_MANAGER = "there is one database with one schema: tradewind db migrate|check|reset"
_ONE_TEAM = "pools belong to the whole installation"
_NO_PARTITIONS = (
    "runs are not chosen by partition here yet; name them by --run-id, or use POST …/clearDagRuns with partition_key"
)

FORMS: tuple[Form, ...] = (
    # --- services -----------------------------------------------------------------------------------------------------
    *_same("", "standalone cheat-sheet info plugins rotate-fernet-key version", 2, 3, _drop("--file-io")),
    *_same("", "scheduler", 1, 3, *_SCHEDULER),
    *_same("", "dag-processor", 2, 3, _drop("-p --do-pickle", _NOT_PICKLED)),
    *_same("", "api-server", 3, 3, *_WEB),
    Form("webserver", "api-server", 1, 2, options=_WEB),
    Form("worker", "celery worker", 1, 1, options=_WORKER),
    Form("celery worker", "celery worker", 1, 3, options=_WORKER),
    Form("celery stop", "celery stop", 2, 3, options=(_drop("-l --log-file", "see the log of the worker", 1),)),
    *_answer(
        "triggerer",
        2,
        3,
        "no service has to be started: the worker host starts and stops the triggerer when tasks wait for triggers",
    ),
    *_answer("serve_logs", 1, 1, "no service has to be started: the web server reads the logs (tradewind api-server)"),
    *_answer("flower, celery flower", 1, 3, "start flower with its own options: tradewind celery flower --port=5555"),
    *_answer("celery list-workers, celery shutdown-worker, celery shutdown-all-workers", 2, 3, _CELERY),
    *_answer("celery add-queue, celery remove-queue, celery remove-all-queues", 3, 3, _QUEUES),
    *_answer(
        "kerberos",
        1,
        3,
        "Tradewind does not renew Kerberos tickets; run k5start beside it (tasks find the ticket cache through KRB5CCNAME)",
    ),
    *_answer("internal-api", 2, 2, "tasks communicate with the worker host, which needs no extra server"),
    *_answer("kubernetes, kubernetes cleanup-pods, kubernetes generate-dag-yaml, local-client", 1, 3, _NO_KUBERNETES),
    *_answer("edge", 3, 3, "to run tasks on another machine: tradewind worker, with a token of tradewind workers token"),
    *_answer("kubernetes_generate_dag_yaml, generate_pod_template", 1, 1, _NO_KUBERNETES),
    # --- DAGs and runs ------------------------------------------------------------------------------------------------
    *_same(
        "dags",
        "clear delete details list-import-errors list-jobs list-runs next-execution pause report reserialize show-dependencies "
        "state trigger unpause show",
        2,
        3,
        _drop("--clear-only", "stale DAGs are removed when their file is gone"),
        _refuse(
            "--partition-key --partition-date-start --partition-date-end",
            _NO_PARTITIONS,
            1,
        ),
    ),
    *_same("dags", "list", 1, 3),
    *_same("dags", "test", 2, 3, _to("-S --subdir", "--dagfile-path")),
    Form("dags backfill", "backfill create", 1, 2, options=_BACKFILL, arguments=("--dag-id={}",)),
    Form("backfill", "backfill create", 1, 1, options=_BACKFILL, arguments=("--dag-id={}",)),
    *_same("backfill", "create", 3, 3, _drop("--no-run-on-latest-version", "a backfill uses the newest version of its DAG")),
    Form("list_dags", "dags list", 1, 1, options=(_drop("-r --report", "see: tradewind dags report"),)),
    Form("list_dag_runs", "dags list-runs", 1, 1),
    Form("trigger_dag", "dags trigger", 1, 1),
    Form("dag_state", "dags state", 1, 1),
    Form("show_dag", "dags show", 1, 1),
    Form("delete_dag", "dags delete", 1, 1),
    Form("next_execution", "dags next-execution", 1, 1),
    Form("pause", "dags pause", 1, 1),
    Form("unpause", "dags unpause", 1, 1),
    # --- tasks --------------------------------------------------------------------------------------------------------
    *_same("tasks", "failed-deps list render state states-for-dag-run", 1, 3, _drop("--map-index", values=1)),
    *_same("tasks", "clear", 1, 3, *_CLEAR),
    *_same("tasks", "test", 1, 3, *_TEST),
    *_same("tasks", "run", 1, 2, *_RUN),
    Form("list_tasks", "tasks list", 1, 1),
    Form("task_state", "tasks state", 1, 1),
    Form("task_failed_deps", "tasks failed-deps", 1, 1),
    Form("render", "tasks render", 1, 1),
    Form("test", "tasks test", 1, 1, options=_TEST),
    Form("run", "tasks run", 1, 1, options=_RUN),
    Form("clear", "tasks clear", 1, 1, options=_CLEAR),
    # --- variables, connections, pools --------------------------------------------------------------------------------
    *_same("variables", "delete export get import list set", 1, 3),
    Form("variables", "variables set", 1, 1, ("-s", "--set"), 2),
    Form("variables", "variables get", 1, 1, ("-g", "--get"), 1),
    Form("variables", "variables delete", 1, 1, ("-x", "--delete"), 1),
    Form("variables", "variables import", 1, 1, ("-i", "--import"), 1),
    Form("variables", "variables export", 1, 1, ("-e", "--export"), 1),
    Form("variables", "variables list", 1, 1),
    *_same("connections", "add create-default-connections delete export import list test", 1, 3),
    Form("connections get", "connections get", 1, 3, added=("--show-values",)),
    Form("connections", "connections add", 1, 1, ("-a", "--add"), options=_CONNECTION),
    Form("connections", "connections delete", 1, 1, ("-d", "--delete"), options=_CONNECTION),
    Form("connections", "connections list", 1, 1, ("-l", "--list")),
    *_same("pools", "export get import list set", 1, 3, _refuse("--team-name", _ONE_TEAM, 1)),
    Form("pools delete", "pools delete", 1, 3, options=(_refuse("--team-name", _ONE_TEAM, 1),), added=("--yes",)),
    Form("pool", "pools set", 1, 1, ("-s", "--set"), 3),
    Form("pool", "pools get", 1, 1, ("-g", "--get"), 1),
    Form("pool", "pools delete", 1, 1, ("-x", "--delete"), 1, added=("--yes",)),
    Form("pool", "pools import", 1, 1, ("-i", "--import"), 1),
    Form("pool", "pools export", 1, 1, ("-e", "--export"), 1),
    Form("pool", "pools list", 1, 1),
    # --- database -----------------------------------------------------------------------------------------------------
    *_same("db", "check check-migrations clean shell", 1, 3),
    *_same("db", "reset", 1, 3, *_MIGRATE[2:]),
    *_same("db", "migrate", 2, 3, *_MIGRATE),
    Form("db init", "db migrate", 1, 2),
    Form("db upgrade", "db migrate", 1, 2, options=_MIGRATE),
    Form("initdb", "db migrate", 1, 1),
    Form("upgradedb", "db migrate", 1, 1),
    Form("resetdb", "db reset", 1, 1),
    Form("checkdb", "db check", 1, 1),
    Form("shell", "db shell", 1, 1),
    Form("rotate_fernet_key", "rotate-fernet-key", 1, 1),
    *_answer("db export-archived, db drop-archived", 2, 3, _ARCHIVE),
    *_answer("db downgrade", 2, 3, "the schema does not go back; restore a copy: tradewind db restore FILE"),
    *_answer("db-manager, db-manager migrate, db-manager downgrade, db-manager reset", 3, 3, _NO_MANAGER),
    *_answer("fab-db, fab-db migrate, fab-db downgrade, fab-db reset", 3, 3, _NO_MANAGER),
    # --- users and roles ----------------------------------------------------------------------------------------------
    *_same("users", "create list", 1, 3),
    *_same("users", "add-role delete reset-password", 1, 3, _refuse("-e --email", "name the user: --username NAME", 1)),
    Form("users", "users create", 1, 1, ("-c", "--create")),
    Form("users", "users delete", 1, 1, ("-d", "--delete")),
    Form("users", "users add-role", 1, 1, ("--add-role",)),
    Form("users", "users list", 1, 1, ("-l", "--list")),
    Form("users", "users list", 1, 1),
    Form("create_user", "users create", 1, 1),
    Form("delete_user", "users delete", 1, 1),
    Form("list_users", "users list", 1, 1),
    *_same("users", "remove-role", 2, 3, _refuse("-e --email", "name the user: --username NAME", 1)),
    *_same("users", "export", 2, 3),
    *_answer(
        "users import", 2, 3, "users come from the database of Airflow: tradewind import-airflow DATABASE_URL --only users"
    ),
    *_same("roles", "create delete", 2, 3),
    *_same("roles", "list", 2, 3, _drop("-p --permission")),
    Form("roles", "roles list", 1, 1, ("-l", "--list")),
    Form("roles", "roles create", 1, 1, ("-c", "--create"), 1),
    Form("roles", "roles list", 1, 1),
    *_answer("roles add-perms, roles del-perms, roles export, roles import", 2, 3, _GRANTS),
    *_answer("sync-perm, sync_perm, permissions-cleanup", 1, 3, _ROLES_KNOWN, unneeded=True),
    *_answer("aws-auth-manager, keycloak-auth-manager", 3, 3, "to manage users: tradewind users --help"),
    # --- settings, assets and the rest --------------------------------------------------------------------------------
    *_same(
        "config",
        "get-value lint list",
        1,
        3,
        _drop("--color", values=1),
        _drop("-c --comment-out-everything -p --exclude-providers -e --include-examples"),
    ),
    *_same(
        "config",
        "update",
        2,
        3,
        _refuse("--section --option --ignore-section --ignore-option", "all settings of the file are converted", 1),
    ),
    Form("config", "config list", 1, 1),
    *_same("assets", "details list materialize", 3, 3),
    *_same("jobs", "check", 2, 3),
    *_same(
        "providers",
        "auth-managers behaviours configs executors get hooks lazy-loaded links list logging notifications queues secrets triggers "
        "widgets",
        2,
        3,
    ),
    *_answer("providers auth", 2, 2, "see: tradewind providers auth-managers"),
    *_answer("upgrade_check", 1, 1, "DAG files of Airflow 1.10 run as they are; see: tradewind dags list-import-errors"),
    *_answer("partitions, partitions clear", 3, 3, _NO_PARTITIONS),
    *_same("teams", "create delete list", 3, 3),
    *_answer("teams sync", 3, 3, "teams are made by hand: tradewind teams create, tradewind teams add-dags"),
    *_answer("state-store, state-store clean", 3, 3, "the scheduler deletes expired values of tasks by itself"),
)
"""All forms. If several forms have the same words, the first whose option `when` is given is used. A form without `when` is
the last.
"""
