"""Writes `reference/configuration.md` from the table of settings, so that no setting is missing and no default is wrong.

python docs/generate_configuration.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tradewind.settings.options import OPTIONS, SECTIONS, Option

PAGE = Path(__file__).parent / "reference" / "configuration.md"

ABOUT = {
    "core": "Folders, limits, and defaults of DAGs and tasks.",
    "database": "The database.",
    "parser": "Parsing of DAG files.",
    "bundles": "DAG files from git, and folders besides the DAG folder.",
    "scheduler": "Limits, safety nets and retention of the scheduler.",
    "runner": "The worker host, its templates, and the processes of tasks.",
    "celery": "The CeleryExecutor and its workers.",
    "kubernetes_executor": "The KubernetesExecutor and its pods.",
    "worker": "Workers on other machines than the scheduler.",
    "gateway": "The gateway, through which workers on other machines connect.",
    "api": "The web server.",
    "oidc": "Logins at an identity provider by OpenID Connect.",
    "ldap": "Logins whose passwords an LDAP directory checks.",
    "logging": "Logs.",
    "sentry": "Reports of errors to Sentry; see [failure notifications](../how-to/be-told-of-failures.md).",
    "metrics": "Metrics over StatsD and OpenTelemetry; see [metrics](../how-to/metrics.md).",
    "operators": "Defaults of operators.",
    "state_store": "How long tasks keep values between their tries.",
    "secrets": "Keys. They are read only from the environment, and never shown.",
}

INTRODUCTION = """\
# Configuration

<!-- Written by docs/generate_configuration.py from settings/options.py. Edit that, then run `make docs`. -->

The value of each setting comes from the first of these sources that sets it:

1. the environment: `TRADEWIND__CORE__PARALLELISM=8`
2. the file `$TRADEWIND_HOME/tradewind.toml`, or the file in `TRADEWIND_CONFIG`:

   ```toml
   [core]
   parallelism = 8
   ```

3. Airflow's environment variable with the same meaning, if there is one: `AIRFLOW__CORE__PARALLELISM=8`. For secrets also the
   output of a command: `AIRFLOW__CORE__FERNET_KEY_CMD="cat /run/secrets/fernet"`
4. an airflow.cfg, if `AIRFLOW_CONFIG` or `AIRFLOW_HOME` names it in the environment, under the names of Airflow 1.10, 2 and 3.
   Secrets and the log folder are not taken from it, and a value that Tradewind cannot use is ignored. `tradewind config airflow`
   says what each setting has become
5. the default

`TRADEWIND_HOME` is the home folder; the default is `~/.tradewind`. An unknown name is an error that names the nearest valid name.
`tradewind config list` shows the values, and `tradewind config explain core.parallelism` shows where a value comes from.

Durations are seconds and may have a fraction. Settings marked *safety net* are timers that matter only after a lost wake-up:
normally no task waits for them. `core.safety_net_scale` multiplies all of them (a test sets it to 100 and measures the same speed).
"""


def shown(option: Option) -> str:
    """The default as it is written in the settings file."""
    if option.default is None:
        return "none"
    if isinstance(option.default, bool):
        return str(option.default).lower()
    if isinstance(option.default, float):
        return f"{option.default:g}"
    return str(option.default)


def accepted(option: Option) -> str:
    """The accepted values of an option, in words."""
    if option.choices:
        words = " · ".join(f"`{choice}`" for choice in option.choices)
    elif option.low is not None and option.high is not None:
        words = f"{number(option.low)} … {number(option.high)} {option.unit}".rstrip()
    else:
        words = {"bool": "`true` · `false`", "path": "a path", "timezone": "a time zone"}.get(option.kind, "text")
    return words + (", or 0" if option.zero_ok else "") + (", or `none`" if option.nullable else "")


def number(value: float) -> str:
    """A number with spaces between the thousands."""
    return f"{int(value):,}".replace(",", " ") if value == int(value) else f"{value:g}"


def rows(section: str) -> Iterator[str]:
    yield "| setting | default | values | meaning |"
    yield "|---|---|---|---|"
    for option in OPTIONS:
        if option.section != section:
            continue
        meaning = option.description + (" *Safety net.*" if option.safety_net else "")
        if option.airflow:
            meaning += " Airflow: " + ", ".join(f"`{name}`" for name in option.airflow) + "."
        yield f"| `{option.key}` | `{shown(option)}` | {accepted(option)} | {meaning} |"


def page() -> str:
    """The text of the page."""
    lines = [INTRODUCTION]
    for section in SECTIONS:
        lines += [f"## {section}", "", ABOUT[section], "", *rows(section), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
