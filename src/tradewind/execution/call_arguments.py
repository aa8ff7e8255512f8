"""Arguments for a call of an author's function: its own arguments and the context variables that it takes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, NamedTuple

from tradewind.execution.context import COMMON_NAMES, PARTITION_NAMES
from tradewind.model.errors import did_you_mean

log = logging.getLogger("tradewind.task")


def call_post_execute(task: Any, context: Any, result: Any) -> None:
    """Call `post_execute` of a task.

    Airflow 1.8 and 3.3 pass no result, so classes of users may take only the context: `def post_execute(self, context)`.
    """
    method = task.post_execute
    if _takes(method, context, result):
        method(context, result)
    elif _takes(method, context, result=result):
        method(context, result=result)
    else:
        method(context)


def _takes(function: Callable[..., Any], *positional: Any, **by_name: Any) -> bool:
    try:
        inspect.signature(function).bind(*positional, **by_name)
    except (TypeError, ValueError):  # ValueError: a function of a C extension has no signature
        return False
    return True


class _Parameters(NamedTuple):
    """The parameters of a function, in the form that a call needs."""

    positional: tuple[str, ...]
    by_name: tuple[tuple[str, bool], ...]
    """(name, gets the variable of this name also if it has a common name) for each parameter that can be passed by name."""
    names: frozenset[str]
    any_keyword: bool


@functools.lru_cache(maxsize=256)
def _parameters_of(function: Callable[..., Any]) -> _Parameters:
    if type(function) is FunctionType and not function.__dict__:
        return _of_plain_function(function)
    found = inspect.signature(function).parameters.values()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return _Parameters(
        positional=tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)),
        by_name=tuple((p.name, p.default is p.empty or _is_free(p.name, p.default)) for p in found if p.kind in named),
        names=frozenset(p.name for p in found),
        any_keyword=any(p.kind is p.VAR_KEYWORD for p in found),
    )


def _of_plain_function(function: FunctionType) -> _Parameters:
    """The parameters from the function's code object. This is ten times faster than `inspect.signature`."""
    code, defaults = function.__code__, function.__defaults__ or ()
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    required = count - len(defaults)
    by_name = [
        (names[i], i < required or _is_free(names[i], defaults[i - required])) for i in range(code.co_posonlyargcount, count)
    ]
    of_names = function.__kwdefaults__ or {}
    by_name += [(name, name not in of_names or _is_free(name, of_names[name])) for name in names[count : count + only]]
    variadic = names[count + only : count + only + bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)]
    return _Parameters(
        positional=names[:count],
        by_name=tuple(by_name),
        names=frozenset((*names[: count + only], *variadic)),
        any_keyword=bool(code.co_flags & CO_VARKEYWORDS),
    )


def _is_free(name: str, default: Any) -> bool:
    """True if a parameter with this default gets the context variable of its name, although the name is a common one."""
    return default is None and name in PARTITION_NAMES


def cache_signature(function: Callable[..., Any]) -> None:
    """Read the signature now, so that a later `arguments_for` finds it in the cache."""
    with contextlib.suppress(TypeError, ValueError):
        _parameters_of(function)


def arguments_for(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """The keyword arguments for a call `function(*args, **…)`.

    A parameter with the name of a context variable gets that variable, unless `args` or `kwargs` give it a value. A function with
    `**kwargs` gets all variables. Variables with common names (`conf`, `end_date`) are passed only to parameters without a default;
    those of partitions also to parameters with the default None.
    Arguments that the function does not take are ignored with a warning, as in Airflow.
    """
    try:
        positional, by_name, names, any_keyword = _parameters_of(function)
    except (TypeError, ValueError):
        return dict(kwargs)  # some functions written in C have no signature
    given = positional[: len(args)]
    found: dict[str, Any] = {}
    if any_keyword:
        found.update((name, context[name]) for name in context if name not in names)
    for name, required in by_name:
        if name not in given and name in context and (required or name not in COMMON_NAMES):
            found[name] = context[name]
    for name, value in kwargs.items():
        if any_keyword or name in names:
            found[name] = value
        else:
            guess = did_you_mean(name, sorted(names))
            shown = getattr(function, "__name__", repr(function))
            log.warning("%s takes no argument %r; the argument is ignored.%s", shown, name, guess)
    return found
