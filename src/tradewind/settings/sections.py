"""The settings as the code uses them: a frozen value for each section, filled from the table in `options.py`.

Durations are seconds. Each has a second attribute with the suffix `_us` in integer microseconds, which the parts get. Safety-net
timers are already multiplied by `core.safety_net_scale`.
"""

from __future__ import annotations

from tradewind.settings.frozen import Frozen

TYPE_CHECKING = False  # see frozen.py
if TYPE_CHECKING:
    from typing import Literal

    from tradewind.model.definition import DefinitionDefaults


class _Micros:
    """A duration field converted to microseconds."""

    __slots__ = ("_field",)

    def __init__(self, field: str) -> None:
        self._field = field

    def __get__(self, section: object, owner: type | None = None) -> int:
        seconds: float = getattr(section, self._field)
        return round(seconds * 1_000_000)


def _by_folder(text: str | None) -> list[tuple[str, str]]:
    """The (folder, word) pairs of an option by folder, in its normal form."""
    pairs = [part.partition("=") for part in (text or "").split(", ") if part]
    return [(folder, word) for folder, _, word in pairs]


def _meaning(word: str) -> Literal["auto", "airflow3", "airflow2"]:
    if word == "airflow2":
        return "airflow2"
    return "airflow3" if word == "airflow3" else "auto"


class Core(Frozen):
    """Folders, limits, and defaults of DAGs and tasks."""

    dags_folder: str
    plugins_folder: str
    parallelism: int
    executor: str
    load_examples: bool
    dags_are_paused_at_creation: bool
    default_timezone: str
    max_active_tasks_per_dag: int
    max_active_tasks_all_runs: int | None
    max_active_tasks_all_runs_of_folders: str | None
    max_active_runs_per_dag: int
    default_pool_slots: int
    default_task_retries: int
    default_task_retry_delay: float
    max_task_retry_delay: float
    default_task_execution_timeout: float | None
    catchup_by_default: bool | None
    schedule_meaning: str
    schedule_meaning_of_folders: str | None
    xcom_inline_max_bytes: int
    xcom_max_bytes: int
    max_map_length: int
    kill_grace: float
    task_overtime: float
    safety_net_scale: float
    stall_limit: float
    task_start: str
    sensitive_var_conn_names: str | None
    hide_sensitive_var_conn_fields: bool

    default_task_retry_delay_us = _Micros("default_task_retry_delay")
    max_task_retry_delay_us = _Micros("max_task_retry_delay")
    kill_grace_us = _Micros("kill_grace")
    task_overtime_us = _Micros("task_overtime")
    stall_limit_us = _Micros("stall_limit")

    @property
    def meaning(self) -> Literal["auto", "airflow3", "airflow2"]:
        """Meaning of schedules, where no folder says otherwise."""
        return _meaning(self.schedule_meaning)

    @property
    def meanings(self) -> tuple[tuple[str, Literal["auto", "airflow3", "airflow2"]], ...]:
        """(folder, meaning of schedules below it)."""
        pairs = _by_folder(self.schedule_meaning_of_folders)
        return tuple((folder, _meaning(word)) for folder, word in pairs)

    @property
    def max_active_tasks_of_folders(self) -> tuple[tuple[str, int | None], ...]:
        """(folder, maximum number of running tasks over all runs of a DAG below it; None: no limit)."""
        pairs = _by_folder(self.max_active_tasks_all_runs_of_folders)
        return tuple((folder, None if word == "none" else int(word)) for folder, word in pairs)

    @property
    def default_task_execution_timeout_us(self) -> int | None:
        seconds = self.default_task_execution_timeout
        return None if seconds is None else round(seconds * 1_000_000)

    def definition_defaults(
        self, disable_bundle_versioning: bool = False, rerun_with_latest_version: bool = False
    ) -> DefinitionDefaults:
        """The default values of DAG and task arguments."""
        from tradewind.model.definition import DefinitionDefaults  # lazy import: loads msgspec; few processes make definitions

        return DefinitionDefaults(
            disable_bundle_versioning=disable_bundle_versioning,
            rerun_with_latest_version=True if rerun_with_latest_version else None,
            retries=self.default_task_retries,
            retry_delay=self.default_task_retry_delay_us,
            max_active_tasks=self.max_active_tasks_per_dag,
            max_active_tasks_all_runs=self.max_active_tasks_all_runs,
            max_active_tasks_of_folders=self.max_active_tasks_of_folders,
            executors=self.executor,
            max_active_runs=self.max_active_runs_per_dag,
            catchup=self.catchup_by_default,
            schedule_meaning=self.meaning,
            timezone=self.default_timezone,
            meanings=self.meanings,
        )


class Database(Frozen):
    """The SQLite file and its durability, or the URL of a server."""

    url: str | None
    path: str
    busy_timeout: float
    max_page_count: int
    synchronous: str

    busy_timeout_us = _Micros("busy_timeout")


class Parser(Frozen):
    """How DAG files are parsed, and the limits of one file."""

    processes: int
    timeout: float
    memory_limit_mb: int
    rescan_interval: float
    dynamic_interval: float
    max_tasks_per_dag: int

    timeout_us = _Micros("timeout")
    rescan_interval_us = _Micros("rescan_interval")
    dynamic_interval_us = _Micros("dynamic_interval")


class Bundles(Frozen):
    """Where DAG files come from besides the DAG folder."""

    list: str | None
    refresh_interval: float
    fetch_timeout: float
    storage_folder: str
    max_mb: int
    disable_versioning: bool
    rerun_with_latest_version: bool

    refresh_interval_us = _Micros("refresh_interval")
    fetch_timeout_us = _Micros("fetch_timeout")


class Scheduler(Frozen):
    """Limits, safety nets and retention of the scheduler."""

    requeue_limit: int
    lost_attempts: str
    tasks_may_change: str
    resubmit_interval: float
    sweep_interval: float
    wait_recheck_interval: float
    lease: float
    batch_max_rows: int
    retention_days: float
    retention_keep_runs: int
    retention_interval: float
    callback_parallelism: int
    callback_timeout: float
    callback_retries: int
    callback_retry_delay: float
    pool_metrics_interval: float
    ti_metrics_interval: float

    resubmit_interval_us = _Micros("resubmit_interval")
    sweep_interval_us = _Micros("sweep_interval")
    wait_recheck_interval_us = _Micros("wait_recheck_interval")
    lease_us = _Micros("lease")
    retention_interval_us = _Micros("retention_interval")
    callback_timeout_us = _Micros("callback_timeout")
    callback_retry_delay_us = _Micros("callback_retry_delay")
    pool_metrics_interval_us = _Micros("pool_metrics_interval")
    ti_metrics_interval_us = _Micros("ti_metrics_interval")


class Runner(Frozen):
    """Worker host, templates, and the limits of one task."""

    worker_hosts: int
    drain_timeout: float
    template_idle: float
    template_max: int
    dynamic_template_max_age: float
    log_max_bytes: int
    log_line_max_bytes: int
    start_retry_interval: float
    verdict_resend_interval: float
    memory_limit_mb: int
    malloc: str

    drain_timeout_us = _Micros("drain_timeout")
    template_idle_us = _Micros("template_idle")
    dynamic_template_max_age_us = _Micros("dynamic_template_max_age")
    start_retry_interval_us = _Micros("start_retry_interval")
    verdict_resend_interval_us = _Micros("verdict_resend_interval")


class Celery(Frozen):
    """The CeleryExecutor and its workers."""

    broker_url: str | None
    worker_concurrency: int

    def __repr__(self) -> str:
        url = "none" if self.broker_url is None else "***"
        return f"Celery(broker_url={url}, worker_concurrency={self.worker_concurrency})"


class KubernetesExecutor(Frozen):
    """The KubernetesExecutor and its pods."""

    namespace: str
    pod_template_file: str | None
    worker_container_repository: str | None
    worker_container_tag: str | None
    gateway: str | None
    delete_worker_pods: bool
    delete_worker_pods_on_failure: bool
    worker_pods_creation_batch_size: int
    worker_pods_pending_timeout: float
    in_cluster: bool
    config_file: str | None
    cluster_context: str | None
    verify_ssl: bool
    ssl_ca_cert: str | None
    kube_client_request_args: str | None

    worker_pods_pending_timeout_us = _Micros("worker_pods_pending_timeout")

    @property
    def image(self) -> str:
        """The image of the container that runs a task; empty: the pod template names it."""
        if not self.worker_container_repository:
            return ""
        return ":".join(filter(None, (self.worker_container_repository, self.worker_container_tag)))


class Worker(Frozen):
    """The connection of a worker on another machine to the scheduler."""

    gateway: str | None
    token: str | None
    ca_file: str | None
    outage_lease: float
    dag_files: str

    outage_lease_us = _Micros("outage_lease")

    def __repr__(self) -> str:
        return f"Worker(gateway={self.gateway!r}, token={'none' if self.token is None else '***'})"


class Gateway(Frozen):
    """The gateway, to which workers on other machines connect."""

    enabled: bool
    host: str
    port: int
    name: str | None
    url: str | None
    certificate: str | None
    private_key: str | None


class Api(Frozen):
    """The web server."""

    host: str
    port: int
    token_hours: float
    session_hours: float
    session_idle_hours: float
    base_url: str | None
    trusted_proxies: str | None
    password_min_length: int
    page_limit_max: int
    test_connection: str


class Oidc(Frozen):
    """Logins at an identity provider by OpenID Connect."""

    issuer: str | None
    client_id: str
    client_secret: str | None
    label: str
    scopes: str
    name_claim: str
    groups_claim: str
    groups: str | None
    default_role: str
    create_accounts: bool
    ca_file: str | None

    def __repr__(self) -> str:
        return f"Oidc(issuer={self.issuer!r}, client_secret={'none' if self.client_secret is None else '***'})"


class Ldap(Frozen):
    """Logins whose passwords a directory checks."""

    url: str | None
    start_tls: bool
    bind_dn: str | None
    bind_password: str | None
    search_base: str | None
    user_filter: str
    name_attribute: str
    groups_attribute: str
    group_search_base: str | None
    group_filter: str
    timeout: float
    groups: str | None
    default_role: str
    create_accounts: bool
    ca_file: str | None

    timeout_us = _Micros("timeout")

    def __repr__(self) -> str:
        return f"Ldap(url={self.url!r}, bind_password={'none' if self.bind_password is None else '***'})"


class Logging(Frozen):
    """Level of the services' logs; folder, retention, maximum size and upload of task logs."""

    level: str
    folder: str
    retention_days: float
    max_total_mb: int
    remote_logging: bool
    remote_base_log_folder: str | None
    remote_log_conn_id: str | None
    remote_storage_options: str | None


class Metrics(Frozen):
    """Where metrics are sent, and which."""

    statsd_on: bool
    statsd_host: str
    statsd_port: int
    statsd_prefix: str | None
    statsd_ipv6: bool
    statsd_influxdb_enabled: bool
    statsd_datadog_enabled: bool
    statsd_datadog_metrics_tags: bool
    statsd_datadog_tags: str | None
    statsd_disabled_tags: str | None
    metrics_allow_list: str | None
    metrics_block_list: str | None
    otel_on: bool
    otel_host: str
    otel_port: int
    otel_prefix: str | None
    otel_interval_milliseconds: int
    otel_service: str
    otel_ssl_active: bool
    legacy_names_on: bool


class Sentry(Frozen):
    """Reports of errors to Sentry. Tasks read these settings themselves."""

    sentry_on: bool
    sentry_dsn: str | None
    before_send: str | None


class Operators(Frozen):
    """Defaults of operators."""

    default_deferrable: bool


class StateStore(Frozen):
    """Settings of the values that tasks keep between their tries."""

    default_retention_days: int
    clear_on_success: bool


class Secrets(Frozen):
    """The keys that encrypt variables and connections. They are never printed."""

    fernet_key: str | None

    def __repr__(self) -> str:
        return f"Secrets(fernet_key={'none' if self.fernet_key is None else '***'})"
