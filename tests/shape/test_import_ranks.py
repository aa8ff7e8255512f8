"""Imports go down.

Each package of the house has a rank. A module imports modules of lower ranks and of its own package: never up, never a sibling.
Circles exist only in time, through the store. Imports stand at the top of the file; the exceptions are the doors below, each with
its reason.
"""

from __future__ import annotations

import fnmatch

import pytest

from tests.shape.source import Import, imports, modules

RANKS = {
    "model": 0,
    "observe": 0,
    "platform": 1,
    "timetables": 1,
    "wire": 1,
    "kernel": 2,
    "sdk": 2,
    "client": 2,
    "execution": 3,
    "airflow": 4,
    "store": 3,
    "storage": 3,
    "executors": 3,
    "worker": 4,
    "parser": 4,
    "scheduler": 4,
    "api": 5,
    "settings": 6,
    "cli": 7,
    "testing": 7,
    "simulation": 8,
    "__main__": 9,
}

BATTERIES = {"hooks": 0, "triggers": 1, "operators": 2, "sensors": 3, "notifiers": 3}
"""Written only against these, and each other in rank: a sensor may use an operator, an operator a hook."""
BATTERIES_USE = {"model", "sdk", "client", "execution"}

UPWARD_DOORS = {
    ("sdk.dag", "testing.dag_test"): "DAG.test runs the same kernel on the in-memory store, which stands far above",
    (
        "sdk.load",
        "airflow.finder",
    ): "a DAG file may say `from airflow import DAG`: the names are served where files are read",
    (
        "sdk.*",
        "execution.*",
    ): "an operator's methods that are called only in the process of a task, and types of their arguments",
    ("testing", "simulation.*"): "`from tradewind.testing import simulate` is where authors look for it",
    ("", "sdk"): "`import tradewind` offers the authors' names and imports each when it is first used",
}
"""Imports against the rule: (importing module, imported module) → why it must be so."""

LAZY_DOORS = {
    # The composition root: every process of the house imports only what it is.
    ("cli.*", "*"): "each command and each process loads only its own parts; `--help` has 150 ms",
    # Linux only.
    ("*", "platform.linux"): "absent elsewhere: imported behind HAVE_LINUX",
    ("platform.boot", "ctypes"): "elsewhere than on Linux the boot is known only to the C library",
    ("platform.boot", "psutil"): "elsewhere than on Linux",
    # What only some users pay for.
    ("worker.callback_process", "worker.alert_mail"): "brings SMTP; most callbacks are no mails",
    ("worker.callback_process", "worker.deadline_calls"): "few DAGs have deadlines",
    ("worker.task_process", "worker.callback_process"): "only where something failed and its process could not tell",
    ("execution.templates", "jinja2*"): "only where a task's templates are rendered",
    ("sdk.*", "execution.templates"): "brings jinja2",
    ("operators.python", "execution.end_children"): "only in a task that is stopped",
    ("sdk.operator", "execution.rendered_fields"): "only where a task runs",
    ("sdk.operator", "execution.context"): "only where a task runs",
    ("sdk.*", "execution.deferral_request"): "only tasks that wait without a process",
    ("operators.*", "triggers.*"): "brings asyncio; only tasks that wait without a process",
    ("sensors.*", "triggers.*"): "brings asyncio; only tasks that wait without a process",
    ("worker.base_image", "worker.triggerer"): "brings asyncio, in the one process that runs triggers",
    ("sdk.params", "sdk.param_schema"): "brings jsonschema, 70 ms; only params with a schema",
    ("execution.*", "pendulum"): "80 ms; only where an author looks at a date",
    ("execution.*", "execution.templates"): "brings jinja2",
    ("execution.*", "execution.deferral_request"): "only tasks that wait without a process",
    ("execution.*", "execution.asset_events"): "only tasks that emit events or look at them",
    ("sdk.*", "pendulum"): "80 ms; only where an author looks at a date",
    ("sdk.load", "airflow.finder"): "see UPWARD_DOORS",
    ("airflow.compat.*", "pendulum"): "80 ms; only where a DAG file looks at a date",
    ("airflow.compat.helpers", "jinja2"): "only where a template is given",
    ("execution.macros", "execution.localized_dates"): "only for its two macros",
    ("execution.macros", "sdk.plugins"): "loaded where a template names a plugin",
    ("execution.context", "execution.macros"): "only templates need it",
    ("execution.context", "execution.neighbour_runs"): "calendars, for old names of dates only",
    ("sdk.decorators", "execution.context"): "most files call their functions with all they need",
    ("sdk.operator", "sdk.mapping"): "mapped tasks are operators themselves",
    ("sdk.xcom_arg", "model.definition"): "brings msgspec; only mapped tasks need it",
    ("sdk.mapping", "model.definition"): "brings msgspec; only mapped tasks need it",
    ("sdk.dag", "sdk.deadlines"): "brings msgspec; few DAGs have deadlines",
    ("sdk.dag", "model.definition"): "brings msgspec; only mapped tasks need it",
    ("sdk.setup_teardown", "sdk.decorators"): "only for @setup and @teardown; it needs operators, which need this",
    ("sdk.*", "sdk.assets"): "a file without assets does not pay for them",
    ("sdk.*", "execution.asset_events"): "only tasks that emit events or look at them",
    ("execution.task_instance", "execution.context"): "only for dag_run.consumed_asset_events; it needs task instances",
    ("sdk.open_dags", "sdk.dag"): "it registers DAGs for the module that makes them",
    ("sdk.dag", "testing.dag_test"): "see UPWARD_DOORS",
    ("sdk.default_args", "annotationlib"): "exists since Python 3.14",
    ("sdk.plugins", "importlib.metadata"): "10 ms; only where plugins are loaded",
    ("execution.run_task", "asyncio"): "only async tasks",
    ("execution.run_task", "traceback"): "only failures",
    ("operators.foreign_call", "asyncio"): "only async functions",
    ("execution.task_instance", "socket"): "only for ti.hostname",
    ("execution.task_instance", "urllib.parse"): "only for ti.log_url",
    ("settings.*", "*"): "every command reads settings; hash, TOML and zones only where they are used",
    ("store.crypto", "cryptography.fernet"): "only where a secret is read or written",
    ("timetables.base", "pendulum"): "80 ms; only where an author's timetable is asked",
    ("timetables.zones", "zoneinfo"): "only for a zone other than UTC",
    ("wire.log_paths", "hashlib"): "only for names too long or too odd for a file",
    ("testing.plugin", "testing.*"): "pytest loads the plugin in everybody's runs; only a test that uses a fixture pays",
    ("testing.*", "yaml"): "only for files of variables and connections in YAML",
    ("api.auth.*", "joserfc*"): "only where somebody logs in",
    ("api.auth.*", "argon2*"): "only where somebody logs in",
}
"""Imports inside functions: (importing module, imported module), with `*` → why not at the top of the file."""


def inner(name: str) -> str:
    """A module's name without the first part, empty for the top module."""
    return name.partition(".")[2]


def of_tradewind(name: str) -> bool:
    return name == "tradewind" or name.startswith("tradewind.")


def allowed(importer: str, imported: str) -> bool:
    """May a module import the other one, by rank?"""
    here, there = importer.partition(".")[0], imported.partition(".")[0]
    if here == there or there == "":
        return True
    if here in BATTERIES:
        return there in BATTERIES_USE or BATTERIES.get(there, 9) < BATTERIES[here]
    if there in BATTERIES:
        return RANKS.get(here, -1) > RANKS["sdk"]
    return RANKS[there] < RANKS[here]


def every_import() -> list[tuple[str, Import]]:
    """(importing module without `tradewind.`, import)."""
    return [(inner(name), one) for name in modules() for one in imports(name)]


def door(table: dict[tuple[str, str], str], importer: str, imported: str) -> tuple[str, str] | None:
    """The door through which this import goes."""
    for pattern in table:
        if fnmatch.fnmatchcase(importer, pattern[0]) and fnmatch.fnmatchcase(imported, pattern[1]):
            return pattern
    return None


def test_every_package_has_a_rank() -> None:
    """A new package has to find its storey."""
    packages = {module.package for module in modules().values()} - {""}
    assert packages - RANKS.keys() - BATTERIES.keys() == set()


def test_imports_go_down() -> None:
    """Never up, never between siblings; types count too."""
    wrong = []
    for importer, one in every_import():
        if not of_tradewind(one.module) or importer == "":
            continue
        target = inner(one.module)
        if not allowed(importer, target) and door(UPWARD_DOORS, importer, target) is None:
            wrong.append(f"{importer} line {one.line} imports {target}")
    assert wrong == []


def test_imports_stand_at_the_top_of_their_file() -> None:
    """Inside a function only through a documented door."""
    wrong = []
    for importer, one in every_import():
        target = inner(one.module) if of_tradewind(one.module) else one.module
        if one.lazy and door(LAZY_DOORS, importer, target) is None:
            wrong.append(f"{importer} line {one.line} imports {target} inside a function")
    assert wrong == []


def test_no_door_leads_nowhere() -> None:
    """A door whose import is gone is taken out of the list."""
    used = set()
    for importer, one in every_import():
        target = inner(one.module) if of_tradewind(one.module) else one.module
        if one.lazy:
            # an import may go through a narrow door and a wide one: both are in use
            used |= {
                pattern
                for pattern in LAZY_DOORS
                if fnmatch.fnmatchcase(importer, pattern[0]) and fnmatch.fnmatchcase(target, pattern[1])
            }
    assert set(LAZY_DOORS) - used == set()


def test_there_are_no_circles() -> None:
    """No module needs itself to be imported, by whatever way around."""
    graph = {
        name: [one.module for one in imports(name) if one.module in modules() and not one.lazy and not one.types_only]
        for name in modules()
    }
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
