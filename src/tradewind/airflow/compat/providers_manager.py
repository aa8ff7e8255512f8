"""`airflow.providers_manager`: the contents of installed provider packages, with the attributes of Airflow's singleton."""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tradewind.airflow.compat.module_loading import import_string
from tradewind.provider_packages import hook_classes, installed, offers

log = logging.getLogger(__name__)

__all__ = [
    "ConnectionFormWidgetInfo",
    "DialectInfo",
    "HookClassProvider",
    "HookInfo",
    "NotificationInfo",
    "PluginInfo",
    "ProviderInfo",
    "ProvidersManager",
    "ProvidersManagerTaskRuntime",
    "RemoteLoggingInfo",
    "TriggerInfo",
]


class ProviderInfo(NamedTuple):
    """An installed package: its version and its description."""

    version: str
    data: dict[str, Any]


class HookClassProvider(NamedTuple):
    """A hook's class and the package it comes from."""

    hook_class_name: str
    package_name: str


class DialectInfo(NamedTuple):
    """A SQL dialect's class and the package it comes from."""

    name: str
    dialect_class_name: str
    provider_name: str


class TriggerInfo(NamedTuple):
    """A module of triggers and the package it comes from."""

    trigger_class_name: str
    package_name: str
    integration_name: str


class NotificationInfo(NamedTuple):
    """A notifier and the package it comes from."""

    notification_class_name: str
    package_name: str


class RemoteLoggingInfo(NamedTuple):
    """A handler of remote logs and the URI scheme it serves."""

    classpath: str
    scheme: str
    package_name: str


class PluginInfo(NamedTuple):
    """A plugin and the package it comes from."""

    name: str
    plugin_class: str
    provider_name: str


class HookInfo(NamedTuple):
    """A hook of a connection type."""

    hook_class_name: str
    connection_id_attribute_name: str
    package_name: str
    hook_name: str
    connection_type: str
    connection_testable: bool
    dialects: list[str] = []


class ConnectionFormWidgetInfo(NamedTuple):
    """A field of a connection's form."""

    hook_class_name: str
    package_name: str
    field: Any
    field_name: str
    is_sensitive: bool


class Hooks(Mapping[str, HookInfo | None]):
    """Connection type → hook. A hook's module is imported when its entry is read; None if it cannot be imported."""

    def __getitem__(self, connection_type: str) -> HookInfo | None:
        path = hook_classes.known()[connection_type]
        return _hook_info(connection_type, path.class_name, path.package)

    def __iter__(self) -> Iterator[str]:
        return iter(hook_classes.known())

    def __len__(self) -> int:
        return len(hook_classes.known())


def _hook_info(connection_type: str, class_name: str, package: str) -> HookInfo | None:
    try:
        cls = import_string(class_name)
    except Exception as error:  # code of the package may raise anything
        log.warning("the hook %s of %s cannot be imported: %s: %s", class_name, package, type(error).__name__, error)
        return None
    return HookInfo(
        hook_class_name=class_name,
        connection_id_attribute_name=getattr(cls, "conn_name_attr", "conn_id"),
        package_name=package,
        hook_name=getattr(cls, "hook_name", None) or cls.__name__,
        connection_type=connection_type,
        connection_testable=hasattr(cls, "test_connection"),
        dialects=list(getattr(cls, "dialects", ()) or ()),
    )


class ProvidersManager:
    """The contents of the installed provider packages. All objects of this class have the same contents."""

    resource_version = "0"

    _initialized = False
    _initialization_stack_trace: str | None = None

    def __init__(self) -> None:
        type(self)._initialized = True

    @classmethod
    def initialized(cls) -> bool:
        """Whether the providers were requested already."""
        return cls._initialized

    @classmethod
    def initialization_stack_trace(cls) -> str | None:
        """The place of the first request. Tradewind does not record it."""
        return cls._initialization_stack_trace

    @property
    def providers(self) -> dict[str, ProviderInfo]:
        """Package → version and description."""
        return {name: ProviderInfo(one.version, one.info) for name, one in installed.providers().items()}

    @property
    def hooks(self) -> Mapping[str, HookInfo | None]:
        """Connection type → hook."""
        return Hooks()

    @property
    def dialects(self) -> dict[str, DialectInfo]:
        """Dialect name → class."""
        return {name: DialectInfo(name, one.dialect_class_name, one.package) for name, one in offers.dialects().items()}

    @property
    def trigger(self) -> list[TriggerInfo]:
        """Modules of triggers."""
        return [TriggerInfo(*one) for one in offers.triggers()]

    @property
    def notification(self) -> list[str]:
        """Full names of notifiers."""
        return offers.notifications()

    @property
    def taskflow_decorators(self) -> dict[str, Callable[..., Any]]:
        """Name below `@task.` → decorator."""
        return {name: import_string(path) for name, path in offers.task_decorators().items()}

    @property
    def extra_links_class_names(self) -> list[str]:
        """Full names of extra links."""
        return offers.extra_links()

    @property
    def connection_form_widgets(self) -> dict[str, ConnectionFormWidgetInfo]:
        """Field name → field of a connection's form."""
        return {
            f"extra__{kind}__{field}": ConnectionFormWidgetInfo(
                hook.class_name, hook.package, about, field, about.get("schema", {}).get("format") == "password"
            )
            for kind, hook in offers.hooks().items()
            for field, about in (hook.form.get("conn-fields") or {}).items()
        }

    @property
    def field_behaviours(self) -> dict[str, dict[str, Any]]:
        """Connection type → differences of its form."""
        return {
            kind: hook.form["ui-field-behaviour"] for kind, hook in offers.hooks().items() if "ui-field-behaviour" in hook.form
        }

    @property
    def logging_class_names(self) -> list[str]:
        """Full names of handlers of remote logs."""
        return offers.logging_handlers()

    @property
    def remote_logging_handlers(self) -> list[RemoteLoggingInfo]:
        """Handlers of remote logs by URI scheme."""
        return [RemoteLoggingInfo(*one) for one in offers.remote_logging()]

    @property
    def secrets_backend_class_names(self) -> list[str]:
        """Full names of secrets backends."""
        return offers.secrets_backends()

    @property
    def executor_class_names(self) -> list[str]:
        """Full names of executors."""
        return offers.executors()

    @property
    def auth_managers(self) -> list[str]:
        """Full names of auth managers."""
        return offers.auth_managers()

    @property
    def queue_class_names(self) -> list[str]:
        """Full names of message queues."""
        return offers.queues()

    @property
    def filesystem_module_names(self) -> list[str]:
        """Modules that make file systems."""
        return offers.filesystems()

    @property
    def asset_uri_handlers(self) -> dict[str, Callable[..., Any]]:
        """URI scheme → check of an asset's URI."""
        return _imported(offers.asset_uri_handlers())

    dataset_uri_handlers = asset_uri_handlers

    @property
    def asset_factories(self) -> dict[str, Callable[..., Any]]:
        """URI scheme → function that creates an asset."""
        return _imported(offers.asset_factories())

    dataset_factories = asset_factories

    @property
    def asset_to_openlineage_converters(self) -> dict[str, Callable[..., Any]]:
        """URI scheme → converter of assets for OpenLineage."""
        return _imported(offers.openlineage_converters())

    dataset_to_openlineage_converters = asset_to_openlineage_converters

    @property
    def provider_configs(self) -> list[tuple[str, dict[str, Any]]]:
        """(section, description) of settings."""
        return sorted(offers.config_sections().items())

    already_initialized_provider_configs = provider_configs

    @property
    def plugins(self) -> list[PluginInfo]:
        """Plugins of packages."""
        return [PluginInfo(name, class_name, package) for package, name, class_name in offers.plugins()]

    def _do_nothing(self, *_args: Any) -> None:
        """Do nothing: descriptions are read when they are needed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("initialize_", "_init")):
            return self._do_nothing
        raise AttributeError(f"'ProvidersManager' object has no attribute {name!r}")


_KINDS = """asset_uri_resources auth_managers configuration executors extra_links filesystems hooks list logging notifications
plugins queues secrets_backends taskflow_decorator triggers"""
for _kind in _KINDS.split():  # names of the class, too, so that tests can replace them
    setattr(ProvidersManager, f"initialize_providers_{_kind}", ProvidersManager._do_nothing)

ProvidersManagerTaskRuntime = ProvidersManager
"""Airflow 3's name of `ProvidersManager` in processes that run tasks."""


def _imported(paths: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    return {scheme: _import_once(path) for scheme, path in paths.items()}


@functools.cache
def _import_once(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
