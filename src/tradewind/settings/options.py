"""Every setting there is: one row each, the single source.

Loading, checking, explaining, `config list` and the reference page read this table; the frozen sections (`sections.py`)
are what the code sees. A row's `airflow` names are those that mean the same in Airflow 3 (first) and before; they are
read from the environment (`AIRFLOW__CORE__PARALLELISM`) below everything that is said to Tradewind itself.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.settings.frozen import Frozen

TYPE_CHECKING = False  # see frozen.py
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["int", "float", "bool", "str", "path", "duration", "choice", "timezone", "by_folder"]

KIB = 1024
MIB = 1024 * KIB
DAY_SECONDS = 86_400.0
FOREVER_SECONDS = 10 * 365 * DAY_SECONDS
"""The longest duration accepted, ten years: longer is a slip of the unit."""


class Option(Frozen):
    """One setting.

    Attributes:
        section, key: `[section] key = …` in the file, `TRADEWIND__SECTION__KEY` in the environment.
        kind: how its text is read. `duration`: seconds, may have a fraction. `path`: see `values.py`. `by_folder`:
            `folder=word, …`, each word one of `choices`; without `choices` a whole number or `none`.
        default: the typed value (for a path: its text before expansion); None where `nullable`.
        description: one line.
        unit: what the number counts, for people.
        low, high: the closed range of a number.
        zero_ok: 0 is allowed too, though below `low` (it means "none" or "unlimited"; the description says which).
        choices: for `choice`, matched without regard to case.
        nullable: the word `none` is allowed.
        secret: never shown, and not accepted from the file.
        safety_net: a timer that only repairs what a lost wake-up broke; multiplied by core.safety_net_scale.
        airflow: `section.key` of the Airflow options that mean the same, newest first.
        from_airflow: turns the text of the Airflow option into ours; None where the text is the same.
    """

    section: str
    key: str
    kind: Kind
    default: int | float | bool | str | None
    description: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    zero_ok: bool = False
    choices: tuple[str, ...] = ()
    nullable: bool = False
    secret: bool = False
    safety_net: bool = False
    airflow: tuple[str, ...] = ()
    from_airflow: Callable[[str], str] | None = None

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def env(self) -> str:
        """Its environment variable."""
        return f"TRADEWIND__{self.section}__{self.key}".upper()

    @property
    def airflow_envs(self) -> tuple[str, ...]:
        """The environment variables of its Airflow counterparts."""
        return tuple("AIRFLOW__" + name.upper().replace(".", "__") for name in self.airflow)


def _true_means(when_true: str, when_false: str) -> Callable[[str], str]:
    """An Airflow boolean that chooses between two words of ours; other texts pass and fail as our choice."""
    words = dict.fromkeys(("true", "t", "1"), when_true) | dict.fromkeys(("false", "f", "0"), when_false)
    return lambda text: words.get(text.strip().lower(), text)


def _seconds_to_hours(text: str) -> str:
    try:
        return str(float(text) / 3600)
    except ValueError:
        return text


def _log_level(text: str) -> str:
    return {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(text.strip().upper(), text)


def _none_if_zero(text: str) -> str:
    return "none" if text.strip() in ("", "0", "None") else text


_CORE = (
    Option(
        section="core",
        key="dags_folder",
        kind="path",
        default="$TRADEWIND_HOME/dags",
        description="Folder with your DAG files; watched for changes.",
        airflow=("core.dags_folder",),
    ),
    Option(
        section="core",
        key="plugins_folder",
        kind="path",
        default="$TRADEWIND_HOME/plugins",
        description="Folder with your plugins; its modules can be imported by DAG files.",
        airflow=("core.plugins_folder",),
    ),
    Option(
        section="core",
        key="parallelism",
        kind="int",
        default=32,
        low=0,
        high=100_000,
        unit="tasks",
        description="Most tasks that run at once on one executor; 0 = unlimited.",
        airflow=("core.parallelism",),
    ),
    Option(
        section="core",
        key="executor",
        kind="choice",
        default="LocalExecutor",
        choices=("LocalExecutor", "SequentialExecutor"),
        description="Where tasks run: side by side on this machine, or one after another.",
        airflow=("core.executor",),
    ),
    Option(
        section="core",
        key="load_examples",
        kind="bool",
        default=False,
        description="Show the shipped example DAGs; `standalone` does, unless told --no-examples.",
        airflow=("core.load_examples",),
    ),
    Option(
        section="core",
        key="dags_are_paused_at_creation",
        kind="bool",
        default=True,
        description="A new DAG waits for you to unpause it.",
        airflow=("core.dags_are_paused_at_creation",),
    ),
    Option(
        section="core",
        key="default_timezone",
        kind="timezone",
        default="UTC",
        description="Time zone of dates that name none: an IANA name, or `system`.",
        airflow=("core.default_timezone",),
    ),
    Option(
        section="core",
        key="max_active_tasks_per_dag",
        kind="int",
        default=16,
        low=1,
        high=1_000_000,
        unit="tasks",
        description="Most tasks of one DAG run at once, where the DAG says nothing.",
        airflow=("core.max_active_tasks_per_dag", "core.dag_concurrency"),
    ),
    Option(
        section="core",
        key="max_active_tasks_all_runs",
        kind="int",
        default=None,
        low=1,
        high=1_000_000,
        unit="tasks",
        nullable=True,
        description="Most tasks of one DAG at once over all its runs, where the DAG says nothing; none = no limit.",
    ),
    Option(
        section="core",
        key="max_active_tasks_all_runs_of_folders",
        kind="by_folder",
        default=None,
        low=1,
        high=1_000_000,
        unit="tasks",
        nullable=True,
        description="The same for folders inside the DAG folder, where it differs: legacy=16, teams/new=none.",
    ),
    Option(
        section="core",
        key="max_active_runs_per_dag",
        kind="int",
        default=16,
        low=1,
        high=1_000_000,
        unit="runs",
        description="Most running runs of one DAG at once, where the DAG says nothing.",
        airflow=("core.max_active_runs_per_dag",),
    ),
    Option(
        section="core",
        key="default_pool_slots",
        kind="int",
        default=128,
        low=-1,
        high=1_000_000,
        unit="slots",
        description="Slots of default_pool when the database is created; -1 = unlimited.",
        airflow=("core.default_pool_task_slot_count", "core.non_pooled_task_slot_count"),
    ),
    Option(
        section="core",
        key="default_task_retries",
        kind="int",
        default=0,
        low=0,
        high=1_000_000,
        unit="retries",
        description="Retries of a failed task, where the task says nothing.",
        airflow=("core.default_task_retries",),
    ),
    Option(
        section="core",
        key="default_task_retry_delay",
        kind="duration",
        default=300.0,
        low=0,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Wait before a retry, where the task says nothing.",
        airflow=("core.default_task_retry_delay",),
    ),
    Option(
        section="core",
        key="max_task_retry_delay",
        kind="duration",
        default=DAY_SECONDS,
        low=0,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Longest wait that exponential backoff may reach, where the task says nothing.",
        airflow=("core.max_task_retry_delay",),
    ),
    Option(
        section="core",
        key="default_task_execution_timeout",
        kind="duration",
        default=None,
        nullable=True,
        low=0.001,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Longest time one attempt may run, where the task says nothing; none = no limit.",
        airflow=("core.default_task_execution_timeout",),
        from_airflow=_none_if_zero,
    ),
    Option(
        section="core",
        key="catchup_by_default",
        kind="bool",
        default=False,
        description="Create the runs missed since start_date, where the DAG says nothing.",
        airflow=("scheduler.catchup_by_default",),
    ),
    Option(
        section="core",
        key="schedule_meaning",
        kind="choice",
        default="airflow3",
        choices=("airflow3", "airflow2"),
        description="What a bare cron string means: airflow3 = run at that moment; airflow2 = run after its interval.",
        airflow=("scheduler.create_cron_data_intervals",),
        from_airflow=_true_means("airflow2", "airflow3"),
    ),
    Option(
        section="core",
        key="schedule_meaning_of_folders",
        kind="by_folder",
        default=None,
        nullable=True,
        choices=("airflow3", "airflow2"),
        description="The same for folders inside the DAG folder, where it differs: legacy=airflow2, teams/new=airflow3.",
    ),
    Option(
        section="core",
        key="xcom_inline_max_bytes",
        kind="int",
        default=64 * KIB,
        low=0,
        high=16 * MIB,
        unit="bytes",
        description="Largest XCom kept in the database; larger ones go to files under xcom/.",
    ),
    Option(
        section="core",
        key="xcom_max_bytes",
        kind="int",
        default=64 * MIB,
        low=KIB,
        high=64 * 1024 * MIB,
        unit="bytes",
        description="Largest XCom accepted; a larger one fails its task with a sentence.",
    ),
    Option(
        section="core",
        key="max_map_length",
        kind="int",
        default=1024,
        low=1,
        high=100_000,
        unit="elements",
        description="Most elements that a task may return to others that are mapped over its result; more fail it.",
    ),
    Option(
        section="core",
        key="kill_grace",
        kind="duration",
        default=60.0,
        low=0,
        high=DAY_SECONDS,
        unit="seconds",
        description="Time a task has between SIGTERM (on_kill) and SIGKILL.",
        airflow=("core.killed_task_cleanup_time",),
    ),
    Option(
        section="core",
        key="task_overtime",
        kind="duration",
        default=20.0,
        low=0,
        high=DAY_SECONDS,
        unit="seconds",
        description="Time a task's process has to end after its result was accepted.",
        airflow=("core.task_success_overtime",),
    ),
    Option(
        section="core",
        key="safety_net_scale",
        kind="float",
        default=1.0,
        low=0.001,
        high=1_000_000.0,
        unit="times",
        description="Multiplies every timer that is only a safety net; for tests.",
    ),
    Option(
        section="core",
        key="stall_limit",
        kind="duration",
        default=60.0,
        low=0.5,
        high=DAY_SECONDS,
        zero_ok=True,
        unit="seconds",
        description=(
            "`standalone` ends a scheduler, worker host, parser or web server whose loop has not turned for so long, and starts it "
            "again, at most a third later; after half of it the health page calls it unhealthy. 0 = never ended."
        ),
    ),
    Option(
        section="core",
        key="task_start",
        kind="choice",
        default="template",
        choices=("template", "fresh"),
        description="How a task's process starts: forked from a warm template of its DAG file, or a fresh interpreter.",
        airflow=("core.execute_tasks_new_python_interpreter",),
        from_airflow=_true_means("fresh", "template"),
    ),
    Option(
        section="core",
        key="sensitive_var_conn_names",
        kind="str",
        default=None,
        nullable=True,
        description="More words, commas between: a variable, a field of a JSON value or a template field whose name holds one is "
        "hidden like a password.",
        airflow=("core.sensitive_var_conn_names", "admin.sensitive_variable_fields"),
    ),
    Option(
        section="core",
        key="hide_sensitive_var_conn_fields",
        kind="bool",
        default=True,
        description="Hide values whose name sounds like a secret's. Passwords of connections and secret settings are hidden in "
        "any case.",
        airflow=("core.hide_sensitive_var_conn_fields", "admin.hide_sensitive_variable_fields"),
    ),
)

_DATABASE = (
    Option(
        section="database",
        key="path",
        kind="path",
        default="$TRADEWIND_HOME/tradewind.db",
        description="The SQLite database file.",
    ),
    Option(
        section="database",
        key="busy_timeout",
        kind="duration",
        default=30.0,
        low=0,
        high=3600,
        unit="seconds",
        description="Wait for another process that holds the database, before giving up with a sentence.",
    ),
    Option(
        section="database",
        key="max_page_count",
        kind="int",
        default=0,
        low=64,
        high=4_294_967_294,
        zero_ok=True,
        unit="pages",
        description="Largest size of the database in SQLite pages; 0 = none.",
    ),
    Option(
        section="database",
        key="synchronous",
        kind="choice",
        default="FULL",
        choices=("FULL", "NORMAL"),
        description="FULL survives power loss; NORMAL may lose the last moments of it, never more.",
    ),
)

_PARSER = (
    Option(
        section="parser",
        key="processes",
        kind="int",
        default=2,
        low=1,
        high=1024,
        unit="processes",
        description="DAG files parsed at the same time.",
        airflow=("dag_processor.parsing_processes", "scheduler.parsing_processes", "scheduler.max_threads"),
    ),
    Option(
        section="parser",
        key="timeout",
        kind="duration",
        default=30.0,
        low=0.1,
        high=DAY_SECONDS,
        unit="seconds",
        description="Longest time one DAG file may take to import.",
        airflow=(
            "core.dagbag_import_timeout",
            "dag_processor.dag_file_processor_timeout",
            "core.dag_file_processor_timeout",
        ),
    ),
    Option(
        section="parser",
        key="memory_limit_mb",
        kind="int",
        default=2048,
        low=64,
        high=16 * MIB,
        zero_ok=True,
        unit="MiB",
        description="Address space of a parse child; 0 = no limit.",
    ),
    Option(
        section="parser",
        key="rescan_interval",
        kind="duration",
        default=300.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Full look at the DAG folder, for changes the file watch missed.",
        airflow=("dag_processor.refresh_interval", "scheduler.dag_dir_list_interval"),
    ),
    Option(
        section="parser",
        key="dynamic_interval",
        kind="duration",
        default=60.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Re-parse of files whose DAGs change without a change of the file.",
        airflow=("dag_processor.min_file_process_interval", "scheduler.min_file_process_interval"),
    ),
    Option(
        section="parser",
        key="max_tasks_per_dag",
        kind="int",
        default=200_000,
        low=1,
        high=10_000_000,
        unit="tasks",
        description="Largest DAG accepted.",
    ),
)

_SCHEDULER = (
    Option(
        section="scheduler",
        key="requeue_limit",
        kind="int",
        default=3,
        low=0,
        high=1000,
        unit="times",
        description="Times an attempt that was lost before it started is queued again before its try fails. With lost_attempts = "
        "repeat, attempts that were lost after their start count, too.",
        airflow=("scheduler.num_stuck_in_queued_retries",),
    ),
    Option(
        section="scheduler",
        key="lost_attempts",
        kind="choice",
        default="fail",
        choices=("fail", "repeat"),
        description="What becomes of an attempt that had started and was lost with its worker: fail (its try has failed: retries, "
        "callbacks and mail follow) or repeat (it runs again in the same try, though a part of it may have been done). A task may "
        "choose for itself with its argument lost_attempts.",
    ),
    Option(
        section="scheduler",
        key="resubmit_interval",
        kind="duration",
        default=10.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Look for queued attempts the executor does not know, and submit them again.",
    ),
    Option(
        section="scheduler",
        key="sweep_interval",
        kind="duration",
        default=30.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Look for reports and commands whose wake-up was lost.",
    ),
    Option(
        section="scheduler",
        key="wait_recheck_interval",
        kind="duration",
        default=60.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Look again at what deferred tasks wait for, and for waits that can never end.",
    ),
    Option(
        section="scheduler",
        key="lease",
        kind="duration",
        default=30.0,
        low=1,
        high=DAY_SECONDS,
        unit="seconds",
        description="Time a scheduler or worker may stay silent before its work is taken over.",
    ),
    Option(
        section="scheduler",
        key="batch_max_rows",
        kind="int",
        default=2000,
        low=10,
        high=1_000_000,
        unit="rows",
        description="Most rows one transaction writes.",
    ),
    Option(
        section="scheduler",
        key="retention_days",
        kind="float",
        default=90.0,
        low=0.01,
        high=36_500.0,
        zero_ok=True,
        unit="days",
        description="Finished runs older than this are removed; 0 = keep all.",
    ),
    Option(
        section="scheduler",
        key="retention_keep_runs",
        kind="int",
        default=100,
        low=0,
        high=10_000_000,
        unit="runs",
        description="Newest runs of each DAG that are kept whatever their age.",
    ),
    Option(
        section="scheduler",
        key="retention_interval",
        kind="duration",
        default=3600.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Time between two removals of old runs.",
    ),
    Option(
        section="scheduler",
        key="callback_parallelism",
        kind="int",
        default=4,
        low=1,
        high=1000,
        unit="processes",
        description="Callbacks and mails at a time that are called apart from their tasks: of whole runs, and of killed tasks.",
    ),
    Option(
        section="scheduler",
        key="callback_timeout",
        kind="duration",
        default=60.0,
        low=0.1,
        high=DAY_SECONDS,
        zero_ok=True,
        unit="seconds",
        description="Time that one of them may take; 0 = no limit.",
    ),
    Option(
        section="scheduler",
        key="callback_retries",
        kind="int",
        default=3,
        low=0,
        high=100,
        unit="times",
        description="Times that one of them is tried again when it fails; then it is parked (tradewind callbacks list).",
    ),
    Option(
        section="scheduler",
        key="callback_retry_delay",
        kind="duration",
        default=10.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        description="Pause before the first retry of one of them; each further pause is six times as long, an hour at most.",
    ),
)

_RUNNER = (
    Option(
        section="runner",
        key="drain_timeout",
        kind="duration",
        default=60.0,
        low=0,
        high=30 * DAY_SECONDS,
        unit="seconds",
        description="Time that running tasks get to finish when the worker host is told to stop (SIGTERM); meanwhile none is "
        "started. What still runs then is stopped and counts as lost; Ctrl-C (SIGINT) or a second SIGTERM ends the "
        "wait.",
    ),
    Option(
        section="runner",
        key="template_idle",
        kind="duration",
        default=120.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Time a warm template may be unused before it ends; at most 200 times as long as its file takes to import, "
        "but 2 s in any case.",
    ),
    Option(
        section="runner",
        key="template_max",
        kind="int",
        default=8,
        low=1,
        high=10_000,
        unit="processes",
        description="Warm templates kept for later at once.",
    ),
    Option(
        section="runner",
        key="dynamic_template_max_age",
        kind="duration",
        default=60.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Oldest a template may get whose file reads clock, environment, network or data when imported.",
    ),
    Option(
        section="runner",
        key="log_max_bytes",
        kind="int",
        default=64 * MIB,
        low=4 * KIB,
        high=64 * 1024 * MIB,
        unit="bytes",
        description="Largest log of one attempt: its beginning and its end are kept, with a note of how much is missing between.",
    ),
    Option(
        section="runner",
        key="log_line_max_bytes",
        kind="int",
        default=64 * KIB,
        low=256,
        high=16 * MIB,
        unit="bytes",
        description="Longest line of a log; longer ones are cut.",
    ),
    Option(
        section="runner",
        key="start_retry_interval",
        kind="duration",
        default=5.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Ask again for an accepted start that was not answered.",
    ),
    Option(
        section="runner",
        key="verdict_resend_interval",
        kind="duration",
        default=5.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        safety_net=True,
        description="Send again a verdict that was not acknowledged.",
    ),
    Option(
        section="runner",
        key="memory_limit_mb",
        kind="int",
        default=0,
        low=64,
        high=16 * MIB,
        zero_ok=True,
        unit="MiB",
        description="Address space of a task (RLIMIT_AS); 0 = no limit.",
    ),
    Option(
        section="runner",
        key="malloc",
        kind="choice",
        default="malloc_hugetlb",
        choices=("default", "malloc_hugetlb"),
        description="Allocator of templates: malloc_hugetlb makes forks cheaper (measured: benchmarks/RESULTS.md).",
    ),
)

_API = (
    Option(
        section="api",
        key="host",
        kind="str",
        default="127.0.0.1",
        description="Address the web server listens on; 0.0.0.0 = every interface.",
        airflow=("api.host", "webserver.web_server_host"),
    ),
    Option(
        section="api",
        key="port",
        kind="int",
        default=8080,
        low=0,
        high=65_535,
        unit="TCP port",
        description="Port the web server listens on; 0 = any free one.",
        airflow=("api.port", "webserver.web_server_port"),
    ),
    Option(
        section="api",
        key="token_hours",
        kind="float",
        default=24.0,
        low=0.01,
        high=8760.0,
        unit="hours",
        description="Life of a login.",
        airflow=("api_auth.jwt_expiration_time",),
        from_airflow=_seconds_to_hours,
    ),
    Option(
        section="api",
        key="trusted_proxies",
        kind="str",
        default=None,
        nullable=True,
        description="Addresses or networks of reverse proxies, commas between, whose X-Forwarded-For names the client; "
        "none: the header is ignored.",
    ),
    Option(
        section="api",
        key="password_min_length",
        kind="int",
        default=8,
        low=1,
        high=128,
        unit="characters",
        description="A new password is at least this long, and does not hold the user's name.",
    ),
    Option(
        section="api",
        key="page_limit_max",
        kind="int",
        default=100,
        low=1,
        high=100_000,
        unit="rows",
        description="Most rows one page of a list answers.",
        airflow=("api.maximum_page_limit",),
    ),
)

_LOGGING = (
    Option(
        section="logging",
        key="level",
        kind="choice",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        description="Least weight of a record that is written.",
        airflow=("logging.logging_level", "core.logging_level"),
        from_airflow=_log_level,
    ),
    Option(
        section="logging",
        key="folder",
        kind="path",
        default="$TRADEWIND_HOME/logs",
        description="Folder of the tasks' logs.",
        airflow=("logging.base_log_folder", "core.base_log_folder"),
    ),
    Option(
        section="logging",
        key="retention_days",
        kind="float",
        default=0.0,
        low=0.01,
        high=36_500.0,
        zero_ok=True,
        unit="days",
        description="Task logs older than this are deleted, even if their run is kept; 0 = they go with their run.",
    ),
    Option(
        section="logging",
        key="max_total_mb",
        kind="int",
        default=0,
        low=1,
        high=16 * MIB,
        zero_ok=True,
        unit="MiB",
        description="Size of all task logs together. The logs of the oldest runs are deleted beyond it; 0 = no limit.",
    ),
)

_OPERATORS = (
    Option(
        section="operators",
        key="default_deferrable",
        kind="bool",
        default=False,
        description="Operators and sensors that can wait without a process do so, where the DAG says nothing.",
        airflow=("operators.default_deferrable",),
    ),
)

_SECRETS = (
    Option(
        section="secrets",
        key="fernet_key",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="Keys that encrypt variables and connections, newest first, commas between; "
        "none = the file fernet.key in the home folder.",
        airflow=("core.fernet_key",),
    ),
)

OPTIONS: tuple[Option, ...] = (
    *_CORE,
    *_DATABASE,
    *_PARSER,
    *_SCHEDULER,
    *_RUNNER,
    *_API,
    *_LOGGING,
    *_OPERATORS,
    *_SECRETS,
)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(option.section for option in OPTIONS))

BY_AIRFLOW_NAME: dict[str, Option] = {name: option for option in OPTIONS for name in option.airflow}

SECRET_ENVIRONMENT: frozenset[str] = frozenset(
    name for option in OPTIONS if option.secret for name in (option.env, *option.airflow_envs)
)
"""Environment variables that hold secrets: never to be passed on to a process that runs users' code."""
