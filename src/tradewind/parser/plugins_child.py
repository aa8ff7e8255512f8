"""In a parse child: load all plugins and list them."""

from __future__ import annotations

import os

from tradewind.model.assets import AliasKey
from tradewind.parser import problems
from tradewind.parser.parse_result import ChildReport, PluginsReport
from tradewind.sdk.plugins import FILE, describe_plugin, load_plugins
from tradewind.wire.messages import AssetsChanged


def report_import_error(event: str, path: str, stack_trace: str) -> ChildReport:
    """Call the listeners of `on_new_dag_import_error` or `on_existing_dag_import_error`."""
    from tradewind.sdk.listeners import get_listener_manager  # lazy import: loads pluggy; few deployments have such listeners

    get_listener_manager().call(event, filename=path, stacktrace=stack_trace)
    return ChildReport()


def call_asset_listeners(changed: AssetsChanged) -> ChildReport:
    """Call the listeners of new assets and aliases, and of events that no task has emitted, also by Airflow 2's names."""
    from tradewind.execution.asset_events import EmittedAssetEvent  # lazy import: as below
    from tradewind.sdk.assets import Asset, from_leaf  # lazy import: as below
    from tradewind.sdk.listeners import get_listener_manager  # lazy import: loads pluggy; few deployments have such listeners

    listeners = get_listener_manager()
    for leaf in changed.created:
        made = from_leaf(leaf)
        if isinstance(leaf, AliasKey):
            listeners.call("on_asset_alias_created", asset_alias=made)
            listeners.call("on_dataset_alias_created", dataset_alias=made)
        else:
            listeners.call("on_asset_created", asset=made)
            listeners.call("on_dataset_created", dataset=made)
    for event in changed.events:
        asset = from_leaf(event.asset)
        assert isinstance(asset, Asset)
        emitted = EmittedAssetEvent(asset, event.extra, None, None, None, -1, [], event.partition_key)
        listeners.call("on_asset_changed", asset=asset)
        listeners.call("on_dataset_changed", dataset=asset)
        listeners.call("on_asset_event_emitted", asset_event=emitted)
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
