"""Rendering of templated fields with Jinja, configured as in Airflow.

A string is a template if it contains `{{`, `{%` or `{#`. As with Jinja, another string loses a line break at its end; in a native
environment a literal of Python becomes its value (`"1"` becomes 1). A string that ends with one of the operator's `template_ext`
is the name of a template file, which is searched beside the DAG file and in the DAG's `template_searchpath`. Tasks without
templates never import Jinja. An unknown name is an error (StrictUndefined); the message names the field and the closest variable.

The environment is sandboxed; attributes with one leading underscore are readable, as in Airflow. The native environment
(`render_template_as_native_obj`) gives Python values instead of strings and is not sandboxed, as in Airflow: the author of the
template is the author of the DAG, whose code runs anyway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tradewind.execution.context import Context
from tradewind.model.errors import did_you_mean
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.templater import needs_preparation, nested_fields, overrides_rendering
from tradewind.sdk.xcom_arg import ResolveMixin

if TYPE_CHECKING:
    import jinja2

_MARK = re.compile(r"\{[{%#]")
_UNDEFINED = re.compile(r"^'([^']+)' is undefined")
_PLAIN = (int, float, bool, bytes, type(None))


_NAME = re.compile(r"\{\{ *([A-Za-z_]\w*) *\}\}")
_JINJA_WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "self", "loop", "super", "caller"})
"""Names with a meaning of their own in Jinja."""


def _uses_standard_environment(task: Any) -> bool:
    """Whether the task's templates give strings and the DAG does not change Jinja's options."""
    dag = task.get_dag() if hasattr(task, "get_dag") else None
    native = getattr(task, "render_template_as_native_obj", None)
    if native is None:
        native = getattr(dag, "render_template_as_native_obj", False)
    return not native and not getattr(dag, "jinja_environment_kwargs", None)


def _with_line_breaks_of_jinja(text: str) -> str:
    """A text without templates as Jinja renders it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def render_fields(task: Any, context: Mapping[str, Any], jinja_env: jinja2.Environment | None = None) -> None:
    """Replace every templated field of `task` with its rendered value.

    Args:
        task: an operator (or any object with `template_fields`); it is changed in place.
        context: the context variables.
        jinja_env: None: the environment of the task's DAG, created only if a field needs it.

    Raises:
        jinja2.TemplateError: a template is invalid or uses an unknown name; a note on the error names the field.
        AirflowException: the operator has no attribute for a name in `template_fields`.
    """
    if overrides_rendering(task):
        task._do_render_template_fields(task, _template_fields(task), context, jinja_env or task.get_template_env(), set())
        return
    renderer = _Renderer(task, context, jinja_env)
    for name in _template_fields(task):
        value = _attribute(task, name)
        if value is None or (isinstance(value, str) and not value):
            continue
        if not (_is_function(value) or renderer.needs_rendering(value)):
            continue
        try:
            rendered = _call(value, context, renderer) if _is_function(value) else renderer.render(value)
        except Exception as error:
            error.add_note(_location_note(task, name, value, error, context))
            raise
        setattr(task, name, rendered)


def render_attributes(
    owner: Any, parent: Any, names: Iterable[str], context: Mapping[str, Any], jinja_env: Any, seen: set[int]
) -> None:
    """Render some attributes of an object with the methods of another one, which may override how values are rendered.

    Args:
        owner: the operator or notifier.
        parent: the object whose attributes are replaced: the owner, or an object inside its attributes.
        seen: ids of objects that were rendered already.
    """
    for name in names:
        value = _attribute(parent, name)
        if value is None or (isinstance(value, str | list | tuple | dict | set) and not value):
            continue
        try:
            if _is_function(value):
                rendered = value(context=context, jinja_env=jinja_env)
            else:
                rendered = owner.render_template(value, context, jinja_env, seen)
        except Exception as error:
            error.add_note(_location_note(owner, name, value, error, context))
            raise
        setattr(parent, name, rendered)


def _attribute(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name)
    except AttributeError:
        raise AirflowException(
            f"{type(thing).__name__} declares {name!r} in template_fields but has no such attribute; set self.{name} in __init__"
        ) from None


def _is_function(value: Any) -> bool:
    """True for a function as the value of a templated field: it is called when the task runs, with context and jinja_env."""
    return callable(value) and not isinstance(value, type | ResolveMixin) and not _has_fields(value)


def _call(function: Any, context: Mapping[str, Any], renderer: _Renderer) -> Any:
    return function(context=context, jinja_env=renderer.environment())


def read_template_files(task: Any) -> None:
    """Replace the names of template files in the templated fields of `task` with the content of the files.

    The name of a file that is not found stays: `prepare_template` of some operators opens it from another folder.
    """
    for name in _template_fields(task):
        value = getattr(task, name, None)
        if isinstance(value, str):
            setattr(task, name, _content_of(task, name, value))
        elif isinstance(value, list):
            value[:] = [_content_of(task, name, item) if isinstance(item, str) else item for item in value]


def _content_of(task: Any, name: str, value: str) -> str:
    """The content of the file that `value` names; `value` itself if it names none."""
    if not value.endswith(tuple(task.template_ext)):
        return value
    from jinja2 import TemplateNotFound  # lazy import: see the module's docstring

    env = task.get_template_env()
    try:
        found: str = env.loader.get_source(env, value)[0]
    except TemplateNotFound:
        task.log.warning("%s is %r, which is in no folder of the template files of this DAG", name, value)
        return value
    return found


def needs_rendering(task: Any) -> bool:
    """True if `render_fields` has something to render, or would raise an error."""
    try:
        if overrides_rendering(task) or needs_preparation(task):
            return True
        renderer = _Renderer(task, {}, None)
        values = [getattr(task, name) for name in _template_fields(task)]
        return any(_is_function(value) or renderer.needs_rendering(value) for value in values)
    except Exception:
        return True  # the attempt will raise the error and log it


def render_value(
    value: Any,
    context: Mapping[str, Any],
    task: Any,
    jinja_env: jinja2.Environment | None = None,
    seen: set[int] | None = None,
) -> Any:
    """Render one value (a string, or containers of strings) like a templated field of `task`."""
    renderer = _Renderer(task, context, jinja_env, seen)
    return renderer.render(value) if renderer.needs_rendering(value) else value


def _template_fields(thing: Any) -> Collection[str]:
    fields = thing.template_fields
    if isinstance(fields, str):
        raise AirflowException(
            f"{type(thing).__name__}.template_fields is the string {fields!r}; it must be a tuple of names: ({fields!r},)"
        )
    return fields  # type: ignore[no-any-return]


def _has_fields(value: object) -> bool:
    return bool(nested_fields(value))


def _location_note(task: Any, name: str, value: Any, error: Exception, context: Mapping[str, Any]) -> str:
    """A note for an error: in which field it occurred, and the closest variable to an unknown name."""
    shown = repr(value)
    note = f"in the templated field {name!r} of task {getattr(task, 'task_id', '?')!r}: "
    note += shown if len(shown) <= 200 else shown[:199] + "…"
    unknown = _UNDEFINED.match(str(error))
    if unknown is not None:
        note += did_you_mean(unknown.group(1), context)
    return note


class _Renderer:
    """Renders values with one context. The environment is created when the first template needs it."""

    def __init__(
        self, task: Any, context: Mapping[str, Any], env: jinja2.Environment | None, seen: set[int] | None = None
    ) -> None:
        self._task = task
        self._context = context
        self._env = env
        self._globals: dict[str, Any] | None = None
        self._extensions = tuple(getattr(task, "template_ext", ()))
        self._seen: set[int] = set() if seen is None else seen
        self._overridden = overrides_rendering(task)
        self._plain_text_stays = env is None and _uses_standard_environment(task)
        """Whether a text without templates stays as it is, apart from its line breaks."""

    # --- check ----------------------------------------------------------------------------------------------------

    def needs_rendering(self, value: Any) -> bool:
        """True if the value contains a template, the name of a template file, or the result of another task."""
        return self._contains_template(value, set())

    def _contains_template(self, value: Any, seen: set[int]) -> bool:
        if isinstance(value, str):
            if not self._plain_text_stays or "\r" in value or value.endswith("\n"):
                return True
            return _MARK.search(value) is not None or (bool(self._extensions) and value.endswith(self._extensions))
        if isinstance(value, _PLAIN):
            return False
        if isinstance(value, ResolveMixin):
            return True
        if id(value) in seen:
            return False
        seen.add(id(value))
        if isinstance(value, dict):
            return any(self._contains_template(item, seen) for item in value.values())
        if isinstance(value, list | tuple | set | frozenset):
            return any(self._contains_template(item, seen) for item in value)
        return not isinstance(value, type) and (self._overridden or _has_fields(value))

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
        if isinstance(value, tuple):  # a named tuple
            return type(value)(*(self.render(item) for item in value))
        if isinstance(value, list):
            return [self.render(item) for item in value]
        if isinstance(value, dict):
            return {key: self.render(item) for key, item in value.items()}
        if isinstance(value, set):
            return {self.render(item) for item in value}
        if isinstance(value, frozenset):
            return frozenset(self.render(item) for item in value)
        if not isinstance(value, type) and self._overridden:
            self._task._render_nested_template_fields(value, self._context, self.environment(), self._seen)
        elif not isinstance(value, type) and _has_fields(value):
            self._nested(value)
        return value

    def _nested(self, thing: Any) -> None:
        """Render the templated fields of an object inside a field, in place and only once."""
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        for name in _template_fields(thing):
            setattr(thing, name, self.render(getattr(thing, name)))

    def _text(self, value: str) -> Any:
        is_file = bool(self._extensions) and value.endswith(self._extensions)
        if not is_file and self._plain_text_stays and _MARK.search(value) is None:
            return _with_line_breaks_of_jinja(value)
        if not is_file and (rendered := self._render_names_only(value)) is not None:
            return rendered
        env = self.environment()
        template = env.get_template(value) if is_file else env.from_string(value)
        return self._fill(env, template)

    def _render_names_only(self, value: str) -> str | None:
        """Render a template that contains only names of context variables, such as `{{ ds }}`; None for any other template.

        Most templates are like this. The result is the same as Jinja's, without a millisecond for parsing and compiling.
        """
        if self._env is not None or "\r" in value or value.endswith("\n") or not _uses_standard_environment(self._task):
            return None
        parts = _NAME.split(value)
        for text in parts[0::2]:
            if text.endswith("{") or _MARK.search(text) is not None:
                return None
        if not all(name in self._context and name not in _JINJA_WORDS for name in parts[1::2]):
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
        """Run a compiled template without copying the context, so that values are computed only when they are read."""
        from jinja2 import Undefined  # lazy import: see the module's docstring
        from jinja2.nativetypes import NativeEnvironment, native_concat

        names = _TemplateNames(self._context, template.globals)
        frame = _frame_class()(env, parent=names, name=template.name, blocks=template.blocks)
        try:
            if isinstance(env, NativeEnvironment):
                found = native_concat(template.root_render_func(frame))
                # an unknown name as the whole template gives an Undefined object; str() raises unless the DAG allows unknown names
                return str(found) if isinstance(found, Undefined) else found
            return env.concat(template.root_render_func(frame))
        except Exception:
            env.handle_exception()  # changes the traceback to lines of the template


class _TemplateNames(Mapping[str, Any]):
    """The names in a template: first the context variables, then the environment's globals (macros, range …)."""

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
        """The values that were computed so far. Jinja copies names for tracebacks; this must not compute the others."""
        return {**_computed(self._then), **_computed(self._first)}


def _computed(names: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(names, _TemplateNames):
        return names.copy()
    return names.computed() if isinstance(names, Context) else names


_frame: Any = None


def _frame_class() -> Any:
    """A subclass of Jinja's Context that does not copy the names, because a copy would compute every value."""
    global _frame
    if _frame is None:
        from jinja2.runtime import Context as JinjaContext

        class Frame(JinjaContext):
            def get_all(self) -> Any:
                return _TemplateNames(self.vars, self.parent) if self.vars else self.parent

        _frame = Frame
    return _frame


# --- the environment ------------------------------------------------------------------------------------------------


def search_path(dag: Any) -> list[str]:
    """The folders in which template files are searched: the folder of the DAG file, then the DAG's `template_searchpath`."""
    folders = []
    folder = getattr(dag, "folder", None)
    if folder:
        folders.append(os.fspath(folder))
    more = getattr(dag, "template_searchpath", None) or ()
    folders.extend([os.fspath(more)] if isinstance(more, str | os.PathLike) else [os.fspath(path) for path in more])
    return folders


def environment_for(dag: Any = None, *, native: bool | None = None, force_sandboxed: bool = False) -> jinja2.Environment:
    """The Jinja environment for the templates of a DAG. None: without template files, own macros and own filters.

    Args:
        native: render to Python values instead of strings. None: as the DAG says.
        force_sandboxed: render to strings in the sandbox, whatever the DAG says.
    """
    if native is None:
        native = bool(getattr(dag, "render_template_as_native_obj", False))
    import jinja2  # lazy import: takes 75 ms, and only tasks with templates need it
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
    """A sandbox that allows reading `_private` attributes, but not attributes of the interpreter such as `__class__`."""
    global _sandbox_class
    if _sandbox_class is None:
        from jinja2.sandbox import is_internal_attribute

        class Sandbox(base):  # type: ignore[misc]
            def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
                return not is_internal_attribute(obj, attr)

        _sandbox_class = Sandbox
    return _sandbox_class


def _date_filter(write: Callable[[Any], str]) -> Callable[[Any], str | None]:
    """A filter that keeps None: `{{ None | ds }}` is `None`, as in Airflow."""
    return lambda value: None if value is None else write(value)


FILTERS: dict[str, Callable[[Any], str | None]] = {
    "ds": _date_filter(lambda value: value.strftime("%Y-%m-%d")),
    "ds_nodash": _date_filter(lambda value: value.strftime("%Y%m%d")),
    "ts": _date_filter(lambda value: value.isoformat()),
    "ts_nodash": _date_filter(lambda value: value.strftime("%Y%m%dT%H%M%S")),
    "ts_nodash_with_tz": _date_filter(lambda value: value.isoformat().replace("-", "").replace(":", "")),
}
"""Filters for dates, with Airflow's names."""
