"""Templates that contain only names are rendered without Jinja; the result must be that of Jinja."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind import DAG
from tradewind.execution.templates import render_value
from tradewind.operators.empty import EmptyOperator

NAMES = {"ds": "2024-01-01", "n": 3, "nothing": None, "mark": "{{ ds }}", "END_DATE": "x", "none": "hidden"}
TEMPLATES = (
    "{{ ds }}",
    "{{ds}}",
    "{{  n}}",
    "{{ nothing }}",
    "{{ mark }}",
    "{{ END_DATE }}",
    "{{ none }}",
    "{{- ds }}",
    "{{ true }}",
)
OTHERS = (
    "{{ ds | upper }}",
    "{{ n + 1 }}",
    "{# no #}",
    "{% if n %}",
    "{% endif %}",
    "text",
    " ",
    "{",
    "}",
    "}}",
    "%",
    "é",
    "\n",
    "\r\n",
)
PIECES = st.sampled_from(TEMPLATES + OTHERS)


def _task(**options: object) -> EmptyOperator:
    with DAG("names", schedule=None, **options):  # type: ignore[arg-type]
        return EmptyOperator(task_id="t")


def _or_error(render: object, *args: object) -> object:
    try:
        return render(*args)  # type: ignore[operator]
    except jinja2.TemplateError as error:
        return type(error)


@given(st.lists(PIECES, max_size=6).map("".join).filter(lambda text: "{{" in text))
def test_the_result_is_that_of_jinja(template: str) -> None:
    jinja = jinja2.Environment(undefined=jinja2.StrictUndefined)
    expected = _or_error(lambda: jinja.from_string(template).render(NAMES))
    assert _or_error(render_value, template, NAMES, _task()) == expected


def test_a_dag_with_its_own_jinja_options_is_rendered_by_jinja() -> None:
    task = _task(jinja_environment_kwargs={"variable_start_string": "[[", "variable_end_string": "]]"})
    assert render_value("{{ ds }} [[ ds ]]", NAMES, task) == "{{ ds }} 2024-01-01"


def test_native_rendering_keeps_the_value() -> None:
    assert render_value("{{ n }}", NAMES, _task(render_template_as_native_obj=True)) == 3


def test_only_names_are_rendered_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("Jinja was asked")

    monkeypatch.setattr("tradewind.execution.templates.environment_for", refuse)
    assert render_value("a {{ ds }}/{{ n }}", NAMES, _task()) == "a 2024-01-01/3"
