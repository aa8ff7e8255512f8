"""Reports what Tradewind does with each line of a requirements file that was written for Airflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tradewind.provider_packages.extras import PROVIDERS
from tradewind.provider_packages.requirements import Requirement
from tradewind.provider_packages.requirements_files import Change

_PARTS_OF_AIRFLOW = ("apache-airflow", "apache-airflow-core", "apache-airflow-task-sdk")
_MODERN = "apache-airflow-providers-"
_BACKPORT = "apache-airflow-backport-providers-"
_NOT_HERE = {
    "apache-airflow-ctl": "controls Airflow's API server; use the tradewind command",
    "apache-airflow-providers-fab": "the logins of Airflow's web page; Tradewind has its own",
    "apache-airflow-providers-edge3": "an executor of Airflow, which Tradewind does not use",
}


class RequirementReport(NamedTuple):
    """One line of the file.

    `verdict`: `replaced` (by Tradewind or its stand-in), `installs`, `no effect` or `left out`.
    """

    requirement: str
    verdict: str
    text: str


def report_on_requirements(listed: Iterable[Requirement], changes: Iterable[Change] = ()) -> list[RequirementReport]:
    """The reports on the lines that can be read, in their order, then on the lines that are changed or left out."""
    return [*(_report(one) for one in listed), *(RequirementReport(*change) for change in changes)]


def _report(one: Requirement) -> RequirementReport:
    shown = one.name + (f"[{','.join(one.extras)}]" if one.extras else "") + one.specifier
    if one.name in _PARTS_OF_AIRFLOW:
        extras = [name for name in one.extras if name in PROVIDERS]
        brings = f"; its extras bring the provider packages {', '.join(extras)}" if extras else ""
        return RequirementReport(shown, "replaced", f"Tradewind replaces it; a small stand-in has its name{brings}")
    if one.name in _NOT_HERE:
        return RequirementReport(shown, "no effect", _NOT_HERE[one.name])
    if one.name.startswith(_BACKPORT):
        return RequirementReport(
            shown, "installs", "a backport for Airflow 1.10; it cannot be installed beside current provider packages"
        )
    if one.name.startswith(_MODERN):
        return RequirementReport(shown, "installs", "a provider package; its operators and hooks work unchanged")
    return RequirementReport(shown, "installs", "not a part of Airflow; pip installs it")
