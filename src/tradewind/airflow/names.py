"""Airflow's names: each module of the `airflow` namespace, and where its names are in Tradewind.

One table, grouped by the module that has the names here. A row has: the module here, names, modules of Airflow. A name that has
another name here is written `Airflow's=ours`; `*` stands for all public names of the module here. A module of Airflow may carry the
generations that have it, `operators.bash_operator:1-2`; without, every generation does. Names of all generations are served at
once: a DAG file of Airflow 1.10 and one of Airflow 3 can be in the same folder.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import NamedTuple

from tradewind.airflow import (
    dropped_provider_names,
    inherited_names,
    internal_modules,
    moved_modules,
    provider_names,
    renamed_provider_modules,
)
from tradewind.provider_packages import extras

VERSION = "3.3.2+tradewind"
"""The release of Airflow that is served. Provider packages cannot be imported by an Airflow that is too old."""


class Place(NamedTuple):
    """The place of a name, and the generations of Airflow that have it in this module."""

    target: str
    """`package.module:attribute`."""
    since: int
    until: int


Row = tuple[str, str, str]

_STANDARD = "providers.standard"

ROWS: tuple[Row, ...] = (
    # --- DAGs, tasks, groups ----------------------------------------------------------------------------------------------
    ("tradewind.sdk.dag", "DAG", ". models models.dag sdk:3 sdk.definitions.dag:3"),
    (
        "tradewind.sdk.decorators",
        "dag task task_group",
        "decorators:2 sdk:3 sdk.definitions.decorators:3 decorators.task_group:2",
    ),
    ("tradewind.sdk.decorators", "dag", "models.dag:2 sdk.definitions.dag:3 sdk.dag:3"),
    ("tradewind.sdk.decorators", "task", "operators.python:2 sdk.task:3"),
    ("tradewind.sdk.decorators", "task_group", "sdk.definitions.decorators.task_group:3"),
    (
        "tradewind.sdk.decorators",
        "DecoratedOperator TaskDecorator get_unique_task_id=unique_task_id task_decorator_factory",
        "decorators.base:2 sdk.bases.decorator:3",
    ),
    ("tradewind.sdk.decorators", "_TaskDecorator=TaskDecorator", "decorators:2"),
    (
        "tradewind.sdk.decorators",
        "PythonDecoratedOperator=DecoratedOperator _PythonDecoratedOperator=DecoratedOperator",
        "decorators.python:2 operators.python:2 providers.standard.decorators.python:3",
    ),
    ("tradewind.sdk.setup_teardown", "setup teardown", "decorators:2 sdk:3 decorators.setup_teardown:2"),
    (
        "tradewind.sdk.operator",
        "BaseOperator",
        (
            "models models.baseoperator models.operator:2 models.abstractoperator:2 sdk:3 "
            "sdk.bases.operator:3 sdk.definitions.baseoperator:3"
        ),
    ),
    (
        "tradewind.sdk.operator",
        "AbstractOperator=BaseOperator Operator=BaseOperator",
        "models.abstractoperator:2 models.operator:2",
    ),
    (
        "tradewind.sdk.operator_link",
        "BaseOperatorLink",
        "models models.baseoperator models.baseoperatorlink:2 sdk:3 sdk.bases.operatorlink:3",
    ),
    ("tradewind.sdk.mapping", "MappedOperator", "models models.mappedoperator:2 sdk.definitions.mappedoperator:3"),
    ("tradewind.sdk.mapping", "OperatorPartial", "models.mappedoperator:2 sdk.definitions.mappedoperator:3"),
    (
        "tradewind.sdk.dependencies",
        "chain cross_downstream chain_linear",
        "models.baseoperator sdk:3 sdk.bases.operator:3 utils.helpers:1",
    ),
    ("tradewind.sdk.dependencies", "Label EdgeModifier", "utils.edgemodifier:2 sdk:3 sdk.definitions.edges:3"),
    ("tradewind.sdk.taskgroup", "TaskGroup", "utils.task_group:2 sdk:3 sdk.definitions.taskgroup:3"),
    ("tradewind.sdk.params", "Param ParamsDict DagParam", "models.param:2 sdk.definitions.param:3 models.dagparam:2"),
    ("tradewind.sdk.params", "Param ParamsDict", "models:2 sdk:3"),
    (
        "tradewind.sdk.xcom_arg",
        "XComArg PlainXComArg=XComArg MapXComArg ZipXComArg ConcatXComArg",
        "models.xcom_arg:2 sdk.definitions.xcom_arg:3",
    ),
    ("tradewind.sdk.xcom_arg", "XComArg", ".:2 models:2 sdk:3"),
    ("tradewind.sdk.xcom_arg", "literal", "sdk:3 sdk.definitions.template:3"),
    ("tradewind.sdk.load", "get_parsing_context", "sdk:3 utils.dag_parsing_context:2"),
    # --- while a task runs ------------------------------------------------------------------------------------------------
    (
        "tradewind.execution.context",
        "get_current_context",
        "sdk:3 operators.python:2 providers.standard.operators.python:3 task.context:3",
    ),
    ("tradewind.execution.context", "Context", "utils.context:2 sdk:3 sdk.definitions.context:3"),
    (
        "tradewind.execution.context",
        "TaskInstance",
        "models models.taskinstance sdk.types:3 sdk.execution_time.task_runner:3",
    ),
    (
        "tradewind.execution.context",
        "RuntimeTaskInstance=TaskInstance RuntimeTaskInstanceProtocol=TaskInstance",
        "sdk.types:3 sdk.execution_time.task_runner:3",
    ),
    ("tradewind.execution.task_instance", "DagRun", "models models.dagrun sdk.types:3"),
    ("tradewind.execution.task_instance", "TaskInstanceKey", "models.taskinstance models.taskinstancekey:2 sdk.types:3"),
    ("tradewind.execution.task_instance", "DagRunType", "utils.types:2 models.dagrun:2"),
    ("tradewind.sdk.variables", "Variable", "models models.variable sdk:3 sdk.definitions.variable:3"),
    ("tradewind.sdk.variables", "Connection", "models models.connection sdk:3 sdk.definitions.connection:3"),
    ("tradewind.sdk.variables", "BaseHook", "hooks.base:2 hooks.base_hook:1 sdk:3 sdk.bases.hook:3 hooks:1"),
    ("tradewind.sdk.conf", "conf", "configuration sdk:3 sdk.configuration:3"),
    # --- assets -----------------------------------------------------------------------------------------------------------
    (
        "tradewind.sdk.assets",
        "Asset AssetAlias AssetAll AssetAny Dataset Model AssetRef BaseAsset",
        "sdk.definitions.asset:3 assets:3",
    ),
    ("tradewind.sdk.assets", "Asset AssetAlias AssetAll AssetAny", "sdk:3"),
    ("tradewind.sdk.assets", "Asset Dataset", "."),
    ("tradewind.sdk.assets", "Dataset DatasetAlias DatasetAll=AssetAll DatasetAny=AssetAny", "datasets:2"),
    ("tradewind.sdk.assets", "AssetOrTimeSchedule", "timetables.assets:3 sdk:3 sdk.definitions.timetables.assets:3"),
    ("tradewind.sdk.assets", "DatasetOrTimeSchedule", "timetables.datasets:2"),
    ("tradewind.sdk.asset_decorator", "asset", "sdk:3 sdk.definitions.asset.decorators:3"),
    ("tradewind.sdk.asset_decorator", "AssetDefinition MultiAssetDefinition", "sdk.definitions.asset.decorators:3"),
    ("tradewind.execution.asset_events", "Metadata", "sdk:3 sdk.definitions.asset.metadata:3 datasets.metadata:2"),
    (
        "tradewind.sdk.deadlines",
        "DeadlineAlert DeadlineReference AsyncCallback SyncCallback",
        "sdk:3 sdk.definitions.deadline:3 sdk.definitions.callback:3",
    ),
    # --- states and enumerations ------------------------------------------------------------------------------------------
    ("tradewind.model.states", "TriggerRule", "utils.trigger_rule sdk:3 task.trigger_rule:3"),
    ("tradewind.model.states", "WeightRule", "utils.weight_rule sdk:3 task.weight_rule:3"),
    ("tradewind.model.states", "DagRunState=RunState TaskInstanceState=TaskState", "utils.state:2 sdk:3"),
    ("tradewind.airflow.compat.state", "State JobState", "utils.state"),
    # --- exceptions -------------------------------------------------------------------------------------------------------
    ("tradewind.sdk.exceptions", "*", "exceptions sdk.exceptions:3"),
    ("tradewind.airflow.compat.exceptions", "*", "exceptions sdk.exceptions:3"),
    ("tradewind.airflow.compat.exceptions", "AirflowPluginException", "plugins_manager"),
    ("tradewind.sdk.exceptions", "AirflowException", "."),
    # --- hooks, plugins, notifications -----------------------------------------------------------------------------------
    ("tradewind.sdk.plugins", "AirflowPlugin", "plugins_manager sdk.plugins_manager:3"),
    ("tradewind.airflow.compat.plugin_loading", "*", "plugins_manager"),
    ("tradewind.airflow.compat.ui_alert", "UIAlert", "www.utils:2 api_fastapi.common.types:3"),
    ("tradewind.sdk.notifier", "BaseNotifier", "notifications:2 notifications.basenotifier:2 sdk:3 sdk.bases.notifier:3"),
    ("tradewind.execution.macros", "*", "macros sdk.execution_time.macros:3"),
    ("tradewind.execution.macros", "time uuid json dateutil yaml", "macros"),
    ("tradewind.sdk.weekday", "WeekDay", "utils.weekday:2 contrib.utils.weekday:1 providers.standard.utils.weekday:3"),
    # --- operators --------------------------------------------------------------------------------------------------------
    (
        "tradewind.operators.bash",
        "BashOperator",
        f"operators.bash:2 operators.bash_operator:1-2 operators:1 {_STANDARD}.operators.bash:3",
    ),
    (
        "tradewind.operators.python",
        "PythonOperator BranchPythonOperator ShortCircuitOperator",
        f"operators.python:2 operators.python_operator:1-2 operators:1 {_STANDARD}.operators.python:3",
    ),
    ("tradewind.operators.python", "is_venv_installed", f"operators.python:2 {_STANDARD}.operators.python:3"),
    (
        "tradewind.operators.virtualenv",
        "PythonVirtualenvOperator BranchPythonVirtualenvOperator",
        f"operators.python:2 operators.python_operator:1-2 {_STANDARD}.operators.python:3",
    ),
    (
        "tradewind.operators.separate_interpreter",
        "_BasePythonVirtualenvOperator=SeparateInterpreterOperator",
        f"operators.python:2 {_STANDARD}.operators.python:3",
    ),
    (
        "tradewind.operators.external_python",
        "ExternalPythonOperator BranchExternalPythonOperator",
        f"operators.python:2 {_STANDARD}.operators.python:3",
    ),
    ("tradewind.operators.empty", "EmptyOperator", f"operators.empty:2 {_STANDARD}.operators.empty:3"),
    (
        "tradewind.operators.empty",
        "DummyOperator=EmptyOperator",
        "operators.dummy:2 operators.dummy_operator:1-2 operators.empty:2 operators:1",
    ),
    ("tradewind.operators.smooth", "SmoothOperator", f"operators.smooth:2 {_STANDARD}.operators.smooth:3"),
    (
        "tradewind.operators.branch",
        "BaseBranchOperator BranchMixIn SkipMixin",
        f"operators.branch:2 operators.branch_operator:1-2 {_STANDARD}.operators.branch:3 sdk.bases.branch:3",
    ),
    ("tradewind.operators.branch", "SkipMixin", "models models.skipmixin sdk.bases.skipmixin:3 sdk:3"),
    ("tradewind.operators.branch", "BaseBranchOperator BranchMixIn", "sdk:3"),
    (
        "tradewind.operators.latest_only",
        "LatestOnlyOperator",
        f"operators.latest_only:2 operators.latest_only_operator:1-2 operators:1 {_STANDARD}.operators.latest_only:3",
    ),
    ("tradewind.operators.datetime", "BranchDateTimeOperator", f"operators.datetime:2 {_STANDARD}.operators.datetime:3"),
    ("tradewind.operators.weekday", "BranchDayOfWeekOperator", f"operators.weekday:2 {_STANDARD}.operators.weekday:3"),
    (
        "tradewind.operators.trigger_dagrun",
        "TriggerDagRunOperator",
        (f"operators.trigger_dagrun:2 operators.dagrun_operator:1-2 operators:1 {_STANDARD}.operators.trigger_dagrun:3"),
    ),
    ("tradewind.operators.trigger_dagrun", "DagRunOrder", "operators.dagrun_operator:1"),
    (
        "tradewind.operators.email",
        "EmailOperator",
        "operators.email:2 operators.email_operator:1-2 operators:1 providers.smtp.operators.smtp:3",
    ),
    (
        "tradewind.operators.http",
        "HttpOperator SimpleHttpOperator",
        "operators.http_operator:1-2 operators:1 providers.http.operators.http:2",
    ),
    (
        "tradewind.operators.sql",
        "SQLCheckOperator SQLValueCheckOperator SQLThresholdCheckOperator BranchSQLOperator",
        "operators.sql:2 providers.common.sql.operators.sql:2",
    ),
    ("tradewind.operators.sql", "SQLExecuteQueryOperator BaseSQLOperator", "providers.common.sql.operators.sql:2"),
    (
        "tradewind.operators.sql_checks",
        "SQLColumnCheckOperator SQLTableCheckOperator",
        "operators.sql:2 providers.common.sql.operators.sql:2",
    ),
    (
        "tradewind.operators.sql",
        (
            "CheckOperator=SQLCheckOperator ValueCheckOperator=SQLValueCheckOperator "
            "ThresholdCheckOperator=SQLThresholdCheckOperator"
        ),
        "operators.check_operator:1-2",
    ),
    (
        "tradewind.operators.sql_checks",
        "SQLIntervalCheckOperator",
        "operators.sql:2 providers.common.sql.operators.sql:2 operators.check_operator:1-2",
    ),
    ("tradewind.operators.sql_checks", "IntervalCheckOperator=SQLIntervalCheckOperator", "operators.check_operator:1-2"),
    ("tradewind.operators.sql", "BaseSQLOperator", "operators.sql:2"),
    ("tradewind.operators.sql", "BranchSqlOperator=BranchSQLOperator", "operators.sql_branch_operator:1-2"),
    # --- sensors ----------------------------------------------------------------------------------------------------------
    (
        "tradewind.sensors.base",
        "BaseSensorOperator PokeReturnValue poke_mode_only",
        "sensors.base:2 sdk.bases.sensor:3 sensors.base_sensor_operator:1-2",
    ),
    ("tradewind.sensors.base", "BaseSensorOperator PokeReturnValue", "sdk:3"),
    ("tradewind.sensors.base", "BaseSensorOperator", "operators.sensors:1 sensors:1"),
    ("tradewind.sensors.bash", "BashSensor", f"sensors.bash:2 contrib.sensors.bash_sensor:1-2 {_STANDARD}.sensors.bash:3"),
    (
        "tradewind.sensors.python",
        "PythonSensor",
        f"sensors.python:2 contrib.sensors.python_sensor:1-2 {_STANDARD}.sensors.python:3",
    ),
    (
        "tradewind.sensors.filesystem",
        "FileSensor",
        f"sensors.filesystem:2 contrib.sensors.file_sensor:1-2 contrib.operators.fs_operator:1 {_STANDARD}.sensors.filesystem:3",
    ),
    (
        "tradewind.sensors.date_time",
        "DateTimeSensor DateTimeSensorAsync",
        f"sensors.date_time:2 sensors.date_time_sensor:1-2 {_STANDARD}.sensors.date_time:3",
    ),
    (
        "tradewind.sensors.time",
        "TimeSensor TimeSensorAsync",
        f"sensors.time_sensor {_STANDARD}.sensors.time:3 operators.sensors:1",
    ),
    (
        "tradewind.sensors.time_delta",
        "TimeDeltaSensor TimeDeltaSensorAsync WaitSensor",
        f"sensors.time_delta:2 sensors.time_delta_sensor:1-2 {_STANDARD}.sensors.time_delta:3 operators.sensors:1",
    ),
    (
        "tradewind.sensors.weekday",
        "DayOfWeekSensor",
        f"sensors.weekday:2 contrib.sensors.weekday_sensor:1-2 {_STANDARD}.sensors.weekday:3",
    ),
    (
        "tradewind.sensors.external_task",
        "ExternalTaskSensor ExternalTaskMarker",
        (
            f"sensors.external_task:2 sensors.external_task_sensor:1-2 {_STANDARD}.sensors.external_task:3 "
            f"operators.sensors:1 sensors:1"
        ),
    ),
    (
        "tradewind.sensors.sql",
        "SqlSensor",
        "sensors.sql:2 sensors.sql_sensor:1-2 operators.sensors:1 providers.common.sql.sensors.sql:2",
    ),
    ("tradewind.sensors.http", "HttpSensor", "sensors.http_sensor:1-2 operators.sensors:1 providers.http.sensors.http:2"),
    # --- hooks ------------------------------------------------------------------------------------------------------------
    ("tradewind.hooks.http", "HttpHook", "hooks.http_hook:1-2 hooks:1 providers.http.hooks.http:2"),
    ("tradewind.hooks.sql", "DbApiHook", "providers.common.sql.hooks.sql:2"),
    ("tradewind.airflow.compat.dbapi_hook", "DbApiHook", "hooks.dbapi:2 hooks.dbapi_hook:1-2"),
    ("tradewind.airflow.compat.dbapi_hook", "ConnectorProtocol", "hooks.dbapi:2"),
    (
        "tradewind.hooks.sql",
        "fetch_all_handler fetch_one_handler return_single_query_results",
        "providers.common.sql.hooks.sql:2 providers.common.sql.hooks.handlers:3",
    ),
    ("tradewind.hooks.smtp", "SmtpHook", "providers.smtp.hooks.smtp:2"),
    ("tradewind.hooks.smtp", "send_email", "utils.email"),
    ("tradewind.airflow.compat.email", "get_email_address_list", "utils.email"),
    # --- triggers ---------------------------------------------------------------------------------------------------------
    (
        "tradewind.sdk.trigger",
        (
            "BaseTrigger TriggerEvent BaseEventTrigger StartTriggerArgs TaskSuccessEvent TaskFailedEvent "
            "TaskSkippedEvent BaseTaskEndEvent"
        ),
        "triggers.base:2 sdk.bases.trigger:3",
    ),
    ("tradewind.triggers.temporal", "DateTimeTrigger TimeDeltaTrigger", f"triggers.temporal:2 {_STANDARD}.triggers.temporal:3"),
    ("tradewind.triggers.file", "FileTrigger FileDeleteTrigger", f"triggers.file:2 {_STANDARD}.triggers.file:3"),
    (
        "tradewind.triggers.external_task",
        "WorkflowTrigger DagStateTrigger",
        f"triggers.external_task:2 {_STANDARD}.triggers.external_task:3",
    ),
    ("tradewind.triggers.testing", "SuccessTrigger FailureTrigger", "triggers.testing:2"),
    ("tradewind.triggers.http", "HttpTrigger HttpSensorTrigger", "providers.http.triggers.http:2"),
    ("tradewind.airflow.compat.serde", "serialize deserialize encode decode", "serialization.serde:2 sdk.serde:3"),
    # --- timetables -------------------------------------------------------------------------------------------------------
    ("tradewind.timetables.base", "DataInterval TimeRestriction DagRunInfo Timetable", "timetables.base:2"),
    ("tradewind.timetables.base", "BaseTimetable=Timetable", "sdk.bases.timetable:3"),
    (
        "tradewind.timetables.interval",
        "CronDataIntervalTimetable DeltaDataIntervalTimetable",
        "timetables.interval:2 sdk:3 sdk.definitions.timetables.interval:3",
    ),
    (
        "tradewind.timetables.trigger",
        "CronTriggerTimetable MultipleCronTriggerTimetable DeltaTriggerTimetable",
        "timetables.trigger:2 sdk:3",
    ),
    ("tradewind.timetables.events", "EventsTimetable", "timetables.events:2 sdk:3 sdk.definitions.timetables.events:3"),
    (
        "tradewind.timetables.simple",
        "NullTimetable OnceTimetable ContinuousTimetable",
        "timetables.simple:2 sdk.definitions.timetables.simple:3",
    ),
    # --- operators that provider packages have dropped ----------------------------------------------------------------------
    *(
        (
            "tradewind.airflow.compat.sql_operators",
            f"{name}Operator",
            f"operators.{module}_operator:1-2 providers.{package}.operators.{module}:2",
        )
        for name, module, package in (
            ("Postgres", "postgres", "postgres"),
            ("MySql", "mysql", "mysql"),
            ("MsSql", "mssql", "microsoft.mssql"),
            ("Sqlite", "sqlite", "sqlite"),
            ("Oracle", "oracle", "oracle"),
            ("Jdbc", "jdbc", "jdbc"),
            ("Vertica", "vertica", "vertica"),
            ("Snowflake", "snowflake", "snowflake"),
        )
    ),
    ("tradewind.airflow.compat.sql_operators", "TrinoOperator", "providers.trino.operators.trino:2"),
    ("tradewind.airflow.compat.sql_operators", "VerticaOperator", "contrib.operators.vertica_operator:1-2"),
    ("tradewind.airflow.compat.sql_operators", "SnowflakeOperator", "contrib.operators.snowflake_operator:1-2"),
    (
        "tradewind.airflow.compat.subdag",
        "SubDagOperator SkippedStatePropagationOptions",
        "operators.subdag:2 operators.subdag_operator:1-2",
    ),
    # --- Airflow 3 only: files with these load --------------------------------------------------------------------------------
    (
        "tradewind.operators.hitl",
        "ApprovalOperator HITLOperator HITLBranchOperator HITLEntryOperator",
        f"{_STANDARD}.operators.hitl:3",
    ),
    (
        "tradewind.operators.hitl",
        "HITLRejectException HITLTimeoutError HITLTriggerEventError",
        f"{_STANDARD}.exceptions:3",
    ),
    (
        "tradewind.sdk.partitions",
        """AllowedKeyMapper ChainMapper DayWindow FanOutMapper FixedKeyMapper HourWindow IdentityMapper MinimumCount MonthWindow
        PartitionMapper PartitionedAssetTimetable ProductMapper QuarterWindow RollupMapper SegmentWindow StartOfDayMapper
        StartOfHourMapper StartOfMonthMapper StartOfQuarterMapper StartOfWeekMapper StartOfYearMapper WaitForAll WaitPolicy
        WeekWindow Window YearWindow""",
        "sdk:3 partition_mappers:3",
    ),
    (
        "tradewind.airflow.compat.partition_mappers",
        "ToDailyMapper ToHourlyMapper ToMonthlyMapper ToQuarterlyMapper ToWeeklyMapper ToYearlyMapper",
        "sdk:3 partition_mappers:3 partition_mappers.temporal:3 sdk.definitions.partition_mappers.temporal:3",
    ),
    (
        "tradewind.timetables.trigger",
        "CronPartitionTimetable",
        "sdk:3 timetables.trigger:3 sdk.definitions.timetables.trigger:3",
    ),
    (
        "tradewind.sdk.partitions",
        "PartitionedAssetTimetable",
        "timetables.simple:3 sdk.definitions.timetables.assets:3",
    ),
    (
        "tradewind.sdk.assets",
        "AssetTriggeredTimetable",
        "timetables.simple:3 sdk.definitions.timetables.assets:3",
    ),
    (
        "tradewind.timetables.simple",
        "PartitionedAtRuntime",
        "sdk:3 timetables.simple:3 sdk.definitions.timetables.assets:3",
    ),
    ("tradewind.timetables.simple", "PartitionAtRuntime=PartitionedAtRuntime", "sdk:3"),  # its name in files for pre-releases
    ("tradewind.sdk.partitions", "PartitionMapper RollupMapper", "sdk.definitions.partition_mappers.base:3"),
    *(
        ("tradewind.sdk.partitions", listed, f"{package}.{module}:3")
        for package in ("sdk.definitions.partition_mappers", "partition_mappers")
        for listed, module in (
            ("PartitionMapper RollupMapper", "base"),
            ("AllowedKeyMapper", "allowed_key"),
            ("ChainMapper", "chain"),
            ("FixedKeyMapper", "fixed_key"),
            ("IdentityMapper", "identity"),
            ("ProductMapper", "product"),
            ("WaitPolicy WaitForAll MinimumCount", "wait_policy"),
            ("Window HourWindow DayWindow WeekWindow MonthWindow QuarterWindow YearWindow SegmentWindow", "window"),
            (
                """FanOutMapper StartOfHourMapper StartOfDayMapper StartOfWeekMapper StartOfMonthMapper StartOfQuarterMapper
                StartOfYearMapper""",
                "temporal",
            ),
        )
    ),
    (
        "tradewind.airflow.compat.asset_extras",
        "AssetWatcher AssetAccessControl BaseDeadlineReference deadline_reference NEVER_EXPIRE",
        "sdk:3",
    ),
    (
        "tradewind.airflow.compat.asset_extras",
        "AssetWatcher AssetUniqueKey AssetAliasUniqueKey AssetNameRef AssetUriRef",
        "sdk.definitions.asset:3",
    ),
    ("tradewind.airflow.compat.asset_extras", "AssetAccessControl", "sdk.definitions.asset.access_control:3"),
    ("tradewind.airflow.compat.asset_extras", "NEVER_EXPIRE", "sdk.execution_time.context:3"),
    ("tradewind.airflow.compat.asset_extras", "BaseDeadlineReference deadline_reference", "sdk.definitions.deadline:3"),
    ("tradewind.airflow.compat.asset_extras", "DirectoryFileDeleteTrigger", f"{_STANDARD}.triggers.file:3"),
    ("tradewind.sdk.decorators", "result", "sdk:3 sdk.definitions.decorators:3"),
    ("tradewind.execution.macros", "*", "sdk.macros:3"),
    ("tradewind.execution.context", "TaskInstance", "sdk:3"),
    ("tradewind.sdk.setup_teardown", "setup teardown", "sdk.definitions.decorators:3"),
    ("tradewind.airflow.compat.types", "ID_LEN", "models.base"),
    ("tradewind.airflow.compat.server_internals", "pprinttable", "utils.helpers:1"),
    ("tradewind.airflow.compat.priority_strategy", "PriorityWeightStrategy", "task.priority_strategy:2"),
    ("tradewind.sdk.taskgroup", "MappedTaskGroup", "utils.task_group:2 sdk.definitions.taskgroup:3"),
    ("tradewind.execution.context", "get_current_context", "sdk.execution_time.context:3 sdk.definitions.context:3"),
    (
        "tradewind.execution.context",
        "_get_current_context=get_current_context",
        "sdk.definitions._internal.contextmanager:3 models.taskinstance:2",
    ),
    ("tradewind.airflow.compat.dot_renderer", "render_dag", "utils.dot_renderer"),
    ("tradewind.airflow.compat.open_blocks", "DagContext", "models.dag:2 sdk.definitions._internal.contextmanager:3"),
    (
        "tradewind.airflow.compat.open_blocks",
        "TaskGroupContext",
        "utils.task_group:2 sdk.definitions._internal.contextmanager:3",
    ),
    ("builtins", "BaseOperatorMeta=type", "models.baseoperator:2 sdk.bases.operator:3"),
    ("tradewind.airflow.compat.lineage", "DataSet=File DataBase=Table", "lineage.datasets:1"),
    # --- names that only Airflow has --------------------------------------------------------------------------------------------
    ("tradewind.airflow.compat.hooks", "FSHook", f"hooks.filesystem:2 contrib.hooks.fs_hook:1 {_STANDARD}.hooks.filesystem:3"),
    (
        "tradewind.operators.subprocess_hook",
        "SubprocessHook SubprocessResult working_directory",
        f"hooks.subprocess:2 {_STANDARD}.hooks.subprocess:3",
    ),
    ("tradewind.airflow.compat.hooks", "PackageIndexHook", f"hooks.package_index:2 {_STANDARD}.hooks.package_index:3"),
    (
        "tradewind.operators.run_links",
        "TriggerDagRunLink",
        f"operators.trigger_dagrun:2 operators.dagrun_operator:2 {_STANDARD}.operators.trigger_dagrun:3",
    ),
    (
        "tradewind.operators.run_links",
        "ExternalTaskSensorLink=ExternalDagLink ExternalDagLink",
        f"sensors.external_task:2 sensors.external_task_sensor:2 {_STANDARD}.sensors.external_task:3",
    ),
    ("tradewind.airflow.compat.resources", "*", "utils.operator_resources"),
    ("tradewind.sdk.dependencies", "TaskMixin=Node DependencyMixin=Node", "models.taskmixin:2"),
    ("tradewind.sdk.dependencies", "DependencyMixin=Node", "sdk.definitions._internal.mixins:3"),
    ("tradewind.sdk.xcom_arg", "ResolveMixin", "sdk.definitions._internal.mixins:3"),
    ("tradewind.sdk.conditions", "run_if skip_if", "decorators.condition:2 sdk.definitions.decorators.condition:3"),
    ("tradewind.sdk.decorators", "TaskDecoratorCollection=TaskDecorators", "decorators:2 sdk.definitions.decorators:3"),
    ("tradewind.execution.context", "VariableAccessor ConnectionAccessor", "utils.context:2"),
    ("tradewind.airflow.compat.models", "DagTag", "models.dag"),
    ("tradewind.airflow.compat.decorators", "apply_defaults", "utils:1"),
    # Airflow 1.6 had one module `airflow.utils`
    ("tradewind.airflow.compat.state", "State", "utils:1"),
    ("tradewind.model.states", "TriggerRule", "utils:1"),
    ("tradewind.sdk.exceptions", "AirflowException AirflowSensorTimeout AirflowTaskTimeout", "utils:1"),
    ("tradewind.hooks.smtp", "send_email_smtp=send_email", "utils.email"),
    ("tradewind.airflow.compat.executor_names", "DEFAULT_EXECUTOR", "executors:1"),
    ("tradewind.airflow.compat.logging_mixin", "LoggingMixin", "utils.logging:1 utils.log.LoggingMixin:1 .:1"),
    ("tradewind.airflow.compat.logging_mixin", "LoggingMixin", "sdk.definitions._internal.logging_mixin:3"),
    ("tradewind.airflow.compat.helpers", "check_cycle test_cycle", "utils.dag_cycle_tester:2"),
    ("tradewind.airflow.compat.network", "get_host_ip_address", "utils.net"),
    ("tradewind.airflow.compat.standard_library", "mkdirs", "utils.file"),
    ("tradewind.airflow.compat.standard_library", "Popen STDOUT PIPE", "operators.bash_operator:1 operators.bash:2"),
    ("jinja2.nativetypes", "NativeEnvironment", "templates:2"),
    ("jinja2.sandbox", "SandboxedEnvironment", "templates:2"),
    ("tradewind.airflow.compat.lineage", "File", "lineage.datasets:1"),
    ("tradewind.sdk.policy_hooks", "hookimpl local_settings_hookspec", "policies:2"),
    (
        "tradewind.airflow.compat.configuration",
        "get_airflow_home get_airflow_config AIRFLOW_CONFIG expand_env_var mkdir_p",
        "configuration",
    ),
    (
        "tradewind.airflow.compat.executor_names",
        "SequentialExecutor LocalExecutor CeleryExecutor KubernetesExecutor DaskExecutor get_default_executor GetDefaultExecutor",
        "executors:1",
    ),
    *(
        ("tradewind.airflow.compat.executor_names", name, f"executors.{module}")
        for name, module in (
            ("SequentialExecutor", "sequential_executor"),
            ("LocalExecutor", "local_executor"),
            ("CeleryExecutor", "celery_executor"),
            ("KubernetesExecutor", "kubernetes_executor"),
            ("CeleryKubernetesExecutor", "celery_kubernetes_executor"),
            ("LocalKubernetesExecutor", "local_kubernetes_executor"),
            ("DaskExecutor", "dask_executor"),
            ("DebugExecutor", "debug_executor"),
        )
    ),
    ("tradewind.airflow.compat.process_utils", "*", "utils.process_utils"),
    ("tradewind.airflow.compat.operator_helpers", "*", "utils.operator_helpers"),
    (
        "tradewind.airflow.compat.operator_helpers",
        "AIRFLOW_VAR_NAME_FORMAT_MAPPING DEFAULT_FORMAT_PREFIX ENV_VAR_FORMAT_PREFIX context_to_airflow_vars",
        "sdk.execution_time.context:3",
    ),
    ("tradewind.airflow.compat.operator_helpers", "context_merge", "utils.context:2 sdk.definitions.context:3"),
    (
        "tradewind.airflow.compat.operator_helpers",
        "determine_kwargs KeywordParameters",
        "sdk.bases.decorator:3 decorators.base:2",
    ),
    ("tradewind.airflow.compat.deprecation_tools", "*", "utils.deprecation_tools:2"),
    ("tradewind.airflow.compat.system", "getuser IS_WINDOWS is_tty is_terminal_support_colors", "utils.platform"),
    ("tradewind.airflow.compat.system", "timeout TimeoutPosix", "utils.timeout sdk.execution_time.timeout:3"),
    ("tradewind.airflow.compat.system", "uncompress_file", "utils.compression"),
    ("tradewind.airflow.compat.system", "md5", "utils.hashlib_wrapper:2"),
    ("tradewind.airflow.compat.system", "Singleton", "utils.singleton:2"),
    ("tradewind.airflow.compat.yaml", "*", "utils.yaml:2 sdk.yaml:3"),
    ("tradewind.airflow.compat.json_coding", "*", "utils.json"),
    ("tradewind.airflow.compat.python_virtualenv", "*", "utils.python_virtualenv:2"),
    ("tradewind.airflow.compat.python_virtualenv", "*", f"{_STANDARD}.utils.python_virtualenv:3"),
    ("tradewind.airflow.compat.lineage", "AUTO apply_lineage prepare_lineage", "lineage"),
    ("tradewind.airflow.compat.lineage", "LineageBackend", "lineage.backend"),
    ("tradewind.airflow.compat.lineage", "File User Tag Column Table", "lineage.entities"),
    (
        "tradewind.airflow.compat.lineage",
        """HookLineage HookLineageCollector HookLineageReader NoOpCollector get_hook_lineage_collector AssetLineageInfo
        ExtraLineageInfo""",
        "lineage.hook:2 sdk.lineage:3",
    ),
    ("tradewind.airflow.compat.security", "renew_from_kt get_kerberos_principle", "security.kerberos"),
    (
        "tradewind.airflow.compat.security",
        "get_components get_fqdn get_hostname principal_from_username replace_hostname_pattern",
        "security.utils",
    ),
    ("tradewind.airflow.compat.secrets_backends", "BaseSecretsBackend", "secrets secrets.base_secrets sdk.bases.secrets:3"),
    ("tradewind.airflow.compat.secrets_backends", "DEFAULT_SECRETS_SEARCH_PATH", "secrets"),
    ("tradewind.airflow.compat.secrets_backends", "MetastoreBackend", "secrets.metastore"),
    (
        "tradewind.airflow.compat.secrets_backends",
        "LocalFilesystemBackend load_variables load_connections_dict",
        "secrets.local_filesystem",
    ),
    ("tradewind.airflow.compat.secrets_backends", "EnvironmentVariablesBackend", "secrets.environment_variables"),
    *(
        ("tradewind.airflow.compat.kubernetes_objects", names, f"kubernetes.{module}:1-2 contrib.kubernetes.{module}:1")
        for names, module in (
            ("Volume", "volume"),
            ("VolumeMount", "volume_mount"),
            ("Port Resources Pod", "pod"),
            ("PodRuntimeInfoEnv", "pod_runtime_info_env"),
        )
    ),
    ("tradewind.airflow.compat.version", "__version__", "."),
    ("tradewind.airflow.compat.version", "version", "version"),
    (
        "tradewind.airflow.compat.configuration",
        """get getboolean getint getfloat getlist getsection has_option as_dict set remove_option load_test_config test_mode
        initialize_config AirflowConfigParser=SettingsReader AIRFLOW_HOME AirflowConfigException""",
        "configuration",
    ),
    ("tradewind.airflow.compat.configuration", "AirflowConfigException", "sdk._shared.configuration.exceptions:3"),
    ("tradewind.sdk.conf", "AirflowConfigParser=SettingsReader", "sdk.configuration:3"),
    ("tradewind.airflow.compat.settings", "*", "settings"),
    ("tradewind.airflow.compat.session", "*", "utils.session:2"),
    ("tradewind.airflow.compat.session", "provide_session create_session", "utils.db"),
    ("tradewind.airflow.compat.database", "*", "utils.db"),
    ("tradewind.airflow.compat.dates", "*", "utils.dates"),
    ("tradewind.airflow.compat.timezone", "*", "utils.timezone sdk.timezone:3 sdk.timezone:3"),
    ("tradewind.airflow.compat.helpers", "*", "utils.helpers"),
    ("tradewind.airflow.compat.decorators", "apply_defaults", "utils.decorators"),
    ("tradewind.airflow.compat.logging_mixin", "*", "utils.log.logging_mixin"),
    (
        "tradewind.sdk.mask_secret",
        "mask_secret redact should_hide_value_for_key",
        "utils.log.secrets_masker:2 sdk.log:3 sdk.execution_time.secrets_masker:3 sdk._shared.secrets_masker:3",
    ),
    (
        "tradewind.airflow.compat.secrets_masker",
        "reset_secrets_masker",
        "sdk.log:3 sdk.execution_time.secrets_masker:3 sdk._shared.secrets_masker:3",
    ),
    ("tradewind.airflow.compat.module_loading", "*", "utils.module_loading sdk.module_loading:3"),
    ("tradewind.airflow.compat.strings", "*", "utils.strings:2"),
    (
        "tradewind.airflow.compat.types",
        "NOTSET ArgNotSet DagRunTriggeredByType",
        "utils.types:2 sdk.definitions._internal.types:3",
    ),
    ("tradewind.airflow.compat.types", "XCOM_RETURN_KEY", "utils.xcom:2 models.xcom sdk.bases.xcom:3"),
    ("tradewind.airflow.compat.models", "*", "models"),
    (
        "tradewind.airflow.compat.models",
        "DagPickle Chart KnownEvent KnownEventType User DagStat Trigger DbCallbackRequest",
        "models",
    ),
    ("tradewind.airflow.compat.models", "Callback DagWarning Deadline DeadlineAlert HITLDetail Team", "models:2"),
    ("tradewind.airflow.compat.models", "DagWarning", "models.dagwarning:2"),
    ("tradewind.airflow.compat.constants", "all_tables", "cli.commands.db_command:2"),
    ("tradewind.airflow.compat.constants", "config_dict", "utils.db_cleanup:2"),
    ("tradewind.airflow.compat.constants", "DEFAULT_QUEUE", "executors.celery_executor:1"),
    ("tradewind.airflow.compat.settings", "DAGS_FOLDER", "models:1"),
    ("tradewind.airflow.compat.server_internals", "clear_task_instances", "models:1"),
    ("tradewind.execution.task_instance", "TaskInstanceKey", "models"),
    ("tradewind.airflow.compat.server_internals", "BackfillJob SchedulerJob LocalTaskJob TriggererJob", "jobs"),
    ("tradewind.airflow.compat.models", "DagModel ScheduleInterval", "models.dag"),
    ("tradewind.airflow.compat.models", "ScheduleInterval", "models.baseoperator:2"),
    ("tradewind.airflow.compat.xcom", "XCom BaseXCom", "models models.xcom sdk.execution_time.xcom:3 sdk.bases.xcom:3 sdk:3"),
    ("tradewind.airflow.compat.models", "Pool", "models.pool"),
    ("tradewind.airflow.compat.pools", "*", "api.common.experimental.pool:1-2"),
    ("tradewind.airflow.compat.dag_bag", "DagBag", "models.dagbag models"),
    ("tradewind.airflow.compat.dag_bag", "FileLoadStat", "models.dagbag"),
    ("tradewind.airflow.compat.models", "AssetModel AssetEvent", "models.asset:3"),
    ("tradewind.airflow.compat.models", "DatasetModel=AssetModel DatasetEvent=AssetEvent", "models.dataset:2"),
    ("tradewind.airflow.compat.models", "DagWarning", "models.dagwarning:2-3"),
    ("tradewind.airflow.compat.models", "SlaMiss", "models.slamiss:2"),
    ("tradewind.airflow.compat.models", "TaskFail", "models.taskfail:2"),
    ("tradewind.airflow.compat.models", "TaskReschedule", "models.taskreschedule"),
    ("tradewind.airflow.compat.models", "ImportError=ImportErrorModel", "models.errors models"),
    ("tradewind.airflow.compat.models", "ParseImportError=ImportErrorModel", "models.errors:2"),
    ("tradewind.airflow.compat.models", "Log", "models.log"),
    ("tradewind.airflow.compat.models", "RenderedTaskInstanceFields", "models.renderedtifields"),
    ("tradewind.airflow.compat.models", "Job BaseJob=Job", "jobs.job:2 jobs.base_job:1-2 jobs:1"),
    ("tradewind.airflow.compat.standard_library", "cached_property cache", "compat.functools:2"),
    (
        "tradewind.airflow.compat.standard_library",
        "Literal ParamSpec Protocol TypedDict runtime_checkable Self TypeGuard",
        "typing_compat:2",
    ),
    ("tradewind.airflow.compat.standard_library", "TemporaryDirectory", "utils.file"),
    ("tradewind.airflow.compat.standard_library", "json", "settings"),
    ("tradewind.airflow.compat.network", "get_hostname getfqdn", "utils.net"),
    ("tradewind.airflow.compat.permissions", "*", "security.permissions:2"),
    ("tradewind.airflow.compat.stats", "Stats", "stats settings:1-2 observability.stats:3 sdk.observability.stats:3"),
    (
        "tradewind.airflow.compat.stats",
        "decr gauge incr initialize normalize_name_for_stats timer timing",
        "observability.stats:3 sdk.observability.stats:3",
    ),
    ("tradewind.execution.run_queries", "get_last_dagrun", "models.dag:2"),
    ("tradewind.airflow.compat.local_client", "Client", "api.client.local_client api.client.json_client api.client.api_client"),
    ("tradewind.airflow.compat.local_client", "get_current_api_client", "api.client"),
    (
        "tradewind.airflow.compat.local_client",
        "trigger_dag",
        "api.common.trigger_dag:2 api.common.experimental.trigger_dag:1",
    ),
    ("tradewind.sdk.listeners", "hookimpl", "listeners:2 sdk._shared.listeners:3"),
    (
        "tradewind.sdk.listeners",
        "ListenerManager get_listener_manager",
        "listeners.listener:2 sdk._shared.listeners.listener:3",
    ),
    ("tradewind.sdk.listeners", "get_listener_manager", "sdk.listener:3"),
    ("tradewind.sdk.listeners", "TaskRunnerMarker", "sdk.execution_time.task_runner:3"),
    # --- constants, type names and older places of decorators ------------------------------------------------------------------
    (
        "tradewind.airflow.compat.constants",
        """DEFAULT_OWNER DEFAULT_POOL_SLOTS DEFAULT_PRIORITY_WEIGHT DEFAULT_EXECUTOR DEFAULT_QUEUE DEFAULT_RETRIES
        DEFAULT_RETRY_DELAY MAX_RETRY_DELAY DEFAULT_WEIGHT_RULE DEFAULT_TRIGGER_RULE DEFAULT_TASK_EXECUTION_TIMEOUT
        TaskStateChangeCallback""",
        "models.abstractoperator:2 models.baseoperator:2",
    ),
    ("tradewind.airflow.compat.constants", "TaskPreExecuteHook TaskPostExecuteHook", "models.baseoperator:2"),
    (
        "tradewind.airflow.compat.constants",
        "DEFAULT_VIEW_PRESETS ORIENTATION_PRESETS DagStateChangeCallback ScheduleArg ScheduleIntervalArg=ScheduleArg",
        "models.dag:2",
    ),
    ("tradewind.airflow.compat.constants", "DEFAULT_SCHEDULE_INTERVAL", "models.dag:2"),
    ("tradewind.airflow.compat.constants", "CYCLE_NEW CYCLE_IN_PROGRESS CYCLE_DONE", "utils.dag_cycle_tester"),
    ("tradewind.airflow.compat.constants", "KEY_REGEX", "utils.helpers"),
    ("tradewind.airflow.compat.constants", "MAX_XCOM_SIZE", "utils.xcom models.xcom"),
    ("tradewind.airflow.compat.constants", "CONN_ENV_PREFIX", "hooks.base_hook:1 secrets:1"),
    ("tradewind.airflow.compat.constants", "ALLOWED_CONN_TYPE", "operators.sql:2"),
    (
        "tradewind.airflow.compat.permissions",
        """RESOURCE_ADMIN_MENU RESOURCE_AIRFLOW RESOURCE_ASSET RESOURCE_AUDIT_LOG RESOURCE_BROWSE_MENU RESOURCE_CLUSTER_ACTIVITY
        RESOURCE_CONFIG RESOURCE_CONNECTION RESOURCE_DAG_CODE RESOURCE_DAG_DEPENDENCIES RESOURCE_DAG_WARNING RESOURCE_DATASET
        RESOURCE_DOCS RESOURCE_DOCS_MENU RESOURCE_IMPORT_ERROR RESOURCE_JOB RESOURCE_MY_PASSWORD RESOURCE_MY_PROFILE
        RESOURCE_PLUGIN RESOURCE_POOL RESOURCE_PROVIDER RESOURCE_SLA_MISS RESOURCE_TASK_INSTANCE RESOURCE_TASK_LOG
        RESOURCE_TASK_RESCHEDULE RESOURCE_TRIGGER RESOURCE_VARIABLE RESOURCE_WEBSITE RESOURCE_XCOM""",
        "security.permissions:2",
    ),
    ("tradewind.airflow.compat.log_settings", "CustomTTYColoredFormatter", "utils.log.colored_log"),
    (
        "tradewind.airflow.compat.log_settings",
        "DEFAULT_LOGGING_CONFIG LOG_LEVEL LOG_FORMAT BASE_LOG_FOLDER REMOTE_LOGGING",
        "config_templates.airflow_local_settings",
    ),
    *(
        ("tradewind.sdk.decorators", f"{theirs}=task.{ours}", f"decorators:2 decorators.{module}:2")
        for theirs, ours, module in (
            ("python_task", "python", "python"),
            ("virtualenv_task", "virtualenv", "python_virtualenv"),
            ("external_python_task", "external_python", "external_python"),
            ("branch_task", "branch", "branch_python"),
            ("branch_virtualenv_task", "branch_virtualenv", "branch_virtualenv"),
            ("branch_external_python_task", "branch_external_python", "branch_external_python"),
            ("short_circuit_task", "short_circuit", "short_circuit"),
            ("sensor_task", "sensor", "sensor"),
            ("bash_task", "bash", "bash"),
        )
    ),
    ("tradewind.sdk.setup_teardown", "setup_task=setup teardown_task=teardown", "decorators:2 decorators.setup_teardown:2"),
    (
        "tradewind.sdk.setup_teardown",
        "setup_task=setup teardown_task=teardown context_wrapper",
        "sdk.definitions.decorators.setup_teardown:3",
    ),
    ("tradewind.sdk.setup_teardown", "context_wrapper", "decorators.setup_teardown:2"),
    (
        "tradewind.sdk.deadlines",
        "DagRunLogicalDateDeadline DagRunQueuedAtDeadline FixedDatetimeDeadline AverageRuntimeDeadline",
        "sdk.definitions.deadline:3",
    ),
    ("tradewind.sdk.load", "get_parsing_context", "sdk.definitions.context:3"),
    (
        "tradewind.timetables.trigger",
        "CronTriggerTimetable MultipleCronTriggerTimetable DeltaTriggerTimetable",
        "sdk.definitions.timetables.trigger:3",
    ),
    ("tradewind.airflow.compat.resources", "*", "sdk.definitions.operator_resources:3"),
    ("tradewind.airflow.compat.secrets_backends", "BaseSecretsBackend", "sdk.bases.secrets_backend:3"),
    # --- constants of modules that DAG files and plugins read ------------------------------------------------------------------
    (
        "tradewind.airflow.compat.constants",
        "XCOM_SKIPMIXIN_KEY XCOM_SKIPMIXIN_SKIPPED XCOM_SKIPMIXIN_FOLLOWED",
        "models.skipmixin sdk.bases.skipmixin:3",
    ),
    (
        "tradewind.airflow.compat.constants",
        "XCOM_LOGICAL_DATE_ISO XCOM_EXECUTION_DATE_ISO XCOM_RUN_ID",
        "operators.trigger_dagrun:2",
    ),
    ("tradewind.airflow.compat.constants", "PIPELINE_OUTLETS PIPELINE_INLETS", "lineage:1-2"),
    ("tradewind.airflow.compat.constants", "TAG_MAX_LEN", "models.dag:2 sdk.definitions.dag:3"),
    ("tradewind.airflow.compat.constants", "CONN_ID_MAX_LEN", "models.connection:2"),
    ("tradewind.airflow.compat.constants", "PAST_DEPENDS_MET", "models.taskinstance:2"),
    ("tradewind.airflow.compat.constants", "DB_SAFE_MINIMUM DB_SAFE_MAXIMUM", "utils.weight_rule:2 sdk.bases.operator:3"),
    ("tradewind.airflow.compat.constants", "MAX_DB_RETRIES", "utils.retries:2"),
    ("tradewind.airflow.compat.constants", "PY2", "utils.decorators:1"),
    (
        "tradewind.airflow.compat.constants",
        "DEFAULT_IGNORE_FIRST_DEPENDS_ON_PAST DEFAULT_WAIT_FOR_PAST_DEPENDS_BEFORE_SKIPPING",
        "models.abstractoperator:2",
    ),
    (
        "tradewind.airflow.compat.constants",
        "CommandType",
        "executors.base_executor:2",
    ),
    ("tradewind.airflow.compat.constants", "DEFAULT_QUEUE", "sdk.definitions._internal.abstractoperator:3"),
    (
        "tradewind.airflow.compat.constants",
        "GROUP_KEY_REGEX CAMELCASE_TO_SNAKE_CASE_REGEX DEFAULT_TIME_TO_WAIT_AFTER_SIGTERM",
        "utils.helpers",
    ),
    ("tradewind.airflow.compat.constants", "DEFAULT_TIME_TO_WAIT_AFTER_SIGTERM", "utils.process_utils"),
    (
        "tradewind.airflow.compat.executor_names",
        """CELERY_EXECUTOR CELERY_KUBERNETES_EXECUTOR CORE_EXECUTOR_NAMES DASK_EXECUTOR DEBUG_EXECUTOR KUBERNETES_EXECUTOR
        LOCAL_EXECUTOR LOCAL_KUBERNETES_EXECUTOR MOCK_EXECUTOR SEQUENTIAL_EXECUTOR""",
        "executors.executor_constants:2",
    ),
    (
        "tradewind.airflow.compat.configuration",
        "WEBSERVER_CONFIG FERNET_KEY SECRET_KEY TEST_CONFIG_FILE TEST_DAGS_FOLDER TEST_PLUGINS_FOLDER ENV_VAR_PREFIX",
        "configuration",
    ),
    (
        "tradewind.airflow.compat.settings",
        "ALLOW_FUTURE_EXEC_DATES CAN_FORK CHECK_SLAS EXECUTE_TASKS_NEW_PYTHON_INTERPRETER LAZY_LOAD_PLUGINS RBAC",
        "settings",
    ),
    # --- decorators of views, in the modules of plugins -----------------------------------------------------------------------
    (
        "tradewind.airflow.compat.web_decorators",
        """has_access has_access_dag has_access_dag_entities has_access_view has_access_variable has_access_connection
        has_access_configuration has_access_pool has_access_dataset has_access_asset has_access_cluster_activity
        has_access_with_pk has_access_custom_view""",
        "www.auth:2 providers.fab.www.auth:3",
    ),
    (
        "tradewind.airflow.compat.web_decorators",
        "action_logging has_dag_access gzipped",
        "www.decorators:2 www_rbac.decorators:1",
    ),
    ("tradewind.airflow.compat.web_decorators", "action_logging gzipped login_required", "www.utils:1"),
    ("tradewind.airflow.compat.web_decorators", "csrf", "www.app www_rbac.app:1"),
    (
        "tradewind.airflow.compat.web_decorators",
        """check_authentication requires_access requires_access_configuration requires_access_connection requires_access_custom_view
        requires_access_dag requires_access_dataset requires_access_pool requires_access_variable requires_access_view""",
        "api_connexion.security:2",
    ),
    (
        "tradewind.airflow.compat.web_decorators",
        """requires_access_asset requires_access_asset_alias requires_access_backfill requires_access_configuration
        requires_access_connection requires_access_dag requires_access_pool requires_access_variable""",
        "api_fastapi.core_api.security:3",
    ),
    (
        "tradewind.airflow.compat.web_decorators",
        "api_auth",
        "api www.api.experimental.endpoints:1 www_rbac.api.experimental.endpoints:1",
    ),
    (
        "tradewind.airflow.compat.web_decorators",
        "requires_authentication",
        """api.auth.backend.basic_auth api.auth.backend.default api.auth.backend.deny_all api.auth.backend.kerberos_auth
        api.auth.backend.session www.api.experimental.endpoints:1 www_rbac.api.experimental.endpoints:1""",
    ),
    (
        "tradewind.airflow.compat.web_decorators",
        "requires_authentication login_required",
        "contrib.auth.backends.password_auth:1",
    ),
    *provider_names.ROWS,
)


class _Tables(NamedTuple):
    places: dict[str, dict[str, Place]]
    """Module of Airflow → name → place."""
    open: dict[str, list[str]]
    """Module of Airflow → modules here all of whose public names it has."""
    modules: frozenset[str]
    """All modules, including packages that contain only modules."""


def _generations(text: str) -> tuple[str, int, int]:
    """`operators.bash_operator:1-2` → its module, first and last generation."""
    module, _, span = text.partition(":")
    first, _, last = span.partition("-")
    return "airflow" if module == "." else f"airflow.{module}", int(first or 1), int(last or 3)


@functools.cache
def _tables() -> _Tables:
    places: dict[str, dict[str, Place]] = {}
    whole: dict[str, list[str]] = {}
    for home, listed, where in ROWS:
        for text in where.split():
            module, since, until = _generations(text)
            known = places.setdefault(module, {})
            for name in listed.split():
                if name == "*":
                    whole.setdefault(module, []).append(home)
                    continue
                theirs, _, ours = name.partition("=")
                known.setdefault(theirs, Place(f"{home}:{ours or theirs}", since, until))
    modules = {"airflow"}
    for module in (*places, *whole, *moved_modules.modules(), *internal_modules.modules()):
        while module != "airflow":
            modules.add(module)
            module = module.rpartition(".")[0]
    return _Tables(places, whole, frozenset(modules))


def build_tables() -> None:
    """Build the tables, which takes 8 ms, before processes are forked that all need them."""
    find("airflow.models", "name_that_is_in_no_table")


def is_module(name: str) -> bool:
    """Whether this is a module of the table, or a package that contains one."""
    return name in _tables().modules


def modules() -> frozenset[str]:
    """All modules of the namespace."""
    return _tables().modules


_FLAT_PACKAGES = frozenset(
    f"airflow.{name}" for name in ("operators", "sensors", "hooks", "contrib.operators", "contrib.sensors", "contrib.hooks")
)
"""Packages of Airflow 1 that offered the classes of all their modules: `from airflow.contrib.hooks import SSHHook`."""


def find(module: str, name: str) -> str | None:
    """The target of a name, or None if Airflow's module has no such name."""
    tables = _tables()
    place = tables.places.get(module, {}).get(name)
    if place is not None:
        return place.target
    for home in tables.open.get(module, ()):
        if name in _offered(home):
            return f"{home}:{name}"
    moved = moved_modules.names_of(module).get(name) or provider_target(module, name)
    if moved is None and module in _FLAT_PACKAGES:
        moved = _inside(module).get(name) or moved_modules.by_class(module).get(name)
    return moved or internal_modules.target(module, name) or inherited_names.target(module, name)


def provider_target(module: str, name: str) -> str | None:
    """The present place of a name that a module of a provider package once had, or None."""
    renamed = renamed_provider_modules.names_of(module).get(name)
    return renamed or dropped_provider_names.names_of(module).get(name)


def had_other_names(module: str) -> bool:
    """Whether this module of a provider package once had names that the present module does not have."""
    return bool(renamed_provider_modules.names_of(module) or dropped_provider_names.names_of(module))


def place_of(module: str, name: str) -> Place | None:
    """The place of a name, and the generations that have it. None: the name is unknown, or moved to a provider package."""
    return _tables().places.get(module, {}).get(name)


def places() -> Iterator[tuple[str, str, Place]]:
    """(module, name, place) of each row of the table."""
    for module, known in _tables().places.items():
        for name, place in known.items():
            yield module, name, place


@functools.cache
def _inside(package: str) -> dict[str, str]:
    """The classes of all modules of a package: Airflow 1 offered them in the package itself."""
    found: dict[str, str] = {}
    for module, known in _tables().places.items():
        if module.startswith(f"{package}."):
            for name, place in known.items():
                if name[0].isupper():
                    found.setdefault(name, place.target)
    return found


@functools.cache
def _offered(home: str) -> frozenset[str]:
    """The public names of a module of Tradewind: those in `__all__`, or all names that the module defines itself."""
    loaded = importlib.import_module(home)
    listed = getattr(loaded, "__all__", None)
    if listed is None:
        listed = [name for name in vars(loaded) if not name.startswith("_")]
    return frozenset(listed)


def names_of(module: str) -> list[str]:
    """The names of a module and the modules in it, sorted."""
    prefix = f"{module}."
    children = {name[len(prefix) :].partition(".")[0] for name in _tables().modules if name.startswith(prefix)}
    return sorted({*public_names_of(module), *children})


def public_names_of(module: str) -> list[str]:
    """The names that `from module import *` imports, sorted."""
    tables = _tables()
    found = {*tables.places.get(module, ()), *moved_modules.names_of(module), *internal_modules.names_of(module)}
    for home in tables.open.get(module, ()):
        found.update(_offered(home))
    return sorted(found)


_GROUPS = ("apache", "atlassian", "cncf", "common", "dbt", "microsoft")
PROVIDER_GROUPS = tuple(f"airflow.providers.{group}" for group in _GROUPS)
"""Folders that contain several provider packages: the package of `airflow.providers.apache.hive` is `apache-hive`."""


def provider_advice(module: str) -> str:
    """A sentence that names the package which has a module of `airflow.providers`.

    Args:
        module: `airflow.providers.apache.hive.hooks.hive`, or any part of it below `airflow.providers`.
    """
    package = provider_package(module)
    name = package.removeprefix("apache-airflow-providers-")
    if name in extras.PROVIDERS:
        return f"Install its provider package: tradewind providers install {name}"
    return f"Tradewind knows no provider package {name!r}. Install the package that has this module with pip"


def provider_package(module: str) -> str:
    """The distribution that has a module of `airflow.providers`."""
    parts = module.split(".")[2:]
    return "apache-airflow-providers-" + "-".join(parts[:2] if parts[0] in _GROUPS else parts[:1])
