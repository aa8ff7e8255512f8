"""Base classes of operators and sensors that call a Python function, and of the operators of their `@task` decorators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tradewind.execution.call_arguments import arguments_for, cache_signature
from tradewind.execution.run_task import run_to_end
from tradewind.execution.templates import render_value
from tradewind.model.errors import DefinitionError
from tradewind.sdk.decorators import DecoratedOperator
from tradewind.sdk.operator import BaseOperator


class CallableOperator(BaseOperator):
    """Base class of operators and sensors that call a function.

    Args:
        python_callable: the function; it may be `async`. A parameter with the name of a context variable (`ds`, `ti`, …) gets that
            variable; a function with `**kwargs` gets all of them.
        op_args, op_kwargs: arguments of the function; templates in them are rendered.
        templates_dict: a dictionary of templates, passed to the function as `templates_dict`.
        templates_exts: file extensions of template files in `templates_dict`.
    """

    template_fields: Collection[str] = ("templates_dict", "op_args", "op_kwargs")
    template_fields_renderers: Mapping[str, str] = {"templates_dict": "json", "op_args": "py", "op_kwargs": "py"}

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        templates_exts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise DefinitionError(f"{self._name_in_errors()}: python_callable is {python_callable!r}; it must be a function")
        self.python_callable = python_callable
        self.op_args: Any = op_args if op_args is not None else ()
        self.op_kwargs: Any = op_kwargs if op_kwargs is not None else {}
        self.templates_dict = templates_dict
        if templates_exts:
            self.template_ext = tuple(templates_exts)

    def warm_up(self) -> None:
        super().warm_up()
        cache_signature(self.python_callable)

    def call(self, context: Any) -> Any:
        """Call the function with this context; the coroutine of an `async` function is run to its end."""
        return run_to_end(self.python_callable(*self.op_args, **self.call_kwargs(context)))

    def call_kwargs(self, context: Any) -> Mapping[str, Any]:
        """Add `op_kwargs` and `templates_dict` to the context. Returns the keyword arguments of the call."""
        context.update(self.op_kwargs)
        if self.templates_dict is not None:
            context["templates_dict"] = self.templates_dict
        return self.determine_kwargs(context)

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keyword arguments of the call: `op_kwargs` and the context variables that the function takes."""
        return arguments_for(self.python_callable, self.op_args, self.op_kwargs, context)


def rendered_result(operator: DecoratedOperator, context: Any) -> Any:
    """Call the function of an operator such as `@task.bash` and render the returned command or statement.

    Raises:
        TypeError: the function returned neither a string nor a list of strings, or an empty one.
    """
    function = operator.python_callable
    context.update(operator.op_kwargs)
    call = arguments_for(function, operator.op_args, operator.op_kwargs, context)
    found = run_to_end(function(*operator.op_args, **call))
    texts = found if isinstance(found, list | tuple) else [found]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        name = getattr(function, "__name__", "the function")
        raise TypeError(
            f"the {operator.operator_name} function {name} returned {found!r}; it must return a non-empty string or a list of these"
        )
    return render_value(found, context, operator)


class DecoratedCallableOperator(DecoratedOperator):
    """Base class of `@task` operators that derive from a `CallableOperator`, which comes second.

    Example: `class BranchPythonDecoratedOperator(DecoratedCallableOperator, BranchPythonOperator)`.
    """

    template_fields: Collection[str] = CallableOperator.template_fields

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            kwargs_to_upstream={"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs},
            **kwargs,
        )
