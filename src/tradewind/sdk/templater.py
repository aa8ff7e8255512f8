"""`Templater`: the methods with which operators and notifiers render their templated attributes.

Operators of provider packages override some of them: `_do_render_template_fields` to change an attribute before it is rendered,
`_render_nested_template_fields` to render objects of a client library. Where a class overrides none, all fields are rendered at
once by `execution.templates`, which skips values without templates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any


class Templater:
    """Base class of objects with templated attributes."""

    template_fields: Collection[str] = ()
    """Names of the attributes that are rendered with Jinja."""
    template_ext: Sequence[str] = ()
    """If a templated string ends with one of these, it names a template file."""
    render_template_as_native_obj: bool | None = None

    def get_dag(self) -> Any:
        """The DAG whose folder, macros and filters the templates use, or None."""
        return None

    def get_template_env(self, dag: Any = None) -> Any:
        """The Jinja environment of this object's templates."""
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import environment_for

        return environment_for(dag or self.get_dag(), native=self.render_template_as_native_obj)

    _is_prepared = False
    """True after `resolve_template_files`."""

    def prepare_template(self) -> None:
        """Called after template files are read and before they are rendered. Operators define it, to change what was read."""

    def resolve_template_files(self) -> None:
        """Replace the names of template files in templated attributes with the content of the files, and prepare the templates."""
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import read_template_files

        if self.template_ext:
            read_template_files(self)
        self.prepare_template()
        self._is_prepared = True

    def render_template(self, content: Any, context: Any, jinja_env: Any = None, seen_oids: Any = None) -> Any:
        """`content` (a string, or containers of strings) rendered like a templated attribute."""
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import render_value

        return render_value(content, context, self, jinja_env, seen_oids)

    def _do_render_template_fields(
        self, parent: Any, template_fields: Iterable[str], context: Any, jinja_env: Any, seen_oids: set[int]
    ) -> None:
        """Render attributes of `parent`, which is this object or one inside its attributes, in place."""
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import render_attributes

        render_attributes(self, parent, template_fields, context, jinja_env, seen_oids)

    def _render_nested_template_fields(self, value: Any, context: Any, jinja_env: Any, seen_oids: set[int]) -> None:
        """Render an object inside an attribute by the object's own `template_fields`, in place and once."""
        if id(value) in seen_oids:
            return
        seen_oids.add(id(value))
        nested = nested_fields(value)
        if nested and not isinstance(value, type):
            self._do_render_template_fields(value, nested, context, jinja_env, seen_oids)


def nested_fields(value: object) -> Collection[str]:
    """The `template_fields` of an object inside an argument of a task; empty if the object has none.

    A client of a database or service may answer every attribute, or raise any error when it is asked for one. So only a
    collection of names counts.
    """
    try:
        found = getattr(value, "template_fields", ())
    except Exception:
        return ()
    return found if isinstance(found, str | list | tuple | set | frozenset) else ()


def needs_preparation(templater: object) -> bool:
    """True if the object's class defines `prepare_template`, which was not called yet."""
    return (
        isinstance(templater, Templater)
        and type(templater).prepare_template is not Templater.prepare_template
        and not templater._is_prepared
    )


def overrides_rendering(templater: object) -> bool:
    """True if the object's class changes how attributes or objects inside them are rendered."""
    cls: Any = type(templater)
    return isinstance(templater, Templater) and any(
        getattr(cls, name) is not getattr(Templater, name)
        for name in ("_do_render_template_fields", "_render_nested_template_fields", "render_template")
    )
