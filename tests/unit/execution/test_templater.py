"""Operators that override how their attributes are rendered, as operators of provider packages do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import carry_out, installed, pushed
from tradewind import DAG, BaseOperator
from tradewind.execution import local_database
from tradewind.execution.templates import needs_rendering
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.notifier import BaseNotifier


class Variable:
    """An object of a client library."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


class PodOperator(BaseOperator):
    template_fields = ("env", "image")

    def __init__(self, env: Any = None, image: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.env = env
        self.image = image

    def _do_render_template_fields(self, parent: Any, template_fields: Any, *more: Any) -> None:
        if parent is self and isinstance(self.env, dict):
            self.env = [Variable(name, value) for name, value in self.env.items()]
        super()._do_render_template_fields(parent, template_fields, *more)

    def _render_nested_template_fields(self, value: Any, context: Any, jinja_env: Any, seen_oids: Any) -> None:
        if isinstance(value, Variable) and id(value) not in seen_oids:
            seen_oids.add(id(value))
            self._do_render_template_fields(value, ("name", "value"), context, jinja_env, seen_oids)
            return
        super()._render_nested_template_fields(value, context, jinja_env, seen_oids)


def test_overridden_methods_render_objects_of_a_client_library() -> None:
    task = PodOperator(task_id="pod", env={"{{ a }}": "{{ b }}"}, image="{{ a }}:1")
    assert needs_rendering(task)
    task.render_template_fields({"a": "A", "b": "B"})
    assert [(one.name, one.value) for one in task.env] == [("A", "B")]
    assert task.image == "A:1"


def test_only_some_fields_are_rendered() -> None:
    class Later(BaseOperator):
        template_fields = ("sql", "message")

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.sql, self.message = "{{ a }}", "{{ result }}"

        def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
            self._do_render_template_fields(self, ("sql",), context, jinja_env, set())

    task = Later(task_id="later")
    task.render_template_fields({"a": "A"})
    assert (task.sql, task.message) == ("A", "{{ result }}")


def test_a_function_in_a_field_is_called_with_the_context() -> None:
    class Called(BaseOperator):
        template_fields = ("value",)

        def __init__(self, value: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.value = value

    task = Called(lambda context, jinja_env: jinja_env.from_string("{{ a }}!").render(context), task_id="called")
    assert needs_rendering(task)
    task.render_template_fields({"a": "A"})
    assert task.value == "A!"


def test_a_missing_attribute_is_named() -> None:
    task = PodOperator(task_id="pod")
    del task.image
    with pytest.raises(AirflowException, match="declares 'image' in template_fields"):
        task.render_template_fields({})


def test_template_files(tmp_path: Path) -> None:
    class Files(BaseOperator):
        template_fields = ("one", "many")
        template_ext = (".sql",)

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.one, self.many = "a.sql", ["a.sql", "b"]

        def prepare_template(self) -> None:
            self.one = f"-- prepared\n{self.one}"

    (tmp_path / "a.sql").write_text("select {{ a }}")
    with DAG("d", template_searchpath=[str(tmp_path)]):
        task = Files(task_id="files")
    task.resolve_template_files()
    assert (task.one, task.many) == ("-- prepared\nselect {{ a }}", ["select {{ a }}", "b"])


class Script(BaseOperator):
    """Keeps what comes after the first line of its script, as operators of provider packages do (hive, pig)."""

    template_fields = ("script",)
    template_ext = (".sql",)

    def __init__(self, *, script: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.script = script

    def prepare_template(self) -> None:
        self.script = self.script.partition("\n")[2]

    def execute(self, context: Any) -> str:
        return self.script


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("template", ["select '{{ ds }}'", "select 1"])
def test_a_task_prepares_its_template_files_before_they_are_rendered(tmp_path: Path, template: str, warm: bool) -> None:
    (tmp_path / "a.sql").write_text(f"begin\n{template}")
    with DAG("d", template_searchpath=[str(tmp_path)]):
        task = Script(task_id="script", script="a.sql")
    if warm:
        task.warm_up()
    with installed():
        result = carry_out(task)
    assert pushed(result)["return_value"] == template.replace("{{ ds }}", "2024-03-05")


def test_prepare_template_may_open_a_file_of_another_folder(tmp_path: Path) -> None:
    class Configured(Script):
        def prepare_template(self) -> None:
            self.script = Path(self.script).read_text()

    path = tmp_path / "elsewhere.sql"
    path.write_text("select '{{ ds }}'")
    with DAG("d"), installed():
        result = carry_out(Configured(task_id="script", script=str(path)))
    assert pushed(result)["return_value"] == "select '2024-03-05'"


def test_tests_of_dag_files_see_prepared_templates() -> None:
    with DAG("d", start_date=datetime(2024, 3, 5, tzinfo=UTC)) as dag:
        task = Script(task_id="script", script="begin\nselect '{{ ds }}'")
    ti = dag.create_dagrun(logical_date=datetime(2024, 3, 5, tzinfo=UTC), run_type="manual").get_task_instance("script")
    ti.render_templates()
    ti.run()
    assert task.script == "select '2024-03-05'"
    local_database.close_database()


def test_notifiers_render_the_same_way() -> None:
    class Chat(BaseNotifier):
        template_fields = ("text",)
        text = "{{ a }}"

        def notify(self, context: Any) -> None: ...

    chat = Chat()
    chat._do_render_template_fields(chat, ("text",), {"a": "A"}, chat.get_template_env(), set())
    assert chat.text == "A"


def test_a_notifier_s_attributes_may_use_each_other_and_each_call_has_its_own() -> None:
    sent: list[tuple[str, str]] = []

    class Chat(BaseNotifier):
        template_fields = ("text", "user")

        def __init__(self, user: str) -> None:
            super().__init__()
            self.user, self.text = user, "{{ user }} about {{ task }}"

        def notify(self, context: Any) -> None:
            sent.append((self.text, self.user))

        async def async_notify(self, context: Any) -> None:
            sent.append((self.text, "async"))

    one, other = Chat("one"), Chat("other")
    context = {"task": "t"}
    one(context)
    other(context)
    assert sent == [("one about t", "one"), ("other about t", "other")]
    assert one.text == "one about t"
    one({"task": "again"})
    assert sent[-1] == ("one about again", "one")
    one.context = {"task": "u"}

    async def wait() -> None:
        await one

    asyncio.run(wait())
    assert sent[-1] == ("one about u", "async")
