"""Every public operator and sensor has its page in the manual, and every page is in the index."""

from __future__ import annotations

import ast
import re

import pytest

from tests.shape.source import ROOT, modules

PAGES = ROOT / "docs" / "reference" / "operators"

OTHER_NAMES = {
    "DateTimeSensorAsync": "its page lists it under the differences from Airflow",
    "TimeSensorAsync": "its page lists it under the differences from Airflow",
    "TimeDeltaSensorAsync": "its page lists it under the differences from Airflow",
    "CallableOperator": "a common base class, described on the pages of its subclasses",
    "SeparateInterpreterOperator": "a common base class, described on the pages of its subclasses",
    "BaseSQLOperator": "a common base class, described on the pages of its subclasses",
    "SimpleHttpOperator": "its page lists it under the differences from Airflow",
    "HttpRequestOperator": "a common base class, described on the pages of its subclasses",
    "MomentSensor": "a common base class, described on the pages of its subclasses",
}
"""Classes without a heading of their own → the reason."""

_KINDS = ("Operator", "Sensor", "Marker")


def public_classes() -> list[str]:
    """Names of all operators and sensors. Classes of decorators are described on the page of their operator."""
    return sorted(
        node.name
        for module in modules().values()
        if module.package in ("operators", "sensors")
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
        and (node.name.endswith(_KINDS) or any(ast.unparse(base).endswith(_KINDS) for base in node.bases))
        and not node.name.startswith("_")
        and "Decorated" not in node.name
        and "Mix" not in node.name
    )


def headings() -> str:
    return "\n".join(
        line for page in PAGES.glob("*.md") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# ")
    )


@pytest.mark.parametrize("name", public_classes())
def test_every_operator_has_its_page(name: str) -> None:
    """The heading of a page names the class."""
    assert name in OTHER_NAMES or f"`{name}`" in headings()


def test_every_page_is_in_the_index() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z_]+\.md)\)", index))
    assert linked == {page.name for page in PAGES.glob("*.md")} - {"README.md"}


def test_every_exception_names_a_class() -> None:
    assert OTHER_NAMES.keys() - set(public_classes()) == set()
