"""Airflow's import paths that do not exist here, and the module that defines each name now.

The last entry of `sys.meta_path` (see `tradewind/__init__.py`) reads this table when a module was not found. The table is data: it
imports nothing, and a test imports every module that it names.
"""

from __future__ import annotations

_PYTHON = {
    "BranchPythonOperator PythonOperator ShortCircuitOperator": "tradewind.operators.python",
    "BranchPythonVirtualenvOperator PythonVirtualenvOperator": "tradewind.operators.virtualenv",
    "BranchExternalPythonOperator ExternalPythonOperator": "tradewind.operators.external_python",
}
_SQL = {
    "BranchSQLOperator SQLCheckOperator SQLExecuteQueryOperator SQLThresholdCheckOperator SQLValueCheckOperator": (
        "tradewind.operators.sql"
    ),
    "SQLColumnCheckOperator SQLTableCheckOperator": "tradewind.operators.sql_checks",
}
_EXTERNAL_TASK = {"ExternalTaskMarker ExternalTaskSensor": "tradewind.sensors.external_task"}
_NO_DATABASE = "tasks and DAG files cannot reach the database; use the API (/api/v2)"
_NO_SUBDAG = "there are no sub-DAGs; use: from tradewind import TaskGroup"
_DUMMY = "use EmptyOperator: from tradewind.operators.empty import EmptyOperator"
_PROVIDERS = (
    "provider packages keep Airflow's name; use: from airflow.providers.… import …. What Tradewind has by itself is listed in "
    "docs/reference/operators/README.md; other packages come with `tradewind providers install NAME`"
)

MOVED: dict[str, dict[str, str]] = {
    "models": {
        """BaseOperator BaseOperatorLink Connection DAG Param ParamsDict TaskInstance Variable XComArg chain
        cross_downstream""": "tradewind",
        "BaseSensorOperator": "tradewind.sensors.base",
        "SkipMixin": "tradewind.operators.branch",
        "XCom": "use ti.xcom_push() and ti.xcom_pull() in a task",
        "DagBag": "use the fixture dagbag of tradewind.testing",
        "DagRun DagModel Pool and the other tables": _NO_DATABASE,
    },
    "decorators": {"dag setup task task_group teardown": "tradewind"},
    "datasets": {"Dataset DatasetAlias DatasetOrTimeSchedule": "tradewind"},
    "assets": {"Asset AssetAlias AssetAll AssetAny": "tradewind"},
    "exceptions": {
        "AirflowException AirflowFailException AirflowSensorTimeout AirflowSkipException AirflowTaskTimeout": "tradewind",
        "AirflowBadRequest AirflowNotFoundException DagRunNotFound ParamValidationError TaskDeferred": (
            "tradewind.sdk.exceptions"
        ),
        "all others": "in tradewind.sdk.exceptions",
    },
    "macros": {"ds_add ds_format and the others": "use {{ macros.ds_add(ds, 1) }} in a template"},
    "configuration": {"conf": "tradewind.sdk.conf"},
    "plugins_manager": {"AirflowPlugin": "tradewind"},
    "notifications": {"BaseNotifier": "tradewind"},
    "version": {"version": "use: tradewind.__version__"},
    "io": {"ObjectStoragePath": "use: from airflow.sdk import ObjectStoragePath"},
    "jobs": {"Job BaseJob": _NO_DATABASE},
    "settings.Session": {"Session": _NO_DATABASE},
    "utils": {
        "DagRunState Label TaskGroup TaskInstanceState TriggerRule WeightRule chain cross_downstream": "tradewind",
        "send_email": "tradewind.hooks.smtp",
        "State": "use TaskInstanceState and DagRunState: from tradewind import DagRunState, TaskInstanceState",
        "dates.days_ago": "write a fixed date, such as datetime(2026, 1, 1)",
        "timezone": "use pendulum, or datetime with a zone",
        "apply_defaults": "leave it out",
        "provide_session create_session": _NO_DATABASE,
    },
    "providers": {"": _PROVIDERS},
    "contrib": {"": _PROVIDERS},
    "kubernetes": {"": _PROVIDERS},
    "operators.bash_operator": {"BashOperator": "tradewind.operators.bash"},
    "operators.python_operator": _PYTHON,
    "operators.dummy_operator": {"EmptyOperator": "tradewind.operators.empty", "DummyOperator": _DUMMY},
    "operators.dummy": {"EmptyOperator": "tradewind.operators.empty", "DummyOperator": _DUMMY},
    "operators.email_operator": {"EmailOperator": "tradewind.operators.email"},
    "operators.dagrun_operator": {"TriggerDagRunOperator": "tradewind.operators.trigger_dagrun"},
    "operators.latest_only_operator": {"LatestOnlyOperator": "tradewind.operators.latest_only"},
    "operators.branch_operator": {"BaseBranchOperator": "tradewind.operators.branch"},
    "operators.http_operator": {"HttpOperator SimpleHttpOperator": "tradewind.operators.http"},
    "operators.check_operator": _SQL,
    "operators.sql_branch_operator": {"BranchSQLOperator": "tradewind.operators.sql"},
    "operators.subdag_operator": {"SubDagOperator": _NO_SUBDAG},
    "operators.subdag": {"SubDagOperator": _NO_SUBDAG},
    "operators.sensors": _EXTERNAL_TASK,
    **{
        f"operators.{name}_operator": {"SQLExecuteQueryOperator": "tradewind.operators.sql"}
        for name in ("jdbc", "mssql", "mysql", "oracle", "postgres", "sqlite")
    },
    "sensors.base_sensor_operator": {"BaseSensorOperator": "tradewind.sensors.base"},
    "sensors.bash_sensor": {"BashSensor": "tradewind.sensors.bash"},
    "sensors.python_sensor": {"PythonSensor": "tradewind.sensors.python"},
    "sensors.date_time_sensor": {"DateTimeSensor DateTimeSensorAsync": "tradewind.sensors.date_time"},
    "sensors.external_task_sensor": _EXTERNAL_TASK,
    "sensors.file_sensor": {"FileSensor": "tradewind.sensors.filesystem"},
    "sensors.http_sensor": {"HttpSensor": "tradewind.sensors.http"},
    "sensors.sql_sensor": {"SqlSensor": "tradewind.sensors.sql"},
    "sensors.time_delta_sensor": {"TimeDeltaSensor TimeDeltaSensorAsync": "tradewind.sensors.time_delta"},
    "sensors.weekday_sensor": {"DayOfWeekSensor": "tradewind.sensors.weekday"},
    "hooks.base_hook": {"BaseHook": "tradewind.hooks.base"},
    "hooks.http_hook": {"HttpHook": "tradewind.hooks.http"},
    "hooks.dbapi": {"DbApiHook": "tradewind.hooks.sql"},
    "hooks.dbapi_hook": {"DbApiHook": "tradewind.hooks.sql"},
    "timetables.assets": {"AssetOrTimeSchedule": "tradewind"},
    "timetables.datasets": {"DatasetOrTimeSchedule": "tradewind"},
}
"""Module of Airflow without `airflow.` → names in it → the module that defines them now, or an advice (contains a space)."""

_MORE = {
    "BaseBranchOperator BranchMixIn SkipMixin": "tradewind.operators.branch",
    "BranchDateTimeOperator": "tradewind.operators.datetime",
    "BranchDayOfWeekOperator": "tradewind.operators.weekday",
    "CrossDagDepPythonOperator": "tradewind.operators.cross_dag",
    "DummyOperator": _DUMMY,
    "SmoothOperator": "tradewind.operators.smooth",
    "SmtpHook": "tradewind.hooks.smtp",
    "SubDagOperator": _NO_SUBDAG,
    "WaitSensor": "tradewind.sensors.time_delta",
}
_PACKAGES = ("operators", "sensors", "hooks", "triggers", "timetables")


def advice(module: str) -> str | None:
    """An error message for a module or a name that was not found.

    Args:
        module: the full name: `tradewind.models`, or for `from tradewind.operators import BashOperator` the package and the name.

    Returns:
        None for an unknown name.
    """
    inner = module.partition(".")[2]
    names_there = MOVED.get(inner)
    if names_there is not None:
        moved = "; ".join(_import_line(names.split(), target, names) for names, target in names_there.items())
        return f"No module named {module!r}. In DAG files, write airflow.{inner} as in Airflow. Or use: {moved}"
    package, _, name = inner.rpartition(".")
    if package in ("", *_PACKAGES):
        target = _target_of(name)
        if target is not None:
            parent = module.rpartition(".")[0]
            return f"cannot import name {name!r} from {parent!r}. Use: {_import_line([name], target, name)}"
    return None


def _target_of(name: str) -> str | None:
    """The module that defines a name now, or an advice about the name."""
    for table in (_MORE, *MOVED.values()):
        for names, target in table.items():
            if name in names.split() and target != "tradewind":
                return target
    return None


def _import_line(names: list[str], target: str, shown: str) -> str:
    if " " in target:
        return f"{shown}: {target}" if shown else target
    return f"from {target} import {', '.join(names)}"
