"""What operators and sensors that call a function share; and what stands behind `@task` above such a function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tradewind.execution.call_arguments import arguments_for, know_signature
from tradewind.execution.run_task import finished
from tradewind.execution.templates import render_value
from tradewind.model.errors import DefinitionError
from tradewind.sdk.decorators import DecoratedOperator
from tradewind.sdk.operator import BaseOperator


class CallsFunction(BaseOperator):
    """Base of tasks that call a function: what it is called with.

    Args:
        python_callable: the function, which may be `async`. Parameters named like context variables (`ds`, `ti`, …) receive
            them; with `**kwargs` it receives them all.
        op_args, op_kwargs: what it is called with; templates in them are rendered.
        templates_dict: a dictionary of templates, handed to the function as `templates_dict`.
        templates_exts: endings of template files that may be named there.
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
        know_signature(self.python_callable)

    def call(self, context: Any) -> Any:
        """Call the function in this context; an `async` one is run to its end."""
        if self.templates_dict is not None:
            context["templates_dict"] = self.templates_dict
        return finished(self.python_callable(*self.op_args, **self.determine_kwargs(context)))

    def determine_kwargs(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keyword arguments of the call."""
        return arguments_for(self.python_callable, self.op_args, self.op_kwargs, context)


def written_by(operator: DecoratedOperator, context: Any) -> Any:
    """What the function behind an operator like `@task.bash` returns: a text (or several) to be carried out, rendered.

    Raises:
        TypeError: it is neither a text nor a list of texts, or an empty one.
    """
    function = operator.python_callable
    call = arguments_for(function, operator.op_args, operator.op_kwargs, context)
    found = finished(function(*operator.op_args, **call))
    texts = found if isinstance(found, list | tuple) else [found]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        name = getattr(function, "__name__", "the function")
        raise TypeError(f"{name}, under {operator.operator_name}, returned {found!r}; it must return what is to be carried out")
    return render_value(found, context, operator)


class DecoratedCall(DecoratedOperator):
    """Mix it in before a `CallsFunction`: `class BranchPythonDecoratedOperator(DecoratedCall, BranchPythonOperator)`."""

    template_fields: Collection[str] = CallsFunction.template_fields

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
