"""Translates a command line of Airflow into one of Tradewind, by the table in `airflow_command_table`. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tradewind.cli.airflow_command_table import FORMS, IGNORED_OPTIONS, Form, OptionRule
from tradewind.model.errors import NotYetSupported, WrongArgument, did_you_mean

OurOptions = Mapping[str, int]
"""Options of a command of Tradewind: name → how many words follow it."""


class Translation(NamedTuple):
    """A command line of Tradewind.

    Attributes:
        form: the form of Airflow that was given.
        words: the command line, without `tradewind`.
        notes: sentences about options that have no effect.
    """

    form: Form
    words: list[str]
    notes: list[str]


@functools.cache
def forms_by_name() -> dict[str, list[Form]]:
    """The words of a command of Airflow → its forms."""
    found: dict[str, list[Form]] = {}
    for form in FORMS:
        found.setdefault(form.airflow, []).append(form)
    return found


def find_form(words: Sequence[str]) -> tuple[Form, list[str]]:
    """The form that a command line of Airflow has, and the words after its name.

    Raises:
        WrongArgument: Airflow has no such command; the message names the nearest one.
    """
    names = forms_by_name()
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in names:
            return _chosen(names[name], list(words[length:]))
    if words and (verbs := [name for name in names if name.startswith(f"{words[0]} ")]):
        given = words[1] if len(words) > 1 else ""
        known = [verb.partition(" ")[2] for verb in verbs]
        hint = did_you_mean(given, known) or f" There are: {', '.join(known)}."
        raise WrongArgument(f"airflow {words[0]} has no command {given!r}.{hint}")
    given = words[0] if words else ""
    hint = did_you_mean(" ".join(words[:2]), [name for name in names if " " in name]) if len(words) > 1 else ""
    hint = hint or did_you_mean(given, [*names, *(name.partition(" ")[0] for name in names)])
    raise WrongArgument(f"airflow has no command {given!r}.{hint}")


def _chosen(forms: Sequence[Form], rest: list[str]) -> tuple[Form, list[str]]:
    for form in forms:
        if not form.when:
            return form, rest
        for place, word in enumerate(rest):
            if word in form.when:
                return form, rest[:place] + rest[place + 1 :]
            name, equals, value = word.partition("=")
            if equals and name in form.when:
                return form, [*rest[:place], value, *rest[place + 1 :]]
    form = forms[-1]
    spellings = ", ".join(one.when[-1] for one in forms if one.when)
    raise WrongArgument(f"airflow {form.airflow} needs one of the options {spellings}")


def translate(words: Sequence[str], options_of: Callable[[str], OurOptions]) -> Translation:
    """Translate a command line of Airflow.

    Args:
        words: the command line, without `airflow`.
        options_of: gives the options of a command of Tradewind.

    Raises:
        NotYetSupported: Tradewind has no such command, or refuses an option; the message says what to use instead.
        WrongArgument: Airflow has no such command.
    """
    form, rest = find_form(words)
    if form.unneeded:
        return Translation(form, [], [form.sentence])
    if not form.tradewind:
        raise NotYetSupported(form.sentence)
    reading = _OptionReader(form, options_of(form.tradewind))
    reading.read(rest)
    values = [template.format(value) for template, value in zip(form.arguments, reading.values, strict=False)]
    values += reading.values[len(form.arguments) :]
    options = [*_with_both_dates(form, reading.options), *(value for value in values if value.startswith("--"))]
    arguments = [value for value in values if not value.startswith("--")]
    guard = ["--"] if any(value.startswith("-") for value in arguments) else []
    options += [option for option in form.added if option not in options]
    return Translation(form, [*form.tradewind.split(), *options, *guard, *arguments], reading.notes)


def _with_both_dates(form: Form, options: list[str]) -> list[str]:
    """Complete the options of a backfill of Airflow 1 and 2: one date means a single run, no reprocess behavior is needed for a DAG
    that depends on the past, and the command waits until the backfill has ended.
    """
    if form.tradewind != "backfill create" or form.airflow == form.tradewind:
        return options
    for one, other in (("--from-date", "--to-date"), ("--to-date", "--from-date")):
        if one in options and other not in options:
            options = [*options, other, options[options.index(one) + 1]]
    if "--reprocess-behavior" not in options:
        options = [*options, "--accept-depends-on-past"]
    return options if "--dry-run" in options else [*options, "--wait"]


class _OptionReader:
    """Sorts the words after the name of a command into options and arguments."""

    def __init__(self, form: Form, ours: OurOptions) -> None:
        self.form = form
        self.options: list[str] = []
        self.values: list[str] = []
        self.notes: list[str] = []
        self._ours = ours
        self._rules = {name: rule for rule in form.options for name in rule.names}
        ignored = {name: rule for rule in IGNORED_OPTIONS for name in rule.names}
        self._rules = {**{name: rule for name, rule in ignored.items() if name not in ours}, **self._rules}

    def read(self, rest: Sequence[str]) -> None:
        todo = list(rest)
        while todo:
            word = todo.pop(0)
            if word == "--":
                self.values += todo
                return
            if not word.startswith("-") or word == "-" or re.match(r"-\d", word):
                self.values.append(word)
            elif word.startswith("--"):
                name, equals, value = word.partition("=")
                self._option(self._full_name(name), [value] if equals else None, todo)
            else:
                self._short(word, todo)

    def _full_name(self, name: str) -> str:
        """The long option that is meant, in the spelling of Airflow 3: hyphens, and not abbreviated."""
        hyphens = name.replace("_", "-")
        known = {*self._rules, *self._ours}
        if hyphens in known or name in known:
            return hyphens if hyphens in known else name
        longer = [one for one in known if one.startswith(hyphens)]
        return longer[0] if len(longer) == 1 else name

    def _short(self, word: str, todo: list[str]) -> None:
        """Read `-s`, `-sd`, `-sVALUE` or a group of flags, `-fy`."""
        if word in self._rules or word in self._ours:
            self._option(word, None, todo)
            return
        first, more = word[:2], word[2:]
        rule = self._rules.get(first)
        known = rule.values if rule is not None else self._ours.get(first)
        if not more or known is None:
            self.options.append(word)  # the command names its own options in the error
        elif known:
            self._option(first, [more], todo)
        else:
            self._option(first, None, todo)
            todo.insert(0, f"-{more}")

    def _option(self, name: str, value: list[str] | None, todo: list[str]) -> None:
        rule = self._rules.get(name)
        count = rule.values if rule is not None else self._ours.get(name, 0)
        if value is None:
            value, todo[:] = todo[:count], todo[count:]
        if rule is None:
            self.options += [name, *value]
        else:
            self._apply(name, rule, value)

    def _apply(self, name: str, rule: OptionRule, value: list[str]) -> None:
        if rule.refused is not None:
            raise NotYetSupported(f"{name}: {rule.refused}")
        if rule.to is None:
            if rule.dropped:
                self.notes.append(f"{name} has no effect: {rule.dropped}")
        elif rule.to == "{}":
            self.values += value
        else:
            self.options += [*rule.to.split(), *value]
