"""The present names of names of older Airflow releases, and the provider packages that have them."""

from __future__ import annotations

import functools
from typing import NamedTuple

from tradewind.airflow import names
from tradewind.sdk.generation import generation_of

GENERATION = 3
"""Old names are replaced by those of this major release."""

_PREFERRED = ("airflow.providers.", "airflow.sdk.", "airflow.utils.", "airflow.exceptions.", "airflow.configuration.")
"""Modules where authors look for a name today, the best first."""

PLAIN_RENAMES = {
    "airflow.operators.dummy_operator.DummyOperator": ("airflow.providers.standard.operators.empty", "EmptyOperator"),
    "airflow.operators.dummy.DummyOperator": ("airflow.providers.standard.operators.empty", "EmptyOperator"),
    "airflow.operators.http_operator.SimpleHttpOperator": ("airflow.providers.http.operators.http", "HttpOperator"),
    "airflow.providers.http.operators.http.SimpleHttpOperator": ("airflow.providers.http.operators.http", "HttpOperator"),
    "airflow.datasets.Dataset": ("airflow.sdk", "Asset"),
    "airflow.Dataset": ("airflow.sdk", "Asset"),
}
"""Old name → present module and name, for classes with another name."""

DAG_ARGUMENTS = {
    "schedule_interval": "schedule",
    "timetable": "schedule",
    "concurrency": "max_active_tasks",
    "fail_stop": "fail_fast",
}
TASK_ARGUMENTS = {"task_concurrency": "max_active_tis_per_dag", "xcom_push": "do_xcom_push"}
REMOVED_ARGUMENTS = {
    "provide_context": "functions get the context in their keyword arguments",
    "default_view": "it configured only the web interface",
    "orientation": "it configured only the web interface",
}
"""Arguments without effect since Airflow 2 or 3."""


def present_argument(callee: str, name: str) -> str | None:
    """The name of an argument today, or None if it has not changed.

    Args:
        callee: the class or function that is called, `DAG`, `dag` or the class of an operator.
    """
    if callee in ("DAG", "dag"):
        return DAG_ARGUMENTS.get(name)
    if callee.endswith(("Operator", "Sensor")):
        return TASK_ARGUMENTS.get(name)
    return None


class Place(NamedTuple):
    """The present place of a name."""

    module: str
    name: str


def present_place(module: str, name: str) -> Place | None:
    """The place of a name in Airflow 3, if Airflow 3 has the name in another place. None: Airflow 3 has the name in this
    place, or has dropped it.

    Args:
        module: `airflow.operators.bash_operator`.
        name: `BashOperator`.
    """
    renamed = PLAIN_RENAMES.get(f"{module}.{name}")
    if renamed is not None:
        return Place(*renamed)
    here = names.place_of(module, name)
    if here is not None:
        is_old = here.until < GENERATION or generation_of(f"from {module} import {name}") < GENERATION
        found = _places_today().get(here.target) if is_old else None
        return found if found != Place(module, name) else None
    home, _, attribute = (names.find(module, name) or "").partition(":")
    if home.startswith("airflow.providers.") and home != module and attribute:
        return Place(home, attribute)
    return None


@functools.cache
def _places_today() -> dict[str, Place]:
    """Target here → the best place in Airflow 3."""
    found: dict[str, tuple[int, Place]] = {}
    for module, name, place in names.places():
        rank = next((n for n, prefix in enumerate(_PREFERRED) if (module + ".").startswith(prefix)), None)
        if place.until >= GENERATION and rank is not None and rank < found.get(place.target, (len(_PREFERRED),))[0]:
            found[place.target] = rank, Place(module, name)
    return {target: place for target, (_, place) in found.items()}


def provider_of(module: str, name: str) -> str | None:
    """The short name of the provider package that an import needs: `google`, `apache-hive`. None: no package.

    `airflow.providers.standard` needs none, because Tradewind has it.
    """
    home = module
    if not module.startswith("airflow.providers."):
        target = names.find(module, name) if name else None
        home = (target or "").partition(":")[0]
    if not home.startswith("airflow.providers.") or home.startswith("airflow.providers.standard"):
        return None
    if home.count(".") < 2 or home in names.PROVIDER_GROUPS:
        return None
    return names.provider_package(home).removeprefix("apache-airflow-providers-")
