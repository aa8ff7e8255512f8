"""In a parse child: load all plugins and list them."""

from __future__ import annotations

import os

from tradewind.model.assets import AliasKey
from tradewind.parser import problems
from tradewind.parser.parse_result import ChildReport, PluginsReport
from tradewind.sdk.plugins import FILE, describe_plugin, load_plugins
from tradewind.wire.messages import AssetsCreated


def report_import_error(event: str, path: str, stack_trace: str) -> ChildReport:
    """Call the listeners of `on_new_dag_import_error` or `on_existing_dag_import_error`."""
    from tradewind.sdk.listeners import get_listener_manager  # lazy import: loads pluggy; few deployments have such listeners

    get_listener_manager().call(event, filename=path, stacktrace=stack_trace)
    return ChildReport()


def report_created_assets(created: AssetsCreated) -> ChildReport:
    """Call the listeners of `on_asset_created` and `on_asset_alias_created`, and those of Airflow 2's names."""
    from tradewind.sdk.assets import from_leaf  # lazy import: as below
    from tradewind.sdk.listeners import get_listener_manager  # lazy import: loads pluggy; few deployments have such listeners

    listeners = get_listener_manager()
    for leaf in created.assets:
        made = from_leaf(leaf)
        if isinstance(leaf, AliasKey):
            listeners.call("on_asset_alias_created", asset_alias=made)
            listeners.call("on_dataset_alias_created", dataset_alias=made)
        else:
            listeners.call("on_asset_created", asset=made)
            listeners.call("on_dataset_created", dataset=made)
    return ChildReport()


def read_plugins(folder: str) -> ChildReport:
    """Load all plugins and list them. Errors become problems."""
    loaded = load_plugins(folder)
    failures = []
    for failed in loaded.errors:
        file = failed.source.removeprefix(FILE)
        problem = problems.from_exception(failed.error, os.path.join(folder, file))
        failures.append((file, problem))
    plugins = []
    for found in loaded.plugins:
        try:
            plugins.append(describe_plugin(found))
        except Exception as error:
            failures.append((found.source.removeprefix(FILE), problems.from_exception(error, folder)))
    return ChildReport(plugins=PluginsReport(tuple(plugins), tuple(failures)))
