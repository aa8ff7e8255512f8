"""Imports go down in rank.

Each package has a rank. A module imports only modules of lower ranks and of its own package: never a higher rank, never another
package of the same rank. Imports stand at the top of the file. The exceptions are listed below, each with its reason.
"""

from __future__ import annotations

import fnmatch

import pytest

from tests.shape.source import Import, imports, modules

RANKS = {
    "lazy_names": 0,
    "model": 0,
    "observe": 0,
    "platform": 1,
    "metrics": 1,
    "timetables": 1,
    "wire": 1,
    "provider_packages": 1,
    "kernel": 2,
    "sdk": 2,
    "client": 2,
    "execution": 3,
    "airflow": 4,
    "store": 3,
    "bundles": 3,
    "storage": 3,
    "executors": 3,
    "gateway": 4,
    "worker": 4,
    "parser": 4,
    "scheduler": 4,
    "api": 5,
    "doctor": 5,
    "settings": 6,
    "cli": 7,
    "testing": 7,
    "simulation": 8,
    "__main__": 9,
}

BATTERIES = {"hooks": 0, "triggers": 1, "operators": 2, "sensors": 3, "notifiers": 3}
"""Packages that use only those of BATTERIES_USE and each other by rank: a sensor may use an operator, an operator a hook."""
BATTERIES_USE = {"lazy_names", "model", "sdk", "client", "execution"}

UPWARD_IMPORTS = {
    ("sdk.dag", "testing.dag_test"): "DAG.test runs the same kernel on the in-memory store, which has a higher rank",
    (
        "sdk.import_paths",
        "airflow.finder",
    ): "a DAG file may say `from airflow import DAG`: the names are served where files are read",
    (
        "sdk.*",
        "execution.*",
    ): "for methods of operators that are called only in a task process, and for the types of their arguments",
    ("testing", "simulation.*"): "`from tradewind.testing import simulate` is where authors look for it",
    ("", "sdk"): "`import tradewind` offers the authors' names and imports each when it is first used",
}
"""Imports against the rule: (importing module, imported module) → the reason."""

LAZY_IMPORTS = {
    ("execution.xcom_frames", "pyarrow*"): "only XComs that are data frames of pandas need it",
    # The commands put the processes together: each process imports only the modules that it needs.
    ("cli.*", "*"): "each command and each process loads only its own modules; `--help` must answer within 150 ms",
    # Linux only.
    ("*", "platform.linux"): "absent elsewhere: imported behind HAVE_LINUX",
    ("model.database_urls", "urllib.parse"): "only with a database server",
    ("settings.load", "model.database_urls"): "few commands name the database",
    ("store.file", "store.factory"): "a completion of a word from a file needs no store; only with a database server",
    ("platform.boot", "ctypes"): "on other systems than Linux, only the C library knows the boot",
    ("platform.boot", "psutil"): "only on other systems than Linux",
    # Modules that only some users need.
    ("sdk.conf", "configparser"): "only where code reads an airflow.cfg from a text",
    ("sdk.columns", "sqlalchemy*"): "optional: only where a DAG file combines conditions with its functions",
    ("worker.callback_process", "worker.alert_mail"): "loads SMTP; most callbacks are not mails",
    ("worker.callback_process", "worker.deadline_calls"): "few DAGs have deadlines",
    (
        "worker.task_process",
        "worker.callback_process",
    ): "only where a callback of a failed task is called outside of its process",
    ("execution.templates", "jinja2*"): "only where a task's templates are rendered",
    ("sdk.*", "execution.templates"): "loads jinja2",
    ("operators.python", "execution.end_children"): "only in a task that is stopped",
    ("sdk.operator", "execution.rendered_fields"): "only where a task runs",
    ("sdk.operator", "execution.context"): "only where a task runs",
    ("sdk.older_operator_names", "execution.task_instance"): "only tests of extra links give a date",
    ("sdk.definition", "sdk.asset_watchers"): "loads triggers; only where an asset has watchers",
    ("sdk.asset_watchers", "execution.xcom_codec"): "only where an asset has watchers",
    ("sdk.*", "execution.deferral_request"): "only tasks that wait without a process",
    ("operators.*", "triggers.*"): "loads asyncio; only tasks that wait without a process",
    ("sensors.*", "triggers.*"): "loads asyncio; only tasks that wait without a process",
    ("storage.task_logs", "storage.remote_logs"): "optional: the extra remote-logs",
    ("bundles.fetch_child", "bundles.object_store"): "optional: the extra object-store; only in the process of the fetch",
    ("worker.host", "worker.offers"): "only beside a Celery worker",
    ("executors.celery_publisher", "redis"): "optional: the extra celery; the connection is made in a thread",
    ("executors.celery_publisher", "kombu"): "optional: the extra celery; the connection is made in a thread",
    ("simulation.simulate", "simulation.machine_world"): "optional: the extra remote; only simulations of several machines",
    ("worker.host", "worker.remote_link"): "loads TLS and WebSockets; only workers on other machines",
    ("worker.base_image", "worker.triggerer"): "loads asyncio, in the one process that runs triggers",
    ("sdk.params", "sdk.param_schema"): "loads jsonschema, 70 ms; only params with a schema",
    ("execution.*", "pendulum"): "80 ms; only where an author uses a date",
    ("execution.*", "execution.templates"): "loads jinja2",
    ("execution.*", "execution.deferral_request"): "only tasks that wait without a process",
    ("execution.*", "execution.asset_events"): "only tasks that emit events or look at them",
    ("execution.xcom_codec", "execution.xcom_assets"): "only XComs that are assets need it",
    ("sdk.*", "pendulum"): "80 ms; only where an author uses a date",
    ("sdk.import_paths", "airflow.finder"): "see UPWARD_IMPORTS",
    ("metrics.meter", "metrics.otel"): "optional: the extra otel",
    ("metrics.otel", "opentelemetry*"): "optional: the extra otel",
    ("parser.main", "parser.metrics"): "only where metrics are on",
    ("airflow.compat.stats", "metrics.*"): "only where user code sends metrics and metrics are on",
    ("airflow.compat.*", "pendulum"): "80 ms; only where a DAG file uses a date",
    ("airflow.compat.helpers", "jinja2"): "only where a template is given",
    ("execution.macros", "execution.localized_dates"): "only for its two macros",
    ("sdk.entry_points", "configparser"): "5 ms; few packages have plugins",
    ("sdk.policies", "sdk.policy_hooks"): "loads pluggy; few packages have policies",
    ("sdk.variables", "sdk.default_connections"): "only where a connection is missing",
    ("sdk.variables", "sdk.secrets_backends"): "it reads settings, and settings need variables",
    ("execution.task_instance", "execution.run_queries"): "it needs the class DagRun",
    ("sdk.plugins", "sdk.listeners"): "loads pluggy; few plugins have listeners",
    ("execution.macros", "sdk.plugins"): "only where a template names a plugin",
    ("execution.context", "execution.macros"): "only templates need it",
    ("execution.*", "execution.state_stores"): "loads asyncio; only tasks that keep values",
    ("execution.context", "execution.neighbour_runs"): "loads calendars; only for the old names of dates",
    ("sdk.decorators", "execution.call_arguments"): "needed only where a task runs",
    ("sdk.decorators", "execution.context"): "most DAG files call their functions with all arguments",
    ("sdk.operator", "sdk.mapping"): "mapped tasks are operators themselves",
    ("sdk.xcom_arg", "model.definition"): "loads msgspec; only mapped tasks need it",
    ("sdk.mapping", "model.definition"): "loads msgspec; only mapped tasks need it",
    ("sdk.dag", "timetables.of_schedule"): "few DAG files ask for `dag.timetable`",
    ("sdk.dag", "sdk.deadlines"): "loads msgspec; few DAGs have deadlines",
    ("sdk.default_attributes", "jinja2"): "75 ms; few files read dag.template_undefined",
    ("sdk.default_attributes", "sdk.conf"): "few files read an attribute whose default is a setting",
    ("sdk.dag", "sdk.decorators"): "only `@dag.task`; decorators need DAGs",
    ("sdk.dag", "model.definition"): "loads msgspec; only mapped tasks need it",
    ("sdk.dag", "execution.older_dag_methods"): "few files use them",
    (
        "sdk.setup_teardown",
        "sdk.decorators",
    ): "only for @setup and @teardown; decorators import operators, which import this module",
    ("sdk.*", "sdk.assets"): "only DAG files with assets need it",
    ("parser.plugins_child", "execution.asset_events"): "only where a person has created an asset event",
    ("sdk.*", "execution.asset_events"): "only tasks that emit events or look at them",
    (
        "execution.task_instance",
        "execution.context",
    ): "only for the context of an instance made by hand; it imports task instances",
    ("execution.task_instance", "execution.hand_made"): "only for task instances that tests make; it imports task instances",
    ("sdk.variables", "execution.local_database"): "only where a test sets a variable",
    ("sdk.*", "execution.local_dag_methods"): "only tests create and run runs in their own process",
    ("sdk.open_dags", "sdk.dag"): "sdk.dag imports this module",
    ("sdk.dag", "testing.dag_test"): "see UPWARD_IMPORTS",
    ("sdk.default_args", "annotationlib"): "exists since Python 3.14",
    ("provider_packages.installed", "importlib.metadata"): "10 ms; most processes never ask for provider packages",
    ("sdk.variables", "asyncio"): "only coroutines need it, and they have imported it already",
    ("parser.timetable_child", "sdk.partitions"): "few DAGs have partition mappers of their own",
    ("parser.plugins_child", "sdk.assets"): "few deployments have listeners of new assets",
    ("parser.plugins_child", "sdk.listeners"): "loads pluggy; few deployments have listeners of import errors",
    ("sdk.plugins", "importlib.metadata"): "10 ms; only where plugins are loaded",
    ("execution.run_task", "operators.trigger_dagrun"): "only operators of Airflow 3 request runs by an exception",
    ("execution.deferral_request", "operators.trigger_dagrun"): "only tasks that wait for a run requested by an exception",
    ("execution.run_task", "asyncio"): "only async tasks",
    ("execution.older_instance_methods", "asyncio"): "only async tasks",
    ("execution.o*_instances", "execution.task_instance"): "it needs the task instances of this module",
    ("execution.older_run_methods", "execution.task_instance"): "it needs the base class of runs",
    ("execution.run_task", "traceback"): "only failures",
    ("worker.task_process", "execution.error_reports"): "only where errors are reported to Sentry",
    ("operators.interpreter_call", "asyncio"): "only async functions",
    ("execution.task_instance", "socket"): "only for ti.hostname",
    ("execution.instance_names", "urllib.parse"): "only for ti.log_url",
    ("settings.*", "*"): "every command reads settings; hash, TOML and zones are imported only where they are used",
    ("store.crypto", "cryptography.fernet"): "only where a secret is read or written",
    ("timetables.base", "pendulum"): "80 ms; only where an author's timetable is called",
    ("timetables.zones", "zoneinfo"): "only for a zone other than UTC",
    ("wire.log_paths", "hashlib"): "only for names too long or too odd for a file",
    ("testing.plugin", "testing.*"): "pytest loads the plugin in every run; only a test that uses a fixture needs them",
    ("testing.plugin", "airflow.finder"): "only where a test file imports airflow",
    ("testing.*", "yaml"): "only for files of variables and connections in YAML",
    ("api.auth.*", "joserfc*"): "only for logins",
    ("api.auth.*", "argon2*"): "only for logins",
    ("api.auth.*", "cryptography*"): "only for logins at an identity provider",
    ("api.auth.oidc", "httpx"): "optional: the extra oidc; only for logins at an identity provider",
    ("api.auth.ldap_directory", "ldap3*"): "optional: the extra ldap",
}
"""Imports inside functions: (importing module, imported module), with `*` → the reason why not at the top of the file."""


def inner(name: str) -> str:
    """The name of a module without `tradewind.`; empty for the top module."""
    return name.partition(".")[2]


def of_tradewind(name: str) -> bool:
    return name == "tradewind" or name.startswith("tradewind.")


def allowed(importer: str, imported: str) -> bool:
    """True if the ranks allow this import."""
    here, there = importer.partition(".")[0], imported.partition(".")[0]
    if here == there or there == "":
        return True
    if here in BATTERIES:
        return there in BATTERIES_USE or BATTERIES.get(there, 9) < BATTERIES[here]
    if there in BATTERIES:
        return RANKS.get(here, -1) > RANKS["sdk"]
    return RANKS[there] < RANKS[here]


def every_import() -> list[tuple[str, Import]]:
    """All imports as (importing module without `tradewind.`, import)."""
    return [(inner(name), one) for name in modules() for one in imports(name)]


def exception_for(table: dict[tuple[str, str], str], importer: str, imported: str) -> tuple[str, str] | None:
    """The listed exception that allows this import, or None."""
    for pattern in table:
        if fnmatch.fnmatchcase(importer, pattern[0]) and fnmatch.fnmatchcase(imported, pattern[1]):
            return pattern
    return None


def test_every_package_has_a_rank() -> None:
    """After a new package: add it to RANKS."""
    packages = {module.package for module in modules().values()} - {""}
    assert packages - RANKS.keys() - BATTERIES.keys() == set()


def test_imports_go_down() -> None:
    """Never up, never between packages of the same rank. Imports for type checking count too."""
    wrong = []
    for importer, one in every_import():
        if not of_tradewind(one.module) or importer == "":
            continue
        target = inner(one.module)
        if not allowed(importer, target) and exception_for(UPWARD_IMPORTS, importer, target) is None:
            wrong.append(f"{importer} line {one.line} imports {target}")
    assert wrong == []


def test_imports_stand_at_the_top_of_their_file() -> None:
    """An import inside a function needs an entry in LAZY_IMPORTS."""
    wrong = []
    for importer, one in every_import():
        target = inner(one.module) if of_tradewind(one.module) else one.module
        if one.lazy and exception_for(LAZY_IMPORTS, importer, target) is None:
            wrong.append(f"{importer} line {one.line} imports {target} inside a function")
    assert wrong == []


def test_every_listed_lazy_import_exists() -> None:
    """After you remove an import: remove its entry from LAZY_IMPORTS."""
    used = set()
    for importer, one in every_import():
        target = inner(one.module) if of_tradewind(one.module) else one.module
        if one.lazy:
            # an import may match a narrow entry and a wide one: both are in use
            used |= {
                pattern
                for pattern in LAZY_IMPORTS
                if fnmatch.fnmatchcase(importer, pattern[0]) and fnmatch.fnmatchcase(target, pattern[1])
            }
    assert set(LAZY_IMPORTS) - used == set()


CYCLES_OF_TYPES = {
    "sdk": "a DAG has operators, an operator has its DAG and its group, and users see all of them as attributes, as in Airflow",
    "execution": "a context has the task instance, and a task instance makes its context, as in Airflow",
    "simulation": "every simulated part acts in the simulated world, and the world owns the parts",
}
"""Packages in which a module may need itself for a type, or through an import inside a function → the reason."""


def fail_on_cycle(graph: dict[str, list[str]]) -> None:
    state: dict[str, str] = {}

    def visit(name: str, way: list[str]) -> None:
        if state.get(name) == "done":
            return
        if state.get(name) == "open":
            pytest.fail(" → ".join([*way[way.index(name) :], name]))
        state[name] = "open"
        for target in graph[name]:
            visit(target, [*way, name])
        state[name] = "done"

    for name in graph:
        visit(name, [])


def test_there_are_no_import_cycles() -> None:
    """No module imports itself, directly or through other modules."""
    fail_on_cycle(
        {
            name: [one.module for one in imports(name) if one.module in modules() and not one.lazy and not one.types_only]
            for name in modules()
        }
    )


def test_no_module_needs_itself_for_a_type() -> None:
    """Imports for types and inside functions count, too: a part gets values or an interface, not the object that owns it."""
    chosen = {name for name, module in modules().items() if module.package not in CYCLES_OF_TYPES}
    fail_on_cycle({name: [one.module for one in imports(name) if one.module in chosen] for name in sorted(chosen)})


@pytest.mark.parametrize("package", CYCLES_OF_TYPES)
def test_each_package_with_cycles_of_types_has_one(package: str) -> None:
    """After the last cycle of a package is gone: remove the package from the list."""
    others = CYCLES_OF_TYPES.keys() - {package}
    chosen = {name for name, module in modules().items() if module.package not in others}
    with pytest.raises(pytest.fail.Exception, match=" → "):
        fail_on_cycle({name: [one.module for one in imports(name) if one.module in chosen] for name in sorted(chosen)})


def test_a_type_cycle_is_found() -> None:
    with pytest.raises(pytest.fail.Exception, match="a → b → a"):
        fail_on_cycle({"a": ["b"], "b": ["a"]})
