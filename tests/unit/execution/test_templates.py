"""Rendering of template fields. tests/conformance (family D) compares the results of single templates with Airflow's."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jinja2
import pytest

from tests.unit.execution.world import World, workload
from tradewind.execution.context import build_context
from tradewind.execution.macros import datetime_diff_for_humans, ds_add, ds_format, ds_format_locale
from tradewind.sdk.dag import DAG
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator


class _Op(BaseOperator):
    template_fields: Collection[str] = ("field", "other")
    template_ext = (".sql",)

    def __init__(self, field: Any = None, other: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.field = field
        self.other = other


def _rendered(field: Any, **dag: Any) -> Any:
    with DAG("d", schedule=None, **dag):
        task = _Op(task_id="t", field=field)
    task.render_template_fields(build_context(task, workload("t")))
    return task.field


class _Nested:
    template_fields = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


_Pair = namedtuple("_Pair", "a b")


def test_containers_are_rendered_inside() -> None:
    """Keys are not rendered, as in Airflow."""
    given = {"{{ ds }}": ["{{ ds }}", ("{{ ds }}", 5), {"{{ ds }}"}], "n": None, "b": b"{{", "p": _Pair("{{ ds }}", 1)}
    day = "2024-03-05"
    assert _rendered(given) == {"{{ ds }}": [day, (day, 5), {day}], "n": None, "b": b"{{", "p": _Pair(day, 1)}
    assert isinstance(_rendered(given)["p"], _Pair)


@pytest.mark.parametrize(
    ("given", "native", "rendered"),
    [
        ("1", False, "1"),
        ("a\r\nb\n\n", False, "a\nb\n"),
        ({"x\n": ["y\n", ("z\r",)]}, False, {"x\n": ["y", ("z",)]}),
        ("007", True, "007"),
        ("[1, 'a']", True, [1, "a"]),
        (["1_000", {"a": "None"}, "a, b"], True, [1000, {"a": None}, "a, b"]),
        ("", True, ""),
        ([""], True, [None]),
    ],
)
def test_text_without_templates(given: Any, native: bool, rendered: Any) -> None:
    """As Jinja renders it in Airflow: without a line break at its end, in a native environment as a literal of Python."""
    assert _rendered(given, render_template_as_native_obj=native) == rendered


def test_objects_with_template_fields_are_rendered_in_place() -> None:
    thing = _Nested(_Nested(["{{ ds }}"]))
    thing.inner.inner.append(thing)  # even when they contain themselves
    with DAG("d", schedule=None):
        task = _Op(task_id="t")
    task.field = [thing]
    task.render_template_fields(build_context(task, workload("t")))
    assert task.field == [thing]
    assert thing.inner.inner[0] == "2024-03-05"


class Frame:
    """As a data frame: a comparison gives an object without a truth value."""

    def __eq__(self, other: object) -> Any:
        return self

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")


def test_a_field_may_be_an_object_without_a_truth_value() -> None:
    frame = Frame()
    assert _rendered(frame) is frame
    assert _rendered({"frame": [frame]})["frame"][0] is frame


def test_results_of_other_tasks_are_replaced_by_their_values(world: World) -> None:
    world.xcoms = {("a", "return_value", -1): {"x": 1}, ("a", "k", -1): "{{ ds }}"}
    with DAG("d", schedule=None):
        a = BaseOperator(task_id="a")
        task = _Op(task_id="t", field={"all": [a.output]}, other=a.output["k"])
    task.render_template_fields(build_context(task, workload("t")))
    assert task.field == {"all": [{"x": 1}]}
    assert task.other == "{{ ds }}"  # data is not a template


def test_template_files_are_found_beside_the_dag_file_and_on_its_search_path(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("select '{{ ds }}' {% include 'part.sql' %}")
    (tmp_path / "part.sql").write_text("from {{ params.t }}")
    assert _rendered("q.sql", template_searchpath=str(tmp_path), params={"t": "x"}) == "select '2024-03-05' from x"
    with pytest.raises(jinja2.TemplateNotFound) as caught:
        _rendered("none.sql", template_searchpath=[str(tmp_path)])
    assert str(tmp_path) in str(caught.value)
    assert caught.value.__notes__ == ["in the templated field 'field' of task 't': 'none.sql'"]


def test_macros_filters_and_options_of_the_dag() -> None:
    options: dict[str, Any] = {
        "user_defined_macros": {"twice": lambda x: x * 2, "ds": "never seen: the context comes first"},
        "user_defined_filters": {"shout": lambda x: x.upper() + "!"},
        "jinja_environment_kwargs": {"variable_start_string": "<<", "variable_end_string": ">>"},
    }
    assert _rendered("{# #}<< twice('a') | shout >> << ds >>", **options) == "AA! 2024-03-05"
    assert _rendered("[{{ nope }}]", template_undefined=jinja2.Undefined) == "[]"


def test_render_template_as_native_obj_returns_objects() -> None:
    assert _rendered("{{ [1, params.n] }}", params={"n": 2}, render_template_as_native_obj=True) == [1, 2]
    with DAG("d", schedule=None, render_template_as_native_obj=True):
        task = _Op(task_id="t", field="{{ 1 }}", render_template_as_native_obj=False)
    task.render_template_fields(build_context(task, workload("t")))
    assert task.field == "1"


def test_the_error_of_a_misspelt_name_gives_the_field_and_a_suggestion() -> None:
    with pytest.raises(jinja2.UndefinedError) as caught:
        _rendered({"sql": "{{ logical_dat }}"})
    assert caught.value.__notes__ == [
        "in the templated field 'field' of task 't': {'sql': '{{ logical_dat }}'} Did you mean 'logical_date'?"
    ]


def test_a_template_error_computes_no_other_values(world: World) -> None:
    """Jinja shows the variables of the context in its tracebacks. Computing all of them could raise further errors."""
    with pytest.raises(ZeroDivisionError):
        _rendered("{% set x = 1 %}{{ x / 0 }}")
    assert world.questions == []


def test_a_declared_field_must_exist() -> None:
    class Broken(BaseOperator):
        template_fields: Collection[str] = ("missing",)

    with DAG("d", schedule=None):
        task = Broken(task_id="t")
    with pytest.raises(AirflowException, match="declares 'missing' in template_fields"):
        task.render_template_fields(build_context(task, workload("t")))


def test_macros() -> None:
    assert ds_add("2024-02-28", 2) == "2024-03-01"
    assert ds_format("2024-02-28", "%Y-%m-%d", "%d.%m.%y") == "28.02.24"
    assert ds_format_locale("2024-12-10", "%Y-%m-%d", "EEEE dd MMMM yyyy", "fr_FR") == "mardi 10 décembre 2024"
    assert ds_format_locale("2024-02-04", "%Y-%m-%d", "EEE, MMM d, yy 'o''clock' Q", "en") == "Sun, Feb 4, 24 o'clock 1"
    with pytest.raises(ValueError, match="the unknown field 'X'"):
        ds_format_locale("2024-02-04", "%Y-%m-%d", "X", "en")
    with pytest.raises(ValueError, match="for the language 'xx_YY'"):
        ds_format_locale("2024-02-04", "%Y-%m-%d", "y", "xx_YY")
    import pendulum

    moment = pendulum.datetime(2024, 1, 1)
    assert datetime_diff_for_humans(moment, moment.add(days=1)) == "1 day before"
    assert _rendered("{{ macros.dateutil.parser.parse('2024-01-02').year }} {{ macros.uuid.UUID(int=1) }}").startswith("2024 0")
    with pytest.raises(jinja2.UndefinedError):
        _rendered("{{ macros.nope }}")
