"""Settings, read once by a composition root and handed down as values.

For each setting the first of these that says something counts:

1. the environment: `TRADEWIND__CORE__PARALLELISM`
2. the file: `$TRADEWIND_HOME/tradewind.toml`, or the one that TRADEWIND_CONFIG names
3. the environment, said to Airflow: `AIRFLOW__CORE__PARALLELISM`
4. the default

What was written for Tradewind beats what was written for Airflow, wherever it stands. Every problem is reported at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from tradewind.model.errors import ConfigError
from tradewind.settings import sources
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import BY_NAME, OPTIONS, SECTIONS, Option
from tradewind.settings.paths import Paths, paths_below
from tradewind.settings.sections import Api, Core, Database, Logging, Operators, Parser, Runner, Scheduler, Secrets
from tradewind.settings.sources import Said, suggestion
from tradewind.settings.values import Refused, Surroundings, Value, read, text

TYPE_CHECKING = False  # see frozen.py
if TYPE_CHECKING:
    from typing import Any

DEFAULT = "default"


class Explanation(Frozen):
    """Where one setting's value comes from.

    Attributes:
        name: `core.parallelism`.
        value: what is in force, as people write it; a secret is `***`.
        source: `default`, `environment variable …` or `file:line`.
        default: as people write it.
        unit, description: see `options.Option`.
        env: the environment variable that sets it.
        airflow: the Airflow options that mean the same.
        shadowed: places that say something too but do not count, strongest first.
        effective: what the code receives, where core.safety_net_scale changes it; else None.
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
        config_file: the file that was read, or None where there is none.
        runtime_dir: $XDG_RUNTIME_DIR, or empty.
        unused: `AIRFLOW__…` variables that are set but have no meaning here, sorted.
        explanations: one per setting, in the order of the table.
    """

    home: str
    config_file: str | None
    runtime_dir: str
    core: Core
    database: Database
    parser: Parser
    scheduler: Scheduler
    runner: Runner
    api: Api
    logging: Logging
    operators: Operators
    secrets: Secrets
    unused: tuple[str, ...]
    explanations: Mapping[str, Explanation]

    @property
    def paths(self) -> Paths:
        """All places on the disk."""
        return paths_below(
            self.home,
            dags=self.core.dags_folder,
            plugins=self.core.plugins_folder,
            database=self.database.path,
            logs=self.logging.folder,
            runtime_dir=self.runtime_dir,
        )

    def explain(self, name: str) -> Explanation:
        """Value, source, default and meaning of the setting called `section.key`.

        Raises:
            ConfigError: there is no such setting; names the nearest.
        """
        found = self.explanations.get(name)
        if found is None:
            section, _, key = name.rpartition(".")
            raise ConfigError(f"There is no setting {name!r}.{suggestion(section, key)}")
        return found

    def listing(self) -> tuple[Explanation, ...]:
        """Every setting, in the order of the table: for `config list`."""
        return tuple(self.explanations.values())


def home(env: Mapping[str, str] | None = None) -> str:
    """The home folder, absolute: TRADEWIND_HOME, else ~/.tradewind. It need not exist."""
    return sources.home(os.environ if env is None else env)


def load(env: Mapping[str, str] | None = None, home: str | None = None) -> Settings:
    """Read and check all settings.

    Args:
        env: the environment; the process's own unless told.
        home: the home folder; what `env` says unless told.

    Raises:
        ConfigError: unknown names, values that cannot be, an unreadable file: all of them, one a line.
    """
    env = os.environ if env is None else env
    home = sources.home(env) if home is None else os.path.abspath(home)
    path, required = sources.config_file(env, home)
    problems: list[str] = []
    unused: list[str] = []
    said: dict[str, list[Said]] = {}
    for one in (
        *sources.from_environment(env, problems),
        *sources.from_file(path, required, problems),
        *sources.from_airflow_environment(env, unused),
    ):
        said.setdefault(one.option.name, []).append(one)
    around = Surroundings(home=home, env=env)
    values = {option.name: _decide(option, said.get(option.name, []), around, problems) for option in OPTIONS}
    if not problems:
        _check_together(values, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    effective = _scaled(values)
    return Settings(
        home=home,
        config_file=path if os.path.isfile(path) else None,
        runtime_dir=env.get("XDG_RUNTIME_DIR", ""),
        unused=tuple(unused),
        explanations={name: _explain(o, values, effective, said.get(name, []), around) for name, o in BY_NAME.items()},
        **_sections(effective),
    )


def explain(name: str, env: Mapping[str, str] | None = None, home: str | None = None) -> Explanation:
    """`load(env, home).explain(name)`."""
    return load(env, home).explain(name)


def listing(env: Mapping[str, str] | None = None, home: str | None = None) -> tuple[Explanation, ...]:
    """`load(env, home).listing()`."""
    return load(env, home).listing()


def _decide(option: Option, said: list[Said], around: Surroundings, problems: list[str]) -> Value:
    """The value in force. What is shadowed is checked too: a wrong value must not lie in wait."""
    values = []
    for one in said:
        try:
            values.append(read(option, one.raw, around))
        except Refused as refused:
            shown = "" if option.secret or one.raw == "" else f" = {_shown(one.raw)}"
            problems.append(f"{one.place}: {option.name}{shown} {refused}")
    if said:
        return values[0] if values else None
    return read(option, text(option.default), around)


def _shown(raw: object) -> str:
    return repr(raw) if isinstance(raw, str) else text(raw) if isinstance(raw, (bool, int, float)) else str(raw)


def _check_together(values: Mapping[str, Any], problems: list[str]) -> None:
    """Rules that two settings share."""
    for small, large in (
        ("core.xcom_inline_max_bytes", "core.xcom_max_bytes"),
        ("runner.log_line_max_bytes", "runner.log_max_bytes"),
    ):
        if values[small] > values[large]:
            problems.append(f"{small} = {values[small]} must not be larger than {large} = {values[large]}")


def _scaled(values: Mapping[str, Any]) -> dict[str, Any]:
    scale = values["core.safety_net_scale"]
    return {name: value * scale if BY_NAME[name].safety_net else value for name, value in values.items()}


def _sections(values: Mapping[str, Any]) -> dict[str, Any]:
    classes = {
        "core": Core,
        "database": Database,
        "parser": Parser,
        "scheduler": Scheduler,
        "runner": Runner,
        "api": Api,
        "logging": Logging,
        "operators": Operators,
        "secrets": Secrets,
    }
    return {
        section: classes[section](**{o.key: values[o.name] for o in OPTIONS if o.section == section}) for section in SECTIONS
    }


def _explain(
    option: Option,
    values: Mapping[str, Value],
    effective: Mapping[str, Value],
    said: list[Said],
    around: Surroundings,
) -> Explanation:
    value, received = values[option.name], effective[option.name]
    return Explanation(
        name=option.name,
        value="***" if option.secret and value is not None else text(value),
        source=said[0].place if said else DEFAULT,
        default=text(read(option, text(option.default), around)),
        unit=option.unit,
        description=option.description,
        env=option.env,
        airflow=option.airflow,
        shadowed=tuple(one.place for one in said[1:]),
        effective=None if received == value else text(received),
    )
