"""Templates: Jinja set up as Airflow does, and the rendering of a task's templated fields.

A text is a template when it contains `{{`, `{%` or `{#`; with one of the operator's `template_ext` at its end it names a
file with one, looked up in the DAG file's folder and the DAG's `template_searchpath`. Tasks without either never import
Jinja. A misspelt name is an error (StrictUndefined) that names the field and the nearest variable.

The environment is sandboxed; attributes with one leading underscore may be read, as in Airflow. The native variant
(`render_template_as_native_obj`) gives Python values instead of texts and, as in Airflow, is not sandboxed: templates are
written by the DAG's author, whose code runs anyway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tradewind.execution.context import Context
from tradewind.model.errors import did_you_mean
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.xcom_arg import ResolveMixin

if TYPE_CHECKING:
    import jinja2

_MARK = re.compile(r"\{[{%#]")
_UNDEFINED = re.compile(r"^'([^']+)' is undefined")
_PLAIN = (int, float, bool, bytes, type(None))


_NAME = re.compile(r"\{\{ *([A-Za-z_]\w*) *\}\}")
_WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "self", "loop", "super", "caller"})
"""What Jinja reads as something else than a name."""


def _is_usual(task: Any) -> bool:
    """Are its templates plain texts, read by Jinja with Airflow's options?"""
    dag = task.get_dag() if hasattr(task, "get_dag") else None
    native = getattr(task, "render_template_as_native_obj", None)
    if native is None:
        native = getattr(dag, "render_template_as_native_obj", False)
    return not native and not getattr(dag, "jinja_environment_kwargs", None)


def render_fields(task: Any, context: Mapping[str, Any], jinja_env: jinja2.Environment | None = None) -> None:
    """Replace every templated field of `task` by its rendered value.

    Args:
        task: an operator (or anything with `template_fields`); changed in place.
        context: the context variables.
        jinja_env: None: the one that the task's DAG asks for, made only if something needs it.

    Raises:
        jinja2.TemplateError: a template is wrong or names something unknown; a note says in which field.
        AirflowException: the operator declares a templated field that it does not have.
    """
    renderer = _Renderer(task, context, jinja_env)
    for name in _fields_of(task):
        try:
            value = getattr(task, name)
        except AttributeError:
            raise AirflowException(
                f"{type(task).__name__} declares {name!r} in template_fields but has no such attribute; "
                f"set self.{name} in __init__"
            ) from None
        if value is None or not renderer.concerns(value):
            continue
        try:
            rendered = renderer.render(value)
        except Exception as error:
            error.add_note(_where(task, name, value, error, context))
            raise
        setattr(task, name, rendered)


def needs_rendering(task: Any) -> bool:
    """Is there anything for `render_fields` to do, or to complain about?"""
    try:
        renderer = _Renderer(task, {}, None)
        return any(renderer.concerns(getattr(task, name)) for name in _fields_of(task))
    except Exception:
        return True  # where the task runs, its log says what is wrong


def render_value(value: Any, context: Mapping[str, Any], task: Any, jinja_env: jinja2.Environment | None = None) -> Any:
    """Render one value (a text, or containers of them) as if it were a templated field of `task`."""
    renderer = _Renderer(task, context, jinja_env)
    return renderer.render(value) if renderer.concerns(value) else value


def _fields_of(thing: Any) -> Collection[str]:
    fields = thing.template_fields
    if isinstance(fields, str):
        raise AirflowException(
            f"{type(thing).__name__}.template_fields is the text {fields!r}; it must be a tuple of names: ({fields!r},)"
        )
    return fields  # type: ignore[no-any-return]


def _has_fields(value: object) -> bool:
    return bool(getattr(value, "template_fields", None))


def _where(task: Any, name: str, value: Any, error: Exception, context: Mapping[str, Any]) -> str:
    """The line under an error that says where it happened and what may have been meant."""
    shown = repr(value)
    note = f"in the templated field {name!r} of task {getattr(task, 'task_id', '?')!r}: "
    note += shown if len(shown) <= 200 else shown[:199] + "…"
    unknown = _UNDEFINED.match(str(error))
    if unknown is not None:
        note += did_you_mean(unknown.group(1), context)
    return note


class _Renderer:
    """Renders values in one context. The environment is made when the first template needs it."""

    def __init__(self, task: Any, context: Mapping[str, Any], env: jinja2.Environment | None) -> None:
        self._task = task
        self._context = context
        self._env = env
        self._globals: dict[str, Any] | None = None
        self._extensions = tuple(getattr(task, "template_ext", ()))
        self._seen: set[int] = set()

    # --- is there anything to do? ---------------------------------------------------------------------------------

    def concerns(self, value: Any) -> bool:
        """Does it contain a template, the name of a template file, or the result of another task?"""
        return self._concerns(value, set())

    def _concerns(self, value: Any, seen: set[int]) -> bool:
        if isinstance(value, str):
            return _MARK.search(value) is not None or (bool(self._extensions) and value.endswith(self._extensions))
        if isinstance(value, _PLAIN):
            return False
        if isinstance(value, ResolveMixin):
            return True
        if id(value) in seen:
            return False
        seen.add(id(value))
        if isinstance(value, dict):
            return any(self._concerns(item, seen) for item in value.values())
        if isinstance(value, list | tuple | set | frozenset):
            return any(self._concerns(item, seen) for item in value)
        return not isinstance(value, type) and _has_fields(value)

    # --- rendering ------------------------------------------------------------------------------------------------

    def render(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, ResolveMixin):
            return value.resolve(self._context)
        if type(value) is tuple:
            return tuple(self.render(item) for item in value)
        if isinstance(value, tuple):  # a named one
            return type(value)(*(self.render(item) for item in value))
        if isinstance(value, list):
            return [self.render(item) for item in value]
        if isinstance(value, dict):
            return {key: self.render(item) for key, item in value.items()}
        if isinstance(value, set):
            return {self.render(item) for item in value}
        if isinstance(value, frozenset):
            return frozenset(self.render(item) for item in value)
        if not isinstance(value, type) and _has_fields(value):
            self._nested(value)
        return value

    def _nested(self, thing: Any) -> None:
        """An object inside a field that has templated fields of its own: rendered in place, once."""
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        for name in _fields_of(thing):
            setattr(thing, name, self.render(getattr(thing, name)))

    def _text(self, value: str) -> Any:
        named = bool(self._extensions) and value.endswith(self._extensions)
        if not named and _MARK.search(value) is None:
            return value
        if not named and (written := self._names_only(value)) is not None:
            return written
        env = self.environment()
        template = env.get_template(value) if named else env.from_string(value)
        return self._fill(env, template)

    def _names_only(self, value: str) -> str | None:
        """The text of a template in which nothing stands but names of context variables, `{{ ds }}`; None: it is another one.

        Most are. Jinja would write the same, after a millisecond of reading and compiling.
        """
        if self._env is not None or "\r" in value or value.endswith("\n") or not _is_usual(self._task):
            return None
        parts = _NAME.split(value)
        for text in parts[0::2]:
            if text.endswith("{") or _MARK.search(text) is not None:
                return None
        if not all(name in self._context and name not in _WORDS for name in parts[1::2]):
            return None
        parts[1::2] = [str(self._context[name]) for name in parts[1::2]]
        return "".join(parts)

    def environment(self) -> jinja2.Environment:
        """The Jinja environment of this rendering."""
        if self._env is None:
            dag = self._task.get_dag() if hasattr(self._task, "get_dag") else None
            self._env = environment_for(dag, native=getattr(self._task, "render_template_as_native_obj", None))
        return self._env

    def _fill(self, env: jinja2.Environment, template: jinja2.Template) -> Any:
        """Run a compiled template without making a copy of the context: its values are made only when they are read."""
        from jinja2 import Undefined  # lazy door: see the module's text
        from jinja2.nativetypes import NativeEnvironment, native_concat

        names = _Names(self._context, template.globals)
        frame = _frame_class()(env, parent=names, name=template.name, blocks=template.blocks)
        try:
            if isinstance(env, NativeEnvironment):
                found = native_concat(template.root_render_func(frame))
                # an unknown name alone comes out as itself; looking at its text raises, unless the DAG tolerates it
                return str(found) if isinstance(found, Undefined) else found
            return env.concat(template.root_render_func(frame))
        except Exception:
            env.handle_exception()  # rewrites the traceback to the template's lines


class _Names(Mapping[str, Any]):
    """The names that a template sees: the context's, then the environment's globals (macros, range …)."""

    __slots__ = ("_first", "_then")

    def __init__(self, first: Mapping[str, Any], then: Mapping[str, Any]) -> None:
        self._first = first
        self._then = then

    def __getitem__(self, name: str) -> Any:
        return self._first[name] if name in self._first else self._then[name]

    def __contains__(self, name: object) -> bool:
        return name in self._first or name in self._then

    def __iter__(self) -> Iterator[str]:
        yield from self._first
        yield from (name for name in self._then if name not in self._first)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> dict[str, Any]:
        """What was made so far. Jinja copies names to show them in a traceback: that must not make the others."""
        return {**_made(self._then), **_made(self._first)}


def _made(names: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(names, _Names):
        return names.copy()
    return names.made() if isinstance(names, Context) else names


_frame: Any = None


def _frame_class() -> Any:
    """Jinja's context, which hands the names on as they are: its own `get_all` would make every value."""
    global _frame
    if _frame is None:
        from jinja2.runtime import Context as JinjaContext

        class Frame(JinjaContext):
            def get_all(self) -> Any:
                return _Names(self.vars, self.parent) if self.vars else self.parent

        _frame = Frame
    return _frame


# --- the environment ------------------------------------------------------------------------------------------------


def search_path(dag: Any) -> list[str]:
    """Where template files are looked up: the DAG file's folder, then the DAG's `template_searchpath`."""
    folders = []
    folder = getattr(dag, "folder", None)
    if folder:
        folders.append(os.fspath(folder))
    more = getattr(dag, "template_searchpath", None) or ()
    folders.extend([os.fspath(more)] if isinstance(more, str | os.PathLike) else [os.fspath(path) for path in more])
    return folders


def environment_for(dag: Any = None, *, native: bool | None = None, force_sandboxed: bool = False) -> jinja2.Environment:
    """The Jinja environment for the templates of a DAG (None: without files, macros and filters of its own).

    `native`: give Python values instead of texts; None: what the DAG says. `force_sandboxed`: texts, whatever it says.
    """
    if native is None:
        native = bool(getattr(dag, "render_template_as_native_obj", False))
    import jinja2  # lazy door: costs 75 ms, and only tasks with templates pay
    from jinja2.nativetypes import NativeEnvironment
    from jinja2.sandbox import SandboxedEnvironment

    options: dict[str, Any] = {
        "loader": jinja2.FileSystemLoader(search_path(dag)),
        "undefined": getattr(dag, "template_undefined", None) or jinja2.StrictUndefined,
        "extensions": ["jinja2.ext.do"],
        "cache_size": 0,
    }
    options.update(getattr(dag, "jinja_environment_kwargs", None) or {})
    if native and not force_sandboxed:
        env: jinja2.Environment = NativeEnvironment(**options)
    else:
        env = _sandbox(SandboxedEnvironment)(**options)
    env.filters.update(FILTERS)
    env.globals.update(getattr(dag, "user_defined_macros", None) or {})
    env.filters.update(getattr(dag, "user_defined_filters", None) or {})
    return env


_sandbox_class: Any = None


def _sandbox(base: Any) -> Any:
    """The sandbox that lets `_private` attributes be read, but not the interpreter's own (`__class__`)."""
    global _sandbox_class
    if _sandbox_class is None:
        from jinja2.sandbox import is_internal_attribute

        class Sandbox(base):  # type: ignore[misc]
            def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
                return not is_internal_attribute(obj, attr)

        _sandbox_class = Sandbox
    return _sandbox_class


def _moment_filter(write: Callable[[Any], str]) -> Callable[[Any], str | None]:
    """None stays None: `{{ None | ds }}` is `None`, as in Airflow."""
    return lambda value: None if value is None else write(value)


FILTERS: dict[str, Callable[[Any], str | None]] = {
    "ds": _moment_filter(lambda value: value.strftime("%Y-%m-%d")),
    "ds_nodash": _moment_filter(lambda value: value.strftime("%Y%m%d")),
    "ts": _moment_filter(lambda value: value.isoformat()),
    "ts_nodash": _moment_filter(lambda value: value.strftime("%Y%m%dT%H%M%S")),
    "ts_nodash_with_tz": _moment_filter(lambda value: value.isoformat().replace("-", "").replace(":", "")),
}
"""Filters for dates, by Airflow's names."""
