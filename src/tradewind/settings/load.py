"""Loads the settings. The composition root does this once and passes the values on.

The value of each setting comes from the first of these sources that sets it:

1. the environment: `TRADEWIND__CORE__PARALLELISM`
2. the file: `$TRADEWIND_HOME/tradewind.toml`, or the file in TRADEWIND_CONFIG
3. the environment, under Airflow's name: `AIRFLOW__CORE__PARALLELISM`
4. the airflow.cfg that AIRFLOW_CONFIG or AIRFLOW_HOME names (see `airflow_file`)
5. the default

So a value for Tradewind always overrides a value for Airflow. All problems are reported together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from tradewind.model.errors import ConfigError
from tradewind.settings import sources
from tradewind.settings.airflow_file import AirflowFile, read_airflow_file
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import BY_NAME, OPTIONS, SECTIONS, Option
from tradewind.settings.paths import Paths, paths_below
from tradewind.settings.sections import (
    Api,
    Bundles,
    Celery,
    Core,
    Database,
    Gateway,
    KubernetesExecutor,
    Ldap,
    Logging,
    Metrics,
    Oidc,
    Operators,
    Parser,
    Runner,
    Scheduler,
    Secrets,
    Sentry,
    StateStore,
    Worker,
)
from tradewind.settings.sources import GivenValue, suggestion
from tradewind.settings.values import Context, InvalidValue, Value, read, text

TYPE_CHECKING = False  # see frozen.py
if TYPE_CHECKING:
    from typing import Any

DEFAULT = "default"


class Explanation(Frozen):
    """Where one setting's value comes from.

    Attributes:
        name: such as `core.parallelism`.
        value: the present value as text; a secret is `***`.
        source: `default`, `environment variable …` or `file:line`.
        default: the default as text.
        unit, description: see `options.Option`.
        env: the environment variable that sets it.
        airflow: the Airflow options with the same meaning.
        shadowed: other sources that set the value but are overridden, highest priority first.
        effective: the value that the code gets, if core.safety_net_scale changes it; otherwise None.
    """

    name: str
    value: str
    source: str
    default: str
    unit: str
    description: str
    env: str
    airflow: tuple[str, ...]
    shadowed: tuple[str, ...]
    effective: str | None


class Settings(Frozen):
    """All settings, checked.

    Attributes:
        home: the home folder, absolute.
        config_file: the file that was read; None if there is none.
        runtime_dir: $XDG_RUNTIME_DIR, or "".
        airflow: the airflow.cfg that the environment names; its values for DAG files.
        ignored: sentences about values of the airflow.cfg that Tradewind cannot use.
        unused: names of `AIRFLOW__…` variables that are set but have no effect in Tradewind, sorted.
        explanations: one per setting, in the order of the table.
    """

    home: str
    config_file: str | None
    runtime_dir: str
    core: Core
    database: Database
    parser: Parser
    bundles: Bundles
    scheduler: Scheduler
    runner: Runner
    celery: Celery
    kubernetes_executor: KubernetesExecutor
    worker: Worker
    gateway: Gateway
    oidc: Oidc
    ldap: Ldap
    api: Api
    logging: Logging
    metrics: Metrics
    sentry: Sentry
    operators: Operators
    state_store: StateStore
    secrets: Secrets
    airflow: AirflowFile
    ignored: tuple[str, ...]
    unused: tuple[str, ...]
    explanations: Mapping[str, Explanation]

    @property
    def paths(self) -> Paths:
        """All paths of the installation."""
        return paths_below(
            self.home,
            dags=self.core.dags_folder,
            plugins=self.core.plugins_folder,
            database=self.database.path,
            logs=self.logging.folder,
            runtime_dir=self.runtime_dir,
        )

    @property
    def store(self) -> str:
        """The location of the store: the URL of a database server, or the path of the SQLite file. May contain a password."""
        return self.database.url or self.database.path

    @property
    def store_name(self) -> str:
        """`store` for messages, without a password."""
        from tradewind.model.database_urls import without_password  # lazy import: few commands name the database

        return without_password(self.store)

    def explain(self, name: str) -> Explanation:
        """Value, source, default and meaning of the setting `section.key`.

        Raises:
            ConfigError: there is no such setting; the message names the nearest one.
        """
        found = self.explanations.get(name)
        if found is None:
            section, _, key = name.rpartition(".")
            raise ConfigError(f"there is no setting {name!r}.{suggestion(section, key)}")
        return found

    def listing(self) -> tuple[Explanation, ...]:
        """All settings, in the order of the table, for `config list`."""
        return tuple(self.explanations.values())


def home(env: Mapping[str, str] | None = None) -> str:
    """The absolute path of the home folder: TRADEWIND_HOME, otherwise ~/.tradewind. The folder need not exist."""
    return sources.home(os.environ if env is None else env)


def load(env: Mapping[str, str] | None = None, home: str | None = None) -> Settings:
    """Read and check all settings.

    Args:
        env: the environment; default: the environment of the process.
        home: the home folder; default: from `env`.

    Raises:
        ConfigError: unknown names, invalid values, an unreadable file; the message lists all problems, one per line.
    """
    env = os.environ if env is None else env
    home = sources.home(env) if home is None else os.path.abspath(home)
    path, required = sources.config_file(env, home)
    problems: list[str] = []
    unused: list[str] = []
    ignored: list[str] = []
    given: dict[str, list[GivenValue]] = {}
    context = Context(home=home, env=env)
    airflow = read_airflow_file(env)
    if airflow.problem is not None:
        ignored.append(airflow.problem)
    for one in (
        *sources.from_environment(env, problems),
        *sources.from_file(path, required, problems),
        *sources.from_airflow_environment(env, unused),
        *sources.from_airflow_commands(env, problems),
        *(sources.from_airflow_file(airflow.values, airflow.path, context, ignored) if airflow.path and airflow.values else ()),
    ):
        given.setdefault(one.option.name, []).append(one)
    values = {option.name: _value(option, given.get(option.name, []), context, problems) for option in OPTIONS}
    if not problems:
        _check_together(values, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    effective = _scaled(values)
    return Settings(
        home=home,
        config_file=path if os.path.isfile(path) else None,
        runtime_dir=env.get("XDG_RUNTIME_DIR", ""),
        airflow=airflow,
        ignored=tuple(ignored),
        unused=tuple(unused),
        explanations={name: _explain(o, values, effective, given.get(name, []), context) for name, o in BY_NAME.items()},
        **_sections(effective),
    )


def explain(name: str, env: Mapping[str, str] | None = None, home: str | None = None) -> Explanation:
    """`load(env, home).explain(name)`."""
    return load(env, home).explain(name)


def listing(env: Mapping[str, str] | None = None, home: str | None = None) -> tuple[Explanation, ...]:
    """`load(env, home).listing()`."""
    return load(env, home).listing()


def _value(option: Option, given: list[GivenValue], context: Context, problems: list[str]) -> Value:
    """The value of an option. Overridden values are checked too, so that a wrong one is found before it is used."""
    values = []
    for one in given:
        try:
            values.append(read(option, one.raw, context))
        except InvalidValue as invalid:
            shown = "" if option.secret or one.raw == "" else f" = {_shown(one.raw)}"
            problems.append(f"{one.place}: {option.name}{shown} {invalid}")
    if given:
        return values[0] if values else None
    return read(option, text(option.default), context)


def _shown(raw: object) -> str:
    return repr(raw) if isinstance(raw, str) else text(raw) if isinstance(raw, (bool, int, float)) else str(raw)


def _check_together(values: Mapping[str, Any], problems: list[str]) -> None:
    """Check rules between two settings."""
    for small, large in (
        ("core.xcom_inline_max_bytes", "core.xcom_max_bytes"),
        ("runner.log_line_max_bytes", "runner.log_max_bytes"),
    ):
        if values[small] > values[large]:
            problems.append(f"{small} = {values[small]} must not be larger than {large} = {values[large]}")
    url: str | None = values["database.url"]
    if url is not None and not url.startswith(("postgresql:", "postgresql+", "postgres:", "postgres+")):
        scheme = url.partition(":")[0]
        problems.append(
            f"database.url begins with {scheme!r}; it must be postgresql://user:password@host:port/database. "
            "For a SQLite file set database.path"
        )


def _scaled(values: Mapping[str, Any]) -> dict[str, Any]:
    scale = values["core.safety_net_scale"]
    return {name: value * scale if BY_NAME[name].safety_net else value for name, value in values.items()}


def _sections(values: Mapping[str, Any]) -> dict[str, Any]:
    classes = {
        "core": Core,
        "database": Database,
        "parser": Parser,
        "bundles": Bundles,
        "scheduler": Scheduler,
        "runner": Runner,
        "celery": Celery,
        "kubernetes_executor": KubernetesExecutor,
        "worker": Worker,
        "gateway": Gateway,
        "oidc": Oidc,
        "ldap": Ldap,
        "api": Api,
        "logging": Logging,
        "metrics": Metrics,
        "sentry": Sentry,
        "operators": Operators,
        "state_store": StateStore,
        "secrets": Secrets,
    }
    return {
        section: classes[section](**{o.key: values[o.name] for o in OPTIONS if o.section == section}) for section in SECTIONS
    }


def _explain(
    option: Option,
    values: Mapping[str, Value],
    effective: Mapping[str, Value],
    given: list[GivenValue],
    context: Context,
) -> Explanation:
    value, received = values[option.name], effective[option.name]
    return Explanation(
        name=option.name,
        value="***" if option.secret and value is not None else text(value),
        source=given[0].place if given else DEFAULT,
        default=text(read(option, text(option.default), context)),
        unit=option.unit,
        description=option.description,
        env=option.env,
        airflow=option.airflow,
        shadowed=tuple(one.place for one in given[1:]),
        effective=None if received == value else text(received),
    )
