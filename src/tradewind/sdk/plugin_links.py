"""Links that plugins add to tasks.

`operator_extra_links` of a plugin are for the operators that each link names, `global_operator_extra_links` for all operators.

They are added to the tasks of a DAG file right after the file was imported. From then on they are like links of the operator
itself: the definition of the task names them, and the process of the task computes their URLs (`sdk.operator_link`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tradewind.sdk.plugins import plugin_sources, plugins_of_process

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator

ATTRIBUTES = (b"operator_extra_links",)
"""Occurs in the source of every plugin with links: the name of the attribute for all operators contains it."""


def add_plugin_links(dags: Iterable[DAG]) -> None:
    """Add the links of plugins to the tasks of these DAGs. The plugins are loaded only if the source of one mentions links."""
    if not plugin_sources(ATTRIBUTES):
        return
    plugins = [found.plugin for found in plugins_of_process().plugins]
    of_operators = [link for plugin in plugins for link in getattr(plugin, "operator_extra_links", None) or ()]
    of_all = [link for plugin in plugins for link in getattr(plugin, "global_operator_extra_links", None) or ()]
    if not of_operators and not of_all:
        return
    for dag in dags:
        for task in dag.tasks:
            task.operator_extra_links = _merged(task, of_operators, of_all)


def _merged(task: BaseOperator, of_operators: list[Any], of_all: list[Any]) -> tuple[Any, ...]:
    """The links of a task by name. As in Airflow, a plugin's link replaces the operator's own link of the same name."""
    links = {str(link.name): link for link in of_all}
    links |= {str(link.name): link for link in task.operator_extra_links}
    links |= {str(link.name): link for link in of_operators if type(task) in (getattr(link, "operators", None) or ())}
    return tuple(links.values())
