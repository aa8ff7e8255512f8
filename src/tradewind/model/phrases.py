"""Sentences as values: a code and its arguments, so that a client can show them in the language of its user.

English texts come from `sentences.TEMPLATES`; a client has its own template for each code. A client that does not know a
code shows the English sentence, which the server sends, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, reduce
from string import Formatter

import msgspec

from tradewind.model.errors import nearest
from tradewind.model.sentences import TEMPLATES


class Phrase(msgspec.Struct, frozen=True):
    """A sentence, or a part of one, as a code and its arguments."""

    code: str
    """Names a template, in `model/sentences.py` and in the messages of the web page."""
    arguments: dict[str, str | int | Phrase | list[str | Phrase]] = {}
    """Placeholder → value. A moment is ISO 8601 in UTC. `state` and names that end with `_state` are states. A list is shown with
    separators."""


Argument = str | int | Phrase | list[str | Phrase]


def phrase(code: str, /, **arguments: Argument) -> Phrase:
    """Return a phrase. `arguments` has exactly the placeholders of the template (tests/shape/test_phrases.py)."""
    return Phrase(code, arguments)


class _Text(str):
    """An argument in English.

    The format `lower` makes its first letter lowercase. `run|runs` gives the first word for the number 1, otherwise the second.
    """

    __slots__ = ()

    def __format__(self, how: str) -> str:
        if "|" in how:
            return how.split("|")[self != "1"]
        return self[:1].lower() + self[1:] if how == "lower" else str(self)


def english(value: Argument) -> str:
    """Return a phrase, or an argument of a phrase, in English. Raises KeyError: there is no template, or an argument is missing."""
    if isinstance(value, Phrase):
        return TEMPLATES[value.code].format_map({name: _Text(english(one)) for name, one in value.arguments.items()})
    return ", ".join(map(english, value)) if isinstance(value, list) else str(value)


def recognised(text: str, codes: Iterable[str]) -> Phrase | None:
    """Return the phrase of a stored English text, from the first of these templates that matches; None: none matches."""
    for code in codes:
        found = _pattern(code).fullmatch(text)
        if found is not None:
            return Phrase(code, {**found.groupdict()})
    return None


@cache
def _pattern(code: str) -> re.Pattern[str]:
    """A regular expression for the texts of a template. A state is one word."""
    parts = []
    for literal, name, how, _ in Formatter().parse(TEMPLATES[code]):
        parts.append(re.escape(literal))
        if how and "|" in how:
            parts.append(f"(?:{how})")
        elif name is not None:
            parts.append(f"(?P<{name}>{'[a-z_]+' if name == 'state' else '.+'})")
    return re.compile("".join(parts))


def placeholders(template: str) -> set[str]:
    """Return the names of the placeholders of a template."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def then(first: Phrase, *others: Phrase | None) -> Phrase:
    """Return several sentences as one phrase. None is left out."""
    return reduce(lambda left, right: phrase("then", first=left, second=right), filter(None, others), first)


def semicolons(parts: Iterable[Phrase]) -> Phrase:
    """Return parts of a sentence, at least one, separated by semicolons."""
    return reduce(lambda left, right: phrase("semicolon", first=left, second=right), parts)


def all_of(parts: Iterable[str | Phrase]) -> Argument:
    """Return one argument for several words: "a, b and c"."""
    words = list(parts)
    return words if len(words) < 2 else phrase("and", left=words[:-1], right=words[-1])


def any_of(parts: Iterable[str | Phrase]) -> Argument:
    """Return one argument for several words: "a or b or c"."""
    words = list(parts)
    return reduce(lambda left, right: phrase("or", left=left, right=right), words) if words else ""


def any_state(states: Iterable[str]) -> Argument:
    """Return one argument for several states: "success or skipped"."""
    return any_of(phrase("state", state=state) for state in states)


def quoted(names: Iterable[str]) -> list[str | Phrase]:
    """Return names, each in quotation marks."""
    return [phrase("quoted", text=name) for name in names]


def did_you_mean(name: str, choices: Iterable[str]) -> Phrase | None:
    """Return the question for the valid choice closest to a misspelt `name`; None: no choice is close."""
    found = nearest(name, choices)
    return phrase("did_you_mean", name=found) if found else None
