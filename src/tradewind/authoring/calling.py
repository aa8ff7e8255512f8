"""Calling an author's function: which context variables it is handed beside its own arguments."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tradewind.authoring.context import COMMON_WORDS
from tradewind.model.errors import did_you_mean

log = logging.getLogger("tradewind.task")

_signature = functools.lru_cache(maxsize=256)(inspect.signature)


def know_signature(function: Callable[..., Any]) -> None:
    """Read the signature now, so that a later `arguments_for` finds it read."""
    with contextlib.suppress(TypeError, ValueError):
        _signature(function)


def arguments_for(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """The keyword arguments to call `function(*args, **…)` with.

    A parameter named like a context variable receives it, unless `args` or `kwargs` already give it a value; a function
    with `**kwargs` receives all of them. Old names that are everyday words (`conf`, `end_date`) go only to parameters
    without a default. What the function does not take is left out with a warning, as Airflow leaves it out.
    """
    try:
        parameters = _signature(function).parameters
    except (TypeError, ValueError):
        return dict(kwargs)  # some functions written in C do not say what they take
    taken = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = {parameter.name for parameter in taken[: len(args)]}
    found: dict[str, Any] = {}
    any_keyword = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if any_keyword:
        found.update((name, context[name]) for name in context if name not in parameters)
    for name, parameter in parameters.items():
        if name in given or parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in context and (name not in COMMON_WORDS or parameter.default is parameter.empty):
            found[name] = context[name]
    for name, value in kwargs.items():
        if any_keyword or name in parameters:
            found[name] = value
        else:
            guess = did_you_mean(name, parameters)
            shown = getattr(function, "__name__", repr(function))
            log.warning("%s takes no argument %r, which is left out.%s", shown, name, guess)
    return found
