"""The contents of the installed provider packages by kind, from their descriptions.

All values are names. Reading the descriptions imports no operator or hook of a package.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tradewind.provider_packages import installed
from tradewind.provider_packages.installed import Provider


class Hook(NamedTuple):
    """The hook of a connection type."""

    connection_type: str
    class_name: str
    """Full name of the class."""
    package: str
    hook_name: str | None
    """Name for people, `Postgres`; None if only the class has it."""
    form: dict[str, Any]
    """The fields of the connection's form: `conn-fields` and `ui-field-behaviour`."""


class Trigger(NamedTuple):
    """A module of triggers."""

    class_name: str
    package: str
    integration_name: str


class Dialect(NamedTuple):
    """The SQL dialect of a database."""

    name: str
    dialect_class_name: str
    package: str


def _entries(key: str) -> Iterator[tuple[Provider, Any]]:
    """(provider, entry) of one list in all descriptions."""
    for provider in installed.providers().values():
        entries = provider.info.get(key)
        for entry in entries if isinstance(entries, list | tuple) else ():
            yield provider, entry


def _texts(*keys: str) -> list[str]:
    """Entries that are texts, of all packages, each once, sorted."""
    return sorted({entry for key in keys for _, entry in _entries(key) if isinstance(entry, str)})


@functools.cache
def hooks() -> dict[str, Hook]:
    """Connection type → hook, sorted by type.

    Source: `connection-types`. Packages of 2021 and before have only `hook-class-names`: the connection type of these hooks is an
    attribute of the class, so that their modules have to be imported (`old_hook_classes`).
    """
    found: dict[str, Hook] = {}
    for provider, entry in _entries("connection-types"):
        if not isinstance(entry, dict) or not entry.get("connection-type") or not entry.get("hook-class-name"):
            continue
        form = {key: entry[key] for key in ("conn-fields", "ui-field-behaviour") if key in entry}
        kind = str(entry["connection-type"])
        found.setdefault(kind, Hook(kind, str(entry["hook-class-name"]), provider.package, entry.get("hook-name"), form))
    return dict(sorted(found.items()))


@functools.cache
def old_hook_classes() -> tuple[tuple[str, str], ...]:
    """(package, class) of hooks whose connection type is only an attribute of the class."""
    known = {hook.class_name for hook in hooks().values()}
    return tuple(
        (provider.package, str(entry))
        for provider, entry in _entries("hook-class-names")
        if isinstance(entry, str) and entry not in known
    )


def backport_hook_modules() -> list[tuple[str, str]]:
    """(package, module) of hooks in backports for Airflow 1.10, which describe no connection types."""
    return [
        (provider.package, module)
        for provider in installed.providers().values()
        if provider.package.startswith(installed.BACKPORT)
        for entry in provider.info.get("hooks", ())
        for module in entry["python-modules"]
    ]


@functools.cache
def task_decorators() -> dict[str, str]:
    """Name below `@task.` → full name of the decorator."""
    return {
        str(entry["name"]): str(entry["class-name"])
        for _, entry in _entries("task-decorators")
        if isinstance(entry, dict) and entry.get("name") and entry.get("class-name")
    }


def extra_links() -> list[str]:
    """Full names of the classes of extra links."""
    return _texts("extra-links")


def notifications() -> list[str]:
    """Full names of the notifiers."""
    return _texts("notifications")


def secrets_backends() -> list[str]:
    """Full names of the secrets backends."""
    return _texts("secrets-backends")


def logging_handlers() -> list[str]:
    """Full names of the handlers of remote task logs."""
    return _texts("logging")


def executors() -> list[str]:
    """Full names of the executors."""
    return _texts("executors")


def cli_commands() -> list[str]:
    """Full names of the functions that describe commands."""
    return _texts("cli")


def auth_managers() -> list[str]:
    """Full names of the auth managers."""
    return _texts("auth-managers")


def email_backends() -> list[str]:
    """Full names of the functions that send e-mail."""
    return _texts("email-backends")


def queues() -> list[str]:
    """Full names of the message queues."""
    return _texts("queues")


def filesystems() -> list[str]:
    """Modules that make file systems for `ObjectStoragePath`."""
    return _texts("filesystems")


def triggers() -> list[Trigger]:
    """The modules of triggers."""
    return [
        Trigger(str(module), provider.package, str(entry.get("integration-name", "")))
        for provider, entry in _entries("triggers")
        if isinstance(entry, dict)
        for module in entry.get("python-modules", ())
    ]


@functools.cache
def dialects() -> dict[str, Dialect]:
    """Dialect name → dialect."""
    return {
        str(entry["dialect-type"]): Dialect(str(entry["dialect-type"]), str(entry["dialect-class-name"]), provider.package)
        for provider, entry in _entries("dialects")
        if isinstance(entry, dict) and "dialect-type" in entry
    }


def _by_scheme(keys: Iterable[str], member: str) -> dict[str, str]:
    """URI scheme → the function that a package names for it."""
    found: dict[str, str] = {}
    for key in keys:
        for _, entry in _entries(key):
            if isinstance(entry, dict) and entry.get(member):
                for scheme in entry.get("schemes", ()):
                    found.setdefault(str(scheme), str(entry[member]))
    return found


@functools.cache
def asset_uri_handlers() -> dict[str, str]:
    """URI scheme → the function that checks and normalizes an asset's URI. Airflow 2 calls assets datasets."""
    return _by_scheme(("asset-uris", "dataset-uris"), "handler")


@functools.cache
def asset_factories() -> dict[str, str]:
    """URI scheme → the function that makes an asset from a connection and arguments."""
    return _by_scheme(("asset-uris", "dataset-uris"), "factory")


@functools.cache
def openlineage_converters() -> dict[str, str]:
    """URI scheme → the function that converts an asset for OpenLineage."""
    return _by_scheme(("asset-uris", "dataset-uris"), "to_openlineage_converter")


def remote_logging() -> list[tuple[str, str, str]]:
    """(full name of the handler, URI scheme, package)."""
    return [
        (str(entry["classpath"]), str(entry.get("scheme", "")), provider.package)
        for provider, entry in _entries("remote-logging")
        if isinstance(entry, dict) and entry.get("classpath")
    ]


def plugins() -> list[tuple[str, str, str]]:
    """(package, plugin's name, full name of its class)."""
    return [
        (provider.package, str(entry["name"]), str(entry["plugin-class"]))
        for provider, entry in _entries("plugins")
        if isinstance(entry, dict) and "plugin-class" in entry
    ]


@functools.cache
def config_sections() -> dict[str, dict[str, Any]]:
    """Section of the settings → its description as the package gives it (`description`, `options`)."""
    found: dict[str, dict[str, Any]] = {}
    for provider in installed.providers().values():
        config = provider.info.get("config")
        for section, about in config.items() if isinstance(config, dict) else ():
            known = found.setdefault(str(section), {"description": about.get("description"), "options": {}})
            known["options"].update(about.get("options") or {})
    return found


@functools.cache
def config_defaults() -> dict[tuple[str, str], str]:
    """(section, option) → default text, for the options that have one."""
    return {
        (section.lower(), str(option).lower()): _expanded(str(about["default"]), bool(about.get("is_template")))
        for section, described in config_sections().items()
        for option, about in described["options"].items()
        if isinstance(about, dict) and about.get("default") is not None and not about.get("version_deprecated")
    }


def _expanded(default: str, is_template: bool) -> str:
    """A default as Airflow reads it: `{AIRFLOW_HOME}` is replaced and `{{` means `{`, except in Jinja templates."""
    if is_template or "{" not in default:
        return default
    home = os.environ.get("AIRFLOW_HOME") or os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")
    try:
        return default.format(**{**os.environ, "AIRFLOW_HOME": home})
    except (KeyError, ValueError, IndexError):
        return default


_CACHED: tuple[Callable[[], Any], ...] = (
    hooks,
    old_hook_classes,
    task_decorators,
    dialects,
    asset_uri_handlers,
    asset_factories,
    openlineage_converters,
    config_sections,
    config_defaults,
)


def forget() -> None:
    """Clear the cache, because packages were installed or removed: the descriptions are read again when they are needed."""
    installed.providers.cache_clear()
    for cached in _CACHED:
        cached.cache_clear()  # type: ignore[attr-defined]
