"""The table of all settings, one row for each.

Loading, checking, `config list`, `config explain` and the reference page use this table; the code uses the frozen sections
(`sections.py`). The `airflow` names of a row are the options with the same meaning in Airflow 3 (first) and earlier. They are read
from the environment (`AIRFLOW__CORE__PARALLELISM`) and have a lower priority than values for Tradewind.
"""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.executor_names import LOCAL, SUPPORTED
from tradewind.settings.frozen import Frozen

TYPE_CHECKING = False  # see frozen.py
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["int", "float", "bool", "str", "path", "duration", "choice", "timezone", "by_folder", "executors"]

KIB = 1024
MIB = 1024 * KIB
DAY_SECONDS = 86_400.0
FOREVER_SECONDS = 10 * 365 * DAY_SECONDS
"""The longest accepted duration, ten years: a longer one is probably in the wrong unit."""


class Option(Frozen):
    """One setting.

    Attributes:
        section, key: `[section] key = …` in the file, `TRADEWIND__SECTION__KEY` in the environment.
        kind: how the text is converted. `duration`: seconds, may have a fraction. `path`: see `values.py`. `by_folder`:
            `folder=word, …`, each word one of `choices`; without `choices` an integer or `none`. `executors`: names of
            executors, separated by commas (see `model.executor_names`).
        default: the typed value (for a path: its text before expansion); None only if `nullable`.
        description: one or two sentences.
        unit: what the number counts, for messages.
        low, high: the smallest and largest number.
        zero_ok: 0 is valid too, although it is below `low` (it means "none" or "unlimited"; see the description).
        choices: valid words of a `choice`; upper and lower case are the same.
        nullable: the word `none` is valid. If there is a default, an empty value of Airflow means none.
        secret: never shown, and not accepted from the file.
        safety_net: a timer that only matters after a lost wake-up; multiplied by core.safety_net_scale.
        airflow: `section.key` of the Airflow options with the same meaning, newest first.
        from_airflow: converts the text of the Airflow option; None if the text is the same.
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
    def empty_is_none(self) -> bool:
        """Whether an empty value of Airflow means none. For other options, Airflow's own compose file sets empty variables."""
        return self.nullable and self.default is not None

    @property
    def airflow_envs(self) -> tuple[str, ...]:
        """The environment variables of its Airflow counterparts."""
        return tuple("AIRFLOW__" + name.upper().replace(".", "__") for name in self.airflow)


def _true_means(when_true: str, when_false: str) -> Callable[[str], str]:
    """Convert an Airflow boolean to one of two choices. Other texts are returned unchanged and rejected later."""
    words = dict.fromkeys(("true", "t", "1"), when_true) | dict.fromkeys(("false", "f", "0"), when_false)
    return lambda text: words.get(text.strip().lower(), text)


def _seconds_to_hours(text: str) -> str:
    try:
        return str(float(text) / 3600)
    except ValueError:
        return text


def _minutes_to_hours(text: str) -> str:
    try:
        return str(float(text) / 60)
    except ValueError:
        return text


def _log_level(text: str) -> str:
    return {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(text.strip().upper(), text)


def _only_postgres(text: str) -> str:
    """A URL of PostgreSQL; `none` for the databases of Airflow that Tradewind cannot use."""
    return text if text.startswith(("postgresql:", "postgresql+", "postgres:", "postgres+")) else "none"


def _none_if_zero(text: str) -> str:
    return "none" if text.strip() in ("", "0", "None") else text


_CORE = (
    Option(
        section="core",
        key="dags_folder",
        kind="path",
        default="$TRADEWIND_HOME/dags",
        description="Folder with your DAG files. The parser watches it for changes.",
        airflow=("core.dags_folder",),
    ),
    Option(
        section="core",
        key="plugins_folder",
        kind="path",
        default="$TRADEWIND_HOME/plugins",
        description="Folder with your plugins. DAG files can import modules from it.",
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
        description="Maximum number of tasks that run at the same time on each executor; 0 = unlimited.",
        airflow=("core.parallelism",),
    ),
    Option(
        section="core",
        key="executor",
        kind="executors",
        default=LOCAL,
        choices=SUPPORTED,
        description="The executors, separated by commas. The first one is the default; a task names another one with `executor=`. "
        "LocalExecutor runs tasks in parallel on this machine, SequentialExecutor one after another, CeleryExecutor on Celery "
        "workers, KubernetesExecutor each in a pod. `alias:LocalExecutor` gives an executor a second name.",
        airflow=("core.executor",),
    ),
    Option(
        section="core",
        key="load_examples",
        kind="bool",
        default=False,
        description="Show the example DAGs. `standalone` shows them by default; see --no-examples.",
        airflow=("core.load_examples",),
    ),
    Option(
        section="core",
        key="dags_are_paused_at_creation",
        kind="bool",
        default=True,
        description="New DAGs are paused.",
        airflow=("core.dags_are_paused_at_creation",),
    ),
    Option(
        section="core",
        key="default_timezone",
        kind="timezone",
        default="UTC",
        description="Time zone of dates without a time zone: an IANA name, or `system`.",
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
        description="Default of `max_active_tasks`: maximum number of running tasks in one DAG run.",
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
        description="Default of `max_active_tasks_all_runs`: maximum number of running tasks of a DAG; none = no limit.",
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
        description="Different values of `max_active_tasks_all_runs` for folders in the DAG folder: legacy=16, teams/new=none.",
    ),
    Option(
        section="core",
        key="max_active_runs_per_dag",
        kind="int",
        default=16,
        low=1,
        high=1_000_000,
        unit="runs",
        description="Default of `max_active_runs`: maximum number of running runs of a DAG.",
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
        description="Slots of default_pool in a new database; -1 = unlimited.",
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
        description="Default of `retries` of tasks.",
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
        description="Default of `retry_delay` of tasks: wait before a retry.",
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
        description="Default of `max_retry_delay` of tasks: longest wait with exponential backoff.",
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
        description="Default of `execution_timeout` of tasks: longest time that one attempt may run; none = no limit.",
        airflow=("core.default_task_execution_timeout",),
        from_airflow=_none_if_zero,
    ),
    Option(
        section="core",
        key="catchup_by_default",
        kind="bool",
        default=None,
        nullable=True,
        description="Default of `catchup` of DAGs: create the missed runs since start_date. none = off; on for files that were "
        "written for Airflow 1 or 2, as there.",
        airflow=("scheduler.catchup_by_default",),
    ),
    Option(
        section="core",
        key="schedule_meaning",
        kind="choice",
        default="auto",
        choices=("auto", "airflow3", "airflow2"),
        description="Meaning of a cron string as `schedule`: airflow3 = run at that time; airflow2 = run after the interval; "
        "auto = as the generation of Airflow for which the file was written.",
        airflow=("scheduler.create_cron_data_intervals",),
        from_airflow=_true_means("airflow2", "airflow3"),
    ),
    Option(
        section="core",
        key="schedule_meaning_of_folders",
        kind="by_folder",
        default=None,
        nullable=True,
        choices=("auto", "airflow3", "airflow2"),
        description="Different values of `schedule_meaning` for folders in the DAG folder: legacy=airflow2, teams/new=airflow3.",
    ),
    Option(
        section="core",
        key="xcom_inline_max_bytes",
        kind="int",
        default=64 * KIB,
        low=0,
        high=16 * MIB,
        unit="bytes",
        description="Largest XCom in the database; larger ones are stored in files under xcom/.",
    ),
    Option(
        section="core",
        key="xcom_max_bytes",
        kind="int",
        default=64 * MIB,
        low=KIB,
        high=64 * 1024 * MIB,
        unit="bytes",
        description="Largest accepted XCom; a task that pushes a larger one fails.",
    ),
    Option(
        section="core",
        key="max_map_length",
        kind="int",
        default=1024,
        low=1,
        high=100_000,
        unit="elements",
        description="Maximum length of a list that a task returns for mapped tasks; with a longer list the task fails.",
    ),
    Option(
        section="core",
        key="kill_grace",
        kind="duration",
        default=60.0,
        low=0,
        high=DAY_SECONDS,
        unit="seconds",
        description="Time between SIGTERM (on_kill) and SIGKILL when a task is stopped.",
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
        description="Time for the process of a task to end after its result was accepted.",
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
        description="Factor for all safety-net timers; for tests.",
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
            "`standalone` restarts a scheduler, worker host, parser or web server that makes no progress for this long (at most a "
            "third later). After half of this time the health page shows it as unhealthy. 0 = no restart."
        ),
    ),
    Option(
        section="core",
        key="task_start",
        kind="choice",
        default="template",
        choices=("template", "fresh"),
        description="How the process of a task starts: template = forked from a process that has imported the DAG file; fresh = "
        "a new interpreter.",
        airflow=("core.execute_tasks_new_python_interpreter",),
        from_airflow=_true_means("fresh", "template"),
    ),
    Option(
        section="core",
        key="sensitive_var_conn_names",
        kind="str",
        default=None,
        nullable=True,
        description="Additional words, separated by commas. Values of variables, JSON fields and template fields whose name "
        "contains one are masked like passwords.",
        airflow=("core.sensitive_var_conn_names", "admin.sensitive_variable_fields"),
    ),
    Option(
        section="core",
        key="hide_sensitive_var_conn_fields",
        kind="bool",
        default=True,
        description="Mask values whose name looks like the name of a secret. Passwords of connections and secret settings are "
        "always masked.",
        airflow=("core.hide_sensitive_var_conn_fields", "admin.hide_sensitive_variable_fields"),
    ),
)

_DATABASE = (
    Option(
        section="database",
        key="url",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="A PostgreSQL database in place of the SQLite file: postgresql://user:password@host:port/database; "
        "none = the file database.path. The tables are in a schema of their own, tradewind.",
        airflow=("database.sql_alchemy_conn", "core.sql_alchemy_conn"),
        from_airflow=_only_postgres,
    ),
    Option(
        section="database",
        key="path",
        kind="path",
        default="$TRADEWIND_HOME/tradewind.db",
        description="The SQLite database file. It is not used if database.url is set.",
    ),
    Option(
        section="database",
        key="busy_timeout",
        kind="duration",
        default=30.0,
        low=0,
        high=3600,
        unit="seconds",
        description="How long to wait for another process that has locked the database.",
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
        description="Maximum size of the database in SQLite pages; 0 = no limit.",
    ),
    Option(
        section="database",
        key="synchronous",
        kind="choice",
        default="FULL",
        choices=("FULL", "NORMAL"),
        description="Durability of commits: FULL survives a power loss; NORMAL may lose the last commits before a power loss.",
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
        description="Number of DAG files that are parsed at the same time.",
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
        description="Longest time to import one DAG file.",
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
        description="Maximum address space of a process that parses a DAG file; 0 = no limit.",
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
        description="Time between two scans of the DAG folder, for changes that the file watch missed.",
        airflow=("scheduler.dag_dir_list_interval",),
    ),
    Option(
        section="parser",
        key="dynamic_interval",
        kind="duration",
        default=60.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Time between two parses of files whose DAGs can change without a change of the file.",
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
        description="Maximum number of tasks of a DAG.",
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
        description="How often an attempt that was lost before it started is queued again; after that its try fails. With "
        "lost_attempts = repeat, attempts that were lost after their start are counted too.",
        airflow=("scheduler.num_stuck_in_queued_retries",),
    ),
    Option(
        section="scheduler",
        key="lost_attempts",
        kind="choice",
        default="fail",
        choices=("fail", "repeat"),
        description="What happens to an attempt that had started and was lost with its worker: fail = its try fails (retries, "
        "callbacks and mail follow); repeat = it runs again in the same try, although a part of its work may have been done. "
        "A task can override this with its argument lost_attempts.",
    ),
    Option(
        section="scheduler",
        key="tasks_may_change",
        kind="choice",
        default="all",
        choices=("all", "variables"),
        description="What the code of tasks and callbacks may change: all = variables, connections, pools and whether DAGs are "
        "paused, as in Airflow 1 and 2 (session.add(Connection(…)), session.commit()); variables = only these, as in Airflow 3.",
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
        description="Time between two searches for queued attempts that the executor does not have, to submit them again.",
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
        description="Time between two searches for reports and commands whose wake-up was lost.",
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
        description="Time between two checks of the waits of deferred tasks, also for waits that can never end.",
    ),
    Option(
        section="scheduler",
        key="lease",
        kind="duration",
        default=30.0,
        low=1,
        high=DAY_SECONDS,
        unit="seconds",
        description="How long a scheduler or worker may be silent before its work is taken over.",
    ),
    Option(
        section="scheduler",
        key="batch_max_rows",
        kind="int",
        default=2000,
        low=10,
        high=1_000_000,
        unit="rows",
        description="Maximum number of rows that one transaction writes.",
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
        description="Finished runs older than this are deleted; 0 = keep all.",
    ),
    Option(
        section="scheduler",
        key="retention_keep_runs",
        kind="int",
        default=100,
        low=0,
        high=10_000_000,
        unit="runs",
        description="Number of newest runs of each DAG that are kept regardless of their age.",
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
        description="Time between two deletions of old runs.",
    ),
    Option(
        section="scheduler",
        key="callback_parallelism",
        kind="int",
        default=4,
        low=1,
        high=1000,
        unit="processes",
        description="Maximum number of processes for callbacks and mails of DAG runs and of killed tasks.",
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
        description="Longest time of one such callback or mail; 0 = no limit.",
    ),
    Option(
        section="scheduler",
        key="callback_retries",
        kind="int",
        default=3,
        low=0,
        high=100,
        unit="times",
        description="How often a failed callback or mail is retried; after that it is parked (tradewind callbacks list).",
    ),
    Option(
        section="scheduler",
        key="callback_retry_delay",
        kind="duration",
        default=10.0,
        low=0.01,
        high=DAY_SECONDS,
        unit="seconds",
        description="Wait before the first retry of a callback or mail; each further wait is six times as long, up to an hour.",
    ),
    Option(
        section="scheduler",
        key="pool_metrics_interval",
        kind="duration",
        default=5.0,
        low=0.1,
        high=DAY_SECONDS,
        unit="seconds",
        description="If metrics are on: time between two measurements of pools, executors and running runs.",
        airflow=("scheduler.pool_metrics_interval",),
    ),
    Option(
        section="scheduler",
        key="ti_metrics_interval",
        kind="duration",
        default=30.0,
        low=0.1,
        high=DAY_SECONDS,
        unit="seconds",
        description="If metrics are on: time between two counts of the task instances of each task by state.",
        airflow=("scheduler.ti_metrics_interval",),
    ),
)

_RUNNER = (
    Option(
        section="runner",
        key="worker_hosts",
        kind="int",
        default=1,
        low=1,
        high=64,
        unit="processes",
        description="Worker hosts that `standalone` and `scheduler` start on this machine. Each one runs a share of the tasks; "
        "one that is killed takes only its own tasks with it. core.parallelism counts over all of them.",
    ),
    Option(
        section="runner",
        key="drain_timeout",
        kind="duration",
        default=60.0,
        low=0,
        high=30 * DAY_SECONDS,
        unit="seconds",
        description="Time for running tasks to finish when the worker host is stopped (SIGTERM); no new tasks are started. Tasks "
        "that still run after this time are stopped and count as lost. Ctrl-C (SIGINT) or a second SIGTERM ends the wait.",
    ),
    Option(
        section="runner",
        key="template_idle",
        kind="duration",
        default=120.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Time after which an unused template ends. It ends earlier, after 200 times the import time of its file, but "
        "not before 2 s.",
    ),
    Option(
        section="runner",
        key="template_max",
        kind="int",
        default=8,
        low=1,
        high=10_000,
        unit="processes",
        description="Maximum number of unused templates that are kept.",
    ),
    Option(
        section="runner",
        key="dynamic_template_max_age",
        kind="duration",
        default=60.0,
        low=0.1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Maximum age of a template whose DAG file reads the clock, environment, network or data during import.",
    ),
    Option(
        section="runner",
        key="log_max_bytes",
        kind="int",
        default=64 * MIB,
        low=4 * KIB,
        high=64 * 1024 * MIB,
        unit="bytes",
        description="Maximum size of the log of one attempt. Of a longer log the beginning and end are kept.",
    ),
    Option(
        section="runner",
        key="log_line_max_bytes",
        kind="int",
        default=64 * KIB,
        low=256,
        high=16 * MIB,
        unit="bytes",
        description="Maximum length of a log line; longer lines are cut.",
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
        description="Time after which an unanswered request to start an attempt is sent again.",
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
        description="Time after which an unacknowledged report is sent again.",
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
        description="Maximum address space of a task (RLIMIT_AS); 0 = no limit.",
    ),
    Option(
        section="runner",
        key="malloc",
        kind="choice",
        default="malloc_hugetlb",
        choices=("default", "malloc_hugetlb"),
        description="Memory allocator of templates: malloc_hugetlb makes forks cheaper (measured: benchmarks/RESULTS.md).",
    ),
)


def _enabled_or_disabled(text: str) -> str:
    """Airflow also has the value `Hidden`, which hides the button on its page; it means disabled here."""
    return "enabled" if text.strip().lower() == "enabled" else "disabled"


_API = (
    Option(
        section="api",
        key="host",
        kind="str",
        default="127.0.0.1",
        description="Address of the web server; 0.0.0.0 = all interfaces.",
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
        description="Port of the web server; 0 = any free port.",
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
        description="Time after which a login expires.",
        airflow=("api_auth.jwt_expiration_time",),
        from_airflow=_seconds_to_hours,
    ),
    Option(
        section="api",
        key="session_hours",
        kind="float",
        default=168.0,
        low=0.01,
        high=8760.0,
        unit="hours",
        description="Time after which a login in the browser expires, even if it is used.",
        airflow=("fab.session_lifetime_minutes", "webserver.session_lifetime_minutes"),
        from_airflow=_minutes_to_hours,
    ),
    Option(
        section="api",
        key="session_idle_hours",
        kind="float",
        default=12.0,
        low=0.01,
        high=8760.0,
        unit="hours",
        description="Time without requests after which a login in the browser expires.",
    ),
    Option(
        section="api",
        key="base_url",
        kind="str",
        default=None,
        nullable=True,
        description="Address of the web server in browsers, if a reverse proxy changes it: https://tradewind.example.com; "
        "none = the address that requests name, and in links of tasks (ti.log_url) http://<api.host>:<api.port>.",
        airflow=("api.base_url", "webserver.base_url"),
    ),
    Option(
        section="api",
        key="trusted_proxies",
        kind="str",
        default=None,
        nullable=True,
        description="Addresses or networks of reverse proxies whose X-Forwarded-For header is trusted, separated by commas; "
        "none = the header is ignored.",
    ),
    Option(
        section="api",
        key="password_min_length",
        kind="int",
        default=8,
        low=1,
        high=128,
        unit="characters",
        description="Minimum length of new passwords. A password must not contain the user name.",
    ),
    Option(
        section="api",
        key="page_limit_max",
        kind="int",
        default=100,
        low=1,
        high=100_000,
        unit="rows",
        description="Maximum number of rows in one page of a list.",
        airflow=("api.maximum_page_limit",),
    ),
    Option(
        section="api",
        key="test_connection",
        kind="choice",
        default="disabled",
        choices=("disabled", "enabled"),
        description="enabled = clients with the role op may have a connection tested by its hook, in a process of its own on this "
        "machine.",
        airflow=("core.test_connection",),
        from_airflow=_enabled_or_disabled,
    ),
)

_ROLE_OF_ALL = ("none", "public", "viewer", "user", "op", "admin")


def _group_options(section: str) -> tuple[Option, ...]:
    """The settings of groups are the same for an identity provider and a directory."""
    return (
        Option(
            section=section,
            key="groups",
            kind="str",
            default=None,
            nullable=True,
            description='Rights that groups give, as JSON: {"data-eng": "op", "finance": ["viewer", "team:finance:user", '
            '"role:auditor"]}. Each login sets them again; none = groups give no rights, and administrators give the roles.',
        ),
        Option(
            section=section,
            key="default_role",
            kind="choice",
            default="none",
            choices=_ROLE_OF_ALL,
            description="Role of everybody who logs in by provider or directory; none = only members of the groups may log in.",
        ),
        Option(
            section=section,
            key="create_accounts",
            kind="bool",
            default=True,
            description="The first login creates the account; false = only people who have an account already may log in.",
        ),
        Option(
            section=section,
            key="ca_file",
            kind="path",
            default=None,
            nullable=True,
            description="File with the trusted certificates (PEM); none = the trusted certificates of the system.",
        ),
    )


_OIDC = (
    Option(
        section="oidc",
        key="issuer",
        kind="str",
        default=None,
        nullable=True,
        description="Address of the identity provider, exactly as its discovery document names it: "
        "https://login.example.com/realms/main; none = no login by OpenID Connect.",
    ),
    Option(
        section="oidc",
        key="client_id",
        kind="str",
        default="tradewind",
        description="Id of this server at the provider.",
    ),
    Option(
        section="oidc",
        key="client_secret",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="Secret of this server at the provider; none = a public client, which only PKCE protects.",
    ),
    Option(
        section="oidc",
        key="label",
        kind="str",
        default="Sign in with single sign-on",
        description="Text of the button on the login page.",
    ),
    Option(
        section="oidc",
        key="scopes",
        kind="str",
        default="openid profile email",
        description="Scopes to ask for, separated by blanks. Some providers send groups only with a scope of its own.",
    ),
    Option(
        section="oidc",
        key="name_claim",
        kind="str",
        default="preferred_username",
        description="Claim with the name of a new account.",
    ),
    Option(
        section="oidc",
        key="groups_claim",
        kind="str",
        default="groups",
        description="Claim with the groups; with dots, a path: realm_access.roles.",
    ),
    *_group_options("oidc"),
)

_LDAP = (
    Option(
        section="ldap",
        key="url",
        kind="str",
        default=None,
        nullable=True,
        description="Address of the directory that checks passwords: ldaps://ldap.example.com; none = no login by LDAP.",
    ),
    Option(
        section="ldap",
        key="start_tls",
        kind="bool",
        default=True,
        description="Encrypt a connection to ldap:// with StartTLS; false = passwords are sent without encryption.",
    ),
    Option(
        section="ldap",
        key="bind_dn",
        kind="str",
        default=None,
        nullable=True,
        description="Distinguished name of the account that searches for people; none = an anonymous search.",
    ),
    Option(
        section="ldap",
        key="bind_password",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="Password of bind_dn.",
    ),
    Option(
        section="ldap",
        key="search_base",
        kind="str",
        default=None,
        nullable=True,
        description="Where people are searched: ou=people,dc=example,dc=com. Necessary if url is set.",
    ),
    Option(
        section="ldap",
        key="user_filter",
        kind="str",
        default="(&(objectClass=person)(uid={name}))",
        description="Filter for the entry of a person. {name} stands for the name. Active Directory: (sAMAccountName={name}).",
    ),
    Option(
        section="ldap",
        key="name_attribute",
        kind="str",
        default="uid",
        description="Attribute with the name of a new account; of Active Directory: sAMAccountName.",
    ),
    Option(
        section="ldap",
        key="groups_attribute",
        kind="str",
        default="memberOf",
        description="Attribute of a person with the names of its groups.",
    ),
    Option(
        section="ldap",
        key="group_search_base",
        kind="str",
        default=None,
        nullable=True,
        description="Where groups are searched, in a directory without that attribute; none = no search.",
    ),
    Option(
        section="ldap",
        key="group_filter",
        kind="str",
        default="(member={dn})",
        description="Finds the groups of a person. {dn} stands for the distinguished name of the person.",
    ),
    Option(
        section="ldap",
        key="timeout",
        kind="duration",
        default=5.0,
        low=0.1,
        high=60.0,
        unit="seconds",
        description="Time for a connection to the directory, and for each of its answers.",
    ),
    *_group_options("ldap"),
)

_LOGGING = (
    Option(
        section="logging",
        key="level",
        kind="choice",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        description="Minimum level of log records.",
        airflow=("logging.logging_level", "core.logging_level"),
        from_airflow=_log_level,
    ),
    Option(
        section="logging",
        key="folder",
        kind="path",
        default="$TRADEWIND_HOME/logs",
        description="Folder of task logs.",
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
        description="Task logs older than this are deleted, even if their run is kept; 0 = logs are deleted with their run.",
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
        description="Maximum size of all task logs. If it is exceeded, the logs of the oldest runs are deleted; 0 = no limit.",
    ),
    Option(
        section="logging",
        key="remote_logging",
        kind="bool",
        default=False,
        description="Whether `standalone` and `scheduler` upload task logs to `logging.remote_base_log_folder`.",
        airflow=("logging.remote_logging", "core.remote_logging"),
    ),
    Option(
        section="logging",
        key="remote_base_log_folder",
        kind="str",
        default=None,
        nullable=True,
        description="Where task logs are uploaded, and read if this machine does not have them: an address of fsspec, such as "
        "s3://bucket/logs, gs://bucket/logs or abfs://container/logs.",
        airflow=("logging.remote_base_log_folder", "core.remote_base_log_folder"),
    ),
    Option(
        section="logging",
        key="remote_log_conn_id",
        kind="str",
        default=None,
        nullable=True,
        description="Connection with the credentials for `logging.remote_base_log_folder` on S3, Google Cloud Storage or Azure: "
        "one of the environment (AIRFLOW_CONN_ID). Without effect where `logging.remote_storage_options` is set.",
        airflow=("logging.remote_log_conn_id", "core.remote_log_conn_id"),
    ),
    Option(
        section="logging",
        key="remote_storage_options",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description='JSON object of arguments for the file system of fsspec, such as {"endpoint_url": "http://minio:9000"}; none = '
        "the environment decides (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS …).",
    ),
)

_OPERATORS = (
    Option(
        section="operators",
        key="default_deferrable",
        kind="bool",
        default=False,
        description="Default of `deferrable` of operators and sensors.",
        airflow=("operators.default_deferrable",),
    ),
)

_STATE_STORE = (
    Option(
        section="state_store",
        key="default_retention_days",
        kind="int",
        default=30,
        low=0,
        high=36_500,
        unit="days",
        description="A value in the state store of a task expires after this time, unless the task says otherwise; 0 = never.",
        airflow=("state_store.default_retention_days",),
    ),
    Option(
        section="state_store",
        key="clear_on_success",
        kind="bool",
        default=False,
        description="Delete the values in the state store of a task instance when it succeeds.",
        airflow=("state_store.clear_on_success",),
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
        description="Keys that encrypt variables and connections, newest first, separated by commas; "
        "none = the file fernet.key in the home folder.",
        airflow=("core.fernet_key",),
    ),
)

_CELERY = (
    Option(
        section="celery",
        key="broker_url",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="URL of the broker of the CeleryExecutor: redis://… or amqp://… (RabbitMQ), for scheduler and workers.",
        airflow=("celery.broker_url",),
    ),
    Option(
        section="celery",
        key="worker_concurrency",
        kind="int",
        default=16,
        low=1,
        high=10_000,
        unit="tasks",
        description="Tasks that a Celery worker runs at the same time, unless -c or --autoscale is given.",
        airflow=("celery.worker_concurrency",),
    ),
)

_KUBERNETES = (
    Option(
        section="kubernetes_executor",
        key="namespace",
        kind="str",
        default="default",
        description="Namespace in which the KubernetesExecutor creates its pods.",
        airflow=("kubernetes_executor.namespace", "kubernetes.namespace"),
    ),
    Option(
        section="kubernetes_executor",
        key="pod_template_file",
        kind="str",
        default=None,
        nullable=True,
        description="YAML file with the pod that all pods are made from; its first container is called `base`. none = a pod with "
        "one container that has the image of worker_container_repository.",
        airflow=("kubernetes_executor.pod_template_file", "kubernetes.pod_template_file"),
    ),
    Option(
        section="kubernetes_executor",
        key="worker_container_repository",
        kind="str",
        default=None,
        nullable=True,
        description="Image of the container that runs a task, without its tag. It has priority over the image in the pod template.",
        airflow=("kubernetes_executor.worker_container_repository", "kubernetes.worker_container_repository"),
    ),
    Option(
        section="kubernetes_executor",
        key="worker_container_tag",
        kind="str",
        default=None,
        nullable=True,
        description="Tag of that image.",
        airflow=("kubernetes_executor.worker_container_tag", "kubernetes.worker_container_tag"),
    ),
    Option(
        section="kubernetes_executor",
        key="gateway",
        kind="str",
        default=None,
        nullable=True,
        description="Address of the gateway, as pods reach it, such as wss://tradewind-gateway:8974; several are separated by "
        "commas. none = the address of the gateway that the scheduler starts.",
    ),
    Option(
        section="kubernetes_executor",
        key="delete_worker_pods",
        kind="bool",
        default=True,
        description="Delete pods that have ended. Otherwise they stay, with the label tradewind_done.",
        airflow=("kubernetes_executor.delete_worker_pods", "kubernetes.delete_worker_pods"),
    ),
    Option(
        section="kubernetes_executor",
        key="delete_worker_pods_on_failure",
        kind="bool",
        default=False,
        description="Delete also pods that failed themselves, for example because they ran out of memory. A pod whose task "
        "failed has not failed.",
        airflow=("kubernetes_executor.delete_worker_pods_on_failure", "kubernetes.delete_worker_pods_on_failure"),
    ),
    Option(
        section="kubernetes_executor",
        key="worker_pods_creation_batch_size",
        kind="int",
        default=16,
        low=1,
        high=100,
        unit="pods",
        description="Maximum number of pods that are being created at the same time.",
        airflow=("kubernetes_executor.worker_pods_creation_batch_size", "kubernetes.worker_pods_creation_batch_size"),
    ),
    Option(
        section="kubernetes_executor",
        key="worker_pods_pending_timeout",
        kind="duration",
        default=600.0,
        low=1,
        high=FOREVER_SECONDS,
        zero_ok=True,
        unit="seconds",
        description="How long a pod may take until its worker has connected. Then the attempt goes to another pod, at most "
        "scheduler.requeue_limit times; 0 = no limit.",
        airflow=(
            "scheduler.task_queued_timeout",
            "kubernetes_executor.worker_pods_pending_timeout",
            "kubernetes.worker_pods_pending_timeout",
        ),
    ),
    Option(
        section="kubernetes_executor",
        key="in_cluster",
        kind="bool",
        default=True,
        description="The scheduler runs in the cluster and uses the service account of its pod. Otherwise it uses a kubeconfig "
        "file.",
        airflow=("kubernetes_executor.in_cluster", "kubernetes.in_cluster"),
    ),
    Option(
        section="kubernetes_executor",
        key="config_file",
        kind="str",
        default=None,
        nullable=True,
        description="The kubeconfig file; none = $KUBECONFIG or ~/.kube/config.",
        airflow=("kubernetes_executor.config_file", "kubernetes.config_file"),
    ),
    Option(
        section="kubernetes_executor",
        key="cluster_context",
        kind="str",
        default=None,
        nullable=True,
        description="The context in the kubeconfig file; none = its current context.",
        airflow=("kubernetes_executor.cluster_context", "kubernetes.cluster_context"),
    ),
    Option(
        section="kubernetes_executor",
        key="verify_ssl",
        kind="bool",
        default=True,
        description="Check the certificate of the API server of Kubernetes.",
        airflow=("kubernetes_executor.verify_ssl", "kubernetes.verify_ssl"),
    ),
    Option(
        section="kubernetes_executor",
        key="ssl_ca_cert",
        kind="str",
        default=None,
        nullable=True,
        description="File with the certificates that may sign the certificate of the API server; none = as the cluster says.",
        airflow=("kubernetes_executor.ssl_ca_cert",),
    ),
    Option(
        section="kubernetes_executor",
        key="kube_client_request_args",
        kind="str",
        default=None,
        nullable=True,
        description="JSON object; only `_request_timeout` is used: seconds, or [seconds to connect, seconds between two pieces "
        "of an answer]. none = [10, 30].",
        airflow=("kubernetes_executor.kube_client_request_args", "kubernetes.kube_client_request_args"),
    ),
)

_WORKER = (
    Option(
        section="worker",
        key="gateway",
        kind="str",
        default=None,
        nullable=True,
        description="For `tradewind worker` on another machine: address of the gateway, such as wss://gateway.example.com:8974; "
        "several are separated by commas.",
    ),
    Option(
        section="worker",
        key="token",
        kind="str",
        default=None,
        nullable=True,
        secret=True,
        description="Token of this worker, made by `tradewind workers token` on the machine of the scheduler.",
    ),
    Option(
        section="worker",
        key="ca_file",
        kind="str",
        default=None,
        nullable=True,
        description="File with the certificates that may sign the certificate of the gateway; none = those of the system.",
    ),
    Option(
        section="worker",
        key="outage_lease",
        kind="duration",
        default=900.0,
        low=30,
        high=DAY_SECONDS,
        unit="seconds",
        description="How long the tasks of a remote worker continue while its gateway or the scheduler is unavailable. Set "
        "the same value on all machines: the scheduler waits equally long before it gives the tasks to another worker.",
    ),
    Option(
        section="worker",
        key="dag_files",
        kind="choice",
        default="gateway",
        choices=("gateway", "local"),
        description="Where a remote worker gets the DAG files: `gateway` = the gateway sends the files of the scheduler's machine; "
        "`local` = the worker reads its own DAG folder.",
    ),
)

_BUNDLES = (
    Option(
        section="bundles",
        key="list",
        kind="str",
        default=None,
        nullable=True,
        description="Further DAG files, from git (`git+https://host/repo@branch#subdir=dags&conn=ID`) or from an object store "
        "(`s3://bucket/folder#conn=ID`), several with spaces between, each with an optional name before it (`name=git+…`). Or "
        "Airflow's JSON list of bundles; then the DAG folder is read only if it is in the list.",
        airflow=("dag_processor.dag_bundle_config_list",),
    ),
    Option(
        section="bundles",
        key="refresh_interval",
        kind="duration",
        default=60.0,
        low=1,
        high=FOREVER_SECONDS,
        unit="seconds",
        description="Time between two fetches of a repository or of the list of files in an object store.",
        airflow=("dag_processor.refresh_interval",),
    ),
    Option(
        section="bundles",
        key="fetch_timeout",
        kind="duration",
        default=300.0,
        low=1,
        high=DAY_SECONDS,
        unit="seconds",
        description="A fetch that takes longer is ended. The last version stays in use, and the fetch is tried again.",
    ),
    Option(
        section="bundles",
        key="storage_folder",
        kind="path",
        default="$TRADEWIND_HOME/dag_bundles",
        description="Folder for the copies of repositories and the files of their versions.",
        airflow=("dag_processor.dag_bundle_storage_path",),
    ),
    Option(
        section="bundles",
        key="max_mb",
        kind="int",
        default=4096,
        low=10,
        high=16 * MIB,
        zero_ok=True,
        unit="MiB",
        description="Disk space of each bundle. If it is exceeded, the oldest versions that no unfinished run needs are deleted, "
        "and then the commits that no branch has any more; 0 = no limit.",
    ),
    Option(
        section="bundles",
        key="disable_versioning",
        kind="bool",
        default=False,
        description="Runs follow the newest version of their bundle and do not keep the version that they were created with. "
        "A DAG's `disable_bundle_versioning` has priority.",
        airflow=("dag_processor.disable_bundle_versioning",),
    ),
    Option(
        section="bundles",
        key="rerun_with_latest_version",
        kind="bool",
        default=False,
        description="A clear moves a run to the newest version of its bundle, if the person does not say otherwise. "
        "A DAG's `rerun_with_latest_version` has priority.",
        airflow=("core.rerun_with_latest_version",),
    ),
)

_GATEWAY = (
    Option(
        section="gateway",
        key="enabled",
        kind="bool",
        default=False,
        description="Whether `standalone` and `scheduler` start a gateway, through which workers on other machines connect.",
    ),
    Option(
        section="gateway",
        key="host",
        kind="str",
        default="127.0.0.1",
        description="Address on which the gateway listens. Except on the loopback address, use TLS (gateway.certificate).",
    ),
    Option(
        section="gateway",
        key="port",
        kind="int",
        default=8974,
        low=0,
        high=65535,
        unit="port number",
        description="Port on which the gateway listens; 0 = any free port.",
    ),
    Option(
        section="gateway",
        key="name",
        kind="str",
        default=None,
        nullable=True,
        description="Name of the gateway, different for each one and the same after a restart; none = host name and port.",
    ),
    Option(
        section="gateway",
        key="url",
        kind="str",
        default=None,
        nullable=True,
        description="Address under which schedulers on other machines reach this gateway, such as wss://one.example.com:8974; "
        "none = host and port of the gateway. Standby schedulers need the address.",
    ),
    Option(
        section="gateway",
        key="certificate",
        kind="str",
        default=None,
        nullable=True,
        description="File with the certificate of the gateway and its chain (PEM); none = no TLS.",
    ),
    Option(
        section="gateway",
        key="private_key",
        kind="str",
        default=None,
        nullable=True,
        description="File with the private key of the certificate; none = it is in the file of the certificate.",
    ),
)


def _metrics(
    key: str,
    kind: Kind,
    default: int | float | bool | str | None,
    description: str,
    *older: str,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    nullable: bool = False,
) -> Option:
    """A setting of metrics under Airflow's name.

    Args:
        older: its names in earlier releases of Airflow, the newest first.
        nullable: the word `none` is valid, although there is a default.
    """
    return Option(
        section="metrics",
        key=key,
        kind=kind,
        default=default,
        description=description,
        unit=unit,
        low=low,
        high=high,
        nullable=nullable or default is None,
        airflow=(f"metrics.{key}", *older),
    )


_METRICS = (
    _metrics("statsd_on", "bool", False, "Send metrics to a StatsD server (UDP).", "scheduler.statsd_on"),
    _metrics("statsd_host", "str", "localhost", "Host of the StatsD server.", "scheduler.statsd_host"),
    _metrics(
        "statsd_port",
        "int",
        8125,
        "Port of the StatsD server.",
        "scheduler.statsd_port",
        unit="port number",
        low=1,
        high=65535,
    ),
    _metrics(
        "statsd_prefix",
        "str",
        "airflow",
        "Start of every name that is sent to the StatsD server; none = no prefix.",
        "scheduler.statsd_prefix",
        nullable=True,
    ),
    _metrics("statsd_ipv6", "bool", False, "Use IPv6 for the StatsD server."),
    _metrics("statsd_influxdb_enabled", "bool", False, "Append tags to the names, as Telegraf and InfluxDB read them."),
    _metrics(
        "statsd_datadog_enabled",
        "bool",
        False,
        "Send metrics to a Datadog agent, with its tags. It replaces metrics.statsd_on.",
        "scheduler.statsd_datadog_enabled",
    ),
    _metrics(
        "statsd_datadog_metrics_tags",
        "bool",
        True,
        "Send the tags of metrics to the Datadog agent.",
        "scheduler.statsd_datadog_metrics_tags",
    ),
    _metrics(
        "statsd_datadog_tags",
        "str",
        None,
        "Tags of every metric that is sent to the Datadog agent: `key:value`, separated by commas.",
        "scheduler.statsd_datadog_tags",
    ),
    _metrics(
        "statsd_disabled_tags",
        "str",
        "job_id,run_id",
        "Tags that are not sent: regular expressions, separated by commas; none = all are sent.",
        nullable=True,
    ),
    _metrics(
        "metrics_allow_list",
        "str",
        None,
        "Send only metrics whose names match one of these regular expressions, separated by commas.",
        "metrics.statsd_allow_list",
        "scheduler.statsd_allow_list",
    ),
    _metrics(
        "metrics_block_list",
        "str",
        None,
        "Do not send metrics whose names match one of these regular expressions, separated by commas. It is ignored if "
        "metrics.metrics_allow_list is set.",
        "metrics.statsd_block_list",
    ),
    _metrics(
        "otel_on",
        "bool",
        False,
        "Export metrics over OpenTelemetry (needs the extra otel). Without effect if metrics.statsd_on or "
        "metrics.statsd_datadog_enabled is set.",
    ),
    _metrics(
        "otel_host", "str", "localhost", "Host of the collector of OpenTelemetry. OTEL_EXPORTER_OTLP_ENDPOINT replaces it."
    ),
    _metrics(
        "otel_port",
        "int",
        8889,
        "Port of the collector of OpenTelemetry for http/protobuf.",
        unit="port number",
        low=1,
        high=65535,
    ),
    _metrics(
        "otel_prefix",
        "str",
        "airflow",
        "Start of every name that is exported over OpenTelemetry; none = no prefix.",
        nullable=True,
    ),
    _metrics(
        "otel_interval_milliseconds",
        "int",
        60_000,
        "Milliseconds between two exports. OTEL_METRIC_EXPORT_INTERVAL replaces it.",
        unit="milliseconds",
        low=100,
        high=86_400_000,
    ),
    _metrics(
        "otel_service", "str", "Airflow", "Name of the service that the metrics belong to. OTEL_SERVICE_NAME replaces it."
    ),
    _metrics("otel_ssl_active", "bool", False, "Use https for the collector of OpenTelemetry."),
    _metrics("legacy_names_on", "bool", True, "Send each metric under its older name too, which contains the ids."),
)

_SENTRY = (
    Option(
        section="sentry",
        key="sentry_on",
        kind="bool",
        default=False,
        description="Report errors of tasks to Sentry.",
        airflow=("sentry.sentry_on",),
    ),
    Option(
        section="sentry",
        key="sentry_dsn",
        kind="str",
        default=None,
        nullable=True,
        description="Address of the project in Sentry (DSN). Tasks can read it; none = the environment variable SENTRY_DSN.",
        airflow=("sentry.sentry_dsn",),
    ),
    Option(
        section="sentry",
        key="before_send",
        kind="str",
        default=None,
        nullable=True,
        description="Import path of a function that changes or drops a report before it is sent.",
        airflow=("sentry.before_send",),
    ),
)

OPTIONS: tuple[Option, ...] = (
    *_CORE,
    *_DATABASE,
    *_PARSER,
    *_BUNDLES,
    *_SCHEDULER,
    *_RUNNER,
    *_API,
    *_OIDC,
    *_LDAP,
    *_LOGGING,
    *_METRICS,
    *_SENTRY,
    *_OPERATORS,
    *_STATE_STORE,
    *_CELERY,
    *_KUBERNETES,
    *_WORKER,
    *_GATEWAY,
    *_SECRETS,
)

BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(option.section for option in OPTIONS))

BY_AIRFLOW_NAME: dict[str, Option] = {name: option for option in OPTIONS for name in option.airflow}

SECRET_ENVIRONMENT: frozenset[str] = frozenset(
    name for option in OPTIONS if option.secret for name in (option.env, *option.airflow_envs)
)
"""Environment variables that contain secrets. They are never passed to a process that runs user code."""
